"""Documents (PDF and such) on their way through a crawl: read by another process, while everything
else goes on.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from scrapy import signals

from crawlproj.config import config_of
from crawlproj.fetch.handler import ABORT
from crawlproj.fetch.pages import decompress_in_slices
from crawlproj.fetch.slices import run_slices
from crawlproj.frontier.base import Ticket
from crawlproj.items import Page

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlproj.content.documents.reader_process import DocumentReader
    from crawlproj.content.documents.waiting import WaitingDocuments

log = logging.getLogger(__name__)


class PageDocuments:
    """Lets the documents of one crawl be read. Lives on the event loop.

    The reader process is started when the first document comes, and nothing of it is imported
    before. Those that wait for it have a budget of bytes of their own: nothing else waits for them.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._config = config_of(crawler)
        self._reader: DocumentReader | None = None
        self._waiting: WaitingDocuments | None = None

    async def read_document(self, page: Page) -> Page:
        """Return the page, one `is_due`, with what its document says, if that can be found out."""
        ticket = page.ticket
        assert isinstance(ticket, Ticket)
        reader, waiting = self._open_reader()
        from crawlproj.content.documents.reply import TRANSIENT_FAILURES, DocumentReadError

        done = "read"
        try:
            reader.check_document(len(page.body), ticket.server)
            async with waiting.turn(ticket.server, len(page.body)):
                body = await run_slices(decompress_in_slices(page.body))
                page.document = await reader.read_with_retry(body, page.url, ticket.server)
        except DocumentReadError as error:
            done = str(error)
            if done == "shutdown":
                return replace(page, status=0, reason=done, wire=None)
            page.unread = done in TRANSIENT_FAILURES
            page.lacked_room = done == "no_room"
            page.error = page.error or f"document: {done}"
            log.info("Document not read (%s): %s", done, page.url)
        self._crawler.stats.inc_value(f"documents/{done}")
        return page

    def is_due(self, page: Page) -> bool:
        """Is it a document that is to be read? Other bytes than last time are; the same ones, if
        they say noindex now or no longer, or if they could not be read then, a few times.
        """
        ticket = page.ticket
        if page.kind != "document" or self._config.documents is None:
            return False
        if not isinstance(ticket, Ticket):
            return False
        if page.body_digest != ticket.body_digest or page.noindex != ticket.noindex:
            return True
        return ticket.unread and ticket.tries <= self._config.retries

    def _open_reader(self) -> tuple[DocumentReader, WaitingDocuments]:
        """The reader, and the line before it."""
        if self._reader is None or self._waiting is None:
            from crawlproj.content.documents.reader_process import DocumentReader
            from crawlproj.content.documents.waiting import WaitingDocuments

            assert self._config.documents is not None
            self._reader = DocumentReader(self._config.documents)
            self._waiting = WaitingDocuments(self._config.documents.max_waiting_bytes)
            self._crawler.signals.connect(self._reader.stop, signal=ABORT)
            self._crawler.signals.connect(self._reader.close, signal=signals.spider_closed)
        return self._reader, self._waiting
