"""The filter between the links of a page and the frontier (a "sieve", a dupefilter in memory):
links that are known already never become objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from crawlproj.content.document import PAGE_KINDS, Link
from crawlproj.content.slices import SLICE_ITEMS, Slices
from crawlproj.frontier.base import Found, Lane, Links, NewUrl, Ticket
from crawlproj.urls.canonical import MAX_URL, host_of, url_key

FOLLOWED = PAGE_KINDS | {"feed", "sitemap", "canonical"}
"""Images, scripts and style sheets are recorded only."""
OUTSIDE = 0
"""In place of an id: this URL does not belong to the crawl."""
BITS = (1 << 64) - 1
SIGN = 1 << 63
NEVER = 1 << 30
"""Deeper than any depth: such a URL has not gone through yet."""


def depth_score(depth: int) -> float:
    """The score of a URL by its depth alone: the nearer the better."""
    return 1.0 / (1 + depth)


class SortedLinks:
    """The links of one page: known to the crawl or not, and those that are new to it."""

    __slots__ = ("found", "fresh", "inside", "outside")

    def __init__(self, found: Found) -> None:
        self.found = found
        self.inside: list[tuple[int, str, str]] = []
        self.outside: list[tuple[str, str, str]] = []
        self.fresh: list[NewUrl] = []

    @property
    def stored(self) -> Links:
        """The links as they are stored with the page."""
        return Links(*_columns(self.inside), *_columns(self.outside))  # type: ignore[arg-type]


class SeenUrls:
    """Lets a URL of this crawl through once, and again only if it was found nearer. Its memory is
    bounded: what it forgets, Postgres knows.

    What it keeps is two numbers per URL, Python's hash of it and, in one number, depth and id: less
    than half of the memory that the texts take, and 64 bits can be trusted here as they are in the
    ids. When `known` holds half of the limit it becomes `older`, and what was in `older` and was
    not met since is dropped as a whole: dicts that only grow stay small.
    """

    def __init__(
        self, crawl: str, wants: Callable[[str], bool], limit: int, follow_nofollow: bool = False
    ) -> None:
        self.wants = wants
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
    ) -> tuple[Links, list[NewUrl]]:
        """The links as they are stored, and the URLs that the frontier may not know yet. `found`
        says what the page is that has them.
        """
        sorted_links = SortedLinks(found)
        self._sort_links(ticket, links, follow, sorted_links)
        return sorted_links.stored, sorted_links.fresh

    def classify_in_slices(
        self,
        ticket: Ticket,
        links: Sequence[Link],
        follow: bool = True,
        found: Found = Found.LINK,
    ) -> Slices[tuple[Links, list[NewUrl]]]:
        """As `classify_links`, for a page with very many links."""
        sorted_links = SortedLinks(found)
        for start in range(0, len(links), SLICE_ITEMS):
            self._sort_links(ticket, links[start : start + SLICE_ITEMS], follow, sorted_links)
            yield
        return sorted_links.stored, sorted_links.fresh

    def _sort_links(
        self, ticket: Ticket, links: Iterable[Link], follow: bool, into: SortedLinks
    ) -> None:
        depth = ticket.depth + 1
        inside = into.inside
        outside = into.outside
        known = self._known
        for url, kind, text, _, nofollow in links:
            if kind not in FOLLOWED:
                outside.append((url, kind, text))
                continue
            seen = known.get(hash(url))
            if seen is None:
                seen = self._recall(url)
                known = self._known
            id_ = (seen & BITS) - SIGN
            if id_ == OUTSIDE:
                outside.append((url, kind, text))
                continue
            inside.append((id_, kind, text))
            if seen >> 64 > depth and follow and (not nofollow or self._follow_nofollow):
                known[hash(url)] = depth << 64 | id_ + SIGN
                into.fresh.append(
                    NewUrl(
                        id_,
                        url,
                        host_of(url),
                        depth=depth,
                        score=depth_score(depth),
                        parent=ticket.id,
                        found=into.found,
                    )
                )

    def forget_url(self, url: str) -> None:
        """Let a URL through again that is no longer queued: a new link may bring it back."""
        self._known.pop(hash(url), None)
        self._older.pop(hash(url), None)

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
            id_ = url_key(self._crawl, url) if self.wants(url) else OUTSIDE
            seen = NEVER << 64 | id_ + SIGN
        self._known[hash(url)] = seen
        return seen


def _columns(rows: Sequence[tuple[int | str, str, str]]) -> Iterable[tuple[object, ...]]:
    """The rows as three columns."""
    if not rows:
        return (), (), ()
    return zip(*rows, strict=True)
