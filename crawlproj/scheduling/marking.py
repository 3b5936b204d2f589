"""What is made of each new page before the pipelines store it: its kind, its text, what its article
is taken from, and the marks by which it is compared with others. On the event loop; a very long
text in a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crawlproj.config import Config
from crawlproj.content.document import Document
from crawlproj.content.packed_text import pack_body, stored_form
from crawlproj.content.page_kinds import PageKinds
from crawlproj.content.slices import SLICE_CHARACTERS
from crawlproj.duplicates.marks import WITHDRAWN, PageMarker, make_page_text
from crawlproj.frontier.base import ArticleSource, Ticket
from crawlproj.items import Page
from crawlproj.scheduling.change_watch import ChangeWatch
from crawlproj.urls.rules import SiteRules

TEXT_KINDS = frozenset({"html", "text", "document"})
"""Pages whose text is kept and compared. Feeds and sitemaps are lists: their bytes are."""


MAX_ARTICLE = 2_000_000
"""Bytes; a longer page is no article."""


class PageMarking:
    """Fills in kind, text, article and marks of pages. `marker` is None if pages are not compared;
    `site_of` gives the rules of a URL's site; without `articles` none are taken.
    """

    def __init__(
        self,
        config: Config,
        marker: PageMarker | None,
        site_of: Callable[[str], SiteRules | None] = lambda url: None,
        articles: bool = False,
        changes: ChangeWatch | None = None,
    ) -> None:
        """`changes` says how a page differs from its last visit; a page that is set aside has
        nothing to be marked.
        """
        self._keeps_text = config.text
        self._finds_language = config.language
        self._marker = marker
        self._site_of = site_of
        self._takes_articles = articles
        self._kinds = PageKinds()
        self._changes = changes

    def mark(self, page: Page) -> bool:
        """Mark a page, once; False if its text is so long that `mark_apart` must do it."""
        ticket = page.ticket
        if page.marked or not isinstance(ticket, Ticket) or not 200 <= page.status < 300:
            return True
        if page.kind == "html" and page.document is not None:
            page.page_kind = self._kind_of(page.document, ticket.url)
        same = page.body_digest == ticket.body_digest and page.noindex == ticket.noindex
        if same and not ticket.unread:
            page.marked = True
            return True
        if _is_long(page.document):
            return False
        self._mark(page, ticket)
        return True

    async def mark_apart(self, page: Page) -> None:
        """Mark a page, however long its text is."""
        if self.mark(page):
            return
        assert isinstance(page.ticket, Ticket)
        if self._changes is not None and page.verdict is None:
            comparison = await asyncio.to_thread(self._changes.compare, page)
            self._changes.take_comparison(page, comparison)
        await asyncio.to_thread(self._mark, page, page.ticket)

    def _kind_of(self, document: Document, url: str) -> str:
        """Article, listing or other: by the site's rules, else by what the page looks like."""
        site = self._site_of(url)
        if site is not None:
            verdict = site.verdict(url)
            if verdict in ("article", "listing"):
                return verdict
        return self._kinds.judge(document, url)

    def _mark(self, page: Page, ticket: Ticket) -> None:
        page.marked = True
        if self._changes is not None and self._changes.judge(page).set_aside:
            return
        if not _is_judged_anew(page, ticket):
            return
        document = page.document
        if self._takes_articles and page.page_kind == "article" and document is not None:
            self._queue_article(page, document)
        if page.kind not in TEXT_KINDS:
            document = None
        blocks = []
        text_digest = None
        if document is not None:
            blocks = stored_form(document.blocks)
            text_digest = document.block_digest
            if self._keeps_text:
                page.text = make_page_text(
                    document, blocks, page.kind, with_sample=self._finds_language
                )
        if self._marker is None:
            return
        if page.noindex or not page.body:
            page.marks = WITHDRAWN
            return
        page.marks = self._marker.mark_blocks(
            blocks,
            page.body_digest,
            text_digest,
            ticket.host,
            first=ticket.block_digest is None,
        )

    def _queue_article(self, page: Page, document: Document) -> None:
        if len(page.body) <= MAX_ARTICLE and not page.noindex:
            page.article = ArticleSource(pack_body(page.body), document.charset)


def _is_judged_anew(page: Page, ticket: Ticket) -> bool:
    """Does it say something else than at the last visit, or is that its first? Noindex that is new,
    or no longer there, counts as well.
    """
    if ticket.block_digest is None or page.noindex != ticket.noindex:
        return True
    if page.document is None:
        return page.body_digest != ticket.body_digest
    return page.document.block_digest != ticket.block_digest


def _is_long(document: Document | None) -> bool:
    if document is None:
        return False
    return sum([len(block[0]) for block in document.blocks]) > SLICE_CHARACTERS
