"""Items wait for the verdict on their page: feeds and pipelines know whether it is a copy."""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.archive.reader import Archive
from crawlproj.database.connection import Database
from tests.support.copies import article, html, sentence
from tests.support.crawling import run_command, run_crawl

SETTINGS = {
    "SPIDER_MODULES": "tests.spiders",
    "ITEM_PIPELINES": json.dumps({"tests.spiders.copies.Witness": 500}),
    "FRONTIER_FLUSH": 0.2,
    "CRAWL_PATIENCE": 0,
    "POLITENESS_DELAY": 0,
    "POLITENESS_SERVER_DELAY": 0,
}
SAME = html(article(1), "Same") + "<a href=/copy>copy</a><a href=/near>near</a>"
PAGES = {
    "/": html(article(2), "Start") + "<a href=/original>story</a><a href=/other>other</a>",
    "/original": SAME,
    "/copy": SAME,
    "/near": html([*article(1)[:-1], article(1)[-1].replace("a", "o", 1)], "Near"),
    "/other": html(article(3), "Other") + "<a href=/reprint>reprint</a>",
    "/reprint": html(article(3)[:6], "Reprint", frame=f"<p>{sentence(7000, 20)}</p>"),
}


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = PAGES.get(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((page or "").encode())
        if self.path == "/near":
            self.wfile.write(f"<!-- {time.time()} -->".encode())  # other bytes, the same text

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def base() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def crawl(
    base: str, folder: Path, *arguments: str, **settings: Any
) -> tuple[Any, list[dict[str, Any]]]:
    out = folder / "items.jsonl"
    words = [word for argument in arguments for word in ("-a", argument)]
    result = run_crawl(
        ["copies", "-a", f"seeds={base}/", *words, "-o", str(out)],
        {**SETTINGS, **settings},
        folder,
    )
    assert result.code == 0, result.stderr + result.log
    return result, [json.loads(line) for line in out.read_text().splitlines()]


def test_items_know_of_which_page_theirs_is_a_copy(
    base: str, database_url: str, tmp_path: Path
) -> None:
    result, items = crawl(base, tmp_path, DATABASE_URL=database_url)
    told = {item["url"]: item for item in items if "url" in item}
    assert set(told) == {base + path for path in PAGES}
    copies = {
        url: (item["duplicate_of"], item["duplicate_kind"])
        for url, item in told.items()
        if item["duplicate_of"]
    }
    assert copies == {
        f"{base}/copy": (f"{base}/original", "exact"),
        f"{base}/near": (f"{base}/original", "near"),
        f"{base}/reprint": (f"{base}/other", "paragraph"),
    }
    assert 0.95 <= told[f"{base}/near"]["similarity"] < 1
    # Plain items are as the spider made them, and a pipeline can ask.
    assert {"plain": f"{base}/copy"} in items
    assert f"{base}/copy is a copy" in result.log
    assert f"{base}/original is None" in result.log
    found = [result.stats[f"duplicates/{kind}"] for kind in ("exact", "near", "paragraph")]
    assert found == [1, 1, 1]
    assert result.stats["duplicates/items"] == 6
    # The summary says how many there are, and what to ask next.
    assert "Copies          3  of other pages: 1 exact, 1 near, 1 paragraph" in result.stdout
    (words,) = re.findall(r"which pages are copies:?\s+\S*scrapy (.+)", result.stdout)
    said = run_command(shlex.split(words)[:3], tmp_path, {"DATABASE_URL": database_url})
    assert said.code == 0 and f"{base}/copy" in said.stdout


def test_items_of_copies_are_dropped_if_that_is_wanted(
    base: str, database_url: str, tmp_path: Path
) -> None:
    result, items = crawl(base, tmp_path, DATABASE_URL=database_url, DUPLICATE_ITEMS="drop")
    assert {item["url"] for item in items if "url" in item} == {
        base + path for path in ("/", "/original", "/other")
    }
    assert result.stats["duplicates/items_dropped"] == 6
    assert result.stats["duplicates/exact"] == 1  # the page is judged and kept all the same


def test_items_of_copies_that_have_not_changed_are_dropped_as_well(
    base: str, database_url: str, tmp_path: Path
) -> None:
    often = {"DUPLICATE_ITEMS": "drop", "REVISIT_MIN": "1s", "REVISIT_INTERVAL": "1s"}
    crawl(base, tmp_path, DATABASE_URL=database_url, **often)
    (tmp_path / "items.jsonl").unlink()
    time.sleep(1.1)
    result, items = crawl(base, tmp_path, DATABASE_URL=database_url, **often)
    assert result.stats["pages/same_bytes"] == 5 and result.stats["pages/same_text"] == 1
    assert {item["url"] for item in items if "url" in item} == {
        base + path for path in ("/", "/original", "/other")
    }
    assert result.stats["duplicates/items_dropped"] == result.stats["duplicates/items"] == 6


def test_very_many_items_of_a_copy_keep_their_order_and_all_know_of_it(
    base: str, database_url: str, tmp_path: Path
) -> None:
    result, items = crawl(base, tmp_path, "many=1300", DATABASE_URL=database_url)
    assert [item["number"] for item in items if "number" in item] == list(range(1300))
    ours = [item for item in items if f"{base}/copy" in item.values()]
    assert ["number" in item for item in ours] == [False, False, *[True] * 1300]
    assert result.stats["duplicates/items"] == 6 + 1300
    assert f"{base}/copy is None" not in result.log
    assert "duplicates/items_late" not in result.stats


def test_items_do_not_wait_if_nothing_is_compared(
    base: str, database_url: str, tmp_path: Path
) -> None:
    result, items = crawl(base, tmp_path, DATABASE_URL=database_url, DUPLICATES_ENABLED=0)
    assert len(items) == 2 * len(PAGES)
    assert not any(item.get("duplicate_of") for item in items)
    assert not any(name.startswith("duplicates/") for name in result.stats)


def told_to(folder: Path) -> Counter[tuple[str, str, str]]:
    """What the archive says of copies: URL, original and kind. Each note leads to the exchange."""
    told: Counter[tuple[str, str, str]] = Counter()
    records = [record for _, record in Archive(folder).iter_records()]
    urls = {record.id: record.url for record in records}
    for record in records:
        lines = record.block.decode("utf-8", "replace").splitlines()
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        if record.kind == "metadata" and "duplicate-of" in fields:
            told[record.url, fields["duplicate-of"], fields["duplicate-kind"]] += 1
            assert 0.9 <= float(fields["similarity"]) <= 1
            assert urls[record.fields["warc-refers-to"]] == record.url
    return told


def count_unnoted(database: Database) -> int:
    ((number,),) = database.run_script("select count(*) from crawlproj.page where not noted")
    assert isinstance(number, int)
    return number


def test_the_archive_is_told_of_each_copy_once_and_by_a_later_run_if_need_be(
    base: str, database_url: str, tmp_path: Path
) -> None:
    """The database says what is not noted yet: if a worker is killed before, the next one does."""
    exact = (f"{base}/copy", f"{base}/original", "exact")
    near = (f"{base}/near", f"{base}/original", "near")
    part = (f"{base}/reprint", f"{base}/other", "paragraph")
    crawl(base, tmp_path, DATABASE_URL=database_url)
    assert told_to(tmp_path / "warc") == Counter([exact, near, part])
    database = Database(database_url)
    assert count_unnoted(database) == 0
    database.run_script("update crawlproj.page set noted = false where duplicate_kind = 'exact'")
    crawl(base, tmp_path, DATABASE_URL=database_url)
    assert count_unnoted(database) == 0
    database.close()
    assert told_to(tmp_path / "warc") == Counter([exact, exact, near, part])
