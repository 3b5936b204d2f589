"""How fresh the copies of a crawl of the demo web really are: the web knows when each of its pages
has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crawlproj.demo.site import Site
from crawlproj.demo.web import Web

PRECISE_S = 0.05
"""How exactly the time of a change is found."""


class VisitedPage(NamedTuple):
    """A page that a crawl has: its canonical URL, and when it was visited last (unix time)."""

    url: str
    visited_s: float


class TrueFreshness(NamedTuple):
    """Of so many pages which part of the copies is up to date, and for how long the copies have
    been out of date, in the mean of all.
    """

    pages: int
    freshness: float
    age_s: float


def measure_freshness(
    web: Web, visited: Iterable[VisitedPage], now_s: float
) -> TrueFreshness | None:
    """Compare what a crawl has with what the web says at a moment; None if it has nothing."""
    pages = 0
    fresh = 0
    age_s = 0.0
    for url, visited_s in visited:
        found = web.split_url(url)
        if found is None:
            continue
        site, target = found
        pages += 1
        changed_s = first_change(web, site, target, visited_s, now_s)
        if changed_s is None:
            fresh += 1
        else:
            age_s += now_s - changed_s
    if not pages:
        return None
    return TrueFreshness(pages, fresh / pages, age_s / pages)


def first_change(web: Web, site: Site, target: str, after_s: float, until_s: float) -> float | None:
    """When the page first changed, or went, between two moments; None: it did not."""
    if not _has_changed(web, site, target, after_s, until_s):
        return None
    early = after_s
    late = until_s
    while late - early > PRECISE_S:
        middle = (early + late) / 2
        if _has_changed(web, site, target, after_s, middle):
            late = middle
        else:
            early = middle
    return late


def _has_changed(web: Web, site: Site, target: str, after_s: float, at_s: float) -> bool:
    page = web.find_page(site, target, web.world.age_at(at_s))
    return page is None or web.world.unix_time(page.changed) > after_s
