"""Scrapy's CLOSESPIDER_* limits, right for a crawler that fetches robots.txt through the scheduler
and runs on uvloop.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from scrapy.extensions.closespider import CloseSpider

from crawlproj.items import Page, RobotsTicket

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response


class CloseCrawl(CloseSpider):
    """robots.txt is no page. uvloop's timers may come a moment early, and Scrapy's looping call
    then comes twice; the second time counts nothing.
    """

    _checked_at = 0.0

    def page_count(self, response: Response, request: Request, spider: Spider) -> None:
        if not isinstance(request.meta.get("ticket"), RobotsTicket):
            super().page_count(response, request, spider)

    def item_scraped(self, item: Any, spider: Spider) -> None:
        if _counts(item, spider):
            super().item_scraped(item, spider)

    def item_scraped_no_item(self, item: Any, spider: Spider) -> None:
        if _counts(item, spider):
            super().item_scraped_no_item(item, spider)

    def _count_items_produced(self) -> None:
        now = time.monotonic()
        if now - self._checked_at > self.timeout_no_item / 2:
            self._checked_at = now
            super()._count_items_produced()


def _counts(item: Any, spider: Spider) -> bool:
    """An ordinary spider knows of no Pages: its items are those that it yields."""
    return not isinstance(item, Page) or hasattr(spider, "wants")
