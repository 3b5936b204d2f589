"""Nothing but web addresses that may be asked (F-OPS-6). The socket asks the guard again, after
names are resolved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlproj.config import read_config
from crawlproj.fetch.pages import RefusedError
from crawlproj.fetch.resolver import address_of
from crawlproj.urls.canonical import MAX_URL

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlproj.scheduling.scheduler import CrawlScheduler


class GuardMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._guard = read_config(crawler.settings, crawler.spidercls.name or "").guard

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        scheduler: CrawlScheduler = self._crawler.engine.scheduler  # type: ignore[assignment]
        if scheduler.archiver.is_barred(request.url):
            self._crawler.stats.inc_value("refused/forgotten")
            raise RefusedError("forgotten")
        if refusal := self._refusal(request):
            self._crawler.stats.inc_value("refused/guard")
            raise RefusedError(refusal)

    def _refusal(self, request: Request) -> str:
        if not request.url.startswith(("http://", "https://")):
            return "scheme"
        if len(request.url) > MAX_URL:
            return "bad url: too long"
        ticket = request.meta.get("ticket")
        scheduler: CrawlScheduler = self._crawler.engine.scheduler  # type: ignore[assignment]
        leased = scheduler.dispatcher.window.hosts.get(ticket.host) if ticket is not None else None
        refusal = (
            self._guard.refusal_reason(address_of(leased.server.address))
            if leased is not None
            else ""
        )
        return f"guard: {refusal}" if refusal else ""
