"""Which pages are sources: those that lead to new pages, and are asked far more often than others.

One function, for all who must know it: the interval of a page, and reports.
"""

from __future__ import annotations

from crawlproj.frontier.base import Found, Ticket
from crawlproj.items import Page

SOURCE_KINDS = frozenset({"feed", "sitemap"})


def is_source(page: Page) -> bool:
    """Is it a feed, a sitemap, a seed (or where a seed has moved to), or the root of its host? What
    kind of page it is can't be seen without a body: then it is what it was.
    """
    ticket = page.ticket
    if not isinstance(ticket, Ticket):
        return False
    if is_seed(ticket) or is_host_root(ticket.url):
        return True
    if not page.kind:
        return ticket.source
    return page.kind in SOURCE_KINDS


def is_seed(ticket: Ticket) -> bool:
    """Is it where the crawl begins? What was pushed is not."""
    return ticket.depth == 0 and ticket.found is not Found.PUSH


def is_host_root(url: str) -> bool:
    """Is it the front page of a host? The URL is canonical, so there is a slash at its end."""
    return url.endswith("/") and url.count("/") == 3
