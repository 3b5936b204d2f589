"""What a crawl was started with last: its scope and its revisit intervals, stored with it, so that
the next start sees what has changed. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from crawlproj.formatting import format_duration
from crawlproj.revisit.base import Bounds
from crawlproj.urls.scope import ScopeRules

UNIFORM = "uniform"
"""With this policy every interval is the first one."""
SLACK = timedelta(seconds=1)
"""A visit that was planned so much earlier than its interval says has a reason of its own."""


@dataclass(frozen=True, slots=True)
class IntervalRules:
    """The revisit intervals of pages and of sources (feeds, sitemaps, seeds), and the policy."""

    pages: Bounds = field(default_factory=Bounds)
    sources: Bounds = field(default_factory=Bounds)
    policy: str = UNIFORM

    def to_dict(self) -> dict[str, Any]:
        return {
            "pages": _bounds_to_list(self.pages),
            "sources": _bounds_to_list(self.sources),
            "policy": self.policy,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> IntervalRules:
        return cls(
            _bounds_from_list(stored["pages"]),
            _bounds_from_list(stored["sources"]),
            str(stored["policy"]),
        )


@dataclass(frozen=True, slots=True)
class Rescaling:
    """How intervals change: by `factor`, or to the first one if that is 0; then they are kept
    within the bounds. All in seconds.
    """

    factor: float
    first_s: float
    shortest_s: float
    longest_s: float

    def new_interval_s(self, interval_s: float) -> float:
        scaled_s = interval_s * self.factor or self.first_s
        return min(max(scaled_s, self.shortest_s), self.longest_s)

    def new_visit(
        self, last_visit: datetime, next_visit: datetime, interval_s: float
    ) -> tuple[float, datetime]:
        """The new interval, and the next visit by it; but not later than it is, if it was planned
        earlier than the interval says.
        """
        new_s = self.new_interval_s(interval_s)
        at = last_visit + timedelta(seconds=new_s)
        if next_visit < last_visit + timedelta(seconds=interval_s) - SLACK:
            at = min(at, next_visit)
        return new_s, at


def describe_change(before: IntervalRules, after: IntervalRules) -> list[str]:
    """What is different about revisits since the last run, a line each."""
    lines = []
    if before.policy != after.policy:
        lines.append(
            f"Revisits follow the policy {after.policy} now, before it was {before.policy} "
            "(REVISIT_POLICY)"
        )
    for name, old, new in (
        ("REVISIT_MIN: a page is", before.pages, after.pages),
        ("SOURCE_MIN: a source is", before.sources, after.sources),
    ):
        if old.shortest != new.shortest:
            lines.append(
                f"{name} visited again after {format_duration(new.shortest.total_seconds())} at "
                f"the earliest now, before it was {format_duration(old.shortest.total_seconds())}"
            )
    return lines


def make_rescaling(before: Bounds, after: Bounds, policy: str) -> Rescaling:
    first_s = after.clamp(after.interval).total_seconds()
    factor = first_s / before.clamp(before.interval).total_seconds()
    if policy == UNIFORM:
        factor = 0.0
    return Rescaling(
        factor,
        first_s,
        shortest_s=after.shortest.total_seconds(),
        longest_s=after.longest.total_seconds(),
    )


@dataclass(frozen=True, slots=True)
class CrawlRules:
    """The rules of a start. `scope` is None for a spider that has none that can be stored;
    `suffixes` are those of links that are recorded only.
    """

    scope: ScopeRules | None = None
    suffixes: frozenset[str] = frozenset()
    intervals: IntervalRules = field(default_factory=IntervalRules)
    barren_tries: int = 0
    """After so many like pages that were read in vain the others are left out; 0: none are."""

    def to_dict(self) -> dict[str, Any]:
        scope = None
        if self.scope is not None:
            scope = self.scope.to_dict()
        return {
            "scope": scope,
            "suffixes": sorted(self.suffixes),
            "intervals": self.intervals.to_dict(),
            "barren_tries": self.barren_tries,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> CrawlRules:
        scope = None
        if stored["scope"] is not None:
            scope = ScopeRules.from_dict(stored["scope"])
        return cls(
            scope,
            frozenset(stored["suffixes"]),
            IntervalRules.from_dict(stored["intervals"]),
            barren_tries=stored.get("barren_tries", 0),
        )

    def judges_like(self, before: CrawlRules) -> bool:
        """Whether the same URLs are wanted as before."""
        same_links = self.scope == before.scope and self.suffixes == before.suffixes
        return same_links and self.barren_tries == before.barren_tries

    def may_want_more_than(self, before: CrawlRules) -> bool:
        """Whether there may be links that are wanted now and were not before."""
        if not before.suffixes <= self.suffixes:
            return True
        if self.scope is None or before.scope is None:
            return self.scope != before.scope
        return self.scope.may_want_more_than(before.scope)


def _bounds_to_list(bounds: Bounds) -> list[float]:
    times = (bounds.interval, bounds.shortest, bounds.longest)
    return [time.total_seconds() for time in times]


def _bounds_from_list(stored: list[float]) -> Bounds:
    interval, shortest, longest = (timedelta(seconds=seconds) for seconds in stored)
    return Bounds(interval, shortest, longest)
