"""A browser shows the pages of an archive as it showed them live: a real crawl, pywb on its files,
real Chromium.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Exchange, Original
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.records import REVISIT_MIME
from crawlproj.archive.writer import WarcWriter
from tests.support.browser import Browser
from tests.support.crawling import run_crawl
from tests.support.replayable import PAGES, serving
from tests.support.wayback import replaying
from tests.support.webs import make_due

pytestmark = pytest.mark.proof

FOUND = b"<p>found by the form</p>"
SHOWN = [path for path in PAGES if not path.endswith((".js", ".css", ".png"))]


def crawl_twice(base: str, database_url: str, folder: Path) -> None:
    settings = {
        "URL_SUFFIXES": "",  # pictures behind links too
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
        "REVISIT_INTERVAL": "1h",
    }
    for turn in range(2):
        result = run_crawl(["site", "-a", f"seeds={base}/"], settings, folder, 120)
        assert result.code == 0, result.stderr
        if turn == 0:
            make_due(database_url)


def add_twin(warc: Path, base: str) -> str:
    """A page that the archive has as "the same as another URL" only."""
    archive = Archive(warc)
    entry = archive.versions(f"{base}/copy")[0]
    record = archive.read(entry.file, entry.offset, entry.length)
    writer = WarcWriter(warc, "site", "twin", {"isPartOf": "site"})
    exchange = Exchange(f"{base}/twin", record.at, record.head, record.body)
    receipt = writer.put(exchange, Original(record.url, record.at, record.digest, record.id))
    writer.flush().result(60)
    writer.close()
    merge_indexes(warc)
    assert receipt.record_location is not None and receipt.record_location.kind == "revisit"
    return f"{base}/twin"


def add_form(warc: Path, base: str) -> None:
    """The answer to a form that was sent to the URL of a page, after that was read the
    last time.
    """
    last = Archive(warc).versions(f"{base}/plain")[-1]
    writer = WarcWriter(warc, "site", "form", {"isPartOf": "site"})
    top = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    asked = (
        b"POST /plain HTTP/1.1\r\nHost: a\r\nContent-Type: "
        b"application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\n"
    )
    writer.put(
        Exchange(f"{base}/plain", last.at + timedelta(seconds=1), top, FOUND, asked, b"q=one+two")
    )
    writer.close()
    merge_indexes(warc)


def address(base: str, path: str) -> str:
    return base + quote(path, safe="/?=&")


def look(browser: Browser, url: str, name: str, wanted: list[Any] | None = None) -> list[Any]:
    seen = browser.look(url, None if wanted is None else lambda found: found == wanted)
    if folder := os.environ.get("REPLAY_PICTURES"):
        browser.picture(
            Path(folder) / f"{name.strip('/').replace('/', '_').replace('?', '_') or 'start'}.png"
        )
    return seen


def test_a_browser_sees_the_same_in_the_archive_as_live(database_url: str, tmp_path: Path) -> None:
    with Browser() as browser:
        with serving() as (base, accepted):
            crawl_twice(base, database_url, tmp_path)
            offered = set(accepted.values())
            live = {path: look(browser, address(base, path), f"live{path}") for path in SHOWN}
        assert len({seen[2] for seen in live.values()}) == len(SHOWN) - 3, (
            "a redirect, a refresh and a query lead to the same page"
        )
        twin = add_twin(tmp_path / "warc", base)
        warc = tmp_path / "warc"
        second = Archive(warc).versions(f"{base}/plain")[-1]
        assert second.mime == REVISIT_MIME
        add_form(warc, base)
        with replaying(warc, tmp_path / "pywb") as archive:
            for path in SHOWN:
                if path != "/zstd":  # pywb shows the packed bytes
                    assert (
                        look(
                            browser, f"{archive}{address(base, path)}", f"replay{path}", live[path]
                        )
                        == live[path]
                    ), path
            assert look(browser, f"{archive}{twin}", "twin", live["/copy"]) == live["/copy"]
            again = f"{archive}{second.timestamp}/{base}/plain"
            assert look(browser, again, "second", live["/plain"]) == live["/plain"]
            with urlopen(f"{archive}mp_/{base}/plain", b"q=one+two") as answer:
                assert FOUND in answer.read(), "a form leads to its answer, a link never does"
    assert offered <= {"gzip", "gzip, deflate, br"}, "nothing is offered that can't be replayed"
    forced = Archive(warc).get(f"{base}/zstd")
    assert forced is not None and b"zstd, whatever" in forced.content, (
        "it is stored all the same, and can be read"
    )
