"""Ordinary spiders on the frontier: their requests live in the same table and end like
all others.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.demo import DemoServer
from tests.support.crawling import run_crawl, start_crawl
from tests.support.webs import demo_settings, rows

SETTINGS = {"SPIDER_MODULES": "tests.spiders", "FRONTIER_FLUSH": 0.2, "CRAWL_PATIENCE": 0}


class Echo(BaseHTTPRequestHandler):
    """Says what it was asked."""

    protocol_version = "HTTP/1.1"
    seen: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.seen.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        missing = self.path in ("/robots.txt", "/missing", "/allowed-404")
        answer = json.dumps(
            {"method": self.command, "body": body, "word": self.headers.get("X-Word")}
        ).encode()
        self.send_response(302 if self.path == "/redirect" else 404 if missing else 200)
        if self.path == "/redirect":
            self.send_header("Location", "/echo?moved")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def base() -> Iterator[str]:
    Echo.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def items(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_posts_headers_callbacks_and_errbacks_work_as_in_stock_scrapy(
    base: str, database_url: str, tmp_path: Path
) -> None:
    out = tmp_path / "items.jsonl"
    result = run_crawl(
        ["ordinary", "-a", f"base={base}", "-o", str(out)],
        {**SETTINGS, "DATABASE_URL": database_url},
        tmp_path,
    )
    assert result.code == 0, result.stderr + result.log
    found = [item for item in items(out) if "got" in item]
    posted = {item["word"]: item["seen"] for item in found if item["got"] == "posted"}
    assert posted["kwargs"] == {"method": "POST", "body": '{"n": 1}', "word": "hello"}
    assert posted["moved"] == {"method": "GET", "body": "", "word": None}
    got = sorted(item["got"] for item in found if item["got"] != "posted")
    assert got == ["again", "again", "allowed-404", "errback", "start", "twice"]
    assert result.stats["requests/unstorable"] == 2
    assert "can't be stored" in result.log
    states = {row.state for row in rows(database_url, "ordinary").values()}
    assert states == {"waiting", "gone", "moved"}


def test_a_second_run_asks_only_for_the_start_urls_again(
    base: str, database_url: str, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "DATABASE_URL": database_url, "SOURCE_MIN": 0.1}
    for _ in range(2):
        run_crawl(["ordinary", "-a", f"base={base}"], settings, tmp_path)
    times = {path: Echo.seen.count(path) for path in set(Echo.seen)}
    assert times["GET /start"] == 2
    assert times["POST /echo"] == 1 and times["GET /twice"] == 1 and times["POST /redirect"] == 1


def test_an_error_inside_the_scheduler_closes_the_crawl_with_a_reason(
    base: str, database_url: str, tmp_path: Path
) -> None:
    result = run_crawl(
        ["broken", "-a", f"base={base}"], {**SETTINGS, "DATABASE_URL": database_url}, tmp_path
    )
    assert result.code == 1
    assert result.stats["finish_reason"] == "scheduler_error"
    assert result.stats["scheduler/errors"] == 1


def test_closespider_limits_end_the_run_and_the_next_one_goes_on(
    base: str, database_url: str, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "DATABASE_URL": database_url, "POLITENESS_DELAY": 0.2}
    first = run_crawl(
        ["ordinary", "-a", f"base={base}"], {**settings, "CLOSESPIDER_PAGECOUNT": 3}, tmp_path
    )
    assert first.stats["finish_reason"] == "closespider_pagecount"
    assert "new" in {row.state for row in rows(database_url, "ordinary").values()}
    second = run_crawl(["ordinary", "-a", f"base={base}"], settings, tmp_path)
    assert second.stats["finish_reason"] == "finished"
    assert {row.state for row in rows(database_url, "ordinary").values()} == {
        "waiting",
        "gone",
        "moved",
    }


def test_a_download_that_hangs_does_not_hold_up_the_end(database_url: str, tmp_path: Path) -> None:
    with DemoServer("faults") as demo:
        url = demo.url("timeout.fault", "/timeout")
        settings = demo_settings(demo, database_url, CRAWL_SHUTDOWN=0.5)
        with start_crawl(["site", "-a", f"seeds={url}"], settings, tmp_path) as crawl:
            while not demo.log.records() and crawl.process.poll() is None:
                threading.Event().wait(0.1)
            threading.Event().wait(1)
            crawl.stop()
            result = crawl.wait(30)
    assert result.code == 130
    assert rows(database_url)[url].state == "new", "it was not fetched, and is still due"
    assert rows(database_url)[url].visits == 0
