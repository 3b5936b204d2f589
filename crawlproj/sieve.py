"""From the links of a page to URLs for the frontier, in bulk: what is known already never becomes an object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from crawlproj.frontier.base import Lane, Links, NewUrl, Ticket
from crawlproj.text.document import PAGE_KINDS, Link
from crawlproj.urls import MAX_URL, host, key

FOLLOWED = PAGE_KINDS | {"feed", "sitemap", "canonical"}
"""Images, scripts and style sheets are recorded only."""
OUTSIDE = 0
"""In place of an id: this URL does not belong to the crawl."""


def score(depth: int) -> float:
    """Until better scorers exist: the nearer the better."""
    return 1.0 / (1 + depth)


class Sieve:
    """Lets a URL of this crawl through once, and again only if it was found nearer. Bounded: what it forgets, Postgres knows."""

    def __init__(self, crawl: str, wants: Callable[[str], bool], limit: int, follow_nofollow: bool = False) -> None:
        self.wants = wants
        self._crawl, self._limit, self._follow_nofollow = crawl, limit, follow_nofollow
        self._known: dict[str, tuple[int, int]] = {}
        self.too_long = 0

    def url(self, url: str, depth: int, parent: int | None = None, lane: Lane = Lane.NEW, hops: int = 0) -> NewUrl:
        """A URL that goes in whatever the sieve knows of it: seeds, pushes, redirects."""
        return NewUrl(key(self._crawl, url), url, host(url), depth, score(depth), parent, lane, hops)

    def sort(self, ticket: Ticket, links: Iterable[Link], follow: bool = True) -> tuple[Links, list[NewUrl]]:
        """The links as they are stored, and the URLs that the frontier may not know yet."""
        depth = ticket.depth + 1
        inside: list[tuple[int, str, str]] = []
        outside: list[tuple[str, str, str]] = []
        fresh: list[NewUrl] = []
        known = self._known
        for url, kind, text, _, nofollow in links:
            if kind not in FOLLOWED:
                outside.append((url, kind, text))
                continue
            seen = known.get(url) or self._learn(url)
            if seen[0] == OUTSIDE:
                outside.append((url, kind, text))
                continue
            inside.append((seen[0], kind, text))
            if seen[1] > depth and follow and (not nofollow or self._follow_nofollow):
                known[url] = (seen[0], depth)
                fresh.append(NewUrl(seen[0], url, host(url), depth, score(depth), ticket.id))
        return Links(*_columns(inside), *_columns(outside)), fresh  # type: ignore[arg-type]

    def forget(self, url: str) -> None:
        """Let it through again: it is no longer in the queue, and a new link may bring it back."""
        self._known.pop(url, None)

    def _learn(self, url: str) -> tuple[int, int]:
        if len(self._known) >= self._limit:
            # Many at once: a dict is slow to find its first key when those before it were deleted one by one.
            for old in list(islice(self._known, self._limit // 10 + 1)):
                del self._known[old]
        if len(url) > MAX_URL:
            self.too_long += 1
            return (OUTSIDE, 0)
        seen = self._known[url] = (key(self._crawl, url) if self.wants(url) else OUTSIDE, 1 << 30)
        return seen


def _columns(rows: Sequence[tuple[int | str, str, str]]) -> Iterable[tuple[object, ...]]:
    return zip(*rows, strict=True) if rows else ((), (), ())
