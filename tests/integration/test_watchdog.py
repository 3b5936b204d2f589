"""A page that hangs a worker does so once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.crawling import run_command, run_crawl
from tests.support.webs import rows

PATHS = ["/now/1", "/now/hangs", "/now/2", "/later/3", "/later/hangs", "/later/4"]


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = " ".join(PATHS).encode() if self.path == "/start" else b"a page"
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def base() -> Iterator[str]:
    Pages.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_page_that_hangs_a_worker_is_set_aside_and_the_others_are_read(
    base: str, database_url: str, tmp_path: Path
) -> None:
    settings = {
        "SPIDER_MODULES": "tests.spiders",
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 10,
        "POLITENESS_MAX_DELAY": 1,
        "WATCHDOG_TIMEOUT": "2s",
    }
    spider = ["hanging", "-a", f"base={base}"]
    hung = run_crawl(spider, settings, tmp_path)
    assert hung.code == 1, hung.stderr + hung.log
    [trace] = (tmp_path / "log").glob("hang-*.txt")
    assert "tests/spiders/hanging.py" in trace.read_text()
    assert len(list(tmp_path.glob("reading-*"))) == 1

    result = run_command(["workers", *spider, "-n", "1"], tmp_path, settings)
    assert result.code == 0, result.stdout + result.stderr + result.log
    assert "hung and was ended by its watchdog: started again" in result.stdout
    stored = {url.removeprefix(base): row for url, row in rows(database_url, "hanging").items()}
    aside = {path: (row.status, row.why) for path, row in stored.items() if row.state == "dead"}
    assert aside == {
        "/now/hangs": (200, "unread: too slow"),
        "/later/hangs": (200, "unread: too slow"),
    }
    assert {path for path in stored if stored[path].state == "waiting"} == {"/start", *PATHS} - {
        *aside
    }
    assert Pages.asked.count("/now/hangs") == Pages.asked.count("/later/hangs") == 1
    for path in aside:
        assert result.log.count(f"push it to try again: {base}{path}\n") == 1
    assert result.log.count("'watchdog/set_aside': 1") == 1  # a worker that hangs has no last word
    assert not list(tmp_path.glob("reading-*"))
    explained = run_command(
        ["explain", "--crawl", "hanging", f"{base}/now/hangs"], tmp_path, settings
    )
    assert "It failed (unread: too slow) and is not tried again" in explained.stdout
