"""A crawl notices when pages have changed, and is deaf to what changes all the time."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from tests.support.copies import article
from tests.support.crawling import Result, run_command, run_crawl

SETTINGS: dict[str, object] = {
    "FRONTIER_FLUSH": 0.2,
    "CRAWL_PATIENCE": 0,
    "REVISIT_POLICY": "uniform",
    "REVISIT_INTERVAL": "1s",
    "REVISIT_MIN": "1s",
    "SOURCE_INTERVAL": "1s",
    "SOURCE_MIN": "1s",
}
Answer = tuple[int, dict[str, str], str]


class Site:
    """Answers by path: a text, or (status, headers, text), or a function that gives one of them."""

    def __init__(self) -> None:
        self.pages: dict[str, str | Answer | Callable[[], str | Answer]] = {}
        self.other: str | Answer = (404, {}, "")
        self.asked: Counter[str] = Counter()
        self.base = ""

    def answer(self, path: str) -> Answer:
        self.asked[path] += 1
        page = self.pages.get(path, self.other)
        if path == "/robots.txt":
            page = (404, {}, "")
        if callable(page):
            page = page()
        if isinstance(page, str):
            page = (200, {}, page)
        return page


@contextmanager
def serve() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, text = site.answer(self.path)
            self.send_response(status)
            if "Content-Type" not in headers:
                self.send_header("Content-Type", "text/html; charset=utf-8")
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.replace("{base}", site.base).encode())

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.base = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


def page(number: int, paragraphs: list[str] | None = None, extra: str = "") -> str:
    text = "".join(f"<p>{words}</p>" for words in paragraphs or article(number, 6))
    return (
        f"<html><head><title>Page {number}</title></head><body><main><h1>Page {number}</h1>{text}"
        f"{extra}</main></body></html>"
    )


def front(*paths: str) -> str:
    return "<html><body><h1>All</h1>" + "".join(f"<a href={p}>{p}</a> " for p in paths) + "</body>"


def crawl(site: Site, database_url: str, folder: Path, **settings: Any) -> Result:
    words = ["site", "-a", f"seeds={site.base}/"]
    result = run_crawl(words, {**SETTINGS, "DATABASE_URL": database_url, **settings}, folder)
    assert result.code == 0, result.stderr + result.log
    return result


def rows(database_url: str, sql: str) -> list[tuple[Any, ...]]:
    database = Database(database_url)
    try:
        return database.run_script(sql)
    finally:
        database.close()


def versions(database_url: str) -> dict[str, list[str | None]]:
    """Of each path its versions, by the kind of change."""
    found: dict[str, list[str | None]] = {}
    for path, kind in rows(database_url, """
        select regexp_replace(u.canonical, '^https?://[^/]+', ''), v.change from crawlproj.page_version v
        join crawlproj.url u on u.id = v.url order by v.at"""):  # fmt: skip
        found.setdefault(path, []).append(kind)
    return found


def again(site: Site, database_url: str, folder: Path, **settings: Any) -> Result:
    time.sleep(1.1)
    return crawl(site, database_url, folder, **settings)


def test_clocks_and_adverts_are_no_changes_and_edits_are(database_url: str, tmp_path: Path) -> None:
    ticks = iter(range(1_000_000))

    def noisy() -> str:
        tick = next(ticks)
        return page(1, extra=f"<div class=clock>It is {tick} past {tick * 7919}</div>")

    with serve() as site:
        site.pages = {"/": front("/noisy", "/edited", "/still"), "/noisy": noisy}
        site.pages |= {"/edited": page(2), "/still": page(3)}
        crawl(site, database_url, tmp_path)
        for _ in range(3):
            again(site, database_url, tmp_path)
        words = article(2, 6)
        site.pages["/edited"] = page(2, [*words[:5], "The mayor has denied all of it on Friday."])
        result = again(site, database_url, tmp_path)
        assert result.stats["pages/noise"] >= 1
        assert result.stats["pages/changed"] == 1
        assert result.stats["changes/edit"] == 1
        told = run_command(
            ["explain", f"{site.base}/noisy"], tmp_path, {"DATABASE_URL": database_url}
        )
        exported = run_command(
            ["export", "--what", "changes", "--crawl", "site"],
            tmp_path,
            {"DATABASE_URL": database_url},
        )
    assert versions(database_url)["/edited"] == [None, "edit"]
    assert versions(database_url)["/still"] == [None]
    # At its second visit nobody can know that the clock is one.
    assert len(versions(database_url)["/noisy"]) <= 3
    assert "Does not count (a place that changes at nearly every visit)" in told.stdout
    changes = [json.loads(line) for line in exported.stdout.splitlines()]
    edit = next(change for change in changes if change["url"] == f"{site.base}/edited")
    assert edit["kind"] == "edit" and edit["new_letters"] > 20 and edit["before"] < edit["at"]


def test_pages_that_are_not_there_any_more_are_counted_once(
    database_url: str, tmp_path: Path
) -> None:
    with serve() as site:
        site.pages = {"/": front("/away"), "/away": page(2)}
        crawl(site, database_url, tmp_path)
        site.pages["/away"] = (410, {}, "")
        result = again(site, database_url, tmp_path)
        assert result.stats["changes/gone"] == 1
        time.sleep(1)
        result = again(site, database_url, tmp_path)
        assert result.stats["gone/status_410"] == 1
        assert "changes/gone" not in result.stats


def test_a_listing_changes_by_its_new_links(database_url: str, tmp_path: Path) -> None:
    texts = iter(range(1_000_000))
    paths = ["/a", "/b"]
    with serve() as site:
        site.pages = {"/": lambda: front(*paths) + f"<p>Visitor number {next(texts)} of all</p>"}
        site.pages |= {"/a": page(1), "/b": page(2), "/c": page(3)}
        crawl(site, database_url, tmp_path)
        again(site, database_url, tmp_path)
        assert versions(database_url)["/"] == [None]
        paths.append("/c")
        again(site, database_url, tmp_path)
        assert versions(database_url)["/"] == [None, "new links"]
        assert site.asked["/c"] == 1
    (rate,) = rows(database_url, "select rate_a, rate_b from crawlproj.url where depth = 0")
    assert rate[0] >= 1


def test_a_wall_leaves_the_page_as_it_was(database_url: str, tmp_path: Path) -> None:
    with serve() as site:
        site.pages = {"/": front("/long"), "/long": (200, {"ETag": '"1"'}, page(1, article(1, 30)))}
        crawl(site, database_url, tmp_path, REVISIT_MIN="1s")
        site.pages["/long"] = (
            200,
            {"ETag": '"wall"'},
            "<body><p>Do you agree to cookies?</p></body>",
        )
        result = again(site, database_url, tmp_path)
        assert result.stats["pages/wall"] >= 1
        probes = [path for path in site.asked if path.startswith("/no-such-page-")]
        assert len(probes) == 1 and site.asked[probes[0]] == 1
        ((etag, words),) = rows(
            database_url,
            """
            select u.etag, p.words from crawlproj.url u join crawlproj.page p on p.url = u.id
            where u.canonical like '%/long'""",
        )
        assert etag == '"1"' and words > 500
        assert versions(database_url)["/long"] == [None]
        site.pages["/long"] = (200, {"ETag": '"1"'}, page(1, article(1, 30)))
        again(site, database_url, tmp_path)
        assert versions(database_url)["/long"] == [None]


def test_a_page_that_is_gone_and_says_200_is_found_by_what_nobody_has(
    database_url: str, tmp_path: Path
) -> None:
    sorry = "<html><body><h1>Sorry</h1><p>We could not find the page that you wanted.</p></body>"
    with serve() as site:
        site.other = (200, {}, sorry)
        site.pages = {"/": front("/long", "/stays"), "/long": page(1, article(1, 30))}
        site.pages["/stays"] = page(2)
        crawl(site, database_url, tmp_path)
        del site.pages["/long"]
        for _ in range(2):
            again(site, database_url, tmp_path)
        ((state, why),) = rows(
            database_url,
            "select state::text, why from crawlproj.url where canonical like '%/long'",
        )
        assert state in ("gone", "retired") and why == "soft 404"
        asked = [path for path in site.asked if path.startswith("/no-such-page-")]
        assert [site.asked[path] for path in asked] == [1]
    assert versions(database_url)["/long"] == [None]


def test_what_was_learned_moves_with_a_page(database_url: str, tmp_path: Path) -> None:
    with serve() as site:
        site.pages = {"/": front("/old"), "/old": page(1)}
        crawl(site, database_url, tmp_path)
        again(site, database_url, tmp_path)
        ((old_b,),) = rows(
            database_url, "select rate_b from crawlproj.url where canonical like '%/old'"
        )
        site.pages |= {"/old": (301, {"Location": "/new"}, ""), "/new": page(1)}
        again(site, database_url, tmp_path)
        known = dict(
            rows(
                database_url,
                """
            select regexp_replace(canonical, '^https?://[^/]+', ''), rate_b from crawlproj.url""",
            )
        )
        copies = rows(
            database_url, "select count(*) from crawlproj.page where duplicate_of is not null"
        )
        texts = rows(
            database_url,
            """
            select count(*) from crawlproj.page_text t join crawlproj.url u on u.id = t.url
            where u.canonical like '%/old'""",
        )
    assert known["/new"] >= old_b > 0
    assert copies == [(0,)] and texts == [(0,)]


def test_what_servers_say_of_changes_is_counted(database_url: str, tmp_path: Path) -> None:
    numbers = iter(range(1_000_000))

    def liar() -> Answer:
        return 200, {"ETag": f'"{next(numbers)}"', "Cache-Control": "max-age=0"}, page(2) + " "

    with serve() as site:
        site.pages = {"/": front("/liar"), "/liar": liar}
        crawl(site, database_url, tmp_path)
        site.pages["/liar"] = lambda: (
            200,
            {"ETag": f'"{next(numbers)}"'},
            page(2) + " " * next(numbers),
        )
        again(site, database_url, tmp_path)
        counts = {
            hint: counted
            for hint, *counted in rows(
                database_url,
                "select hint, changed_said, changed_unsaid, same_said, same_unsaid from crawlproj.host_hint",
            )
        }
    assert counts["etag"] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    "headers",
    [
        {"Last-Modified": "Fri, 31 Dec 9999 23:59:59 GMT", "ETag": "x" * 10_000},
        {"Last-Modified": "yesterday", "Expires": "-1", "Cache-Control": "max-age=999999999999999"},
        {
            "Last-Modified": "Mon, 01 Jan 0001 00:00:00 GMT",
            "Expires": "Thu, 01 Jan 1970 00:00:00 GMT",
        },
    ],
)
def test_odd_validators_do_no_harm(
    database_url: str, tmp_path: Path, headers: dict[str, str]
) -> None:
    with serve() as site:
        words = article(1, 6)
        texts = [page(1, words), page(1, [*words[:4], *article(7, 2)])]
        site.pages = {"/": front("/odd"), "/odd": (200, headers, texts[0])}
        crawl(site, database_url, tmp_path)
        site.pages["/odd"] = (200, headers, texts[1])
        again(site, database_url, tmp_path)
        site.pages["/odd"] = (304, headers, "")
        again(site, database_url, tmp_path)
        ((state, etag, changes),) = rows(
            database_url,
            "select state::text, etag, changes from crawlproj.url where canonical like '%/odd'",
        )
    assert state == "waiting" and etag is None and changes == 1


@pytest.mark.proof
def test_a_page_that_alternates_is_noise_in_the_end(database_url: str, tmp_path: Path) -> None:
    number = iter(range(1_000_000))
    with serve() as site:
        words = article(4, 8)
        variants = [page(4, words), page(4, [*words[:6], *article(5, 2)])]
        site.pages = {"/": front("/odd"), "/odd": lambda: variants[next(number) % 2]}
        crawl(site, database_url, tmp_path)
        for _ in range(5):
            again(site, database_url, tmp_path)
    assert len(versions(database_url)["/odd"]) <= 4
