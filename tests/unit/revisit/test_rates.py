"""What visits teach of a page, and the mathematics that follow from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import exp, inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.revisit.base import Bounds, Hints, Numbers, RevisitSettings, Visit
from crawlproj.revisit.optimal import solve_interval
from crawlproj.revisit.policies import POLICY_NAMES, choose_policy
from crawlproj.revisit.rates import (
    MAX_A,
    Calibration,
    Priors,
    age_integral,
    expected_age,
    freshness,
    learn,
    make_prior,
    update_changed,
    visit_value,
)
from crawlproj.urls.rules import SiteRevisit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY_S = 86_400.0
DAY = timedelta(days=1)
BOUNDS = Bounds(5 * DAY, DAY / 2, 365 * DAY, sources=Bounds(DAY / 96, DAY / 288, 365 * DAY))
PLANNERS = [
    choose_policy(replace(RevisitSettings(name, BOUNDS), beta=beta, sites=sites))
    for name in POLICY_NAMES
    for beta in (0.0, 2.0)
    for sites in ({}, {"example.org": SiteRevisit("optimal", 300 * DAY)})
]
shapes = st.floats(1e-3, 50)
spans = st.floats(1, 1e9)
odd_floats = st.floats() | st.sampled_from([0.0, -0.0, nan, inf, -inf, 5e-324, 1e308])
odd_times = st.datetimes(
    datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)
) | st.timedeltas(-1000 * DAY, 1000 * DAY).map(lambda span: NOW + span)
odd_numbers = st.builds(Numbers, *[st.none() | odd_floats] * 4)
odd_hints = st.builds(Hints, st.none() | odd_times)
odd_visits = st.builds(
    Visit,
    odd_times,
    st.booleans(),
    st.none() | st.timedeltas(),
    last_change=st.none() | odd_times,
    last_visit=st.none() | odd_times,
    source=st.booleans(),
    kind=st.sampled_from(["", "listing", "feed"]),
    host=st.sampled_from(["", "example.org", "a.example.org", "."]),
    new_links=st.none() | st.integers(),
    weight=odd_floats,
    numbers=odd_numbers,
    hints=odd_hints,
    first=st.booleans(),
    false_change=odd_floats,
    visits=st.none() | st.integers(0, 2),
)


@given(st.lists(odd_visits, min_size=1, max_size=5))
def test_no_visit_brings_a_planner_out_of_its_bounds(visits: list[Visit]) -> None:
    """Clocks that go backwards, headers from the future, numbers that are none."""
    for planner in PLANNERS:
        for visit in visits:
            plan = planner.plan(visit)
            bounds = BOUNDS.of_kind(visit.source)
            assert bounds.shortest <= plan.interval <= bounds.longest
            a = plan.numbers.rate_a
            b = plan.numbers.rate_b
            if visit.first and a is None and b is None:
                continue  # nothing was learned yet
            assert a is not None and b is not None and 0 < a < inf and 0 < b < inf
            for control in (planner.prices.pages, planner.prices.sources):
                assert 0 < control.price < inf and 0 < control.take_factor() < inf
        assert planner.errors == 0


def integrate(a: float, b: float, tau: float, weigh_age: bool) -> float:
    """By small steps, with nothing that could cancel."""
    ends = tau * np.linspace(0, 1, 200_001) ** 2
    middles = (ends[1:] + ends[:-1]) / 2
    stale = -np.expm1(-a * np.log1p(middles / b))
    weights = middles if weigh_age else 1.0
    return float((stale * weights * np.diff(ends)).sum())


@pytest.mark.parametrize("a", [1e-3, 0.5, 1, 1 + 1e-12, 1.7, 2, 2 - 1e-12, 9.5, 50])
@pytest.mark.parametrize("x", [1e-7, 1e-4, 1e-3, 0.03, 1, 40, 1e4])
def test_values_are_right_also_where_formulas_cancel(a: float, x: float) -> None:
    b = 3e5
    tau = x * b
    assert age_integral(a, b, tau) == pytest.approx(integrate(a, b, tau, False), rel=1e-6)
    assert visit_value(a, b, tau) == pytest.approx(integrate(a, b, tau, True), rel=1e-6)
    numbers = Numbers(a, b)
    assert expected_age(numbers, tau) == age_integral(a, b, tau)
    assert freshness(numbers, tau) == pytest.approx((1 + x) ** -a, rel=1e-9)


@given(shapes, spans, spans, st.floats(1.001, 10))
def test_the_longer_a_visit_is_put_off_the_more_it_is_worth(
    a: float, b: float, tau: float, more: float
) -> None:
    assert 0 <= visit_value(a, b, tau) < visit_value(a, b, tau * more)


@given(shapes, spans, st.floats(1, 1e14))
def test_an_interval_is_the_smallest_that_is_worth_its_price(
    a: float, b: float, threshold: float
) -> None:
    tau = solve_interval(a, b, threshold, shortest_s=100, longest_s=1e8)
    assert 100 <= tau <= 1e8
    if tau < 1e8:
        assert visit_value(a, b, tau * 1.001) >= threshold
    if tau > 100:
        assert visit_value(a, b, tau * 0.999) <= threshold


def posterior(a: float, b: float, tau: float, q: float) -> tuple[float, float]:
    """The mean and variance of the rate after "changed", by small steps over all rates."""
    rates = np.exp(np.linspace(-40, 12, 400_001)) / b
    density = rates**a * np.exp(-rates * b)  # in steps of equal ratio
    density *= 1 - (1 - q) * np.exp(-rates * tau)
    density /= density.sum()
    mean = (rates * density).sum()
    return float(mean), float((rates**2 * density).sum() - mean**2)


@pytest.mark.parametrize("a", [0.2, 0.5, 1.0, 7.0])
@pytest.mark.parametrize("tau", [1e-3, 0.3, 5.0, 300.0])
@pytest.mark.parametrize("q", [0.0, 0.02, 0.3])
def test_a_change_gives_the_gamma_distribution_with_the_posterior_mean_and_variance(
    a: float, tau: float, q: float
) -> None:
    b = 2e5
    new_a, new_b = update_changed(a, b, tau * b, false_change=q)
    mean, variance = posterior(a, b, tau * b, q)
    assert new_a / new_b == pytest.approx(mean, rel=1e-3)
    assert new_a / new_b**2 == pytest.approx(variance, rel=2e-3)


def visit(days: float, changed: bool = False, **more: object) -> Visit:
    return replace(
        Visit(NOW, changed, last_visit=NOW - timedelta(days=days)),
        **more,  # type: ignore[arg-type]
    )


PRIOR = make_prior(5 * DAY_S)


def test_visits_teach_what_they_should() -> None:
    first = learn(Numbers(own_a=7), Visit(NOW, False, first=True), PRIOR)
    assert first == Numbers(0.5, 10 * DAY_S, own_a=7), "own numbers stay"
    assert learn(first, visit(3), PRIOR) == Numbers(0.5, 13 * DAY_S, own_a=7)
    hints = Hints(last_modified=NOW - DAY)
    assert learn(PRIOR, visit(3, True, hints=hints), PRIOR) == Numbers(1.5, 11 * DAY_S)
    plain = learn(PRIOR, visit(3, True), PRIOR)
    for wrong in (NOW + DAY, NOW - 4 * DAY):
        hints = Hints(last_modified=wrong)
        assert learn(PRIOR, visit(3, True, hints=hints), PRIOR) == plain, "it can't be right"
    links = visit(3, True, source=True, new_links=4)
    assert learn(PRIOR, links, PRIOR) == Numbers(4.5, 13 * DAY_S)
    assert learn(PRIOR, replace(links, new_links=0), PRIOR) == Numbers(0.5, 13 * DAY_S)
    many = learn(PRIOR, replace(links, new_links=99), PRIOR)
    assert many == Numbers(MAX_A, pytest.approx(13 * DAY_S * MAX_A / 99.5)), "the past fades"


def test_a_change_that_may_be_false_teaches_less() -> None:
    rates = []
    for q in (0.0, 0.02, 0.2, nan):
        after = learn(PRIOR, visit(1, True, false_change=q), PRIOR)
        assert after.rate_a and after.rate_b
        rates.append(after.rate_a / after.rate_b)
    assert rates[0] > rates[1] > rates[2] and rates[3] == rates[0]


def test_clocks_that_go_backwards_teach_nothing() -> None:
    for days in (0, -3, -36_500):
        assert learn(PRIOR, visit(days, True), PRIOR) == PRIOR


@pytest.mark.parametrize("days", [0.05, 1.0, 40.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_rate_of_a_steady_page_is_found(days: float, seed: int) -> None:
    """Of one that is visited 300 times, each time when so many days are over as it takes to change
    once in the mean.
    """
    random = np.random.default_rng(seed)
    numbers = PRIOR
    means = []
    for changed in random.uniform(size=300) < -np.expm1(-1):
        numbers = learn(numbers, visit(days, bool(changed)), PRIOR)
        assert numbers.rate_a and numbers.rate_b
        means.append(numbers.rate_a / numbers.rate_b * DAY_S * days)
    found = exp(float(np.log(means[100:]).mean()))
    assert 0.7 < found < 1.4


def test_a_new_page_is_thought_to_be_like_its_host_then_like_its_kind() -> None:
    priors = Priors(PRIOR, most=4)
    seen = visit(5, True, host="busy.org", kind="article")
    for _ in range(30):
        priors.note_visit(seen)
        priors.note_visit(replace(seen, changed=False, host="still.org"))

    def usual_days(host: str, kind: str) -> float:
        prior = priors.prior_of(host, kind)
        assert prior.rate_a and prior.rate_b
        return prior.rate_b / prior.rate_a / DAY_S

    assert usual_days("busy.org", "article") < 5
    assert usual_days("still.org", "article") > 25
    assert 5 < usual_days("other.org", "article") < 15, "as its kind"
    assert priors.prior_of("busy.org", "other") == PRIOR
    for number in range(10):
        priors.note_visit(replace(seen, host=f"{number}.org"))
    assert usual_days("still.org", "article") == usual_days("x.org", "article"), "forgotten"


def test_pages_drawn_from_a_group_would_change_as_often_as_its_pages_have() -> None:
    """Of new pages as many are thought to be fresh as will be, if rates differ as ours do."""
    random = np.random.default_rng(1)
    priors = Priors(PRIOR)
    for _ in range(1000):
        rate = random.gamma(0.5, 3.0)
        changed = bool(random.uniform() < -np.expm1(-rate))
        priors.note_visit(visit(5, changed, kind="article"))
    prior = priors.prior_of("new.org", "article")
    assert 0.4 < freshness(prior, 5 * DAY_S) < 0.6, "half of them: (1 + 3)^-.5"
    assert freshness(PRIOR, 5 * DAY_S) > 0.8
    assert priors.learned.rate_a is not None and priors.learned != PRIOR


def test_what_is_said_of_all_copies_is_corrected_by_what_was_expected_of_them() -> None:
    """All pages change far more often than is thought, and then never."""
    random = np.random.default_rng(1)
    calibration = Calibration()
    likely = freshness(PRIOR, 5 * DAY_S)
    for _ in range(1000):
        calibration.note_visit(PRIOR, 5 * DAY_S, bool(random.uniform() < 0.4))
    assert likely > 0.8
    assert 0.55 < freshness(calibration.correct(PRIOR), 5 * DAY_S) < 0.65
    for _ in range(2000):
        calibration.note_visit(PRIOR, 5 * DAY_S, False)
    assert freshness(calibration.correct(PRIOR), 5 * DAY_S) > 0.9
    assert calibration.correct(Numbers()) == Numbers()
