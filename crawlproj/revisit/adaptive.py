"""The classic rule: a page that did not change is visited later, one that did sooner."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from crawlproj.revisit.base import Bounds, Visit


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
    """`increase` and `decrease` are the parts by which the interval grows and shrinks. A page that
    did not change waits at least as long as it has been unchanged.
    """

    bounds: Bounds
    increase: float = 0.2
    decrease: float = 0.2

    def next_interval(self, visit: Visit) -> timedelta:
        if visit.interval is None:
            return self.bounds.clamp(self.bounds.interval)
        if visit.changed:
            return self.bounds.clamp(visit.interval * (1 - self.decrease))
        interval = visit.interval * (1 + self.increase)
        if visit.last_change is not None:
            interval = max(interval, visit.now - visit.last_change)
        return self.bounds.clamp(interval)
