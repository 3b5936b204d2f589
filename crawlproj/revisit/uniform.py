"""Every page equally often."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from crawlproj.revisit.base import Bounds, Visit


@dataclass(frozen=True, slots=True)
class UniformPolicy:
    bounds: Bounds

    def next_interval(self, visit: Visit) -> timedelta:
        return self.bounds.clamp(self.bounds.interval)
