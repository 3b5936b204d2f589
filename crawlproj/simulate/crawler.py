"""A crawler in virtual time: it visits pages when a policy says so, and tells the policy what it
found.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heapify, heapreplace

import numpy as np

from crawlproj.revisit.base import NO_NUMBERS, Numbers, Visit
from crawlproj.revisit.policies import RevisitPlanner
from crawlproj.simulate.populations import Floats, Population

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_VISITS = 1_000_003


@dataclass(slots=True)
class _Page:
    """What a crawl has stored of a page."""

    changes: list[float]
    last_s: float = 0.0
    seen: int = 0
    last_change: datetime | None = None
    interval: timedelta | None = None
    numbers: Numbers = NO_NUMBERS
    visits: int = 0


class VirtualCrawler:
    """Visits the pages of a population. `slots`: it has exactly as many visits as one per page and
    mean interval, equally spaced, and each goes to the page that is due first, be it early or late.
    Else each page is visited when it is due, as a crawl does that has time enough.
    """

    def __init__(
        self, population: Population, planner: RevisitPlanner, seed: int, slots: bool = True
    ) -> None:
        self._population = population
        self._planner = planner
        self._slots = slots
        self._pages = [_Page(changes.tolist()) for changes in population.changes]
        # A stream of its own: the pages of a population are drawn from [seed, its place].
        random = np.random.default_rng([seed, FIRST_VISITS])
        first_s = random.permutation(population.pages) + 0.5
        self._slot_s = population.interval.total_seconds() / population.pages
        self._due = [(place * self._slot_s, number) for number, place in enumerate(first_s)]
        heapify(self._due)
        self.changed_visits = 0

    def run(self) -> list[Floats]:
        """The times of all visits to each page."""
        visits: list[list[float]] = [[] for _ in self._pages]
        end_s = self._population.end_s
        number = 0
        while True:
            due_s, page_number = self._due[0]
            now_s = due_s
            if self._slots:
                now_s = (number + 0.5) * self._slot_s
            if now_s >= end_s:
                return [np.array(times) for times in visits]
            number += 1
            visits[page_number].append(now_s)
            interval_s = self._visit(self._pages[page_number], now_s)
            heapreplace(self._due, (now_s + interval_s, page_number))

    def _visit(self, page: _Page, now_s: float) -> float:
        """Visit a page, and return the interval until the next time."""
        now = EPOCH + timedelta(seconds=now_s)
        seen = bisect_right(page.changes, now_s)
        new = seen - page.seen
        is_first = page.visits == 0
        changed = new > 0 and not is_first
        source = self._population.sources
        visit = Visit(
            now,
            changed,
            page.interval,
            last_change=page.last_change,
            last_visit=None if is_first else EPOCH + timedelta(seconds=page.last_s),
            source=source,
            kind="feed" if source else "other",
            host="example.org",
            new_links=new if source else None,
            numbers=page.numbers,
            first=is_first,
            visits=page.visits,
        )
        plan = self._planner.plan(visit)
        self.changed_visits += changed
        if changed or is_first:
            page.last_change = now
        page.seen = seen
        page.last_s = now_s
        page.interval = plan.interval
        page.numbers = plan.numbers
        page.visits += 1
        return plan.interval.total_seconds()
