"""What the default policy promises, on made-up pages, and that it is measured right."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from crawlproj.revisit.base import RevisitSettings
from crawlproj.simulate.measures import measure_copies
from crawlproj.simulate.oracle import buys_age, buys_freshness, buys_links, divide_visits
from crawlproj.simulate.populations import POPULATIONS, Floats, Population, make_population
from crawlproj.simulate.table import POLICIES, Row, make_table, try_policy

PAGES = 120
VISITS = 80
SEED = 1
MEAN_S = 1e5


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, Row]]:
    policies = {name: POLICIES[name] for name in POLICIES if name != "classes"}
    return make_table(POPULATIONS, PAGES, VISITS, SEED, policies=policies)


def test_every_policy_has_the_same_number_of_visits(table: dict[str, dict[str, Row]]) -> None:
    assert set(table) == set(POPULATIONS)
    for rows in table.values():
        assert {row["visits"] for row in rows.values()} == {PAGES * VISITS}


@pytest.mark.parametrize(
    ("name", "freshness", "age"),
    [
        ("log-normal", 0.98, 1.10),
        ("pareto", 0.98, 1.10),
        ("news", 0.98, 1.10),
        ("periodic", 0.98, 1.10),
        ("drift", 0.95, 1.25),
        ("mixed", 0.95, 1.45),
    ],
)
def test_optimal_comes_near_to_one_who_knows_all_rates(
    table: dict[str, dict[str, Row]], name: str, freshness: float, age: float
) -> None:
    row = table[name]["optimal"]
    assert row["freshness_to_oracle"] >= freshness
    assert row["age_to_oracle"] <= age
    assert row["freshness"] >= table[name]["uniform"]["freshness"] - 0.005
    assert row["age_s"] < table[name]["uniform"]["age_s"]


@pytest.mark.parametrize("name", ["log-normal", "pareto", "mixed", "drift"])
def test_copies_are_far_less_old_than_with_the_classic_rule(
    table: dict[str, dict[str, Row]], name: str
) -> None:
    assert table[name]["adaptive"]["age_s"] >= 5 * table[name]["optimal"]["age_s"]


@pytest.mark.parametrize("name", ["periodic", "log-normal", "pareto", "mixed", "drift", "news"])
def test_with_beta_more_versions_are_captured(table: dict[str, dict[str, Row]], name: str) -> None:
    assert table[name]["optimal beta=1.25"]["captured"] > 1.05 * table[name]["optimal"]["captured"]


def test_new_links_of_sources_are_found_sooner(table: dict[str, dict[str, Row]]) -> None:
    rows = table["sources"]
    assert rows["optimal"]["delay_to_uniform"] <= 0.65
    assert rows["uniform"]["delay_s"] == pytest.approx(30 * 60, rel=0.05), "half an interval"


@pytest.mark.parametrize("name", ["log-normal", "mixed"])
def test_a_crawl_that_visits_when_due_gains_as_much(name: str) -> None:
    """In the table each slot goes to the page that is due first, as if visits had to be spent."""
    population = make_population(name, PAGES, VISITS, SEED)
    spent = try_policy(population, RevisitSettings("optimal"), SEED, slots=False)
    strict = try_policy(population, RevisitSettings("optimal"), SEED)
    assert spent.visits == pytest.approx(strict.visits, rel=0.05)
    assert spent.freshness >= strict.freshness - 0.01


def test_the_same_seed_gives_the_same_table() -> None:
    one = make_table(["pareto"], 20, 10, 5)
    assert set(one["pareto"]) == set(POLICIES)
    assert one == make_table(["pareto"], 20, 10, 5)
    assert one != make_table(["pareto"], 20, 10, 6)


def one_page(changes: list[float], *, sources: bool = False) -> Population:
    return Population(
        "one",
        [np.array(changes)],
        np.array([[1.0]]),
        timedelta(seconds=10),
        end_s=100.0,
        sources=sources,
    )


def test_measures_are_exact() -> None:
    visits: list[Floats] = [np.array([5.0, 20.0, 50.0])]
    measures = measure_copies(one_page([3.0, 30.0, 40.0, 60.0]), visits)
    # Stale from 30 to 50 and from 60 to 100, of the time from 10 to 100.
    assert measures.freshness == pytest.approx(1 - 60 / 90)
    assert measures.age_s == pytest.approx((20**2 / 2 + 40**2 / 2) / 90)
    assert (measures.visits, measures.changed_visits) == (3, 1)
    assert measures.captured == pytest.approx(1 / 3), "at 30, 40 and 60 it changed"
    assert measures.delay_s == pytest.approx((20 + 10 + 40) / 3)
    links = measure_copies(one_page([3.0, 30.0, 40.0, 60.0], sources=True), visits)
    assert links.captured == pytest.approx(2 / 3)
    # What was lacking before the first mean interval was over is counted from then on.
    early = measure_copies(one_page([7.0]), visits)
    assert early.freshness == pytest.approx(1 - 10 / 90)
    assert early.age_s == pytest.approx((13**2 - 3**2) / 2 / 90)


def test_no_other_way_to_divide_visits_is_better_than_the_oracles() -> None:
    random = np.random.default_rng(1)
    rates = np.exp(1.5 * random.standard_normal(50)) / MEAN_S
    rates[:5] = 0

    def stale(intervals: Floats) -> Floats:
        sizes = np.maximum(rates * intervals, 1e-12)
        return 1 + np.expm1(-sizes) / sizes

    def age(intervals: Floats) -> Floats:
        sizes = np.maximum(rates * intervals, 1e-4)
        exact = intervals * (0.5 - 1 / sizes - np.expm1(-sizes) / sizes**2) / MEAN_S
        return exact * (rates > 0)

    def delay(intervals: Floats) -> Floats:
        return rates * intervals / 2

    for bought, cost in ((buys_freshness, stale), (buys_age, age), (buys_links, delay)):
        best = divide_visits(rates, MEAN_S, bought)
        assert (MEAN_S / best).mean() == pytest.approx(1, rel=1e-6)
        least = cost(best).mean()
        for _ in range(200):
            other = best * np.exp(0.1 * random.standard_normal(len(rates)))
            other *= (MEAN_S / other).mean()
            assert cost(other).mean() >= least - 1e-5


def test_a_population_of_a_name_is_always_of_that_sort() -> None:
    mixed = make_population("mixed", 100, 10, 1)
    never = [changes for changes in mixed.changes if not len(changes)]
    assert len(never) >= 30
    drifting = make_population("drift", 100, 60, 1)
    assert drifting.rates.shape == (6, 100)
    news = make_population("news", 100, 60, 1)
    hours = np.concatenate(news.changes) % 86_400 / 3_600
    by_day = ((hours > 6) & (hours < 18)).mean()
    assert by_day > 0.7
    assert replace(news, name="x").pages == 100
