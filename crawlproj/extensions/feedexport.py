"""Feeds and the pipelines of people get what spiders yield, but no Pages.

Pages are stored in the database, and are too long for a line of JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.extensions.feedexport import FeedExporter
from scrapy.pipelines import ItemPipelineManager
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.python import global_object_name

from crawlproj.cli.worker_reports import numbered_feed, worker_place
from crawlproj.items import Page

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler


class ItemFeeds(FeedExporter):
    """Scrapy's feed exports without Pages. Each of several workers writes feeds of its own, and one
    that is started again keeps what is in them.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        place = worker_place()
        if place is None:
            return
        self.feeds = {numbered_feed(uri, place.number): feed for uri, feed in self.feeds.items()}
        self.filters = {
            numbered_feed(uri, place.number): chosen for uri, chosen in self.filters.items()
        }
        if place.restarts:
            self.feeds = {uri: {**feed, "overwrite": False} for uri, feed in self.feeds.items()}

    def item_scraped(self, item: Any, spider: Spider) -> None:
        if not isinstance(item, Page):
            super().item_scraped(item, spider)


class SpiderItems(ItemPipelineManager):
    """Pipelines see what spiders yield; Pages only those that ask for them: `wants_pages = True`.

    A pipeline is awaited only if need be: most return the item as it came.
    """

    async def open_spider_async(self) -> None:
        self._page_methods = [
            method
            for method in self.methods["process_item"]
            if getattr(getattr(method, "__self__", None), "wants_pages", False)
        ]
        await super().open_spider_async()

    async def process_item_async(self, item: Any) -> Any:
        methods = self.methods["process_item"]
        if isinstance(item, Page):
            methods = self._page_methods  # type: ignore[assignment]
        for method in methods:
            assert method is not None
            if method in self._mw_methods_requiring_spider:
                result = method(item, self._spider)
            else:
                result = method(item)
            if result is not item:
                item = await ensure_awaitable(result, _warn=global_object_name(method))
        return item
