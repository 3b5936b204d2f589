"""What a perfect crawl of the demo web would find: known from the model, not by reading HTML."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlproj.demo.model import DemoLink, DemoPage

if TYPE_CHECKING:
    from crawlproj.demo.site import Site
    from crawlproj.demo.web import Web

FOLLOWED = frozenset({"a", "area", "iframe", "feed", "onclick", "script", "sitemap", "canonical"})
"""Kinds of links that lead to pages. `script`: a URL written inside script text. Not followed:
`img`.
"""


@dataclass(frozen=True, slots=True)
class PageTruth:
    """One page: its kind, its shortest depth from the seeds, its version, and what its bytes are.

    `changed_at` is the unix time of the last change; `digest` is the SHA-256 of the body before
    compression, without the noise of noisy hosts. `copy_of`: the URL that it was copied from, and
    `copy_kind` in which way: exact (byte for byte), text (other bytes), near (a word or the frame
    differs), paragraph (the same paragraphs in another order).
    """

    kind: str
    depth: int
    version: int
    changed_at: float
    digest: str
    noindex: bool
    links: tuple[DemoLink, ...]
    copy_of: str = ""
    copy_kind: str = ""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is reachable at one moment. All URLs are absolute and canonical (no fragment, no
    tracking parameters, sorted query); every set is disjoint from the others.

    - `pages`: status 200: HTML, documents, feeds, sitemaps; also `noindex` ones, also copies under
      URLs of their own
    - `redirects`: URL -> the URL it leads to, which is in another set (or the same, in a loop)
    - `errors`: URL -> status 4xx or 5xx; also dead links
    - `faults`: URL -> name of the fault; what a crawler makes of it is the crawler's affair
    - `robots`: the robots.txt of every host that has a URL in one of the above or in `forbidden`
    - `forbidden`: linked, but robots.txt says no; what they link is not known to anybody
    - `too_deep`, `unfollowed`: linked only beyond the depth limit; only by links marked nofollow or
      not followed
    - `images`: pictures that pages show; recorded, not fetched
    - `outside`: linked, but no host of this web
    """

    at: float
    pages: Mapping[str, PageTruth]
    redirects: Mapping[str, str]
    errors: Mapping[str, int]
    faults: Mapping[str, str]
    robots: frozenset[str]
    forbidden: frozenset[str]
    too_deep: frozenset[str]
    unfollowed: frozenset[str]
    images: frozenset[str]
    outside: frozenset[str]

    @property
    def copies(self) -> dict[str, tuple[str, str]]:
        """Pages that were made as copies of others: URL -> the other's URL, and the kind. There
        are more pages that are alike, such as lists of the same articles.
        """
        return {
            url: (page.copy_of, page.copy_kind)
            for url, page in self.pages.items()
            if page.copy_of in self.pages
        }

    @property
    def requested_urls(self) -> frozenset[str]:
        """Every URL that a complete crawl requests, each once."""
        return (
            frozenset(self.pages)
            | frozenset(self.redirects)
            | frozenset(self.errors)
            | frozenset(self.faults)
            | self.robots
        )


