"""Feeds, and the pipelines of other projects, hold what spiders yield. Pages are kept in the
database, and are too much for a line of JSON.
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
    def item_scraped(self, item: Any, spider: Spider) -> None:
        if not isinstance(item, Page):
            super().item_scraped(item, spider)


class SpiderItems(ItemPipelineManager):
    """The add-on's ITEM_PROCESSOR: Pages go through our own pipelines only, since no other has ever
    heard of them.
    """

    async def process_item_async(self, item: Any) -> Any:
        if not isinstance(item, Page):
            return await super().process_item_async(item)
        for pipeline in self.middlewares:
            if type(pipeline).__module__.partition(".")[0] in OUR_PACKAGES and hasattr(
                pipeline, "process_item"
            ):
                result = pipeline.process_item(item)
                item = await result if isawaitable(result) else result
        return item
