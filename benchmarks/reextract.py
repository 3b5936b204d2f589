"""A crawl against the same parsing on its archive: `python -m benchmarks.reextract [PAGES]`.

A spider that takes an item from each page crawls the demo web as fast as that responds; then the
same spider runs on the archive. Both as a user would start them, start and end included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scrapy import Spider
from scrapy.http import Response, TextResponse

from crawlproj.demo import DemoServer, FrozenClock, HostSpec, grid_profile

ROOT = Path(__file__).resolve().parents[1]
PER_HOST = 17
NOW = 1_790_000_000.0
SETTINGS = {
    "SPIDER_MODULES": "benchmarks.reextract",
    "GUARD_ALLOW_PRIVATE": "1",
    "POLITENESS_DELAY": "0",
    "POLITENESS_SLOWDOWN": "0",
    "POLITENESS_SERVER_DELAY": "0",
    "POLITENESS_PAUSE_AFTER": "0",
    "POLITENESS_HOSTS_PER_SERVER": "100",
    "CRAWL_PATIENCE": "1",
}


class TitlesSpider(Spider):
    name = "titles"

    def __init__(self, seeds: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = seeds.split(",")

    def wants(self, url: str) -> bool:
        return True

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        if isinstance(response, TextResponse):
            texts = response.css("p::text").getall()
            yield {
                "url": response.url,
                "title": response.css("title::text").get(),
                "text": " ".join(texts),
            }


def run(word: str, seeds: str, folder: Path, names: dict[str, str]) -> tuple[float, list[str], str]:
    """Seconds, sorted items, and what the command printed."""
    out = folder / f"{word}.jsonl"
    command = [
        sys.executable,
        "-m",
        "scrapy",
        word,
        "titles",
        "-a",
        f"seeds={seeds}",
        "-O",
        str(out),
    ]
    for name, value in {
        **SETTINGS,
        "CRAWL_DIR": str(folder),
        "DNS_HOSTS": json.dumps(names),
    }.items():
        command += ["-s", f"{name}={value}"]
    start = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return time.monotonic() - start, sorted(out.read_text().splitlines()), done.stdout


def main() -> None:
    hosts = 1 + (int(sys.argv[1]) if len(sys.argv) > 1 else 3_000) // PER_HOST
    with DemoServer(
        grid_profile(hosts, addresses=24, like=HostSpec("", articles=12)),
        clock=FrozenClock(NOW),
        t0=NOW - 1_000,
    ) as demo:
        seeds = ",".join(demo.url(name, "/") for name in demo.web.sites)
        with TemporaryDirectory(prefix="bench-reextract-") as name:
            crawled_s, items, _ = run("crawl", seeds, Path(name), names=demo.dns_hosts)
            requests = len(demo.log.records())
            again_s, again, said = run("reextract", seeds, Path(name), names=demo.dns_hosts)
            assert len(demo.log.records()) == requests, "it went to the network"
    print(
        f"{len(items):,} items: {crawled_s:.1f} s by a crawl without pauses, {again_s:.1f} s from "
        "its archive"
    )
    print("the same items" if items == again else f"NOT the same: {len(again):,} items")
    print(said.strip())


if __name__ == "__main__":
    main()
