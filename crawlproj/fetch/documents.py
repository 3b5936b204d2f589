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
from crawlproj.fetch.pages import decompress_body
from crawlproj.frontier.base import Ticket
from crawlproj.items import Page

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlproj.content.documents.reader_process import DocumentReader

log = logging.getLogger(__name__)


class PageDocuments:
    """Lets the documents of one crawl be read. Lives on the event loop.

    The reader process is started when the first document comes, and nothing of it is imported
    before.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._config = config_of(crawler)
        self._reader: DocumentReader | None = None

    async def read_document(self, page: Page) -> Page:
        """Return the page with what its document says, if that is not known from last time and can
        be found out.
        """
        ticket = page.ticket
        reader = self._reader or self._open_reader()
        if reader is None or not isinstance(ticket, Ticket) or not self._is_due(page, ticket):
            return page
        from crawlproj.content.documents.reply import TRANSIENT_FAILURES, DocumentReadError

        done = "read"
        try:
            body = decompress_body(page.body)
            page.document = await reader.read_with_retry(body, page.url, ticket.server)
        except DocumentReadError as error:
            done = str(error)
            if done == "shutdown":
                return replace(page, status=0, reason=done, wire=None)
            page.unread = done in TRANSIENT_FAILURES
            page.error = page.error or f"document: {done}"
            log.info("Document not read (%s): %s", done, page.url)
        self._crawler.stats.inc_value(f"documents/{done}")
        return page

    def _is_due(self, page: Page, ticket: Ticket) -> bool:
        """Is it to be read? Other bytes than last time are; the same ones, if they could not be
        read then, a few times.
        """
        if page.body_digest != ticket.body_digest:
            return True
        return ticket.unread and ticket.tries <= self._config.retries

    def _open_reader(self) -> DocumentReader | None:
        """None: documents are not wanted."""
        if self._config.documents is None:
            return None
        from crawlproj.content.documents.reader_process import DocumentReader

        reader = self._reader = DocumentReader(self._config.documents)
        self._crawler.signals.connect(reader.stop, signal=ABORT)
        self._crawler.signals.connect(reader.close, signal=signals.spider_closed)
        return reader
