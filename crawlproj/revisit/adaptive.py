"""The classic rule: a page that did not change is visited later, one that did sooner."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from crawlproj.revisit.base import Bounds, Plan, Visit


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
    """`increase` and `decrease` are the parts by which the interval grows and shrinks. A page that
    did not change waits at least as long as it has been unchanged.
    """

    bounds: Bounds
    increase: float = 0.2
    decrease: float = 0.2

    def plan(self, visit: Visit) -> Plan:
        return Plan(self._next_interval(visit), visit.numbers)

    def _next_interval(self, visit: Visit) -> timedelta:
        if visit.interval is None:
            return self.bounds.first(visit.source)
        # Clamped before it grows, so that no interval is too long for a timedelta.
        before = self.bounds.clamp(visit.interval, visit.source)
        if visit.changed:
            return self.bounds.clamp(before * (1 - self.decrease), visit.source)
        longest_s = self.bounds.of_kind(visit.source).longest.total_seconds()
        grown_s = min(before.total_seconds() * (1 + self.increase), longest_s)
        interval = timedelta(seconds=grown_s)
        if visit.last_change is not None:
            interval = max(interval, visit.now - visit.last_change)
        return self.bounds.clamp(interval, visit.source)
