"""Spider middleware: the one Page of each exchange comes after the callback's own output, and each
request of a callback gets to know its parent.

A page that is a document (PDF and such) is read by another process and waits here for it;
everything else goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals

from crawlproj.fetch.documents import PageDocuments
from crawlproj.fetch.pages import error_text, page_of_response
from crawlproj.fetch.requests import detach_request
from crawlproj.frontier.base import Ticket
from crawlproj.items import Page
from crawlproj.scheduling.scheduler import worker_of

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
        self._documents = PageDocuments(crawler)
        self._reading: set[asyncio.Task[None]] = set()
        crawler.signals.connect(self.spider_error, signal=signals.spider_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        request = response.request
        ticket = None
        if request is not None:
            ticket = request.meta.get("ticket")
        has_page = False
        async for output in result:
            if isinstance(output, Request) and isinstance(ticket, Ticket):
                if "ticket" in output.meta:
                    detach_request(output, self._crawler.spider)  # type: ignore[arg-type]
                output.meta["depth"] = ticket.depth + 1
                output.meta["parent"] = ticket.id
            if isinstance(output, Page):
                has_page = True
            yield output
        if isinstance(ticket, Ticket) and not has_page:
            page = self._page(response, request)
            if page.kind == "document":
                page = await self._documents.read_document(page)
            yield page

    def _page(self, response: Response, request: Request | None, error: str = "") -> Page:
        assert request is not None
        clock = worker_of(self._crawler).clock
        page = page_of_response(response, request, clock, agents=self._agents)
        page.error = error
        return page

    def spider_error(self, failure: Failure, response: Any) -> None:
        """End the page of a callback that failed like any other, with the error: it was fetched."""
        request = getattr(response, "request", None)
        if request is None or not isinstance(request.meta.get("ticket"), Ticket):
            return
        if not hasattr(response, "status"):
            return
        page = self._page(response, request, f"callback: {error_text(failure)}")
        scraper = self._crawler.engine.scraper
        if page.kind != "document":
            scraper._start_itemproc_nowait(page)
            return
        assert scraper.slot is not None
        scraper.slot.itemproc_size += 1  # so that the crawl does not end meanwhile
        task = asyncio.get_running_loop().create_task(self._read_later(page))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read_later(self, page: Page) -> None:
        scraper = self._crawler.engine.scraper
        assert scraper.slot is not None
        try:
            page = await self._documents.read_document(page)
        finally:
            scraper.slot.itemproc_size -= 1
            scraper._start_itemproc_nowait(page)
