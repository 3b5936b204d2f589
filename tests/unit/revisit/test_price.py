"""The price keeps all visits together within the budget, however and whenever a crawl runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from heapq import heapify, heapreplace
from math import ceil, exp, inf, log, nan, prod
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.revisit.base import Bounds, Numbers, RevisitSettings, Visit
from crawlproj.revisit.optimal import make_prices, page_value
from crawlproj.revisit.policies import RevisitPlanner, choose_policy

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
BOUNDS = Bounds(5 * DAY, DAY / 2, 365 * DAY, sources=Bounds(DAY / 96, DAY / 288, 365 * DAY))
PAGES = 200
PER_DAY = PAGES / 5
"""What uniform would spend."""


@dataclass(slots=True)
class Worker:
    """Visits its pages in virtual time, in days; `serve` says when a page is visited that is due:
    (due, last visit of any page) -> time.
    """

    planner: RevisitPlanner
    seed: int = 1
    pages: int = PAGES
    served: list[float] = field(default_factory=list)
    planned: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    known: dict[int, tuple[float, float, Numbers]] = field(default_factory=dict)
    due: list[tuple[float, int]] = field(default_factory=list)
    now: float = 0.0
    random: np.random.Generator = field(init=False)
    rates: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.rates = (0.06 * np.exp(1.3 * self.random.standard_normal(self.pages))).tolist()
        self.due = [(5 * place / self.pages, place) for place in range(self.pages)]
        heapify(self.due)

    def run(self, until: float, serve: Callable[[float, float], float]) -> None:
        while (now := serve(self.due[0][0], self.now)) < until:
            due, page = self.due[0]
            self.now = now
            self.served.append(now)
            heapreplace(self.due, (now + self.visit(page, now, due), page))

    def visit(self, page: int, now: float, due: float) -> float:
        last, interval, numbers = self.known.get(page, (None, None, Numbers()))
        visit = Visit(START + now * DAY, False, first=last is None, numbers=numbers)
        if last is not None and interval is not None:
            changed = bool(self.random.uniform() < 1 - exp(-self.rates[page] * (now - last)))
            visit = replace(
                visit, changed=changed, last_visit=START + last * DAY, interval=interval * DAY
            )
            self.late.append(now - due)
        plan = self.planner.plan(visit)
        days = plan.interval / DAY
        self.planned.append(days)
        self.known[page] = (now, days, plan.numbers)
        return days

    def rate_since(self, start: float, end: float) -> float:
        return sum(start <= at < end for at in self.served) / (end - start)


def at_once(due: float, now: float) -> float:
    return max(due, now)


def make_planner(pages: int = PAGES, **more: object) -> RevisitPlanner:
    planner = choose_policy(replace(RevisitSettings("optimal", BOUNDS), **more))  # type: ignore[arg-type]
    planner.set_counts(pages=pages, sources=0)
    return planner


@pytest.mark.parametrize("beta", [0.0, 1.25])
def test_a_crawl_that_always_runs_spends_its_budget(beta: float) -> None:
    worker = Worker(make_planner(beta=beta))
    worker.run(300, at_once)
    assert worker.rate_since(150, 300) == pytest.approx(PER_DAY, rel=0.1)
    if not beta:
        assert worker.rate_since(5, 30) == pytest.approx(PER_DAY, rel=0.2), "soon"


def test_a_budget_of_its_own_is_kept() -> None:
    worker = Worker(make_planner(budget=2 * PER_DAY))
    worker.run(150, at_once)
    assert worker.rate_since(75, 150) == pytest.approx(2 * PER_DAY, rel=0.1)


def test_a_crawl_that_runs_once_a_day_pays_the_same_price() -> None:
    """Each run is a new process, which takes over the stored price."""
    steady = Worker(make_planner())
    steady.run(300, at_once)
    daily = Worker(make_planner())
    price = 1.0
    for day in range(1, 300):
        daily.planner = make_planner()
        daily.planner.prices.pages.set_price(price)
        daily.run(day + 0.1, lambda due, now: max(ceil(due), now + 1e-4))
        price *= daily.planner.prices.pages.take_factor()
    usual = steady.planner.prices.pages.price
    assert abs(log(price / usual)) < log(1.5)
    # Each visit comes half a day late in the mean.
    assert daily.rate_since(150, 300) == pytest.approx(PAGES / 5.5, rel=0.1)


def test_a_long_pause_does_not_move_the_price_far() -> None:
    worker = Worker(make_planner())
    worker.run(200, at_once)
    before = worker.planner.prices.pages.price
    worker.planner = make_planner()
    worker.planner.prices.pages.set_price(before)
    worker.run(310, lambda due, now: max(due, now + 1 / (20 * PER_DAY), 300))
    assert abs(log(worker.planner.prices.pages.price / before)) < log(3)
    worker.run(500, at_once)
    assert worker.rate_since(400, 500) == pytest.approx(PER_DAY, rel=0.1)


def test_a_crawl_that_can_not_keep_up_plans_less_and_recovers() -> None:
    worker = Worker(make_planner())
    worker.run(300, lambda due, now: max(due, now + 2 / PER_DAY))
    assert mean(worker.late[-1000:]) < 2.5, "days; the intervals are 10 in the mean"
    assert mean(worker.planned[-1000:]) == pytest.approx(9, rel=0.2)
    worker.run(500, at_once)
    assert worker.rate_since(400, 500) == pytest.approx(PER_DAY, rel=0.1)


def test_workers_multiply_their_factors_into_one_price() -> None:
    workers = [Worker(make_planner(), seed=seed, pages=PAGES // 2) for seed in (1, 2)]
    shared = 1.0
    for half_day in range(1, 400):
        for worker in workers:
            worker.run(half_day / 2, at_once)
        shared *= prod(worker.planner.prices.pages.take_factor() for worker in workers)
        for worker in workers:
            worker.planner.prices.pages.set_price(shared)
    total = sum(worker.rate_since(100, 200) for worker in workers)
    assert total == pytest.approx(PER_DAY, rel=0.1)
    assert all(worker.planner.prices.pages.price == shared for worker in workers)
    assert not [each for each in workers if each.planner.prices.pages.take_factor() != 1.0]


@given(st.lists(st.tuples(st.floats(1, 1e9), st.floats(allow_nan=False)), max_size=300))
def test_the_price_stays_where_a_new_page_is_visited_within_the_bounds(
    planned: list[tuple[float, float]],
) -> None:
    planner = make_planner(pages=3)
    control = planner.prices.pages
    start = control.price
    for interval_s, late_s in planned:
        control.note_planned(interval_s, late_s)
    cheapest = page_value(BOUNDS.shortest.total_seconds(), control.mean_s)
    dearest = page_value(BOUNDS.longest.total_seconds(), control.mean_s)
    assert cheapest * 0.999 <= control.threshold <= dearest * 1.001
    assert control.take_factor() == pytest.approx(control.price / start)


def test_visits_of_the_past_move_no_price() -> None:
    planner = choose_policy(RevisitSettings("optimal", BOUNDS), steers=False)
    for days in range(1, 100):
        now = START - (1000 - 7 * days) * DAY
        planner.plan(Visit(now, False, DAY, last_visit=now - 7 * DAY))
    assert planner.prices.pages.price == 1 == planner.prices.pages.take_factor()


@pytest.mark.parametrize("wrong", [nan, inf, 0.0, -1.0])
def test_a_price_that_can_not_be_is_left_alone(wrong: float) -> None:
    control = make_prices(BOUNDS).pages
    control.set_price(2.0)
    control.set_price(wrong)
    assert control.price == 2.0


def test_a_budget_is_divided_as_uniform_would() -> None:
    prices = make_prices(BOUNDS)
    prices.set_counts(pages=1000, sources=10, budget=None)
    assert (prices.pages.mean_s, prices.sources.mean_s) == (5 * 86_400, 900)
    prices.set_counts(pages=1000, sources=10, budget=580)
    assert prices.pages.mean_s == pytest.approx(2 * 5 * 86_400)
    assert prices.sources.mean_s == pytest.approx(2 * 900)
    prices.set_counts(pages=10**7, sources=10, budget=1)
    assert prices.pages.mean_s == 365 * 86_400, "never beyond the bounds"
    prices.set_counts(pages=0, sources=0, budget=1e9)
    assert prices.pages.mean_s == 43_200
