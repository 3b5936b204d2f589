"""robots.txt is asked again just before each fetch. The scheduler has fetched it; here it is only
looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlproj.fetch.pages import RefusedError
from crawlproj.items import RobotsTicket

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler


class RobotsMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        ticket = request.meta.get("ticket")
        dispatcher = self._crawler.engine.scheduler.dispatcher  # type: ignore[union-attr]
        if isinstance(ticket, RobotsTicket) or (
            ticket is not None and dispatcher.allowed is ticket
        ):
            return  # the second: it was asked a moment ago, when the ticket was handed out
        cache = dispatcher.robots
        known = cache.get(request.url)
        if known is None or not known.allows(request.url, cache.agent):
            self._crawler.stats.inc_value("refused/robots")
            # What is not known is not forbidden for good.
            raise RefusedError(
                "robots" if known is not None and not known.unreachable else "robots unread"
            )
