"""One quick host without any pause: `python -m benchmarks.one_host [PAGES] [ROUNDS] [FOLDER]`.

The server runs in a process of its own and does next to nothing. Nothing is to wait but for the
server's answer, so the CPU of worker and Postgres must fill the time, and the server must not see
gaps while URLs wait in Postgres. FOLDER: the checkout whose code is measured, for comparisons.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.cost import QUIET, ROOT
from crawlproj.database.embedded.server import EmbeddedPostgres

LINKS = 20
WORDS = "The quick brown fox jumps over the lazy dog near the river bank in the evening. "
GAP_S = 0.05
"""No request may come later than this after the one before."""


class OneHost(asyncio.Protocol):
    """Answers each request with a page of 10 KB that links to others; notes when it came."""

    def __init__(self, pages: int, times: list[float]) -> None:
        self._pages = pages
        self._times = times
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            self._times.append(time.monotonic())
            self._transport.write(answer_to(head.split(b" ", 2)[1].decode(), self._pages))


def answer_to(path: str, pages: int) -> bytes:
    """The response to a request for this path."""
    if path == "/robots.txt":
        return response_of(b"404 Not Found", b"none")
    number = int(path.strip("/") or 0)
    links = [(number * LINKS + step + 1) % pages for step in range(LINKS)]
    anchors = "".join(f'<li><a href="/{link}">Page {link} of the site</a></li>' for link in links)
    text = "".join(f"<p>{number} {step} {WORDS * 4}</p>" for step in range(25))
    body = (
        f"<html><head><title>Page {number}</title></head><body><h1>Page {number}</h1>"
        f"<ul>{anchors}</ul>{text}</body></html>"
    )
    return response_of(b"200 OK", body.encode())


def response_of(status: bytes, body: bytes) -> bytes:
    return (
        b"HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s"
        % (
            status,
            len(body),
            body,
        )
    )


async def serve(pages: int) -> None:
    """Serve until standard input ends, then print when each request came."""
    times: list[float] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: OneHost(pages, times), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(json.dumps(times), flush=True)
    server.close()


def measure(pages: int, tree: Path) -> dict[str, Any]:
    """Crawl the host once, with the code in `tree`."""
    folder = Path(tempfile.mkdtemp(prefix="one-host-"))
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.one_host", "serve", str(pages)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with EmbeddedPostgres(folder / "db") as postgres:
            metered = crawl(port, folder, postgres.start(), tree=tree)
        times = json.loads(server.communicate("")[0])
        return metered | gaps_of(times)
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)


def crawl(port: int, folder: Path, url: str, tree: Path) -> dict[str, Any]:
    meter = folder / "meter.json"
    more = {
        "CRAWL_DIR": folder,
        "DATABASE_URL": url,
        "METER_FILE": meter,
        "METER_PG_DATA": folder / "db" / "pg" / "data",
    }
    command = [sys.executable, "-m", "scrapy", "crawl", "site"]
    command += ["-a", f"seeds=http://127.0.0.1:{port}/"]
    for name, value in {**QUIET, **more}.items():
        command += ["-s", f"{name}={value}"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        if line.strip().startswith("Time "):
            print(line.strip())
    result: dict[str, Any] = json.loads(meter.read_text())
    return {
        "pages": result["pages"],
        "us_per_page": result["cpu_us_per_page"],
        "postgres_us": result["postgres_us"],
        "starved": result.get("starved"),
    }


def gaps_of(times: list[float]) -> dict[str, Any]:
    """What the server saw, without the start and the end of the crawl: there are no URLs yet, or
    none any more.
    """
    first, last = len(times) // 50, len(times) - len(times) // 50
    inner = times[first:last]
    gaps = sorted(after - before for before, after in pairwise(inner))
    wall_s = inner[-1] - inner[0]
    return {
        "pages_per_s": round(len(gaps) / wall_s, 1),
        "gap_ms_median": round(gaps[len(gaps) // 2] * 1e3, 1),
        "gap_ms_p99": round(gaps[len(gaps) * 99 // 100] * 1e3, 1),
        "gap_ms_largest": round(gaps[-1] * 1e3, 1),
        "gaps_over_50_ms": sum(gap > GAP_S for gap in gaps),
        "gaps_at": [
            number
            for number, (before, after) in enumerate(pairwise(inner), first)
            if after - before > GAP_S
        ],
        "gaps_share": round(sum(gap for gap in gaps if gap > GAP_S) / wall_s, 3),
    }


def main(pages: int, rounds: int, tree: Path) -> int:
    for _ in range(rounds):
        found = measure(pages, tree)
        found["cpu_to_wall"] = round(found["us_per_page"] * found["pages_per_s"] / 1e6, 2)
        found["load"] = os.getloadavg()[0]
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(int(sys.argv[2])))
        sys.exit(0)
    words = sys.argv[1:] + ["2000", "3", str(ROOT)][len(sys.argv) - 1 :]
    sys.exit(main(int(words[0]), int(words[1]), Path(words[2]).resolve()))
