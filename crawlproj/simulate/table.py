"""All policies on all populations, side by side, at equal numbers of visits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from statistics import mean
from typing import Any

from crawlproj.revisit.base import Bounds, RevisitSettings
from crawlproj.revisit.policies import RevisitPlanner, choose_policy
from crawlproj.simulate.crawler import VirtualCrawler
from crawlproj.simulate.measures import CopyMeasures, measure_copies
from crawlproj.simulate.oracle import buys_age, buys_freshness, oracle_visits
from crawlproj.simulate.populations import Population, make_population

POLICIES = {
    "uniform": RevisitSettings("uniform"),
    "adaptive": RevisitSettings("adaptive"),
    "classes": RevisitSettings("classes"),
    "optimal": RevisitSettings("optimal"),
    "optimal beta=1.25": RevisitSettings("optimal", beta=1.25),
}
SHORTEST = 0.1
"""Bounds, in mean intervals, as those of pages are by default."""
LONGEST = 73
SHORTEST_OF_SOURCES = 1 / 12
CLASSES = (0.2, 1.4, 36.4)
"""REVISIT_CLASSES in mean intervals."""

Row = dict[str, Any]
Table = dict[str, dict[str, Row]]


def make_table(
    names: Iterable[str],
    pages: int,
    visits: int,
    seed: int,
    note_progress: Callable[[str], None] = lambda text: None,
    policies: Mapping[str, RevisitSettings] = POLICIES,
) -> Table:
    """By population and policy what `measure_copies` says, and how near that is to an oracle."""
    table: Table = {}
    for name in names:
        note_progress(f"{name}: pages and oracles")
        population = make_population(name, pages, visits, seed)
        best_freshness = _best(population, buys_freshness, seed).freshness
        best_age_s = _best(population, buys_age, seed).age_s
        rows: dict[str, Row] = {}
        for policy, settings in policies.items():
            note_progress(f"{name}: {policy}")
            measures = try_policy(population, settings, seed)
            row: Row = asdict(measures)
            row["freshness_to_oracle"] = measures.freshness / max(best_freshness, 1e-9)
            row["age_to_oracle"] = measures.age_s / max(best_age_s, 1e-9)
            delay_s = row.pop("delay_s")
            if population.sources:
                row["delay_s"] = delay_s
                first = rows.get("uniform", row)
                row["delay_to_uniform"] = delay_s / max(first["delay_s"], 1e-9)
            rows[policy] = row
        table[name] = rows
    return table


def try_policy(
    population: Population, settings: RevisitSettings, seed: int, slots: bool = True
) -> CopyMeasures:
    """How good the copies are with this policy."""
    crawler = VirtualCrawler(population, make_planner(population, settings), seed, slots)
    return measure_copies(population, crawler.run())


def make_planner(population: Population, settings: RevisitSettings) -> RevisitPlanner:
    """The planner that a crawl would have, with bounds on the scale of the population."""
    interval = population.interval
    sources = Bounds(interval, interval * SHORTEST_OF_SOURCES, interval * LONGEST)
    planner = choose_policy(
        replace(
            settings,
            bounds=Bounds(interval, interval * SHORTEST, interval * LONGEST, sources=sources),
            classes=tuple(interval * each for each in CLASSES),
        )
    )
    if population.sources:
        planner.set_counts(pages=0, sources=population.pages)
    else:
        planner.set_counts(pages=population.pages, sources=0)
    return planner


def _best(population: Population, bought: Any, seed: int) -> CopyMeasures:
    """What an oracle reaches, in the mean of several tries."""
    tries = [
        measure_copies(population, visits) for visits in oracle_visits(population, bought, seed)
    ]
    return replace(
        tries[0],
        freshness=mean(each.freshness for each in tries),
        age_s=mean(each.age_s for each in tries),
    )
