"""Feeds on hosts that do not belong to the crawl: they belong to the site that names them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from tests.support.crawling import run_command, run_crawl


class Web(BaseHTTPRequestHandler):
    """A paper whose feed is elsewhere, has moved once more, and lists pages of others, too."""

    protocol_version = "HTTP/1.1"
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        name, _, port = self.headers["Host"].partition(":")
        if self.path == "/robots.txt":
            self._answer(404, "")
            return
        self.asked.append(f"{name}{self.path}")
        if (name, self.path) == ("paper.test", "/"):
            feed = f"http://feeds.other.test:{port}/paper"
            self._answer(200, f'<link rel=alternate type="application/rss+xml" href="{feed}"><p>A')
        elif (name, self.path) == ("feeds.other.test", "/paper"):
            self._answer(301, "", f"http://feeds.third.test:{port}/paper")
        elif name == "feeds.third.test":
            links = [f"http://paper.test:{port}/article", f"http://stranger.test:{port}/article"]
            items = "".join(f"<item><link>{link}</link></item>" for link in links)
            self._answer(200, f"<rss><channel>{items}</channel></rss>")
        else:
            self._answer(200, "<p>An article")

    def _answer(self, status: int, body: str, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_feed_of_another_host_is_read_and_what_it_lists_is_judged_by_the_scope(
    port: int, database_url: str, tmp_path: Path
) -> None:
    settings = {
        "DATABASE_URL": database_url,
        "DNS_HOSTS": json.dumps({"*.test": "127.0.0.1"}),
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
        "POLITENESS_DELAY": 0,
        "POLITENESS_SERVER_DELAY": 0,
        "POLITENESS_SLOWDOWN": 0,
        "REVISIT_INTERVAL": "1s",
        "REVISIT_MIN": "1s",
    }
    seed = f"http://paper.test:{port}/"
    # The second run has another scope: known URLs are judged by it, such feeds are not.
    for words in (["-a", f"seeds={seed}"], ["-a", "exclude=/nothing/"]):
        Web.asked.clear()
        result = run_crawl(["site", *words], settings, tmp_path)
        assert result.code == 0, result.stderr + result.log
        assert {"paper.test/", "feeds.third.test/paper", "paper.test/article"} <= set(Web.asked)
        assert "stranger.test/article" not in Web.asked
    said = run_command(["explain", f"http://feeds.third.test:{port}/paper"], tmp_path, settings)
    assert "a feed outside of the scope" in said.stdout

    # It is the paper's, wherever it is.
    said = run_command(["sources", "paper.test", "--json"], tmp_path, settings)
    kinds = {source["url"]: source["site"] for source in json.loads(said.stdout)["sources"]}
    assert kinds[f"http://feeds.third.test:{port}/paper"] == "paper.test"
    said = run_command(["sources", "--opml"], tmp_path, settings)
    assert 'htmlUrl="https://paper.test/"' in said.stdout
    database = Database(database_url)
    counted = dict(database.run_script("select name, feeds from crawlproj.site"))
    database.close()
    assert counted["paper.test"] == 1 and sum(counted.values()) == 1
