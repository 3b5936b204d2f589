"""The filter between the links of a page and the frontier (a "sieve", a dupefilter in memory):
links that are known already never become objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final, NamedTuple, Protocol, TypeVar

from crawlproj.content.document import PAGE_KINDS, Link
from crawlproj.content.slices import SLICE_ITEMS, Slices
from crawlproj.frontier.article_addresses import ArticleAddresses, Freed, HeldUrl
from crawlproj.frontier.base import (
    ArticleClaim,
    ArticleEnd,
    Found,
    HeldAddress,
    Lane,
    LeftOutHost,
    Links,
    NewUrl,
    Ticket,
)
from crawlproj.frontier.stored_links import NOFOLLOW_KINDS, LinkDetails
from crawlproj.urls.article_keys import article_key
from crawlproj.urls.canonical import MAX_URL, host_of, url_key
from crawlproj.urls.feed_urls import looks_like_feed
from crawlproj.urls.scope import MAX_NAME
from crawlproj.urls.suffixes import has_suffix

T = TypeVar("T")

FOLLOWED = PAGE_KINDS | {"feed", "sitemap", "canonical"}
"""Images, scripts and style sheets are recorded only."""
OUTSIDE = 0
"""In place of an id: this URL does not belong to the crawl."""
MEDIA = 1
"""In place of an id: by its suffix it is media, which is recorded only. Feeds and sitemaps are read
whatever they are called.
"""
LISTS = frozenset({"feed", "sitemap"})
MAX_NAMED: Final = 5
"""So many feeds outside of the scope one page may name; more are those of a widget."""
MAX_NAMED_BY_HOST: Final = 50
MAX_NAMED_FEEDS: Final = 20_000
_MAY_BE_FEEDS: Final = frozenset({"feed", "a"})
_NEAR: Final = 1
"""As deep is a page that lists a site's feeds: there a link may be one, too."""
MAX_LEFT_OUT = 50_000
"""So many hosts that are left out are remembered."""
BITS = (1 << 64) - 1
SIGN = 1 << 63
LEVEL_BITS = 24
DEPTHS = (1 << LEVEL_BITS) - 1
NEVER = (1 << 30) - 1
"""Deeper than any depth, and later than any level: such a URL has not gone through yet."""


class Level(IntEnum):
    """How a URL waits: ahead of other new ones, among them, or in backfill."""

    HOT = 0
    PLAIN = 1
    OLD = 2


class Place(NamedTuple):
    """How a link waits, its score there, and when its page was published, if that is known."""

    level: Level
    score: float
    published: datetime | None = None


class Placer(Protocol):
    """Gives links of one page their places. `best`: the best level that one of them may have."""

    best: Level

    def place(self, url: str, kind: str, depth: int) -> Place:
        """The place of a link of this kind, found at this depth."""


def depth_score(depth: int) -> float:
    """The score of a URL by its depth alone: the nearer the better."""
    return 1.0 / (1 + depth)


class SortedLinks:
    """The links of one page: known to the crawl or not, and those that are new to it."""

    __slots__ = ("details", "found", "fresh", "held", "inside", "named", "outside", "placer")

    def __init__(self, found: Found, placer: Placer | None = None) -> None:
        self.found = found
        self.placer = placer
        self.named = 0
        self.inside: list[tuple[int, str, str]] = []
        self.outside: list[tuple[str, str, str]] = []
        self.fresh: list[NewUrl] = []
        self.details = LinkDetails()
        self.held: tuple[HeldAddress, ...] = ()

    @property
    def stored(self) -> Links:
        """The links as they are stored with the page."""
        known, known_kinds, known_texts = _columns(self.inside)
        other, other_kinds, other_texts = _columns(self.outside)
        return Links(
            known,
            known_kinds,
            known_texts,
            other=other,
            other_kinds=other_kinds,
            other_texts=other_texts,
            details=self.details.encode(known=len(self.inside)),
            held=self.held,
        )


