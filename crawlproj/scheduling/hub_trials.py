"""Pages on trial: lists of articles are looked at again soon after their first visit, to learn
within hours whether they are hubs.

A trial begins with a short interval, which doubles while nothing comes; at REVISIT_MIN it is over.
That a page is on trial is told by its interval, which is shorter than that of any other page: so
nothing else is stored, and trials go on in other workers and after restarts.

Forums, calendars and archives get no trial, nor do hosts whose feeds or sitemaps work (`www.` is no
other host): a domain may have several sites. Each host may begin some trials a day; those that make
a hub don't count.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from crawlproj.content.document import Document
from crawlproj.content.url_dates import read_page_number
from crawlproj.content.url_signs import read_url
from crawlproj.frontier.base import Lane, Ticket
from crawlproj.items import Page
from crawlproj.scheduling.link_places import LIKELY, LOOKED_AT, Sign, article_sign
from crawlproj.scheduling.sources import SOURCE_KINDS, brought_articles
from crawlproj.urls.canonical import host_of

DAY: Final = timedelta(days=1)
FIRST_PART: Final = 2
"""The first look comes after so many first intervals of a source."""
MAX_DEPTH: Final = 3
MANY_LIKELY: Final = 5
"""A page that is not surely a list is tried if so many of its links look like articles."""
MAX_STARTS: Final = 40
"""So many trials that come to nothing a site may begin in a day."""
MANY_BROUGHT: Final = 10
"""A page that has brought so many at once may be a hub, however long that took."""
MAX_SITES: Final = 20_000


@dataclass(slots=True)
class _Site:
    day: datetime
    starts: int = 0
    works_until: datetime | None = None
    """A feed or sitemap of it has brought something new lately."""


class HubTrials:
    """Lives on the event loop. `first`: the first interval of a source; `longest`: a page that
    brings new articles less often than that is no hub.
    """

    def __init__(self, first: timedelta, longest: timedelta) -> None:
        self.first = FIRST_PART * first
        self.longest = longest
        self._sites: OrderedDict[str, _Site] = OrderedDict()

    def is_on_trial(self, ticket: Ticket) -> bool:
        """Was this visit a look at a page on trial?"""
        if ticket.source or ticket.block_digest is None or ticket.request is not None:
            return False
        return ticket.interval_s is not None and ticket.interval_s < self.longest.total_seconds()

    def note_source(self, page: Page, ticket: Ticket) -> None:
        """Note whether a feed or sitemap shows what is new on its site."""
        document = page.document
        if page.kind not in SOURCE_KINDS or document is None or not document.links:
            return
        verdict = page.verdict
        if verdict is not None and verdict.new_links is not None:
            works = verdict.new_links > 0
        else:
            newest = document.newest
            works = newest is not None and page.at - DAY <= newest <= page.at
        if works:
            self._site(page, ticket).works_until = page.at + self.longest

    def note_hub(self, page: Page, ticket: Ticket) -> None:
        """A trial has made a hub: its site may begin another one."""
        site = self._site(page, ticket)
        site.starts = max(site.starts - 1, 0)

    def next_look(self, page: Page, ticket: Ticket) -> timedelta | None:
        """When a page that is no source is looked at again; None: it is not on trial."""
        if page.kind not in ("html", "") or page.page_kind == "article":
            return None
        site = self._site(page, ticket)
        if site.works_until is not None and page.at < site.works_until:
            return None
        if self.is_on_trial(ticket):
            pause = self._pause_after(page, ticket)
        elif self._may_begin(page, ticket) and site.starts < MAX_STARTS:
            site.starts += 1
            pause = self.first
        else:
            return None
        return pause if pause < self.longest else None

    def _pause_after(self, page: Page, ticket: Ticket) -> timedelta:
        waited = timedelta(seconds=ticket.interval_s or 0.0)
        if brought_articles(page):
            return max(waited / 2, self.first)
        if ticket.last_visit is not None:
            waited = max(waited, page.at - ticket.last_visit)
        return max(2 * waited, self.first)

    def _may_begin(self, page: Page, ticket: Ticket) -> bool:
        if ticket.request is not None or ticket.lane is Lane.BACKFILL or ticket.depth > MAX_DEPTH:
            return False
        if page.document is None or not 200 <= page.status < 300:
            return False
        if ticket.block_digest is not None and not self._brings_many(page, ticket):
            return False
        signs = read_url(ticket.url)
        if signs.other or signs.archive or signs.gallery or read_page_number(ticket.url):
            return False
        return _lists_articles(page, page.document)

    def _brings_many(self, page: Page, ticket: Ticket) -> bool:
        """Has it brought as much since its last visit as a hub would?"""
        brought = brought_articles(page)
        if not brought or ticket.last_visit is None:
            return False
        return brought >= min((page.at - ticket.last_visit) / self.longest, MANY_BROUGHT)

    def _site(self, page: Page, ticket: Ticket) -> _Site:
        name = (ticket.named_by or host_of(ticket.url)).removeprefix("www.")
        site = self._sites.get(name)
        if site is None:
            site = self._sites[name] = _Site(page.at)
            if len(self._sites) > MAX_SITES:
                self._sites.popitem(last=False)
        self._sites.move_to_end(name)
        if page.at - site.day >= DAY:
            site.day = page.at
            site.starts = 0
        return site


def _lists_articles(page: Page, document: Document) -> bool:
    """Does it look like a list of articles?"""
    if page.page_kind not in ("listing", "other"):
        return False
    links = [link.url for link in document.links if link.kind == "a"]
    step = max(1, len(links) // LOOKED_AT)
    found = [article_sign(url) for url in links[::step]]
    if page.page_kind == "listing":
        return len(found) - found.count(Sign.NO) >= LIKELY
    return found.count(Sign.LIKELY) >= MANY_LIKELY
