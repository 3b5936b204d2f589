"""Scrapy's CLOSESPIDER_* limits for a crawler that schedules robots.txt and runs on uvloop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from scrapy.extensions.closespider import CloseSpider

from crawlproj.items import Page, RobotsTicket
from crawlproj.scheduling.spider import chooses_links

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response


class CloseCrawl(CloseSpider):
    """CloseSpider that does not count robots.txt as a page, nor Pages as items of other spiders.

    uvloop's timers may fire a moment early, and Scrapy's looping call then comes twice: the second
    call would find that no item was produced since the first, and is ignored.
    """

    _checked_at = 0.0

    def page_count(self, response: Response, request: Request, spider: Spider) -> None:
        if not isinstance(request.meta.get("ticket"), RobotsTicket):
            super().page_count(response, request, spider)

    def item_scraped(self, item: Any, spider: Spider) -> None:
        if _is_counted(item, spider):
            super().item_scraped(item, spider)

    def item_scraped_no_item(self, item: Any, spider: Spider) -> None:
        if _is_counted(item, spider):
            super().item_scraped_no_item(item, spider)

    def _count_items_produced(self) -> None:
        now = time.monotonic()
        if now - self._checked_at > self.timeout_no_item / 2:
            self._checked_at = now
            super()._count_items_produced()


def _is_counted(item: Any, spider: Spider) -> bool:
    """Whether an item counts: an ordinary spider knows of no Pages, only of what it yields."""
    return not isinstance(item, Page) or chooses_links(spider)
