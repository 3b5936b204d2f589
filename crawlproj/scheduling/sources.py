"""Which pages are sources: those that lead to new pages, and are asked far more often than others.

One function, for all who must know it: the interval of a page, and reports. And one for hubs, which
are pages that are known as sources only by what their visits bring.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from crawlproj.frontier.base import Found, Ticket
from crawlproj.items import Page
from crawlproj.revisit.base import Numbers
from crawlproj.revisit.rates import is_known

SOURCE_KINDS = frozenset({"feed", "sitemap"})
LIST_KINDS = frozenset({"feed", "sitemap", "news sitemap", "sitemap index"})
"""What the kinds of such pages are called as sources."""
HUB: Final = "hub"
FORMER_HUB: Final = "former hub"
MIN_BRINGING: Final = 2
"""So many visits at least have brought new links, before a page is taken for a hub."""
HUB_SLACK: Final = 2.0
"""A hub stays one until its new links are so many times as far apart as those of a new one."""
STOP_GAPS: Final = 6
"""A hub has stopped when it has brought nothing for so many of its usual gaps."""
PAUSE_PART: Final = 8
"""As long as a hub brings nothing, it is visited after this part of its pause."""


def is_source(page: Page) -> bool:
    """Is it a feed, a sitemap, a seed (or where a seed has moved to), or the root of its host? What
    kind of page it is can't be seen without a body: then it is what it was. So is a feed that
    answers with a page: most likely that is an error, and it will be a feed again.
    """
    ticket = page.ticket
    if not isinstance(ticket, Ticket):
        return False
    if is_seed(ticket) or is_host_root(ticket.url):
        return True
    if not page.kind or was_list(ticket):
        return ticket.source
    return page.kind in SOURCE_KINDS


def lasts(page: Page, ticket: Ticket) -> bool:
    """Is it a source that is never given up: one that the crawl begins with, or that was read once?
    Front pages, feeds and sitemaps that only somebody's link has named may not be there at all.
    """
    if is_seed(ticket) and ticket.request is None:
        return True
    return was_read(ticket) and (is_source(page) or was_hub(ticket))


def was_read(ticket: Ticket) -> bool:
    """Has a visit to it ever brought a page?"""
    return ticket.interval_s is not None


def is_hub(numbers: Numbers, longest: timedelta, *, brought: int, before: bool) -> bool:
    """Is a page a hub, by the rate at which it brings new links: one in `longest` on average?
    `brought`: how many visits have brought some; `before`: it was a hub until now.
    """
    if not is_known(numbers):
        return before
    assert numbers.rate_a is not None and numbers.rate_b is not None
    mean_s = numbers.rate_b / numbers.rate_a
    if before:
        return mean_s <= HUB_SLACK * longest.total_seconds()
    return brought >= MIN_BRINGING and mean_s < longest.total_seconds()


def brought_articles(page: Page) -> int:
    """How many links to articles a page had that are new to it and, as far as this worker
    remembers, to the crawl: what others have shown before is not its merit.
    """
    verdict = page.verdict
    if verdict is None or verdict.new_articles is None:
        return page.fresh_articles
    return min(verdict.new_articles, page.fresh_articles)


def hub_pause(ticket: Ticket, now: datetime) -> timedelta:
    """For how long a hub has brought nothing, as of a visit that brought nothing."""
    if ticket.source_last_new is None:
        return timedelta(0)
    return max(now - ticket.source_last_new, timedelta(0))


def has_stopped(ticket: Ticket, now: datetime, longest: timedelta) -> bool:
    """Has a hub stopped, as of a visit that brought nothing? Nights are no end: it is one for
    `longest` at least.
    """
    gap_s = ticket.source_gap_s or 0.0
    return hub_pause(ticket, now) > max(STOP_GAPS * timedelta(seconds=gap_s), longest)


def was_hub(ticket: Ticket) -> bool:
    """Did the last visit take it for a hub?"""
    return ticket.source and ticket.source_kind == HUB


def was_list(ticket: Ticket) -> bool:
    """Was it a feed or a sitemap when it could be read last?"""
    return ticket.source and ticket.source_kind in LIST_KINDS


def is_broken_list(page: Page, ticket: Ticket) -> bool:
    """Has a feed or sitemap answered with something else?"""
    return bool(page.kind) and page.kind not in SOURCE_KINDS and was_list(ticket)


def leads_on(page: Page) -> bool:
    """Is it there to lead to others: a source, a hub, or a listing?"""
    if page.page_kind == "listing" or is_source(page):
        return True
    return isinstance(page.ticket, Ticket) and was_hub(page.ticket)


def is_born_source(page: Page, ticket: Ticket) -> bool:
    """Is it a source whatever it brings?"""
    return page.kind in SOURCE_KINDS or is_seed(ticket) or is_host_root(ticket.url)


def is_seed(ticket: Ticket) -> bool:
    """Is it where the crawl begins? What was pushed is not."""
    return ticket.depth == 0 and ticket.found is not Found.PUSH


def is_host_root(url: str) -> bool:
    """Is it the front page of a host? The URL is canonical, so there is a slash at its end."""
    return url.endswith("/") and url.count("/") == 3
