"""The classic rule: later if unchanged, sooner if changed (F-REV-1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from crawlproj.revisit.base import Bounds, Visit


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
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
