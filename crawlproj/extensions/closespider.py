"""Scrapy's CLOSESPIDER_* limits for a crawler that schedules robots.txt and runs on uvloop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.extensions.closespider import CloseSpider

from crawlproj.items import RobotsTicket

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response


class CloseCrawl(CloseSpider):
    """CloseSpider that does not count robots.txt as a page.

    uvloop's timers may fire a moment early, and Scrapy's looping call then comes twice: the second
    call would find that no item was produced since the first, and is ignored.
    """

    _checked_at = 0.0

    def page_count(self, response: Response, request: Request, spider: Spider) -> None:
        if not isinstance(request.meta.get("ticket"), RobotsTicket):
            super().page_count(response, request, spider)

    def _count_items_produced(self) -> None:
        now = time.monotonic()
        if now - self._checked_at > self.timeout_no_item / 2:
            self._checked_at = now
            super()._count_items_produced()
