"""400: what the page says becomes what Postgres keeps of it, and its links become URLs for the frontier."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from crawlproj.frontier.base import Content, Ticket
from crawlproj.items import Page

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class StorePipeline:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Page) and isinstance(item.ticket, Ticket) and 200 <= item.status < 300:
            self._store(item, item.ticket)
        return item

    def _store(self, page: Page, ticket: Ticket) -> None:
        body_digest = blake2b(page.body, digest_size=16).digest()
        if body_digest == ticket.body_digest:
            self._crawler.stats.inc_value("pages/same_bytes")
            return
        document = page.document
        block_digest = document.digest if document is not None else body_digest
        page.changed = ticket.block_digest is not None and block_digest != ticket.block_digest
        content = Content(body_digest, block_digest, content_type=page.content_type[:200], length=len(page.body))
        if document is None:
            page.content = content
            return
        scheduler = self._crawler.engine.scheduler
        orders = document.orders
        links, urls = scheduler.sieve.sort(ticket, document.links, follow=not orders.nofollow)  # type: ignore[union-attr]
        scheduler.dispatcher.add(urls)  # type: ignore[union-attr]
        page.content = Content(
            body_digest, block_digest, document.title[:1000], page.content_type[:200], document.charset, document.language[:35],
            len(page.body), orders.noindex, links,
        )  # fmt: skip
