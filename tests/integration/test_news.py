"""`scrapy crawl news`: sites from a file are crawled, and what its rules ignore is not."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.crawling import ROOT, run_command, run_crawl


class Web(BaseHTTPRequestHandler):
    """Two papers, the feed of one on a host of others, and an odd page that all link to."""

    protocol_version = "HTTP/1.1"
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        name, _, port = self.headers["Host"].partition(":")
        if self.path == "/robots.txt":
            self._answer(404, "text/plain", "")
            return
        self.asked.append(f"{name}{self.path}")
        if self.path == "/moved":
            self._answer(302, "text/html", "", location=f"http://feeds.test:{port}/one.xml")
        elif self.path.endswith(".xml"):
            link = f"http://www.one.test:{port}/2024/05/from-feed"
            self._answer(200, "application/rss+xml", RSS.format(link=link))
        else:
            links = [
                "/2024/05/story",
                "/calendar/2024",
                "/calendar/news",
                f"http://else.test:{port}/",
            ]
            links += [f"http://blog.one.test:{port}/calendar/x", f"http://feeds.test:{port}/"]
            self._answer(200, "text/html", "".join(f'<a href="{link}">x</a>' for link in links))

    def _answer(self, status: int, kind: str, body: str, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None: ...


RSS = (
    '<?xml version="1.0"?><rss version="2.0"><channel><title>x</title><item><title>x</title>'
    "<link>{link}</link></item></channel></rss>"
)
FILE = """\
sites:
  - name: one
    domains: [one.test]
    seeds: ["http://www.one.test:{port}/"]
    sources: ["http://www.one.test:{port}/moved", "http://www.one.test:{port}/calendar/feed.xml"]
    rules:
      - article: {{prefix: /calendar/news}}
      - ignore: {{prefix: /calendar/}}
      - nofollow: {{prefix: /x}}
  - name: two
    domains: [two.test]
    seeds: ["http://two.test:{port}/"]
"""


@pytest.fixture
def port() -> Iterator[int]:
    Web.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_a_crawl_of_a_file_of_sites(port: int, database_url: str, tmp_path: Path) -> None:
    settings = {
        "DATABASE_URL": database_url,
        "DNS_HOSTS": json.dumps({"*.test": "127.0.0.1"}),
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
    }
    file = tmp_path / "sites.yaml"
    file.write_text(FILE.format(port=port))
    result = run_crawl(["news", "-a", f"sites={file}"], settings, tmp_path)
    assert result.code == 0, result.stderr + result.log
    one = {
        "www.one.test/",
        "www.one.test/moved",
        "feeds.test/one.xml",
        "www.one.test/calendar/feed.xml",
        "www.one.test/calendar/news",
        "www.one.test/2024/05/story",
        "www.one.test/2024/05/from-feed",
    }
    two = {
        f"two.test{path}" for path in ("/", "/2024/05/story", "/calendar/2024", "/calendar/news")
    }
    assert set(Web.asked) == one | two
    said = result.stdout + result.stderr + result.log
    assert "nofollow are checked, but take effect in a later version" in said
    assert "rules ignore seeds or sources, which are read all the same" in said

    ignored = f"http://www.one.test:{port}/calendar/2024"
    explained = run_command(["explain", ignored, "--json"], tmp_path, settings)
    facts = json.loads(explained.stdout)
    assert (facts["state"], facts["why"]) == ("left out", "rule")
    assert facts["rule"] == "ignore: {prefix: /calendar/} of the site one"
    words = run_command(["explain", ignored], tmp_path, settings).stdout
    assert "a rule of its site ignores it (ignore: {prefix: /calendar/} of the site one)" in words

    # A rule less: what it ignored is followed now, from links that are known.
    file.write_text(FILE.format(port=port).replace("      - ignore: {prefix: /calendar/}\n", ""))
    Web.asked = []
    result = run_crawl(["news", "-a", f"sites={file}"], settings, tmp_path)
    assert result.code == 0, result.stderr + result.log
    assert {"www.one.test/calendar/2024", "blog.one.test/calendar/x"} <= set(Web.asked)


def test_mistakes_end_the_command_with_a_line_each(tmp_path: Path) -> None:
    file = tmp_path / "sites.yaml"
    file.write_text('sites:\n  - domain: [a.test]\n  - host: "a b"\n')
    relative = os.path.relpath(file, ROOT)
    result = run_command(["crawl", "news", "-a", f"sites={relative}"], tmp_path)
    assert result.code == 2
    assert result.stderr.splitlines() == [
        f"crawlproj: {relative}, line 2, column 5: unknown key 'domain': did you mean domains?",
        f"crawlproj: {relative}, line 3, column 11: host: 'a b' is no name of a host: write "
        "example.org, without https:// and path",
    ]
    result = run_command(["crawl", "news"], tmp_path)
    assert result.code == 2
    assert (
        "crawlproj: say which sites: -a sites=FILE.yaml, a file such as `sites: [{" in result.stderr
    )
