"""Feeds hold what spiders yield. Pages are kept in the database, and are too much for a line of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.extensions.feedexport import FeedExporter

from crawlproj.items import Page

if TYPE_CHECKING:
    from scrapy import Spider


class ItemFeeds(FeedExporter):
    def item_scraped(self, item: Any, spider: Spider) -> None:
        if not isinstance(item, Page):
            super().item_scraped(item, spider)
