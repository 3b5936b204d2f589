"""Areas of hosts where no articles are: forums, calendars, profiles, whatever they are called.

An area is all URLs of a host with the same pattern (`/forum/topic/9/headline`). When some of its
pages were read and none was an article, or led to some, the others are left out, but for a small
share of what its host gives: so an area that gets articles later is noticed. Nothing is barren
before its host has shown that articles are recognized there, nor what feeds, people or programs ask
for, nor what the rules of a site name.

What is learned is lost at the end of a run. Pure, and on the event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from crawlproj.content.url_signs import UrlSigns, read_url
from crawlproj.frontier.base import Found, Lane, NewUrl, Ticket
from crawlproj.items import Page
from crawlproj.scheduling.link_places import Sign, article_sign

BARREN: Final = "barren"
"""Why such a URL is ignored."""
SUSPECT_TRIES: Final = 3
"""So many pages are read of an area that is named as a forum or the like."""
PROVED: Final = 5
"""So many articles of a host must have been recognized."""
USEFUL_SHARE: Final = 0.05
"""An area with fewer useful pages than that is barren."""
ALLOWED_SHARE: Final = 0.05
"""So many pages of barren areas are read for each useful page of their host."""
LOOKED_AT: Final = 20
"""So many of the links of a page are looked at."""
MAX_HOSTS: Final = 5_000
MAX_AREAS: Final = 500
"""Of a host; those that were not met for the longest time are forgotten."""
NEVER_READ: Final = frozenset({Lane.NEW, Lane.BACKFILL})
JUDGED: Final = frozenset({Found.LINK, Found.SITEMAP})


@dataclass(slots=True)
class _Area:
    read: int = 0
    useful: int = 0


@dataclass(slots=True)
class _Host:
    articles: int = 0
    likely: int = 0
    """Articles whose URLs look like it."""
    useful: int = 0
    let_through: int = 0
    """Pages of areas that were barren by then."""
    areas: OrderedDict[str, _Area] = field(default_factory=OrderedDict)


class BarrenAreas:
    """`tries`: so many pages of an area are read first. `verdict`: what the rules of its site say
    of a URL.
    """

    def __init__(self, tries: int, verdict: Callable[[str], str]) -> None:
        self._tries = tries
        self._verdict = verdict
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def note_links(self, page: Page, ticket: Ticket, urls: Sequence[NewUrl]) -> None:
        """Note that a page led to new URLs: that was useful if some look like articles, and are not
        in a barren area themselves.
        """
        if ticket.block_digest is not None or page.kind != "html":
            return
        step = max(1, len(urls) // LOOKED_AT)
        if any(self._may_be_article(url) for url in urls[::step]):
            self._area(ticket.host, ticket.url).useful += 1
            self._host(ticket.host).useful += 1

    def note_read(self, page: Page, ticket: Ticket) -> None:
        """Note that a page was read for the first time."""
        if ticket.block_digest is not None or page.kind != "html" or page.status != 200:
            return
        area = self._area(ticket.host, ticket.url)
        area.read += 1
        if page.page_kind == "article":
            host = self._host(ticket.host)
            host.articles += 1
            host.likely += self._sign(ticket.url) is Sign.LIKELY
            host.useful += 1
            area.useful += 1

    def leaves_out(self, ticket: Ticket) -> bool:
        """Is it left out? What is let through all the same is counted."""
        if ticket.lane not in NEVER_READ or ticket.found not in JUDGED:
            return False
        if ticket.request is not None or ticket.tries or self._verdict(ticket.url):
            return False
        if not self._is_barren(ticket.host, ticket.url):
            return False
        host = self._host(ticket.host)
        if host.let_through < ALLOWED_SHARE * host.useful:
            host.let_through += 1
            return False
        return True

    def _may_be_article(self, url: NewUrl) -> bool:
        """Does it look as articles of its host do?"""
        host = self._hosts.get(url.host)
        least = Sign.LIKELY
        if host is not None and 2 * host.likely < host.articles:
            least = Sign.MAYBE
        return self._sign(url.url) >= least and not self._is_barren(url.host, url.url)

    def _sign(self, url: str) -> Sign:
        return article_sign(url, self._verdict(url))

    def _is_barren(self, name: str, url: str) -> bool:
        host = self._hosts.get(name)
        if host is None or host.articles < PROVED:
            return False
        signs = read_url(url)
        area = host.areas.get(signs.pattern)
        if area is None or signs.front:
            return False
        tries = min(SUSPECT_TRIES, self._tries) if _is_suspect(signs) else self._tries
        return area.read >= tries and area.useful < USEFUL_SHARE * area.read

    def _host(self, name: str) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host()
            if len(self._hosts) > MAX_HOSTS:
                self._hosts.popitem(last=False)
        self._hosts.move_to_end(name)
        return host

    def _area(self, name: str, url: str) -> _Area:
        areas = self._host(name).areas
        pattern = read_url(url).pattern
        area = areas.get(pattern)
        if area is None:
            area = areas[pattern] = _Area()
            if len(areas) > MAX_AREAS:
                areas.popitem(last=False)
        areas.move_to_end(pattern)
        return area


def _is_suspect(signs: UrlSigns) -> bool:
    return signs.other or signs.listing or signs.gallery
