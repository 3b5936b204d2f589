"""How the links of a page wait: ahead of other new URLs, among them, or in backfill.

What a feed, a news sitemap or a hub lists for the first time goes ahead, newest first. What was
published long ago goes to backfill, newest first, and so do the pages of lists that lead there.
Pure. All this is for the order `best` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final

from crawlproj.content.document import Document
from crawlproj.content.entry_dates import parse_entry_date
from crawlproj.content.link_state import hash_link
from crawlproj.content.url_dates import read_page_number, read_url_date
from crawlproj.content.url_signs import read_url
from crawlproj.frontier.base import Lane, Ticket
from crawlproj.frontier.seen import LISTS, Level, Place, depth_score
from crawlproj.items import Page
from crawlproj.scheduling.sources import leads_on

DAY: Final = timedelta(days=1)
SECOND: Final = timedelta(seconds=1)
FIRST_OLD_PAGE: Final = 3
"""Pages of a list from this number on lead to what is old."""
PAGE_AGE: Final = 3 * DAY
"""So much older is what the next page of a list leads to."""
OLD_SCORE: Final = 0.1
BAIT_PART: Final = 0.1
"""What the score of the many pages of forums and calendars is multiplied by."""
MOST_UNDATED: Final = 100
"""So many entries without a date go ahead of others at most: what comes after is no news."""
LIKELY: Final = 3
"""A page with so many links that look like articles leads to articles, others don't count."""
LOOKED_AT: Final = 60
"""So many links of a page are looked at for that."""
HOT_LISTS: Final = frozenset({"feed", "news sitemap"})


class Sign(IntEnum):
    """Does a URL look like that of an article?"""

    NO = 0
    MAYBE = 1
    LIKELY = 2


@dataclass(frozen=True, slots=True)
class PlaceRules:
    """`old`: what was published longer ago goes to backfill; None: nothing does. `moves`: links are
    moved at all. `verdict`: what the rules of its site say of a URL.
    """

    old: timedelta | None
    moves: bool = True
    verdict: Callable[[str], str] = lambda url: ""


def article_sign(url: str, verdict: str = "") -> Sign:
    """Does it look like the URL of an article, by the rules of its site or else by itself?"""
    if verdict:
        return Sign.LIKELY if verdict == "article" else Sign.NO
    signs = read_url(url)
    if signs.front or signs.archive or signs.listing or signs.other or signs.gallery:
        return Sign.NO
    if signs.dated or signs.words >= 4 or signs.number:
        return Sign.LIKELY
    return Sign.MAYBE


