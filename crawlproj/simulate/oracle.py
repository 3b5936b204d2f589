"""What could be reached by one who knows every rate of change, with the same number of visits.

A page that changes at random is best visited at equal intervals. How the visits are divided follows
from one rule: the last visit spent on any page must buy as much as that spent on any other. What it
buys grows with the interval, so one threshold gives all intervals; it is chosen such that they
spend what there is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawlproj.simulate.populations import Floats, Population

STEPS = 60
PHASES = 4


def buys_freshness(rates: Floats, intervals: Floats) -> Floats:
    """What one more visit buys, in the part of the time that a copy is fresh."""
    sizes = rates * intervals
    with np.errstate(divide="ignore", invalid="ignore"):
        bought = (-np.expm1(-sizes) - sizes * np.exp(-sizes)) / rates
    return np.where(rates > 0, bought, 0.0)


def buys_age(rates: Floats, intervals: Floats) -> Floats:
    """What one more visit buys, in the mean age of a copy."""
    sizes = rates * intervals
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = intervals**2 / 2 + (sizes * np.exp(-sizes) + np.expm1(-sizes)) / rates**2
    few = rates * intervals**3 / 3
    return np.where(sizes > 1e-3, exact, few)


def buys_links(rates: Floats, intervals: Floats) -> Floats:
    """What one more visit buys, in the delay of new links."""
    return rates * intervals**2 / 2


Bought = Callable[[Floats, Floats], Floats]


def divide_visits(rates: Floats, mean_s: float, bought: Bought) -> Floats:
    """The interval of each page such that one visit is spent per page and mean interval."""
    low = 0.0
    high = 80.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        intervals = _intervals_for(rates, bought, np.exp(middle - 20))
        if (1 / intervals).mean() > 1 / mean_s:
            low = middle
        else:
            high = middle
    return _intervals_for(rates, bought, np.exp(high - 20))


def _intervals_for(rates: Floats, bought: Bought, threshold: float) -> Floats:
    """The smallest intervals at which a visit buys so much; a very long one where none does."""
    low = np.full(len(rates), np.log(1.0))
    high = np.full(len(rates), np.log(1e12))
    for _ in range(STEPS):
        middle = (low + high) / 2
        enough = bought(rates, np.exp(middle)) >= threshold
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    intervals: Floats = np.exp(high)
    return intervals


def oracle_visits(population: Population, bought: Bought, seed: int) -> list[list[Floats]]:
    """Several times over: the visits of the oracle to each page, which begin anywhere."""
    mean_s = population.interval.total_seconds()
    parts = [divide_visits(row, mean_s, bought) for row in population.rates]
    random = np.random.default_rng([seed, population.pages])
    return [
        [
            _visit_times(population, [part[page] for part in parts], random.uniform())
            for page in range(population.pages)
        ]
        for _ in range(PHASES)
    ]


def _visit_times(population: Population, intervals: list[float], phase: float) -> Floats:
    """Visits at these intervals, one for each part of the time. `phase` is how much of the first
    one is over when the simulation begins.
    """
    part_s = population.end_s / len(intervals)
    times = [np.array([0.0])]
    done = phase
    for number, interval in enumerate(intervals):
        first = (1 - done) * interval
        own = np.arange(first, part_s, interval)
        times.append(number * part_s + own)
        done = (done + part_s / interval) % 1.0
    return np.concatenate(times)