class _Walk:
    """One breadth-first walk; `queue` holds (URL, depth), nearest first."""

    def __init__(
        self,
        web: Web,
        at: float,
        limit: int,
        nofollow: bool,
        sources: bool,
        follow: Collection[str],
    ) -> None:
        self.web = web
        self.at = at
        self.limit = limit
        self.nofollow = nofollow
        self.sources = sources
        self.follow = follow
        self.queue: deque[tuple[str, int]] = deque()
        self.pages: dict[str, PageTruth] = {}
        self.redirects: dict[str, str] = {}
        self.errors: dict[str, int] = {}
        self.faults: dict[str, str] = {}
        self.robots: set[str] = set()
        self.forbidden: set[str] = set()
        self.too_deep: set[str] = set()
        self.unfollowed: set[str] = set()
        self.images: set[str] = set()
        self.outside: set[str] = set()

    def known_sets(self) -> Iterator[Collection[str]]:
        yield from (
            self.pages,
            self.redirects,
            self.errors,
            self.faults,
            self.forbidden,
            self.outside,
        )

    def visit(self, url: str, depth: int) -> None:
        """Put one URL into the set where it belongs and queue what it leads to."""
        if any(url in known for known in self.known_sets()):
            return
        found = self.web.split_url(url)
        if found is None:
            self.outside.add(url)
            return
        site, target = found
        self._note_host(site, depth)
        if not self.web.is_allowed(site, target):
            self.forbidden.add(url)
            return
        page = self.web.find_page(site, target, self.web.world.age_at(self.at))
        if page is None:
            self.errors[url] = 404
        elif page.fault:
            self.faults[url] = page.fault.name
        elif page.location:
            self.redirects[url] = page.location
            self.queue.appendleft((page.location, depth))
        elif page.status != 200:
            self.errors[url] = page.status
        else:
            self._add_page(site, url, target, page=page, depth=depth)

    def _note_host(self, site: Site, depth: int) -> None:
        robots = self.web.url(site.spec.name, "/robots.txt")
        if robots not in self.robots:
            self.robots.add(robots)
            if site.spec.sitemap and self.sources:
                self._queue_or_drop(self.web.url(site.spec.name, "/sitemap.xml"), depth + 1)

    def _add_page(self, site: Site, url: str, target: str, page: DemoPage, depth: int) -> None:
        digest = self.web.render_page(site, target, page).digest
        changed = self.web.world.unix_time(page.changed)
        self.pages[url] = PageTruth(
            page.kind,
            depth,
            page.version,
            changed_at=changed,
            digest=digest,
            noindex=page.noindex,
            links=page.links,
            copy_of=page.copy_of,
            copy_kind=page.copy_kind,
        )
        for link in page.links:
            wanted = link.kind in self.follow and (self.sources or link.kind != "feed")
            if link.kind == "img":
                self.images.add(link.target)
            elif not wanted or (self.nofollow and (link.nofollow or page.nofollow)):
                self.unfollowed.add(link.target)
            else:
                self._queue_or_drop(link.target, depth + 1)

    def _queue_or_drop(self, url: str, depth: int) -> None:
        if depth > self.limit:
            self.too_deep.add(url)
        else:
            self.queue.append((url, depth))

    def as_truth(self) -> Truth:
        known = set[str]().union(*self.known_sets())
        too_deep = frozenset(self.too_deep - known)
        return Truth(
            self.at,
            self.pages,
            self.redirects,
            errors=self.errors,
            faults=self.faults,
            robots=frozenset(self.robots),
            forbidden=frozenset(self.forbidden),
            too_deep=too_deep,
            unfollowed=frozenset(self.unfollowed - known - too_deep),
            images=frozenset(self.images - known),
            outside=frozenset(self.outside),
        )


def walk_links(
    web: Web,
    at: float,
    seeds: Collection[str],
    depth: int,
    *,
    nofollow: bool = True,
    sources: bool = True,
    follow: Collection[str] = FOLLOWED,
) -> Truth:
    """Follow the model's own links from `seeds` (depth 0) up to `depth` clicks.

    A link is one deeper than its page; a redirect's target is as deep as the redirect; a sitemap
    named in robots.txt is one deeper than the first URL of its host, its entries and a feed's
    entries one deeper than the sitemap or feed. `nofollow=False` follows links marked nofollow;
    `sources=False` leaves out feeds and sitemaps.
    """
    walk = _Walk(web, at, depth, nofollow=nofollow, sources=sources, follow=follow)
    walk.queue.extend((url, 0) for url in seeds)
    while walk.queue:
        url, url_depth = walk.queue.popleft()
        walk.visit(url, url_depth)
    return walk.as_truth()
