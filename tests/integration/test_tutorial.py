"""The spider of the tutorial, run as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from crawlproj.demo import DemoServer
from tests.support.crawling import ROOT, run_crawl


def test_the_spider_of_the_tutorial_writes_headlines_and_warns_before_they_are_overwritten(
    tmp_path: Path,
) -> None:
    code = re.search(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "tutorial.md").read_text(), re.M | re.S
    )
    assert code
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "headlines.py").write_text(code[1])
    out = tmp_path / "headlines.jsonl"
    with DemoServer("tiny") as demo:
        words = ["headlines", "-a", f"seeds={demo.url('one')}"]
        settings = {
            "DNS_HOSTS": demo.dns_hosts,
            "CRAWL_PATIENCE": "1s",
            "SPIDER_MODULES": "spiders,mine",
        }
        env = {"PYTHONPATH": str(tmp_path)}
        result = run_crawl([*words, "-o", str(out)], settings, tmp_path / "crawl", env=env)
        size = out.stat().st_size
        lines = out.read_text().splitlines()
        again = run_crawl([*words, "-O", str(out)], settings, tmp_path / "crawl", env=env)
        home = demo.url("one")
    found = {item["url"]: item["headline"] for item in map(json.loads, lines)}
    assert result.code == 0
    assert found[home] and len(found) > 5
    assert "Traceback" not in result.log + result.stderr
    assert result.stats["item_scraped_count"] == len(lines), "Pages are no items"
    assert "overwrite" not in result.stdout
    warning = f"Crawl headlines has read {result.stats['end/waiting']} pages before, so only items"
    assert again.stdout.count(warning) == 1, "on the screen"
    assert warning in again.log
    assert f"they overwrite (-o would add to) {out} ({size:,} bytes)" in again.log
    assert again.stdout.index(warning) < again.stdout.index("Crawl headlines ended")
    assert "-o" in again.stdout.partition("Try next:")[2]
