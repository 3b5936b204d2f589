"""News first, archives when there is time; hubs are found by what they bring."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from tests.support.crawling import run_crawl, start_crawl
from tests.support.news_web import NewsWeb, listing, news_article, serve_news

QUICK: dict[str, object] = {
    "FRONTIER_FLUSH": 0.1,
    "FRONTIER_WINDOW": 1,
    "CRAWL_PATIENCE": 0,
}
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def feed(entries: dict[str, datetime | None]) -> str:
    items = ""
    for path, at in entries.items():
        date = "" if at is None else f"<pubDate>{format_datetime(at)}</pubDate>"
        items += f"<item><title>{path}</title><link>{{base}}{path}</link>{date}</item>"
    return (
        f'<?xml version="1.0"?><rss version="2.0"><channel><title>W</title>{items}</channel></rss>'
    )


def rows(database_url: str, query: str) -> list[tuple[Any, ...]]:
    database = Database(database_url)
    try:
        return database.run_script(query)
    finally:
        database.close()


FRESH = {f"/fresh-{hours:02}.html": NOW - timedelta(hours=hours) for hours in range(1, 9)}
OLD = {f"/old-{days}.html": NOW - days * DAY for days in (40, 300, 90, 900)}
PLAIN = [f"/plain/{n}.html" for n in range(100)]
PAGES = [f"/archive/page/{n}" for n in range(2, 7)]


FEED_LINK = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'


def big_site() -> dict[str, str]:
    shuffled = sorted([*FRESH, *OLD], key=lambda path: path[::-1])
    pages = {
        "/": FEED_LINK + listing(dict.fromkeys([*PLAIN, PAGES[0], "/forum/?page=1"], "Topic")),
        "/feed.xml": feed({path: (FRESH | OLD)[path] for path in shuffled}),
        "/robots.txt": "",
    }
    for number, path in enumerate(PAGES):
        links = {f"/story/{number}-{n}.html": "Story" for n in range(3)}
        links |= {f"/archive/page/{number + n}": "more" for n in (3, 4) if number + n < 7}
        pages[path] = listing(links)
        pages |= {link: news_article(50 + number) for link in links if "/story/" in link}
    for number in range(1, 30):
        pages[f"/forum/?page={number}"] = listing({f"/forum/?page={number + 1}": "next"})
    for number, path in enumerate([*FRESH, *OLD, *PLAIN]):
        pages[path] = news_article(number)
    return pages


def lanes_asked(folder: Path) -> dict[str, str]:
    """The lane that each path was asked from first, by the log of requests."""
    lanes: dict[str, str] = {}
    for file in folder.glob("**/log/requests-*.jsonl"):
        for line in map(json.loads, file.read_text().splitlines()):
            if "lane" in line:
                lanes.setdefault("/" + line["url"].split("/", 3)[3], line["lane"])
    return lanes


def test_news_come_first_and_archives_with_their_share(database_url: str, tmp_path: Path) -> None:
    with serve_news(big_site()) as web:
        arguments = ["site", "-a", f"seeds={web.base}/"]
        result = run_crawl(arguments, {**QUICK, "DATABASE_URL": database_url}, tmp_path)
        assert result.code == 0, result.stderr + result.log
        order = [path for path in web.paths if path != "/robots.txt"]
    place = {path: number for number, path in enumerate(order)}
    fresh = [path for path in order if path in FRESH]
    assert fresh == sorted(FRESH), "the newest first"
    waiting = [path for path in PLAIN if place[path] > place[fresh[-1]]]
    assert len(waiting) > len(PLAIN) / 2, "most plain pages wait for them"
    old = [path for path in order if path in OLD]
    assert old == ["/old-40.html", "/old-90.html", "/old-300.html", "/old-900.html"]
    assert [path for path in order if path in PAGES] == PAGES, "in the order of their number"
    assert place[old[0]] < max(place[path] for path in PLAIN), "their share is kept"
    lanes = lanes_asked(tmp_path)
    behind = {path for path in order if lanes[path] == "backfill"}
    assert {*OLD, *PAGES[1:], "/story/1-0.html"} <= behind
    assert not behind & {*FRESH, *PLAIN, *PAGES[:1]}
    assert not any("forum" in path for path in behind)
    stored = rows(
        database_url,
        "select regexp_replace(canonical, '^https?://[^/]+', ''), published from crawlproj.url",
    )
    published = dict(stored)
    for path, at in (FRESH | OLD).items():
        assert published[path] == at.replace(microsecond=0)
    assert {path for path, at in published.items() if at is None} >= {"/", *PLAIN}
    sources = dict(rows(database_url, "select kind, entries from crawlproj.source"))
    assert sources["feed"] == len(FRESH | OLD)
    assert "front page" in sources


def headline(number: int) -> str:
    return f"/world/the-gardeners-of-village-{number}-rebuilt-their-bridge.html"


def hub_site() -> dict[str, str]:
    pages = {
        "/": listing({"/world": "World", "/sport": "Sport"}),
        "/world": listing({headline(n): "Story" for n in range(5)}),
        "/sport": listing({f"/sport/the-old-match-of-the-year-{n}.html": "S" for n in range(5)}),
    }
    pages |= {path: news_article(n) for n, path in enumerate(map(headline, range(5)))}
    for number in range(5):
        pages[f"/sport/the-old-match-of-the-year-{number}.html"] = news_article(100 + number)
    return pages


def publish(web: NewsWeb, first: int, seconds: float) -> int:
    """Five new articles a second on the hub; gives the number of the next one."""
    number = first
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        web.pages[headline(number)] = news_article(number)
        web.pages["/world"] = listing(
            {headline(n): "Story" for n in range(number, number - 25, -1)}
        )
        number += 1
        time.sleep(0.2)
    return number


@pytest.mark.proof
def test_a_hub_is_found_by_what_it_brings_and_let_go_when_it_stops(
    database_url: str, tmp_path: Path
) -> None:
    settings = {
        **QUICK,
        "CRAWL_CONTINUOUS": True,
        "DATABASE_URL": database_url,
        "REVISIT_MIN": 0.5,
        "REVISIT_INTERVAL": 4,
        "SOURCE_MIN": 0.2,
        "SOURCE_INTERVAL": 1,
    }
    with serve_news(hub_site()) as web:
        arguments = ["site", "-a", f"seeds={web.base}/"]
        with start_crawl(arguments, settings, tmp_path) as crawl:
            wait_for(lambda: web.asked["/world"])
            number = 30
            kinds: list[str] = []
            for _ in range(10):
                number = publish(web, number, 1)
                kinds = hub_kinds(database_url)
                if kinds == ["hub"]:
                    break
            assert kinds == ["hub"]
            before = web.asked.copy()
            first = number
            number = publish(web, number, 4)
            asked = web.asked - before
            assert asked["/world"] > 2 * asked["/sport"] + 3
            wait_for(lambda: hub_kinds(database_url) == ["former hub"])
            crawl.stop()
            crawl.wait()
        missed = [n for n in range(first, number) if not web.asked[headline(n)]]
        assert not missed


def hub_kinds(database_url: str) -> list[str]:
    """What the pages are that are no source by birth."""
    found = rows(database_url, "select kind from crawlproj.source where kind <> 'front page'")
    return [kind for (kind,) in found]


def wait_for(is_true: Callable[[], object], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.2)
