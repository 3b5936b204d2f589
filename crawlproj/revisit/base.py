"""The interface of revisit policies: from what is known of a page and what a visit brought, a
policy plans the next visit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from crawlproj.urls.rules import SiteRevisit


@dataclass(frozen=True, slots=True)
class Bounds:
    """The settings REVISIT_INTERVAL, REVISIT_MIN and REVISIT_MAX; `sources` has those of sources
    (SOURCE_INTERVAL, SOURCE_MIN, REVISIT_MAX), None if they are the same.
    """

    interval: timedelta = timedelta(days=5)
    shortest: timedelta = timedelta(hours=12)
    longest: timedelta = timedelta(days=365)
    sources: Bounds | None = None

    def of_kind(self, source: bool) -> Bounds:
        """The bounds of a source, or of another page."""
        if source and self.sources is not None:
            return self.sources
        return self

    def clamp(self, interval: timedelta, source: bool = False) -> timedelta:
        bounds = self.of_kind(source)
        return min(max(interval, bounds.shortest), bounds.longest)

    def first(self, source: bool = False) -> timedelta:
        """The interval of a page of which nothing is known yet."""
        bounds = self.of_kind(source)
        return min(max(bounds.interval, bounds.shortest), bounds.longest)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is stored of a URL for its policy, in plain columns.

    `rate_a` and `rate_b` are the Gamma posterior of its change rate, `rate_b` in seconds: the rate
    is about rate_a / rate_b per second. None: nothing was learned yet. `own_a` and `own_b` are for
    a policy of one's own.
    """

    rate_a: float | None = None
    rate_b: float | None = None
    own_a: float | None = None
    own_b: float | None = None


NO_NUMBERS = Numbers()


@dataclass(frozen=True, slots=True)
class Hints:
    """What others say of a page's changes. `last_modified` only if it can be trusted."""

    last_modified: datetime | None = None


NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit to a page that was there.

    `interval` is the one that led to it and `last_visit` the visit before that saw the page, both
    None at the first; `due` is when this one was to be, if that is known. `last_change` is the
    change detected before this visit. `kind` is article, listing, other, feed, sitemap, document
    and so on. `new_links` is for sources and listings: links that were not known before; None:
    nobody has counted. `weight` says how much the page matters, `false_change` how often a page of
    its kind is taken for changed and is not. `visits` is how many saw it before this one, if that
    is known. `page` is the Page of the visit, where there is one.
    """

    now: datetime
    changed: bool
    interval: timedelta | None = None
    last_change: datetime | None = None
    last_visit: datetime | None = None
    source: bool = False
    kind: str = ""
    host: str = ""
    new_links: int | None = None
    weight: float = 1.0
    numbers: Numbers = NO_NUMBERS
    hints: Hints = NO_HINTS
    first: bool = False
    false_change: float = 0.0
    visits: int | None = None
    due: datetime | None = None
    page: Any = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The interval until the next visit, and the numbers to store."""

    interval: timedelta
    numbers: Numbers = NO_NUMBERS


class RevisitPolicy(Protocol):
    """Decides when to come back; shared by all pages, so it keeps nothing of any of them.

    The numbers of the visit have learned from it already. What a policy returns is kept within the
    bounds, and of its numbers `own_a` and `own_b` are stored.
    """

    def plan(self, visit: Visit) -> Plan:
        """Plan the next visit."""


class IntervalPolicy(Protocol):
    """The short form of a policy of one's own, which needs no numbers. It is made once with the
    bounds of pages, and once with those of sources.
    """

    def next_interval(self, visit: Visit) -> timedelta:
        """How long to wait until the next visit."""


@dataclass(frozen=True, slots=True)
class RevisitSettings:
    """The settings that choose a policy. `budget` is in visits per day; None: what uniform would
    spend. `sites` are by host, for it and all hosts below it.
    """

    policy: str = "optimal"
    bounds: Bounds = field(default_factory=Bounds)
    increase: float = 0.2
    decrease: float = 0.2
    classes: tuple[timedelta, ...] = (timedelta(days=1), timedelta(days=7), timedelta(days=182))
    budget: float | None = None
    beta: float = 0.0
    freshness_target: float = 0.9
    sites: Mapping[str, SiteRevisit] = field(default_factory=dict)
    args: Mapping[str, Any] = field(default_factory=dict)
