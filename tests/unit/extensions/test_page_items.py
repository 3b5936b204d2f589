"""A Page is no item: only what spiders yield is counted, logged and sent to receivers of items."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.core.scraper import Scraper
from scrapy.exceptions import DropItem
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from crawlproj.extensions.closespider import CloseCrawl
from crawlproj.items import Page, RobotsTicket

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def page_of(url: str) -> Page:
    ticket: Any = None
    return Page(ticket, url, 200, at=NOW)


class Keeper:
    """A pipeline of ours: it drops one Page and fails on another."""

    wants_pages = True

    def process_item(self, item: Any) -> Any:
        url = getattr(item, "url", "")
        if url.endswith("/drop"):
            raise DropItem("not wanted")
        if url.endswith("/fail"):
            raise ValueError("a bug")
        return item


class Prices:
    """A pipeline of somebody else's, which would fail on a Page."""

    def process_item(self, item: Any) -> Any:
        if item["price"] < 0:
            raise DropItem("negative")
        return item


class Listener:
    """An extension that notes what it is sent."""

    def __init__(self, crawler: Any) -> None:
        self.seen: list[tuple[str, str]] = []
        crawler.signals.connect(self.item_scraped, signal=signals.item_scraped)
        crawler.signals.connect(self.item_dropped, signal=signals.item_dropped)
        crawler.signals.connect(self.item_error, signal=signals.item_error)

    def item_scraped(self, item: Any, response: Any, spider: Any) -> None:
        self.seen.append(("scraped", kind_of(item)))

    async def item_dropped(self, item: Any, exception: Exception) -> None:
        self.seen.append(("dropped", kind_of(item)))

    def item_error(self, item: Any, failure: Any) -> None:
        self.seen.append((f"error {failure.type.__name__}", kind_of(item)))


class PageListener(Listener):
    wants_pages = True


def kind_of(item: Any) -> str:
    if isinstance(item, Page):
        return item.url.rpartition("/")[2]
    return "item"


PROCESSORS = (
    "crawlproj.extensions.overrides.DirectItems",
    "crawlproj.extensions.feedexport.SpiderItems",
)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_pages_are_not_counted_and_sent_only_to_those_who_ask(
    processor: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    asyncio.run(check_counts(processor))
    assert sum("Scraped from" in line for line in caplog.messages) == 1
    assert sum("A pipeline failed on http://a.test/fail" in line for line in caplog.messages) == 1


async def check_counts(processor: str) -> None:
    more = {
        "ITEM_PIPELINES": {Keeper: 1, Prices: 2},
        "ITEM_PROCESSOR": processor,
        "CONCURRENT_ITEMS": 1,
        "TWISTED_REACTOR_ENABLED": False,
        "CLOSESPIDER_ITEMCOUNT": 2,
        "CLOSESPIDER_PAGECOUNT_NO_ITEM": 9,
        "CLOSESPIDER_TIMEOUT_NO_ITEM": 9,
        "EXTENSIONS": {"scrapy.extensions.closespider.CloseSpider": None, CloseCrawl: 0},
        "LOG_FORMATTER": "crawlproj.extensions.logformatter.QuietFormatter",
        "LOG_LEVEL": "DEBUG",
    }
    crawler = get_crawler(settings_dict=more)
    crawler.spider = Spider.from_crawler(crawler, "s")

    class Engine:
        scheduler: Any = None
        scraper: Any = None

    crawler.engine = Engine()  # type: ignore[assignment]
    crawler.engine.scraper = scraper = Scraper(crawler)  # type: ignore[union-attr]
    users = Listener(crawler)
    asking = PageListener(crawler)
    limits = crawler.get_extension(CloseCrawl)
    assert limits is not None
    await scraper.open_spider_async()
    pages = [page_of(f"http://a.test/{name}") for name in ("one", "two", "drop", "fail")]
    output = [*pages, {"price": 1}, {"price": -1}]
    response = Response("http://a.test/0")
    await scraper.handle_spider_output_async(iter(output), Request("http://a.test/0"), response)
    await scraper.close_spider_async()
    stats = crawler.stats.get_stats()
    assert (stats["item_scraped_count"], stats["item_dropped_count"]) == (1, 1)
    assert limits.counter["itemcount"] == 1
    assert limits.items_in_period == 1
    assert users.seen == [("scraped", "item"), ("dropped", "item")]
    assert asking.seen == [
        ("scraped", "one"),
        ("scraped", "two"),
        ("dropped", "drop"),
        ("error ValueError", "fail"),
        ("scraped", "item"),
        ("dropped", "item"),
    ]


def test_robots_txt_is_no_page_for_the_limit_of_pages() -> None:
    crawler = get_crawler(settings_dict={"CLOSESPIDER_PAGECOUNT": 9})
    limits = CloseCrawl.from_crawler(crawler)
    ticket = RobotsTicket.__new__(RobotsTicket)
    robots = Request("http://a.test/robots.txt", meta={"ticket": ticket})
    for request in (robots, Request("http://a.test/")):
        limits.page_count(Response(request.url), request, Spider("s"))
    assert limits.counter["pagecount"] == 1
