"""scrapy reextract gives what the crawl gave, from the archive alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlproj.database.connection import Database
from tests.foreign import web
from tests.integration.test_joining import QUICK, items_of, join, project, scrapy
from tests.support.redis_server import RedisServer

__all__ = ["project"]
OFFLINE = {"EXTENSIONS": {"tests.support.offline.NoSockets": 0}}


@pytest.fixture
def shop() -> Iterator[type[web.Shop]]:
    with web.serving() as shop:
        yield shop


def crawled(project: Path, spider: str, base: str, database_url: str) -> list[dict[str, Any]]:
    join(project, 'COMMANDS_MODULE = "crawlproj.commands"\n')
    return items_of(project, spider, base, {"DATABASE_URL": database_url, **QUICK})


def reextracted(
    project: Path, spider: str, base: str, *words: str, code: int = 0, **settings: object
) -> list[dict[str, Any]]:
    out = project / "again.jsonl"
    tried = project / "tried.txt"
    all_settings = {**OFFLINE, "TRIED": tried, **settings}
    done = scrapy(
        project,
        "reextract",
        spider,
        "-a",
        f"base={base}",
        "-O",
        str(out),
        *words,
        settings=all_settings,
    )
    assert done.returncode == code, done.stderr
    assert " ERROR: " not in done.stderr and " CRITICAL: " not in done.stderr, done.stderr
    assert tried.read_text() == ""
    found = [json.loads(line) for line in out.read_text().splitlines()]
    return sorted(found, key=lambda item: json.dumps(item, sort_keys=True))


def state_of(project: Path, database_url: str) -> object:
    """All that must not change."""
    database = Database(database_url)
    tables = (
        "url",
        "host",
        "server",
        "crawl_host",
        "page",
        "page_version",
        "origin",
        "worker",
        "crawl",
    )
    query = "select md5(string_agg(t::text, '|' order by t::text)) from crawlproj.{} t"
    rows = {table: database.run_script(query.format(table)) for table in tables}
    database.close()
    folder = project / ".crawl" / "warc"
    return rows, {
        path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir()
    }


@pytest.mark.parametrize("known", [True, False], ids=["with-database", "files-alone"])
@pytest.mark.parametrize("spider", ["rules", "map", "login"])
def test_a_stock_spider_gives_the_same_items_from_the_archive(
    spider: str, known: bool, project: Path, shop: type[web.Shop], database_url: str
) -> None:
    before = crawled(project, spider, shop.base, database_url)
    asked = dict(shop.asked)
    untouched = state_of(project, database_url)
    again = reextracted(
        project, spider, shop.base, **({"DATABASE_URL": database_url} if known else {})
    )
    assert again == before
    assert len(again) > 8
    assert dict(shop.asked) == asked
    assert state_of(project, database_url) == untouched


def test_a_mended_spider_gets_old_pages_right_also_those_that_nothing_leads_to_any_more(
    project: Path, shop: type[web.Shop], database_url: str
) -> None:
    before = crawled(project, "rules", shop.base, database_url)
    source = project / "shop" / "spiders" / "stock.py"
    text = source.read_text().replace(
        'Rule(LinkExtractor(allow=r"/list/"))', 'Rule(LinkExtractor(allow=r"/nothing/"))'
    )
    source.write_text(
        text.replace(
            '"title": response.css("h1::text").get()',
            '"title": response.css("h1::text").re_first("[0-9]+")',
        )
    )
    again = reextracted(project, "rules", shop.base, DATABASE_URL=database_url)
    assert [item["path"] for item in again] == [item["path"] for item in before]
    assert {item["title"] for item in again} == {item["path"] for item in again}


def test_what_is_said_now_goes_before_what_was_noted_then(
    project: Path, shop: type[web.Shop], database_url: str
) -> None:
    before = crawled(project, "rules", shop.base, database_url)
    source = project / "shop" / "spiders" / "stock.py"
    source.write_text(
        source.read_text().replace('cb_kwargs={"via": "rule"}', 'cb_kwargs={"via": "new"}')
    )
    again = reextracted(project, "rules", shop.base, DATABASE_URL=database_url)
    assert [item["path"] for item in again] == [item["path"] for item in before]
    assert {item["via"] for item in again} == {"new"}


@pytest.mark.proof
def test_a_method_that_is_gone_is_counted_or_replaced(
    project: Path, shop: type[web.Shop], database_url: str
) -> None:
    crawled(project, "login", shop.base, database_url)
    source = project / "shop" / "spiders" / "stock.py"
    text = source.read_text().replace(
        "def account(self, response, n)", "def renamed(self, response, n=0)"
    )
    source.write_text(
        text.replace("self.account", "self.renamed").replace("for n in (1, 2):", "for n in ():")
    )
    assert {
        item["n"]
        for item in reextracted(project, "login", shop.base, DATABASE_URL=database_url)
        if "n" in item
    } == {1, 3}
    again = reextracted(
        project, "login", shop.base, "--callback", "renamed", DATABASE_URL=database_url
    )
    assert len([item for item in again if item["kind"] == "account"]) > 4


@pytest.mark.proof
def test_spiders_of_scrapy_redis_need_no_redis_and_leave_what_waits_there(
    project: Path, shop: type[web.Shop], redis_server: RedisServer, database_url: str
) -> None:
    """Pushed URLs with what was pushed along; then by the files alone, also with the Redis gone."""
    join(project, f'COMMANDS_MODULE = "crawlproj.commands"\nREDIS_URL = {redis_server.url!r}\n')
    client = redis_server.client
    settings = {"DATABASE_URL": database_url, **QUICK}
    client.lpush(
        "live:start_urls",
        *(json.dumps({"url": f"{shop.base}/item/{n}", "meta": {"job": n}}) for n in range(4)),
    )
    done = scrapy(project, "crawl", "live", settings={**settings, "MAX_IDLE_TIME_BEFORE_CLOSE": 4})
    assert done.returncode == 0, done.stderr
    before = sorted(
        (json.loads(item) for item in client.lrange("live:items", 0, -1)),
        key=lambda item: str(item["url"]),
    )
    assert [item["job"] for item in before] == [0, 1, 2, 3]
    client.lpush("live:start_urls", f"{shop.base}/item/9")
    for spider in ("live", "eager"):
        again = reextracted(
            project, spider, shop.base, DATABASE_URL=database_url, CRAWL_NAME="live"
        )
        assert sorted(again, key=lambda item: str(item["url"])) == before
    assert (
        client.llen("live:start_urls"),
        client.llen("live:items"),
        client.llen("eager:items"),
    ) == (1, 4, 0)
    redis_server.stop()
    again = reextracted(project, "live", shop.base)
    assert [item | {"job": None} for item in before] == sorted(
        again, key=lambda item: str(item["url"])
    )
