"""A few fixed intervals: each page has the one nearest to how often it changes."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from math import sqrt

from crawlproj.revisit.base import Bounds, Plan, Visit
from crawlproj.revisit.rates import is_known


@dataclass(frozen=True, slots=True)
class ClassesPolicy:
    """`classes` is REVISIT_CLASSES, shortest first: the interval of a page is the class nearest, by
    ratio, to the mean time between its changes. Sources have an interval of their own, as uniform
    has.
    """

    bounds: Bounds
    classes: tuple[timedelta, ...]

    def plan(self, visit: Visit) -> Plan:
        numbers = visit.numbers
        first = self.bounds.first(visit.source)
        if visit.source or visit.first or not is_known(numbers):
            return Plan(first, numbers)
        assert numbers.rate_a is not None and numbers.rate_b is not None
        seconds = [each.total_seconds() for each in self.classes]
        borders = [sqrt(one * two) for one, two in pairwise(seconds)]
        chosen = self.classes[bisect(borders, numbers.rate_b / numbers.rate_a)]
        return Plan(self.bounds.clamp(chosen), numbers)
