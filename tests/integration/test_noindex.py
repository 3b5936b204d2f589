"""A page that says noindex is no original and no copy, from when it says so until it no longer
does: also if its text, or all of its bytes, stay the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from tests.support.copies import article, html
from tests.support.crawling import Result, run_crawl

SETTINGS = {
    "FRONTIER_FLUSH": 0.2,
    "CRAWL_PATIENCE": 0,
    "POLITENESS_DELAY": 0,
    "POLITENESS_SERVER_DELAY": 0,
    "REVISIT_MIN": "1s",
    "REVISIT_INTERVAL": "1s",
}
META = "<meta name=robots content=noindex>"


class Site:
    """Two pages with one text, and one that always says noindex in its head."""

    def __init__(self) -> None:
        self.metas: set[str] = {"/third"}
        """Paths whose pages say noindex in a meta element; with other bytes than before."""
        self.headers: set[str] = set()
        """Paths whose responses say so in a header."""
        self.unmodified: set[str] = set()
        """Paths for which a 304 comes."""

    def page(self, path: str) -> str | None:
        head = META if path in self.metas else ""
        if path == "/":
            links = "".join(f"<a href={name}>{name}</a>" for name in ("/a", "/b", "/third"))
            return html(article(2), "Start") + links
        if path in ("/a", "/b", "/third"):
            return html(article(1), "Same", head)
        return None


@pytest.fixture
def site() -> Iterator[tuple[Site, str]]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = site.page(self.path)
            status = 404 if page is None else 200
            if self.path in site.unmodified and self.headers.get("If-None-Match"):
                status = 304
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("ETag", '"one"')
            if self.path in site.headers:
                self.send_header("X-Robots-Tag", "noindex")
            self.end_headers()
            if status != 304:
                self.wfile.write((page or "").encode())

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield site, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.proof
def test_noindex_that_comes_and_goes_makes_a_page_no_copy_and_one_again(
    site: tuple[Site, str], database_url: str, tmp_path: Path
) -> None:
    pages, base = site

    def crawl() -> Result:
        time.sleep(1.1)
        words = ["site", "-a", f"seeds={base}/"]
        done = run_crawl(words, {"DATABASE_URL": database_url, **SETTINGS}, tmp_path)
        assert done.code == 0, done.stderr + done.log
        assert not [name for name in done.stats if name.startswith("log_count/ERROR")]
        return done

    def stored() -> tuple[str, set[tuple[str, str]]]:
        """Which pages say noindex, and which are copies of which."""
        database = Database(database_url)
        rows = database.run_script("""
            select u.canonical, p.noindex, o.canonical from crawlproj.page p
            join crawlproj.url u on u.id = p.url left join crawlproj.url o on o.id = p.duplicate_of
            order by 1""")
        database.close()
        paths = [(url.removeprefix(base), hidden, of) for url, hidden, of in rows]
        hidden_paths = " ".join(path for path, hidden, _ in paths if hidden)
        return hidden_paths, {(path, of.removeprefix(base)) for path, _, of in paths if of}

    pair = ({("/a", "/b")}, {("/b", "/a")})
    crawl()
    hidden, copies = stored()
    assert hidden == "/third" and copies in pair

    pages.headers = {"/a"}
    crawl()
    assert stored() == ("/a /third", set()), "a header, the same bytes"
    pages.unmodified = {"/a"}
    pages.headers = set()
    done = crawl()
    assert stored() == ("/a /third", set()), "a 304 without the header keeps it"
    assert done.stats["pages/not_modified"] == 1
    assert done.stats["pages/same_bytes"] == 3, "also of the page with the meta element"

    pages.unmodified = set()
    crawl()
    hidden, copies = stored()
    assert hidden == "/third" and copies in pair, "the header is gone, the same bytes"

    pages.metas.add("/b")
    crawl()
    assert stored() == ("/b /third", set()), "a meta element, the same text"
    pages.metas.remove("/b")
    crawl()
    hidden, copies = stored()
    assert hidden == "/third" and copies in pair, "it is gone, the same text"

    pages.unmodified = pages.headers = {"/b"}
    crawl()
    assert stored() == ("/b /third", set()), "a 304 with the header"
