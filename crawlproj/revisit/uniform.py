"""The simplest rule: every page is visited equally often."""

from __future__ import annotations

from dataclasses import dataclass

from crawlproj.revisit.base import Bounds, Plan, Visit


@dataclass(frozen=True, slots=True)
class UniformPolicy:
    """Always the interval of the settings."""

    bounds: Bounds

    def plan(self, visit: Visit) -> Plan:
        return Plan(self.bounds.first(visit.source), visit.numbers)
