"""400: what the page says becomes what Postgres keeps of it, and its links become URLs for the
frontier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crawlproj.config import config_of
from crawlproj.content.document import Document
from crawlproj.content.slices import MANY_LINKS
from crawlproj.fetch.slices import run_slices
from crawlproj.frontier.base import Content, Found, Links, Ticket
from crawlproj.http.status import RETRYABLE
from crawlproj.items import Page
from crawlproj.scheduling.scheduler import worker_of
from crawlproj.scheduling.server_hints import listed_changes
from crawlproj.urls.canonical import url_key

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

NO_LINKS = Links()


class StorePipeline:
    wants_pages = True

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._crawl = config_of(crawler).spec.name

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        """Return the item; if it has very many links, a coroutine that does."""
        if isinstance(item, Page) and isinstance(item.ticket, Ticket):
            if item.ticket.found is Found.PROBE:
                if 200 <= item.status < 500 and item.status not in RETRYABLE:
                    worker_of(self._crawler).changes.take_probe(item)
            elif 200 <= item.status < 300:
                document = item.document
                changes = worker_of(self._crawler).changes
                if _is_same(item, item.ticket):
                    verdict = changes.judge_same(item)
                else:
                    verdict = changes.judge(item)
                if verdict is not None and verdict.set_aside:
                    return item
                if document is not None and len(document.links) > MANY_LINKS:
                    return self._store_in_slices(item, item.ticket, document)
                links = NO_LINKS
                if document is not None:
                    links = worker_of(self._crawler).add_links(
                        item,
                        item.ticket,
                        document.links,
                        follow=not item.directives.nofollow,
                    )
                self._store(item, item.ticket, links)
            elif item.status == 304:
                worker_of(self._crawler).changes.note_page(item.ticket.host)
                self._crawler.stats.inc_value("pages/not_modified")
        return item

    async def _store_in_slices(self, page: Page, ticket: Ticket, document: Document) -> Page:
        worker = worker_of(self._crawler)
        follow = not page.directives.nofollow
        slices = worker.add_links_in_slices(page, ticket, document.links, follow=follow)
        self._store(page, ticket, await run_slices(slices))
        return page

    def _store(self, page: Page, ticket: Ticket, links: Links) -> None:
        document = page.document
        if document is not None and page.kind == "sitemap" and ticket.last_read is not None:
            listed = listed_changes(document.listed, ticket.last_read, page.at)
            worker_of(self._crawler).note_listed(
                {url_key(self._crawl, url): at for url, at in listed.items()}
            )
        self._crawler.stats.inc_value(f"pages/{self._compare(page, ticket, links)}")

    def _compare(self, page: Page, ticket: Ticket, links: Links) -> str:
        """Fill in `content` if there is something new to keep, and say how the page compares with
        the last visit.
        """
        body_digest = page.body_digest
        document = page.document
        if _is_same(page, ticket):
            return "same_bytes"
        block_digest = body_digest
        if document is not None:
            block_digest = document.block_digest
        same = body_digest == ticket.body_digest
        verdict = page.verdict
        page.changed = verdict is not None and verdict.changed and not same
        page.content = self._content_of(page, ticket, block_digest, links)
        if ticket.block_digest is None:
            return "first"
        if page.changed:
            return "changed"
        if block_digest != ticket.block_digest:
            return "noise"
        return "same_text"

    def _content_of(self, page: Page, ticket: Ticket, block_digest: bytes, links: Links) -> Content:
        document = page.document
        content = Content(
            page.body_digest,
            block_digest,
            content_type=page.content_type[:200],
            length=len(page.body),
            noindex=page.noindex,
            noarchive=page.directives.noarchive,
            kind=page.page_kind or page.kind,
            marks=page.marks,
            article=page.article,
        )
        if document is None:
            return content
        return replace(
            content,
            title=document.title[:1000],
            charset=document.charset,
            language=(document.language or page.headers.get("content-language", ""))[:35],
            links=links,
            canonical=self._canonical_id(document, ticket),
            text=page.text,
        )

    def _canonical_id(self, document: Document, ticket: Ticket) -> int | None:
        """The page that this one names by rel=canonical, if it is another one."""
        if document.canonical is None or document.canonical == ticket.url:
            return None
        return url_key(self._crawl, document.canonical)


def _is_same(page: Page, ticket: Ticket) -> bool:
    """Are its bytes those of the last visit, was it read then, and did it say noindex or not as
    now?
    """
    if page.body_digest != ticket.body_digest or page.noindex != ticket.noindex:
        return False
    return not (ticket.unread and page.document is not None)
