"""Spider middleware: the one Page of each exchange comes after the callback's own output, and each
request of a callback gets to know its parent.

A page that is a document (PDF and such) is read by another process. It waits for that apart from
its response. A big page, or one with very many links, is read here in slices, one such page at a
time. Everything else goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from itemadapter import is_item
from scrapy import Request, signals

from crawlproj.config import config_of
from crawlproj.content.html import MAX_BODY
from crawlproj.content.slices import BIG_BODY
from crawlproj.fetch.big_bodies import LINKS_BYTES, MANY_LINKS
from crawlproj.fetch.documents import PageDocuments
from crawlproj.fetch.handler import ABORT
from crawlproj.fetch.pages import RefusedError, error_text, page_in_slices, unread_page
from crawlproj.fetch.requests import detach_request
from crawlproj.fetch.slices import first_slice, run_slices
from crawlproj.frontier.base import Ticket
from crawlproj.items import ItemVerdict, Page, note_verdict
from crawlproj.scheduling.scheduler import worker_of
from crawlproj.scheduling.sources import is_seed

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from crawlproj.content.slices import Slices

log = logging.getLogger(__name__)

REQUESTS_AT_ONCE = 100
"""After so many requests of one callback the event loop does something else."""

MAX_HELD = 500
"""After so many items of one callback its page is judged, though there are more to come."""

GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class _Reading:
    """The page of a response. `is_apart`: a document, which is read when the callback is done."""

    page: Page
    slices: Slices[Page]
    is_apart: bool = False
    verdict: ItemVerdict | None = None
    """Of which page it is a copy, as far as is known."""
    passed: int = 0
    """Items that went on as those of an original."""


def room_needed(response: Response) -> int:
    """How many bytes it may need, if that is much: it is big, or may become so when it is
    decompressed as a file.
    """
    size = len(response.body)
    if response.body.startswith(GZIP):
        limit: int = response.meta.get("download_maxsize", MAX_BODY)
        return max(size, limit)
    if size > BIG_BODY:
        return size
    return 0


class PagesMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        name = crawler.settings.get("ROBOT_NAME", "").partition("/")[0].lower()
        self._agents = ("robots", name)
        self._documents = PageDocuments(crawler)
        self._limits = config_of(crawler).link_limits
        self._items_wait = config_of(crawler).duplicates.exact
        self._big_page = asyncio.Lock()
        """Held by the one page that is read in slices."""
        self._reading: set[asyncio.Task[None]] = set()
        crawler.signals.connect(self.spider_error, signal=signals.spider_error)
        crawler.signals.connect(self._stop_reading, signal=ABORT)

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
        requests = 0
        held: list[Any] = []
        reading: _Reading | None = None
        async with AsyncExitStack() as stack:
            try:
                async for output in result:
                    if isinstance(output, Request) and isinstance(ticket, Ticket):
                        self._note_parent(output, ticket)
                        requests += 1
                        if requests % REQUESTS_AT_ONCE == 0:
                            await asyncio.sleep(0)
                    if isinstance(output, Page):
                        has_page = True
                        while held:
                            yield held.pop(0)
                    elif isinstance(ticket, Ticket) and not has_page and self._waits(output):
                        if reading is not None:
                            yield self._judged_item(output, reading)
                            continue
                        held.append(output)
                        if len(held) == MAX_HELD:
                            reading = await self._read_page(response, ticket, stack, len(held))
                            while held:
                                yield self._judged_item(held.pop(0), reading)
                        continue
                    yield output
            except Exception:
                # The callback broke: what it gave before counts, whatever its page is.
                while held:
                    yield held.pop(0)
                raise
            if not isinstance(ticket, Ticket) or has_page:
                return
            if reading is None:
                reading = await self._read_page(response, ticket, stack, len(held))
            for item in held:
                yield self._judged_item(item, reading)
            if reading.is_apart:
                self._read_apart(reading.page, reading.slices, response)
                return
            if reading.passed:
                worker_of(self._crawler).note_items_passed(reading.page, reading.passed)
            yield reading.page

    async def _read_page(
        self, response: Response, ticket: Ticket, stack: AsyncExitStack, items: int
    ) -> _Reading:
        """The page of a response, and whether it is a copy if it has items, which wait for that.
        What is in `stack` is held until the pipelines are done with the page.
        """
        room = room_needed(response)
        slices = self._page_slices(response, response.request)
        if room:
            try:
                await worker_of(self._crawler).big_bodies.enter(ticket, room)
            except RefusedError as error:
                return _Reading(self._unread_page(response, error.reason), slices)
        page = first_slice(slices)
        if page is None:
            # The lock is held until the pipelines are done with the page: then its memory is free.
            await stack.enter_async_context(self._big_page)
            page = await self._read_big(slices, response, ticket)
        elif self._documents.is_due(page):
            return _Reading(page, slices, is_apart=True)
        else:
            if page.document is not None and len(page.document.links) > MANY_LINKS:
                page = await self._with_room(page, response, ticket)
            page = self._count_limits(page)
        reading = _Reading(page, slices)
        if items:
            worker = worker_of(self._crawler)
            await worker.mark_page(page)
            reading.verdict = await worker.preview_verdict(page, items)
        return reading

    def _note_parent(self, request: Request, ticket: Ticket) -> None:
        """Let a request of a callback say which page it was found on."""
        if "ticket" in request.meta:
            detach_request(request, self._crawler.spider)  # type: ignore[arg-type]
        request.meta["depth"] = ticket.depth + 1
        request.meta["parent"] = ticket.id
        request.meta["from_source"] = ticket.source or is_seed(ticket)

    def _waits(self, output: Any) -> bool:
        """Is it an item, which waits until its page is judged?"""
        return self._items_wait and is_item(output)

    def _judged_item(self, item: Any, reading: _Reading) -> Any:
        """An item, when it is known whether its page is a copy."""
        if reading.verdict is None:
            reading.passed += 1
        else:
            self._crawler.stats.inc_value("duplicates/items")
            note_verdict(item, reading.verdict)
        return item

    async def _with_room(self, page: Page, response: Response, ticket: Ticket) -> Page:
        """The page, when there is room for what was found in it."""
        try:
            await worker_of(self._crawler).big_bodies.enter(ticket, LINKS_BYTES)
        except RefusedError as error:
            return self._unread_page(response, error.reason)
        return page

    async def _read_big(self, slices: Slices[Page], response: Response, ticket: Ticket) -> Page:
        """Read a page in slices; when the crawl ends meanwhile it is left for another time."""
        big_bodies = worker_of(self._crawler).big_bodies
        started = time.monotonic()
        try:
            page = await run_slices(slices, lambda: big_bodies.stopped)
        except RefusedError as error:
            return self._unread_page(response, error.reason)
        finally:
            big_bodies.note_time(ticket.server, time.monotonic() - started)
        return self._count_limits(page)

    def _unread_page(self, response: Response, reason: str) -> Page:
        assert response.request is not None
        return unread_page(response.request, worker_of(self._crawler).clock, reason)

    def _stop_reading(self) -> None:
        worker_of(self._crawler).big_bodies.stop()

    def _page_slices(self, response: Response, request: Request | None) -> Slices[Page]:
        assert request is not None
        clock = worker_of(self._crawler).clock
        return page_in_slices(response, request, clock, agents=self._agents, limits=self._limits)

    def _count_limits(self, page: Page) -> Page:
        """Count a page of which something was left out."""
        document = page.document
        if document is not None:
            if document.cut:
                self._crawler.stats.inc_value("pages/cut")
                log.info("Not read to its end: %s", page.url)
            if document.too_many_links:
                self._crawler.stats.inc_value("links/too_many")
                log.info("More links than are taken: %s", page.url)
        return page

    def spider_error(self, failure: Failure, response: Any) -> None:
        """End the page of a callback that failed like any other, with the error: it was fetched."""
        request = getattr(response, "request", None)
        if request is None or not isinstance(request.meta.get("ticket"), Ticket):
            return
        if not hasattr(response, "status"):
            return
        error = f"callback: {error_text(failure)}"
        slices = self._page_slices(response, request)
        page = first_slice(slices)
        if page is None or self._documents.is_due(page):
            self._read_apart(page, slices, response, error=error)
            return
        page.error = error
        self._crawler.engine.scraper._start_itemproc_nowait(self._count_limits(page))

    def _read_apart(
        self, page: Page | None, slices: Slices[Page], response: Response, error: str = ""
    ) -> None:
        """Let a document be read or, if there is no page yet, a big page, apart from its
        response.
        """
        scraper = self._crawler.engine.scraper
        assert scraper.slot is not None
        scraper.slot.itemproc_size += 1  # so that the crawl does not end meanwhile
        task = asyncio.get_running_loop().create_task(
            self._read_later(page, slices, response, error=error)
        )
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read_big_apart(
        self, slices: Slices[Page], response: Response, ticket: Ticket
    ) -> Page:
        async with self._big_page:
            return await self._read_big(slices, response, ticket)

    async def _read_later(
        self, page: Page | None, slices: Slices[Page], response: Response, error: str
    ) -> None:
        """Read a document or, if there is no page yet, a big page; then the pipelines get it."""
        scraper = self._crawler.engine.scraper
        assert scraper.slot is not None
        assert response.request is not None
        ticket: Ticket = response.request.meta["ticket"]
        try:
            if page is None:
                page = await self._read_big_apart(slices, response, ticket)
                page.error = error
            else:
                page.error = error
                worker_of(self._crawler).big_bodies.leave(ticket.id)
                page = self._count_limits(await self._documents.read_document(page))
        finally:
            if page is not None:
                await scraper.start_itemproc_async(page, response=None)
            scraper.slot.itemproc_size -= 1
            scraper._check_if_closing()
