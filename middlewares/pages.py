"""Spider middleware: after the callback's own output, the one Page of each exchange; links of requests to their parent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals

from crawlproj.frontier.base import Ticket
from crawlproj.items import Page
from crawlproj.pages import name_of, page_of_response
from crawlproj.requests import detach

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure


class PagesMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        name = crawler.settings.get("ROBOT_NAME", "").partition("/")[0].lower()
        self._agents = ("robots", name)
        crawler.signals.connect(self.spider_error, signal=signals.spider_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        request = response.request
        ticket = request.meta.get("ticket") if request is not None else None
        paged = False
        async for output in result:
            if isinstance(output, Request) and isinstance(ticket, Ticket):
                if "ticket" in output.meta:
                    detach(output, self._crawler.spider)  # type: ignore[arg-type]
                output.meta["depth"], output.meta["parent"] = ticket.depth + 1, ticket.id
            paged = paged or isinstance(output, Page)
            yield output
        if isinstance(ticket, Ticket) and not paged:
            yield self._page(response, request)

    def _page(self, response: Response, request: Request | None, error: str = "") -> Page:
        assert request is not None
        scheduler = self._crawler.engine.scheduler
        page = page_of_response(response, request, scheduler.dispatcher.times, self._agents)  # type: ignore[union-attr]
        page.error = error
        return page

    def spider_error(self, failure: Failure, response: Any) -> None:
        """The callback failed, but the page was fetched: it ends like any other, and says so."""
        request = getattr(response, "request", None)
        if request is None or not isinstance(request.meta.get("ticket"), Ticket) or not hasattr(response, "status"):
            return
        page = self._page(response, request, f"callback: {name_of(failure)}")
        self._crawler.engine.scraper._start_itemproc_nowait(page)
