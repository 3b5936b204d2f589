"""Made-up pages that change in different ways.

Times are seconds since the start of the simulation. Rates are drawn in changes per mean interval
between visits, so that they are neither all hopeless nor all easy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MEDIAN = 0.3
"""Changes per mean interval."""
SPREAD = 1.3
DAY_S = 86_400.0
SEGMENTS = 6
"""Rates that drift do so in so many steps."""
LASTING = 0.8
"""How much of a page's rate stays from one step to the next."""


@dataclass(frozen=True, slots=True)
class Population:
    """Pages with the times of all their changes.

    `rates` are the true rates per second, a row for each part of the time, of equal length: what an
    oracle knows. Of sources each change is a new link.
    """

    name: str
    changes: list[Floats]
    rates: Floats
    interval: timedelta
    end_s: float
    sources: bool = False
    pages: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pages", len(self.changes))


def make_population(name: str, pages: int, visits: int, seed: int) -> Population:
    """The population of that name, long enough for so many visits to each page."""
    maker, interval = POPULATIONS[name]
    place = list(POPULATIONS).index(name)
    random = np.random.default_rng([seed, place])
    mean_s = interval.total_seconds()
    end_s = mean_s * visits
    changes, rates = maker(random, pages, mean_s, end_s)
    return Population(name, changes, rates, interval, end_s=end_s, sources=name == "sources")


Random = np.random.Generator
Made = tuple[list[Floats], Floats]


def _spread_evenly(random: Random, pages: int) -> Floats:
    """Numbers between 0 and 1 as if drawn at random, but as even as can be: two small populations
    of a sort differ less.
    """
    return random.permutation((np.arange(pages) + 0.5) / pages)


def _spread_normally(random: Random, pages: int) -> Floats:
    """Numbers of the standard normal distribution."""
    normal = NormalDist()
    return np.array([normal.inv_cdf(level) for level in _spread_evenly(random, pages)])


def _poisson(random: Random, rate: float, end_s: float) -> Floats:
    """Changes at random at one rate, from the start to the end."""
    return np.sort(random.uniform(0, end_s, random.poisson(rate * end_s)))


def _make_log_normal(random: Random, pages: int, mean_s: float, end_s: float) -> Made:
    rates = MEDIAN * np.exp(SPREAD * _spread_normally(random, pages)) / mean_s
    return [_poisson(random, rate, end_s) for rate in rates], rates[None, :]


def _make_periodic(random: Random, pages: int, mean_s: float, end_s: float) -> Made:
    """Each page changes as regularly as a clock, once in .2 to 20 mean intervals."""
    periods = mean_s * 0.2 * 100 ** _spread_evenly(random, pages)
    starts = random.uniform(0, periods)
    changes = [
        np.arange(start, end_s, period) for start, period in zip(starts, periods, strict=True)
    ]
    return changes, 1 / periods[None, :]


def _make_pareto(random: Random, pages: int, mean_s: float, end_s: float) -> Made:
    """Most pages change seldom, a few very often: the law of large tails."""
    tail = (1 - _spread_evenly(random, pages)) ** (-1 / 1.1)
    rates = 0.15 * np.minimum(tail, 300) / mean_s
    return [_poisson(random, rate, end_s) for rate in rates], rates[None, :]


def _make_mixed(random: Random, pages: int, mean_s: float, end_s: float) -> Made:
    """Of ten pages three never change, and one at every visit."""
    rates = MEDIAN * np.exp(_spread_normally(random, pages)) / mean_s
    rates[: round(0.3 * pages)] = 0
    rates[pages - round(0.1 * pages) :] = 20 / mean_s
    return [_poisson(random, rate, end_s) for rate in rates], rates[None, :]


def _make_drifting(random: Random, pages: int, mean_s: float, end_s: float) -> Made:
    """What changes often today may do so seldom in a while."""
    height = _spread_normally(random, pages)
    rows = []
    parts: list[list[Floats]] = [[] for _ in range(pages)]
    part_s = end_s / SEGMENTS
    for number in range(SEGMENTS):
        rates = MEDIAN * np.exp(SPREAD * height) / mean_s
        rows.append(rates)
        for changes, rate in zip(parts, rates, strict=True):
            changes.append(number * part_s + _poisson(random, rate, part_s))
        noise = random.standard_normal(pages)
        height = LASTING * height + np.sqrt(1 - LASTING**2) * noise
    return [np.concatenate(changes) for changes in parts], np.array(rows)


def _make_news(random: Random, pages: int, mean_s: float, end_s: float) -> Made:
    """Changes come by day, and hardly any at night."""
    rates = MEDIAN * np.exp(SPREAD * _spread_normally(random, pages)) / mean_s
    return [_keep_day(random, _poisson(random, 2 * rate, end_s)) for rate in rates], rates[None, :]


def _keep_day(random: Random, changes: Floats) -> Floats:
    """Half of the changes: nearly all at noon, nearly none at midnight."""
    light = (1 - 0.95 * np.cos(2 * np.pi * changes / DAY_S)) / 2
    return changes[random.uniform(0, 1, len(changes)) < light]


def _make_sources(random: Random, pages: int, mean_s: float, end_s: float) -> Made:
    """Feeds and front pages: new links come by day, to some very often."""
    rates = np.exp(1.5 * _spread_normally(random, pages)) / mean_s
    return [_keep_day(random, _poisson(random, 2 * rate, end_s)) for rate in rates], rates[None, :]


POPULATIONS: dict[str, tuple[Callable[[Random, int, float, float], Made], timedelta]] = {
    "periodic": (_make_periodic, timedelta(days=5)),
    "log-normal": (_make_log_normal, timedelta(days=5)),
    "pareto": (_make_pareto, timedelta(days=5)),
    "mixed": (_make_mixed, timedelta(days=5)),
    "drift": (_make_drifting, timedelta(days=5)),
    "news": (_make_news, timedelta(hours=6)),
    "sources": (_make_sources, timedelta(hours=1)),
}
"""By name: how its pages are made, and the mean interval between visits."""
