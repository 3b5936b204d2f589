"""Feeds and the pipelines of other projects get what spiders yield, but no Pages.

Pages are stored in the database, and are too long for a line of JSON.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from scrapy.extensions.feedexport import FeedExporter
from scrapy.pipelines import ItemPipelineManager

from crawlproj.items import Page

if TYPE_CHECKING:
    from scrapy import Spider

OUR_PACKAGES = ("crawlproj", "pipelines")


class ItemFeeds(FeedExporter):
    """Scrapy's feed exports without Pages."""

    def item_scraped(self, item: Any, spider: Spider) -> None:
        if not isinstance(item, Page):
            super().item_scraped(item, spider)


class SpiderItems(ItemPipelineManager):
    """The add-on's ITEM_PROCESSOR: Pages go through our own pipelines only.

    The pipelines of the project that the add-on joins don't know them.
    """

    async def process_item_async(self, item: Any) -> Any:
        if not isinstance(item, Page):
            return await super().process_item_async(item)
        for pipeline in self.middlewares:
            package = type(pipeline).__module__.partition(".")[0]
            if package in OUR_PACKAGES and hasattr(pipeline, "process_item"):
                item = pipeline.process_item(item)
                if isawaitable(item):
                    item = await item
        return item
