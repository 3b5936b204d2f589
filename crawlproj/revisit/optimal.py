"""The default: visits are spent where they buy the most.

A visit is worth more the longer it is put off, and the more often the page changes; it is made when
it is worth its price. What it buys of a page is a copy that is less old; of a source, new links
that are known sooner.
"""

from __future__ import annotations

from datetime import timedelta
from math import exp, expm1, isfinite, log, log1p, sqrt

from crawlproj.revisit.base import Bounds, Plan, Visit
from crawlproj.revisit.price import PriceControl, Prices
from crawlproj.revisit.rates import (
    PRIOR_A,
    PRIOR_STRETCH,
    is_known,
    keep_sane,
    make_prior,
    visit_value,
)

STEPS = 40
PRECISION = 1e-4
"""Of the logarithm of an interval."""
MOST_WEIGHT = 1e6


def page_value(interval_s: float, mean_s: float) -> float:
    """What a visit to a page of which nothing is known is worth, if pages are visited at this mean
    interval.
    """
    return visit_value(PRIOR_A, PRIOR_STRETCH * mean_s, interval_s)


def source_value(interval_s: float, mean_s: float) -> float:
    return interval_s * interval_s * PRIOR_A / (2 * PRIOR_STRETCH * mean_s)


def make_prices(bounds: Bounds) -> Prices:
    pages = PriceControl(bounds.of_kind(source=False), page_value)
    sources = PriceControl(bounds.of_kind(source=True), source_value)
    return Prices(pages, sources, bounds)


class OptimalPolicy:
    """`beta` shifts visits to pages that change often: 0 is for fresh copies, 1 to 1.25 for as many
    versions as possible.
    """

    def __init__(self, bounds: Bounds, prices: Prices | None = None, beta: float = 0.0) -> None:
        self.bounds = bounds
        self.prices = prices or make_prices(bounds)
        self.beta = beta

    def plan(self, visit: Visit) -> Plan:
        control = self.prices.of_kind(visit.source)
        bounds = self.bounds.of_kind(visit.source)
        numbers = visit.numbers
        if not is_known(numbers):
            numbers = make_prior(control.mean_s)
        a = numbers.rate_a
        b = numbers.rate_b
        assert a is not None and b is not None
        weight = self._weigh(visit, a / b, control.mean_s)
        threshold = control.threshold / weight
        shortest_s = bounds.shortest.total_seconds()
        longest_s = bounds.longest.total_seconds()
        if visit.source:
            tau = sqrt(2 * threshold * b / a)
        else:
            tau = solve_interval(a, b, threshold, shortest_s=shortest_s, longest_s=longest_s)
        seconds = min(max(tau, shortest_s), longest_s)
        return Plan(timedelta(seconds=seconds), visit.numbers)

    def _weigh(self, visit: Visit, rate: float, mean_s: float) -> float:
        weight = visit.weight
        if not (isfinite(weight) and weight > 0):
            weight = 1.0
        if self.beta:
            usual = PRIOR_A / (PRIOR_STRETCH * mean_s)
            weight *= keep_sane(rate / usual) ** self.beta
        return min(max(weight, 1 / MOST_WEIGHT), MOST_WEIGHT)


def solve_interval(
    a: float, b: float, threshold: float, *, shortest_s: float, longest_s: float
) -> float:
    """The smallest tau within the bounds with visit_value(a, b, tau) >= threshold; the longest if
    there is none.

    The logarithm of the value is concave in that of tau, with a slope of 2 to 3. So Newton's steps
    from the left come nearer without passing the solution.
    """
    if not threshold > 0:
        return shortest_s
    if visit_value(a, b, longest_s) < threshold:
        return longest_s
    if visit_value(a, b, shortest_s) >= threshold:
        return shortest_s
    # The value is less than tau^2 / 2 and than a / b * tau^3 / 3.
    tau: float = max(sqrt(2 * threshold), (3 * threshold * b / a) ** (1 / 3), shortest_s)
    for _ in range(STEPS):
        tau = min(tau, longest_s)
        value = visit_value(a, b, tau)
        if value <= 0:
            return longest_s
        step = log(threshold / value)
        slope = tau * tau * -expm1(-a * log1p(tau / b)) / value
        tau *= exp(step / max(slope, 2.0))
        if abs(step) < PRECISION:
            break
    return tau
