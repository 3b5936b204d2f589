"""The interface of revisit policies: from what is known of a page and what a visit brought, a
policy computes the interval until the next visit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Bounds:
    """The settings REVISIT_INTERVAL, REVISIT_MIN and REVISIT_MAX."""

    interval: timedelta = timedelta(days=5)
    shortest: timedelta = timedelta(minutes=10)
    longest: timedelta = timedelta(days=365)

    def clamp(self, interval: timedelta) -> timedelta:
        return min(max(interval, self.shortest), self.longest)


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit to a page that was there. `interval` is the one that led to it, None at the first
    visit; `last_change` is the change detected before this visit.
    """

    now: datetime
    changed: bool
    interval: timedelta | None = None
    last_change: datetime | None = None


class RevisitPolicy(Protocol):
    """Decides when to come back; shared by all pages, so it keeps nothing of any of them."""

    def next_interval(self, visit: Visit) -> timedelta:
        """How long to wait until the next visit; always within the bounds."""