class SeenUrls:
    """Lets a URL of this crawl through once, and again only if it was found nearer, or at a better
    level. Its memory is bounded: what it forgets, Postgres knows.

    What it keeps is two numbers per URL, Python's hash of it and, in one number, level, depth and
    id: less than half of the memory that the texts take, and 64 bits can be trusted here as they
    are in the ids. When `known` holds half of the limit it becomes `older`, and what was in `older`
    and was not met since is dropped as a whole: dicts that only grow stay small.
    """

    def __init__(
        self,
        crawl: str,
        wants: Callable[[str], bool],
        limit: int,
        follow_nofollow: bool = False,
        suffixes: Set[str] = frozenset(),
        addresses: ArticleAddresses | None = None,
    ) -> None:
        """`wants` may have a method `reason`, as a Scope has: then hosts that are left out are
        noted. `suffixes`: links to URLs that end so are recorded only. `addresses` decides which of
        several addresses of an article go through; None: all of them.
        """
        self.addresses = addresses
        self._article_ends: dict[str, list[ArticleEnd]] = {}
        self.wants = wants
        self._reason: Callable[[str], str] | None = getattr(wants, "reason", None)
        self._suffixes = suffixes
        self._left_out: set[str] = set()
        self._new_left_out: dict[str, LeftOutHost] = {}
        self._named: set[int] = set()
        self._named_by: dict[str, int] = {}
        self.media = 0
        self._crawl = crawl
        self._half = max(1, limit // 2)
        self._follow_nofollow = follow_nofollow
        self._known: dict[int, int] = {}
        self._older: dict[int, int] = {}
        self.too_long = 0

    def new_url(
        self,
        url: str,
        depth: int,
        parent: int | None = None,
        *,
        found: Found | None,
        lane: Lane = Lane.NEW,
        hops: int = 0,
        again: timedelta | None = None,
    ) -> NewUrl:
        """A URL that goes in whether it was seen or not: seeds, pushes, redirects."""
        return NewUrl(
            url_key(self._crawl, url),
            url,
            host_of(url),
            depth=depth,
            score=depth_score(depth),
            parent=parent,
            lane=lane,
            hops=hops,
            found=found,
            again=again,
        )

    def classify_links(
        self,
        ticket: Ticket,
        links: Sequence[Link],
        follow: bool = True,
        found: Found = Found.LINK,
        placer: Placer | None = None,
    ) -> tuple[Links, list[NewUrl]]:
        """The links as they are stored, and the URLs that the frontier may not know yet. `found`
        says what the page is that has them, `placer` where they wait.
        """
        sorted_links = SortedLinks(found, placer)
        self._sort_links(ticket, links, follow, sorted_links)
        self._settle_addresses(ticket, links, sorted_links)
        return sorted_links.stored, self._mark_named(sorted_links.fresh)

    def classify_in_slices(
        self,
        ticket: Ticket,
        links: Sequence[Link],
        follow: bool = True,
        found: Found = Found.LINK,
        placer: Placer | None = None,
    ) -> Slices[tuple[Links, list[NewUrl]]]:
        """As `classify_links`, for a page with very many links."""
        sorted_links = SortedLinks(found, placer)
        for start in range(0, len(links), SLICE_ITEMS):
            self._sort_links(ticket, links[start : start + SLICE_ITEMS], follow, sorted_links)
            yield
        self._settle_addresses(ticket, links, sorted_links)
        return sorted_links.stored, self._mark_named(sorted_links.fresh)

    def _sort_links(
        self, ticket: Ticket, links: Iterable[Link], follow: bool, into: SortedLinks
    ) -> None:
        depth = ticket.depth + 1
        inside = into.inside
        outside = into.outside
        details = into.details
        known = self._known
        placer = into.placer
        # A URL that is known at this level or a better one, and as near, need not be looked at.
        best = Level.PLAIN if placer is None else placer.best
        latest = best << LEVEL_BITS | DEPTHS
        kind: str
        for url, kind, text, title, nofollow, hreflang, more_texts in links:
            if kind not in FOLLOWED:
                outside.append((url, kind, text))
                if title or hreflang or more_texts:
                    details.note(-len(outside), text, title, hreflang, more_texts)
                continue
            seen = known.get(hash(url))
            if seen is None:
                seen = self._recall(url)
                known = self._known
            id_ = (seen & BITS) - SIGN
            if (
                id_ == OUTSIDE
                and kind in _MAY_BE_FEEDS
                and follow
                and not nofollow
                and self._takes_feed(ticket, url, kind, into)
            ):
                id_ = url_key(self._crawl, url)
                known[hash(url)] = seen = NEVER << 64 | id_ + SIGN
            if nofollow or not follow or OUTSIDE <= id_ <= MEDIA:
                if id_ == MEDIA and kind in LISTS:
                    id_ = url_key(self._crawl, url)
                    known[hash(url)] = seen = NEVER << 64 | id_ + SIGN
                ignored = nofollow and follow and self._follow_nofollow
                nofollow = not follow or (nofollow and not ignored)
                if nofollow:
                    kind = NOFOLLOW_KINDS[kind]
                # By URL also what nobody has followed: its id would lead nowhere.
                by_url = OUTSIDE <= id_ <= MEDIA or (nofollow and seen >> 64 == NEVER)
                if ignored:
                    details.note_ignored(~len(outside) if by_url else len(inside))
                if by_url:
                    outside.append((url, kind, text))
                    if title or hreflang or more_texts:
                        details.note(-len(outside), text, title, hreflang, more_texts)
                    continue
                new = False
            else:
                new = seen >> 64 == NEVER
            if new and self.addresses is not None:
                held = HeldUrl(url, depth, ticket.id, into.found)
                if not self.addresses.admit(held, self._has_passed):
                    # By URL, too: it may never be fetched.
                    outside.append((url, kind, text))
                    if title or hreflang or more_texts:
                        details.note(-len(outside), text, title, hreflang, more_texts)
                    continue
            if title or hreflang or more_texts:
                details.note(len(inside), text, title, hreflang, more_texts)
            inside.append((id_, kind, text))
            far = seen >> 64
            if (far <= latest and far & DEPTHS <= depth) or nofollow:
                continue
            place = Place(Level.PLAIN, depth_score(depth))
            if placer is not None:
                place = placer.place(url, kind, depth)
            level = far >> LEVEL_BITS
            if place.level >= level and far & DEPTHS <= depth:
                continue
            nearest = min(place.level, level) << LEVEL_BITS | min(depth, far & DEPTHS)
            known[hash(url)] = nearest << 64 | id_ + SIGN
            into.fresh.append(
                NewUrl(
                    id_,
                    url,
                    host_of(url),
                    depth=depth,
                    score=place.score,
                    parent=ticket.id,
                    lane=Lane.BACKFILL if place.level is Level.OLD else Lane.NEW,
                    found=into.found,
                    published=place.published,
                    claim=self._claim_of(url) if new else None,
                )
            )

    def _takes_feed(self, ticket: Ticket, url: str, kind: str, into: SortedLinks) -> bool:
        """Whether a link out of the scope is a feed of the page that has it: a feed belongs to the
        site that names it, wherever it is. What such a feed lists is judged by the scope.
        """
        if kind != "feed" and not (ticket.depth <= _NEAR and looks_like_feed(url, ticket.url)):
            return False
        if into.found is not Found.LINK or ticket.found is Found.NAMED_FEED:
            return False
        if self._reason is None or len(url) > MAX_URL or self._reason(url) != "host":
            return False
        host = host_of(ticket.url)
        of_host = self._named_by.get(host, 0)
        if into.named >= MAX_NAMED or of_host >= MAX_NAMED_BY_HOST:
            return False
        if len(self._named) >= MAX_NAMED_FEEDS:
            return False
        into.named += 1
        self._named_by[host] = of_host + 1
        self._named.add(url_key(self._crawl, url))
        self._new_left_out.pop(host_of(url), None)
        return True

    def _mark_named(self, urls: list[NewUrl]) -> list[NewUrl]:
        """The URLs, with those that are here only because a page names them as feeds marked."""
        if self._named and any(url.id in self._named for url in urls):
            return [
                replace(url, found=Found.NAMED_FEED) if url.id in self._named else url
                for url in urls
            ]
        return urls

    def is_outside(self, url: str) -> bool:
        """Whether a URL is left out for its host alone."""
        return self._reason is not None and self._reason(url) == "host"

    def forget_url(self, url: str) -> None:
        """Let a URL through again that is no longer queued: a new link may bring it back."""
        self._known.pop(hash(url), None)
        self._older.pop(hash(url), None)

    def forget_all(self) -> None:
        """Judge all URLs anew: more of them are wanted than before. What is known, Postgres
        knows.
        """
        self._known = {}
        self._older = {}
        self._left_out.clear()

    def _recall(self, url: str) -> int:
        """Depth and id, in one number, of a URL that is not in `known`; it is put there."""
        if len(url) > MAX_URL:
            self.too_long += 1
            return NEVER << 64 | OUTSIDE + SIGN
        if len(self._known) >= self._half:
            self._older = self._known
            self._known = {}
        seen = self._older.get(hash(url))
        if seen is None:
            seen = NEVER << 64 | self._id_of(url) + SIGN
        self._known[hash(url)] = seen
        return seen

    def _id_of(self, url: str) -> int:
        """The id of a URL that is new here, OUTSIDE or MEDIA."""
        if self._reason is None:
            wanted = self.wants(url)
        else:
            reason = self._reason(url)
            wanted = not reason
            if reason == "host":
                self._note_left_out(url)
        if not wanted:
            return OUTSIDE
        if self._suffixes and has_suffix(url, self._suffixes):
            self.media += 1
            return MEDIA
        return url_key(self._crawl, url)

    def _settle_addresses(self, ticket: Ticket, links: Iterable[Link], into: SortedLinks) -> None:
        """Learn from a page that was read which addresses are one article, and let those through
        that have been held back in vain.
        """
        if self.addresses is None:
            return
        if into.found is Found.LINK:
            canonical = next((link.url for link in links if link.kind == "canonical"), None)
            freed = self.addresses.learn(ticket.url, canonical)
            self._note_end(ticket.url, freed, is_free=True)
        into.fresh += self._take_released(self.addresses)
        into.held = tuple(
            HeldAddress(url_key(self._crawl, url), page, url)
            for url, page in self.addresses.take_settled()
        )

    def _claim_of(self, url: str) -> ArticleClaim | None:
        """What a new URL claims of an article, for all workers."""
        found = None if self.addresses is None else self.addresses.claim_of(url)
        if found is None:
            return None
        key, most = found
        return ArticleClaim(url_key(self._crawl, key.shape), int(key.number), most)

    def _note_end(self, url: str, freed: Freed, *, is_free: bool) -> None:
        key = None if freed is Freed.NOTHING else article_key(url)
        if key is None:
            return
        number = None if freed is Freed.SHAPE else int(key.number)
        end = ArticleEnd(url_key(self._crawl, key.shape), number, is_free)
        self._article_ends.setdefault(url, []).append(end)

    def take_article_ends(self, url: str) -> tuple[ArticleEnd, ...]:
        """What this visit to a URL has shown of its number, for all workers."""
        return tuple(self._article_ends.pop(url, ()))

    def leads_elsewhere(self, url: str, target: str | None) -> bool:
        """Whether a redirect leads to something else than the article of its address."""
        if target is None or self.addresses is None:
            return False
        return article_key(url) is not None and article_key(target) != article_key(url)

    def _take_released(self, addresses: ArticleAddresses) -> list[NewUrl]:
        return [
            self.new_url(held.url, held.depth, held.parent, found=held.found)
            for held in addresses.take_released()
        ]

    def _has_passed(self, url: str) -> bool:
        """Whether a URL has gone through, as far as that is remembered."""
        seen = self._known.get(hash(url)) or self._older.get(hash(url))
        return seen is not None and seen >> 64 < NEVER

    def note_failed(self, url: str) -> list[NewUrl]:
        """Take in that there is no page under a URL; returns other addresses of the same article,
        which are to be fetched now.
        """
        if self.addresses is None:
            return []
        self.addresses.fail(url)
        self._note_end(url, Freed.NUMBER, is_free=False)
        return self._take_released(self.addresses)

    def _note_left_out(self, url: str) -> None:
        name = host_of(url)
        if name in self._left_out or len(name) > MAX_NAME:
            return
        if len(self._left_out) >= MAX_LEFT_OUT:
            self._left_out.clear()
        self._left_out.add(name)
        self._new_left_out[name] = LeftOutHost(name, url)

    def take_left_out(self) -> dict[str, LeftOutHost]:
        """Hosts that were left out since the last time, for the frontier to keep."""
        taken = self._new_left_out
        if taken:
            self._new_left_out = {}
        return taken


def _columns(
    rows: Sequence[tuple[T, str, str]],
) -> tuple[tuple[T, ...], tuple[str, ...], tuple[str, ...]]:
    """The rows as three columns."""
    if not rows:
        return (), (), ()
    targets, kinds, texts = zip(*rows, strict=True)
    return targets, kinds, texts
