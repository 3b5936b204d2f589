"""Requests are refused that are no web addresses, or may not be asked for.

The socket asks the guard again, after names are resolved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlproj.config import config_of
from crawlproj.fetch.pages import RefusedError
from crawlproj.politeness.guard import bad_port
from crawlproj.scheduling.scheduler import worker_of
from crawlproj.urls.canonical import MAX_URL

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler


class GuardMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._guard = config_of(crawler).guard

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        if worker_of(self._crawler).is_barred(request.url):
            self._crawler.stats.inc_value("refused/forgotten")
            raise RefusedError("forgotten")
        refusal = self._refusal(request)
        if refusal:
            self._crawler.stats.inc_value("refused/guard")
            raise RefusedError(refusal)
        port = bad_port(request.url)
        if port is not None:
            self._crawler.stats.inc_value("refused/port")
            raise RefusedError(f"port: {port} is not for the web")

    def _refusal(self, request: Request) -> str:
        if not request.url.startswith(("http://", "https://")):
            return "scheme"
        if len(request.url) > MAX_URL:
            return "bad url: too long"
        ticket = request.meta.get("ticket")
        if ticket is None:
            return ""
        address = worker_of(self._crawler).leased_address(ticket.host)
        if address is None:
            return ""
        refusal = self._guard.refusal_reason(address)
        if refusal:
            return f"guard: {refusal}"
        return ""
