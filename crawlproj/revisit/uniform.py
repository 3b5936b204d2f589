"""The simplest rule: every page is visited equally often."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from crawlproj.revisit.base import Bounds, Visit


@dataclass(frozen=True, slots=True)
class UniformPolicy:
    """Always the interval of the settings."""

    bounds: Bounds

    def next_interval(self, visit: Visit) -> timedelta:
        return self.bounds.clamp(self.bounds.interval)