def count_articles(new: list[str], links: list[str], verdict: Callable[[str], str]) -> int:
    """How many of the new links of a page look like articles, beside all its links: where no URLs
    do, all those count that may be some.
    """
    step = max(1, len(links) // LOOKED_AT)
    looked_at = [article_sign(url, verdict(url)) for url in links[::step]]
    least = Sign.MAYBE
    if looked_at.count(Sign.LIKELY) >= LIKELY:
        least = Sign.LIKELY
    return sum(article_sign(url, verdict(url)) >= least for url in new)


def old_score(age: timedelta) -> float:
    """The score in backfill: the newest first, and all below what is new."""
    return OLD_SCORE / (1 + max(age / DAY, 0.0) / 30)


def hot_score(age: timedelta) -> float:
    """The score of what goes ahead: the newest first, and above 1."""
    return 1 + 1 / (1 + max(age / DAY, 0.0))


class LinkPlacer:
    """The places of the links of one page, in their order. `best`: the best level that one of them
    may have.
    """

    def __init__(self, page: Page, ticket: Ticket, rules: PlaceRules) -> None:
        document = page.document or Document(page.url)
        self._rules = rules
        self._now = page.at
        self._listed = document.listed
        self._published = document.published
        self._list_kind = document.list_kind
        self._new: frozenset[int] = frozenset()
        if page.verdict is not None:
            self._new = page.verdict.new_hashes
        self._is_first = ticket.block_digest is None or ticket.last_read is None
        self._since_age = DAY
        if ticket.block_digest is not None and ticket.last_read is not None:
            self._since_age = (page.at - ticket.last_read) / 2
        self._undated = 0
        self._page_age = self._age_of_old_page(ticket)
        self._is_hub = leads_on(page) and page.kind == "html" and not self._is_first
        self.best = Level.PLAIN
        if rules.moves and (self._list_kind in HOT_LISTS or (self._is_hub and self._new)):
            self.best = Level.HOT

    def place(self, url: str, kind: str, depth: int) -> Place:
        """The place of a link of that kind, which is found at that depth."""
        said = self._parse_date(self._published.get(url))
        published = None
        if self._list_kind in HOT_LISTS:
            published = said
        if said is None:
            said = self._parse_date(self._listed.get(url))
            if self._list_kind == "feed":
                # What a feed calls updated, and nothing else, is mostly when it was published.
                published = said
        dated = read_url_date(url)
        if published is None and dated is not None and dated.exact and dated.start <= self._now:
            published = dated.start
        score = depth_score(depth)
        if kind in LISTS and not self._list_kind:
            # A feed or sitemap of the whole site is asked before the pages that it may list.
            return Place(Level.PLAIN, 1.0 if depth <= 1 else score)
        if not self._rules.moves:
            return Place(Level.PLAIN, score, published)
        latest = said
        if latest is None and dated is not None:
            latest = dated.end
        signs = read_url(url)
        number = None
        if latest is None and not self._list_kind:
            number = read_page_number(url)
        if signs.other:
            if signs.archive or (number is not None and number >= FIRST_OLD_PAGE):
                score *= BAIT_PART
            if self._list_kind not in HOT_LISTS:
                return Place(Level.PLAIN, score, published)
        age = self._age_of(latest, number)
        if age is not None and self._is_old(age):
            return Place(Level.OLD, old_score(age), published)
        if self._is_hot(url, is_dated=latest is not None):
            if said is None:
                # The newest is on top of most lists.
                self._undated += 1
                age = self._since_age + self._undated * SECOND
            return Place(Level.HOT, hot_score(age or timedelta(0)), published)
        return Place(Level.PLAIN, score, published)

    def _parse_date(self, text: str | None) -> datetime | None:
        return parse_entry_date(text, self._now) if text else None

    def _age_of(self, latest: datetime | None, number: int | None) -> timedelta | None:
        """How old what is behind a link is at least; None if nothing says so."""
        if latest is not None:
            return self._now - latest
        if number is not None and self._rules.old is not None:
            if number < FIRST_OLD_PAGE:
                return None
            return self._rules.old + number * PAGE_AGE
        if self._page_age is not None and not self._list_kind:
            return self._page_age + DAY
        return None

    def _is_old(self, age: timedelta) -> bool:
        return self._rules.old is not None and age > self._rules.old

    def _is_hot(self, url: str, *, is_dated: bool) -> bool:
        if self.best is not Level.HOT:
            return False
        if self._list_kind in HOT_LISTS:
            return is_dated or self._undated < MOST_UNDATED
        if hash_link(url) not in self._new:
            return False
        verdict = self._rules.verdict(url)
        if verdict:
            return verdict == "article"
        return article_sign(url) is not Sign.NO

    def _age_of_old_page(self, ticket: Ticket) -> timedelta | None:
        """How old what the page leads to is, if it leads to what is old: an archive, or a page that
        waited in backfill itself.
        """
        old = self._rules.old
        if old is None or not self._rules.moves:
            return None
        age = None
        number = read_page_number(ticket.url)
        dated = read_url_date(ticket.url)
        if dated is not None:
            age = self._now - dated.end
        elif number is not None and number >= FIRST_OLD_PAGE:
            age = old + number * PAGE_AGE
        if age is not None and age > old and not read_url(ticket.url).other:
            return age
        if ticket.lane is Lane.BACKFILL:
            published = ticket.published
            return max(self._now - published, old) if published is not None else old
        return None
