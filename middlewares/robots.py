"""robots.txt is checked once more just before each fetch. The scheduler has fetched it; here it is
only looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlproj.fetch.pages import RefusedError
from crawlproj.scheduling.scheduler import worker_of

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
        refusal = worker_of(self._crawler).robots_refusal(request.url, ticket)
        if refusal:
            self._crawler.stats.inc_value("refused/robots")
            raise RefusedError(refusal)
