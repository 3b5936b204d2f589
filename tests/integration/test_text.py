"""What is kept of a page's text and links, from the answer of a server to the rows of the database."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.content.packed_text import full_text, main_text, unpack_blocks
from crawlproj.database.connection import Database
from crawlproj.frontier.stored_links import LinksRow, StoredLink, read_links
from tests.support.crawling import Result, run_command, run_crawl
from tests.support.documents import long_pdf

TEXTS = json.loads((Path(__file__).parents[1] / "data" / "languages.json").read_text())
ENGLISH = TEXTS["en"][0]
CZECH = TEXTS["cs"][0]
"""Undeclared, in windows-1250."""
LINE = "The paper tells how a crawler comes back to pages before their readers do."
GERMAN = TEXTS["de"][0]
PAPER = long_pdf(1, f"BT /F1 9 Tf 9 9 Td ({LINE}) Tj ET")
START = f"""<html lang=en><head><title>Start</title><meta name=description content="All of it"></head>
<body><nav><a href=/czech>Czech</a> <a href=/german hreflang=de title="In German">German</a>
<a href=/german>Deutsch</a> <a href=/paper>Paper</a></nav>
<main><h1>A heading</h1><p>{ENGLISH}</p></main>
<a href=/advert rel=nofollow>Advert</a>
<a href=/later rel=nofollow>No</a> <a href=/later>Yes</a>
<a href=http://elsewhere.test/page>Elsewhere</a><a href=/empty></a><a href=/void></a></body></html>"""
PAGES = {
    "/": (START.encode(), "text/html; charset=utf-8"),
    "/czech": (f"<html><body><p>{CZECH}</p></body></html>".encode("windows-1250"), "text/html"),
    "/german": (f"<html lang=en><body><p>{GERMAN}</p></body></html>".encode(), "text/html"),
    "/later": (b"<html><body>short</body></html>", "text/html"),
    "/empty": (b"", "text/html"),
    "/void": (b"", "text/html"),
    "/paper": (PAPER, "application/pdf"),
}


class Site(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body, kind = PAGES.get(self.path, (b"", "text/plain"))
        self.send_response(200 if self.path in PAGES else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def base() -> Iterator[str]:
    Site.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def crawl(base: str, database_url: str, folder: Path, **settings: object) -> Result:
    result = run_crawl(
        ["site", "-a", f"seeds={base}/"],
        {
            "DATABASE_URL": database_url,
            "CRAWL_PATIENCE": 0,
            "FRONTIER_FLUSH": 0.2,
            "LANGUAGE_ENABLED": True,
            **settings,
        },
        folder,
    )
    assert result.code == 0, result.stderr + result.log
    return result


def test_text_language_and_links_of_each_page_are_kept(
    base: str, database_url: str, tmp_path: Path
) -> None:
    result = crawl(base, database_url, tmp_path)
    assert "/advert" not in Site.asked and "/later" in Site.asked
    assert result.stats["languages/found"] == 7 and "languages/missed" not in result.stats
    database = Database(database_url)
    rows = database.run_script("""
        select u.canonical, p.reader, p.charset, p.language, p.declared_language, p.words, t.blocks
        from crawlproj.page p join crawlproj.url u on u.id = p.url
        left join crawlproj.page_text t on t.url = p.url""")
    pages = {url.removeprefix(base): row for url, *row in rows}
    read = {path: tuple(row[:4]) for path, row in pages.items() if path != "/robots.txt"}
    assert read == {
        "/": ("html", "utf-8", "en", "en"),
        "/czech": ("html", "windows-1250", "cs", ""),
        "/german": ("html", "utf-8", "de", "en"),
        "/later": ("html", "utf-8", "und", ""),
        "/paper": ("pdf", "utf-8", "en", ""),
        "/empty": ("html", "utf-8", "und", ""),
        "/void": ("html", "utf-8", "und", ""),
    }
    assert full_text(unpack_blocks(pages["/czech"][-1])) == CZECH
    assert LINE in full_text(unpack_blocks(pages["/paper"][-1]))
    start = unpack_blocks(pages["/"][-1])
    assert [(block.kind, block.text) for block in start[:2]] == [
        ("title", "Start"),
        ("description", "All of it"),
    ]
    assert main_text(start) == f"A heading\n{ENGLISH}"
    assert "Deutsch" in full_text(start) and "Advert" in full_text(start)
    assert pages["/"][4] == len(full_text(start).split())

    copies = database.run_script(
        "select count(*) from crawlproj.page where duplicate_of is not null"
    )
    assert copies == [(0,)], "empty pages are no copies of each other"
    ids = dict(database.run_script("select id, canonical from crawlproj.url"))
    (row,) = database.run_script(f"""
        select known, known_kinds, known_texts, other, other_kinds, other_texts, details
        from crawlproj.page_links where url = (select id from crawlproj.url where canonical = '{base}/')""")
    links = {
        (link.url or ids[link.id]).removeprefix(base): link._replace(id=None, url=None)
        for link in read_links(LinksRow(*row))
    }
    database.close()
    assert links == {
        "/czech": StoredLink(None, None, "a", texts=("Czech",)),
        "/german": StoredLink(
            None, None, "a", texts=("German", "Deutsch"), title="In German", hreflang="de"
        ),
        "/paper": StoredLink(None, None, "a", texts=("Paper",)),
        "/advert": StoredLink(None, None, "a", nofollow=True, texts=("Advert",)),
        "/empty": StoredLink(None, None, "a"),
        "/void": StoredLink(None, None, "a"),
        "/later": StoredLink(None, None, "a", texts=("No", "Yes")),
        "http://elsewhere.test/page": StoredLink(None, None, "a", texts=("Elsewhere",)),
    }
    said = run_command(["explain", f"{base}/"], tmp_path, {"DATABASE_URL": database_url}).stdout
    assert "8 links, 6 to pages of the crawl, 1 not to be followed" in said
    assert "language en" in said


def test_what_is_switched_off_is_not_kept(base: str, database_url: str, tmp_path: Path) -> None:
    crawl(base, database_url, tmp_path, TEXT_ENABLED=False)
    database = Database(database_url)
    languages = database.run_script("select distinct language, words from crawlproj.page")
    (texts,) = database.run_script("select count(*) from crawlproj.page_text")
    (marks,) = database.run_script("select count(*) from crawlproj.exact")
    database.close()
    assert languages == [("", 0)] and texts == (0,)
    assert marks[0] >= 5, "bytes and digests are compared all the same"
