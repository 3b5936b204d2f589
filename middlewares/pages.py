"""Spider middleware: after the callback's own output, the one Page of each exchange; links of
requests to their parent.

A page that is a document (PDF and such) is read by another process and waits here for it;
everything else goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals

from crawlproj.fetch.handler import ABORT
from crawlproj.fetch.pages import decompress_body, error_text, page_of_response
from crawlproj.fetch.requests import detach_request
from crawlproj.frontier.base import Ticket
from crawlproj.items import Page

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from crawlproj.content.documents.reader_process import DocumentReader
    from crawlproj.scheduling.scheduler import CrawlScheduler

log = logging.getLogger(__name__)


class PagesMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        name = crawler.settings.get("ROBOT_NAME", "").partition("/")[0].lower()
        self._agents = ("robots", name)
        self._desk: DocumentReader | None = None
        self._later: set[asyncio.Task[None]] = set()
        crawler.signals.connect(self.spider_error, signal=signals.spider_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        request = response.request
        ticket = request.meta.get("ticket") if request is not None else None
        paged = False
        async for output in result:
            if isinstance(output, Request) and isinstance(ticket, Ticket):
                if "ticket" in output.meta:
                    detach_request(output, self._crawler.spider)  # type: ignore[arg-type]
                output.meta["depth"] = ticket.depth + 1
                output.meta["parent"] = ticket.id
            paged = paged or isinstance(output, Page)
            yield output
        if isinstance(ticket, Ticket) and not paged:
            page = self._page(response, request)
            yield page if page.kind != "document" else await self._read(page)

    def _page(self, response: Response, request: Request | None, error: str = "") -> Page:
        assert request is not None
        scheduler = self._crawler.engine.scheduler
        page = page_of_response(response, request, scheduler.dispatcher.times, agents=self._agents)  # type: ignore[union-attr]
        page.error = error
        return page

    def spider_error(self, failure: Failure, response: Any) -> None:
        """The callback failed, but the page was fetched: it ends like any other, and says so."""
        request = getattr(response, "request", None)
        if (
            request is None
            or not isinstance(request.meta.get("ticket"), Ticket)
            or not hasattr(response, "status")
        ):
            return
        page = self._page(response, request, f"callback: {error_text(failure)}")
        scraper = self._crawler.engine.scraper
        if page.kind != "document":
            scraper._start_itemproc_nowait(page)
            return
        assert scraper.slot is not None
        scraper.slot.itemproc_size += 1  # so that the crawl does not end meanwhile
        task = asyncio.get_running_loop().create_task(self._read_later(page))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _read_later(self, page: Page) -> None:
        scraper = self._crawler.engine.scraper
        assert scraper.slot is not None
        try:
            page = await self._read(page)
        finally:
            scraper.slot.itemproc_size -= 1
            scraper._start_itemproc_nowait(page)

    async def _read(self, page: Page) -> Page:
        """The page with what its document says, if that is not known from last time and can be
        found out.
        """
        ticket = page.ticket
        desk = self._desk or self._open_desk()
        if desk is None or not isinstance(ticket, Ticket) or not self._needs_reading(page, ticket):
            return page
        from crawlproj.content.documents.reply import TRANSIENT_FAILURES, DocumentReadError

        done = "read"
        try:
            page.document = await desk.read_with_retry(
                decompress_body(page.body), page.url, ticket.server
            )
        except DocumentReadError as error:
            done = str(error)
            if done == "shutdown":
                return replace(page, status=0, reason=done, wire=None)
            page.unread = done in TRANSIENT_FAILURES
            page.error = page.error or f"document: {done}"
            log.info("Document not read (%s): %s", done, page.url)
        self._crawler.stats.inc_value(f"documents/{done}")
        return page

    def _needs_reading(self, page: Page, ticket: Ticket) -> bool:
        """Other bytes than last time; or the same ones, that could not be read then, a
        few times.
        """
        scheduler: CrawlScheduler = self._crawler.engine.scheduler  # type: ignore[assignment]
        return page.body_digest != ticket.body_digest or (
            ticket.unread and ticket.tries <= scheduler.config.retries
        )

    def _open_desk(self) -> DocumentReader | None:
        """When the first document comes; nothing of it is imported before. None: documents are not
        wanted.
        """
        scheduler: CrawlScheduler = self._crawler.engine.scheduler  # type: ignore[assignment]
        if scheduler.config.documents is None:
            return None
        from crawlproj.content.documents.reader_process import DocumentReader

        desk = self._desk = DocumentReader(scheduler.config.documents)
        self._crawler.signals.connect(desk.stop, signal=ABORT)
        self._crawler.signals.connect(desk.close, signal=signals.spider_closed)
        return desk
