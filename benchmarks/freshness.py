"""How fresh the copies of a real crawl are, beside what the simulator promises.

    python -m benchmarks.freshness [--seconds 150] [--pages 300] [--policies optimal uniform]

A demo web whose pages change at known moments is crawled without end, in minutes that stand for
weeks. Sampled all the time: the truth (the web knows it), and the crawl's own estimate. Then the
simulator gets the same pages, the same moments of change and the same number of visits. Printed are
both, and how far apart they are, with the bars: 3 points to the simulator, 5 to the estimate.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist, mean
from typing import Any

import numpy as np

from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.demo import DemoServer, HostSpec, Profile
from crawlproj.demo.freshness import VisitedPage, measure_freshness
from crawlproj.demo.web import Web
from crawlproj.revisit.base import Bounds, RevisitSettings
from crawlproj.revisit.policies import RevisitPlanner, choose_policy
from crawlproj.simulate.crawler import VirtualCrawler
from crawlproj.simulate.measures import CopyMeasures, measure_copies
from crawlproj.simulate.populations import MEDIAN, SPREAD, Population

ROOT = Path(__file__).resolve().parent.parent
HOSTS = 8
RATES = 16
"""So many rates of change there are."""
SIMULATOR_BAR = 0.03
ESTIMATE_BAR = 0.05
UNIFORM_BAR = 0.005
SEEDS = 5
PAGES_SQL = """
select u.canonical, extract(epoch from u.last_read)::float8, u.source
from crawlproj.url u where u.state = 'waiting' and u.last_read is not null
"""
CRAWL_SQL = """
select coalesce(page_price, 1), coalesce(source_price, 1), s.freshness, s.age_s
from crawlproj.crawl left join lateral (
    select freshness, age_s from crawlproj.crawl_stat where freshness is not null
    order by at desc limit 1) s on true
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is crawled, and how: all times are real seconds."""

    pages: int = 300
    interval_s: float = 10.0
    seconds: float = 150.0
    appear_s: float = 40.0
    """Mean seconds between new articles of a host."""
    shortest: float = 0.1
    """REVISIT_MIN in mean intervals."""
    longest: float = 73.0

    @property
    def interval(self) -> timedelta:
        return timedelta(seconds=self.interval_s)

    @property
    def bounds(self) -> Bounds:
        source = timedelta(seconds=self.interval_s / 4)
        longest = self.interval * self.longest
        sources = Bounds(source, source / 3, longest)
        return Bounds(self.interval, self.interval * self.shortest, longest, sources)


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment: how many copies there are, the truth of all of them and of those of pages that
    were there from the start, and the estimate of all as the crawl has stored it last.
    """

    at_s: float
    pages: int
    freshness: float
    age_s: float
    lasting_freshness: float
    lasting_age_s: float
    estimate: float | None
    estimated_age_s: float | None
    page_price: float
    source_price: float


@dataclass(frozen=True, slots=True)
class Report:
    """What one crawl reached; `measured` and `simulated` are of the pages that were there from the
    start, of the same time. `budget` is the part of the visits that the settings allow which was
    spent on these, `source_budget` that of sources. `live` are the estimates that the crawl has
    stored, each with the truth of that moment. `unseen` pages appeared and were not found, `starved` ones were visited
    once only.
    """

    policy: str
    pages: int
    visits: int
    budget: float
    source_budget: float
    measured: CopyMeasures
    simulated: CopyMeasures
    freshness: float
    age_s: float
    live: tuple[Sample, ...]
    learned_s: float
    unseen: int
    appeared: int
    starved: int
    samples: tuple[Sample, ...]

    @property
    def off_simulator(self) -> float:
        return self.measured.freshness - self.simulated.freshness

    @property
    def off_estimate(self) -> float:
        """In the mean of the estimates of pages that were visited more than once."""
        late = [each for each in self.live if each.at_s > self.learned_s]
        return mean((each.estimate or 0.0) - each.freshness for each in late)


def make_profile(plan: Plan) -> Profile:
    """Hosts whose articles change at rates of a log-normal distribution. One of them is noisy, the
    others honour validators or have none.
    """
    normal = NormalDist()
    heights = [normal.inv_cdf((place + 0.5) / RATES) for place in range(RATES)]
    rates = [MEDIAN * float(np.exp(SPREAD * height)) for height in heights]
    changes = tuple(plan.interval_s / rate for rate in rates)
    # The front page, five sections' lists and a page about the host come to about ten.
    articles = max(plan.pages // HOSTS - 7, 1)
    names = [f"f{number}" for number in range(HOSTS)]
    hosts = tuple(
        HostSpec(
            name,
            f"Fresh {name}",
            address=f"127.0.0.{1 + number % 4}",
            sections=("world", "sport"),
            articles=articles,
            keep=100_000,
            appear_s=plan.appear_s,
            change_s=changes,
            feed="rss" if number % 2 else "",
            validators=("both", "etag", "none")[number % 3],
            noise=number == 2,
        )
        for number, name in enumerate(names)
    )
    return Profile("fresh", hosts, tuple(names))


def crawl_settings(plan: Plan, policy: str, demo: DemoServer, database_url: str) -> dict[str, Any]:
    bounds = plan.bounds
    sources = bounds.of_kind(source=True)
    return {
        "DATABASE_URL": database_url,
        "DNS_HOSTS": demo.dns_hosts,
        "CRAWL_CONTINUOUS": True,
        "REVISIT_POLICY": policy,
        "REVISIT_INTERVAL": _seconds(bounds.interval),
        "REVISIT_MIN": _seconds(bounds.shortest),
        "REVISIT_MAX": _seconds(bounds.longest),
        "SOURCE_INTERVAL": _seconds(sources.interval),
        "SOURCE_MIN": _seconds(sources.shortest),
        "FRONTIER_FLUSH": 0.2,
        "GUARD_ALLOW_PRIVATE": True,
        "POLITENESS_DELAY": 0,
        "POLITENESS_SLOWDOWN": 0,
        "POLITENESS_SERVER_DELAY": 0,
        "POLITENESS_HOSTS_PER_SERVER": 100,
        "POLITENESS_PAUSE_AFTER": 0,
        "LANGUAGE_ENABLED": False,
        "WARC_ENABLED": False,
        "PANEL": "off",
        "LOG_LEVEL": "WARNING",
    }


def _seconds(value: timedelta) -> str:
    return f"{value.total_seconds():.3f}s"


class Crawler:
    """A worker in a process of its own, which ends with the `with` block."""

    def __init__(self, demo: DemoServer, settings: Mapping[str, Any], folder: Path) -> None:
        command = [sys.executable, "-m", "scrapy", "crawl", "site"]
        command += ["-a", "seeds=" + ",".join(demo.web.seed_urls)]
        for name, value in {**settings, "CRAWL_DIR": folder}.items():
            text = json.dumps(value) if isinstance(value, dict) else value
            command += ["-s", f"{name}={text}"]
        self._log = (folder.parent / f"{folder.name}.log").open("w")
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )

    def __enter__(self) -> Crawler:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()


class Watcher:
    """Samples a crawl from outside, by its database and the web that it crawls."""

    def __init__(self, demo: DemoServer, database_url: str) -> None:
        self.database = Database(database_url)
        self.samples: list[Sample] = []
        self._demo = demo

    def sample(self) -> None:
        rows = self.database.run_script(PAGES_SQL)
        now_s = self._demo.now()
        age_at = self._demo.web.world.t0
        every = [VisitedPage(url, visited_s) for url, visited_s, _ in rows]
        first = {url for url, _, source in rows if not source} & self._first_pages()
        true = measure_freshness(self._demo.web, every, now_s)
        lasting = measure_freshness(
            self._demo.web, [page for page in every if page.url in first], now_s
        )
        if true is None or lasting is None:
            return
        ((page_price, source_price, estimate, estimated_age_s),) = self.database.run_script(
            CRAWL_SQL
        )
        self.samples.append(
            Sample(
                round(now_s - age_at, 2),
                true.pages,
                true.freshness,
                true.age_s,
                lasting.freshness,
                lasting.age_s,
                estimate,
                estimated_age_s,
                page_price,
                source_price,
            )
        )

    def _first_pages(self) -> set[str]:
        if not hasattr(self, "_first"):
            web = self._demo.web
            self._first = set(web.truth_at(web.world.t0).pages)
        return self._first


def watch_crawl(
    demo: DemoServer, database_url: str, seconds: float, gap_s: float = 1.0
) -> tuple[Sample, ...]:
    """Sample a crawl for so many seconds."""
    watcher = Watcher(demo, database_url)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        watcher.sample()
        time.sleep(gap_s)
    watcher.database.close()
    return tuple(watcher.samples)


def page_changes(web: Web, url: str, until_s: float) -> list[float]:
    """When a page has changed, in seconds since the web began, up to a moment."""
    found = web.split_url(url)
    assert found is not None
    site, target = found
    changes: list[float] = []
    age = web.world.age_at(until_s)
    while age > 0:
        page = web.find_page(site, target, age)
        if page is None or page.changed <= 0:
            break
        changes.append(page.changed / web.world.speed)
        age = page.changed - 1e-6
    return changes[::-1]


def visit_times(demo: DemoServer, pages: Iterable[str]) -> dict[str, list[float]]:
    """When each of these pages was visited, in seconds since the web began."""
    times: dict[str, list[float]] = {url: [] for url in pages}
    for record in demo.log.records():
        url = f"http://{record.host}{record.path}"
        if url in times and record.status in (200, 304):
            times[url].append(record.started_at - demo.web.world.t0)
    return times


def simulate(population: Population, policy: str, plan: Plan, seeds: int = SEEDS) -> CopyMeasures:
    """The same pages in virtual time, in the mean of several orders of the first visits."""
    found = []
    for seed in range(seeds):
        planner = make_planner(policy, plan, population)
        found.append(measure_copies(population, VirtualCrawler(population, planner, seed).run()))
    return replace(
        found[0],
        visits=round(mean(each.visits for each in found)),
        freshness=mean(each.freshness for each in found),
        age_s=mean(each.age_s for each in found),
    )


def make_planner(policy: str, plan: Plan, population: Population) -> RevisitPlanner:
    interval = population.interval
    bounds = Bounds(interval, interval * plan.shortest, interval * plan.longest)
    planner = choose_policy(RevisitSettings(policy, bounds))
    planner.set_counts(pages=population.pages, sources=0)
    return planner


def report_crawl(
    demo: DemoServer, plan: Plan, policy: str, database_url: str, samples: Sequence[Sample]
) -> Report:
    """Compare what was sampled with what the simulator makes of the same pages."""
    web = demo.web
    end_s = samples[-1].at_s
    known, sources = _known_pages(database_url)
    first = [url for url in web.truth_at(web.world.t0).pages if url in known - sources]
    every = visit_times(demo, known)
    visits = {url: [at for at in every[url] if at < end_s] for url in first}
    first = [url for url in first if visits[url]]
    changes = [np.array(page_changes(web, url, web.world.t0 + end_s)) for url in first]
    number = sum(map(len, visits.values()))
    begun_s = mean(visits[url][0] for url in first)
    # What both are measured by: the time after the first visits.
    interval = timedelta(seconds=len(first) * (end_s - begun_s) / number)
    population = Population(
        "fresh",
        [each[each > begun_s] - begun_s for each in changes],
        np.zeros((1, len(first))),
        interval,
        end_s=end_s - begun_s,
    )
    own = [np.array(visits[url]) - begun_s for url in first]
    measured = measure_copies(population, own)
    late = [each for each in samples if each.at_s > begun_s + 2 * plan.interval_s]
    grace_s = 4 * plan.interval_s
    appeared = set(web.truth_at(web.world.t0 + end_s - grace_s).pages)
    starved = [url for url in first if len(visits[url]) < 2]
    budget = len(first) * (end_s - begun_s) / plan.interval_s
    return Report(
        policy,
        pages=len(first),
        visits=number,
        budget=number / budget,
        source_budget=_source_budget(plan, every, sources, begun_s, end_s),
        measured=measured,
        simulated=simulate(population, policy, plan),
        freshness=mean(each.freshness for each in late),
        age_s=mean(each.age_s for each in late),
        live=tuple(
            now
            for before, now in pairwise(samples)
            if now.estimate is not None and now.estimate != before.estimate
        ),
        learned_s=begun_s + 2 * plan.interval_s,
        unseen=len(appeared - known),
        appeared=len(appeared - set(web.truth_at(web.world.t0).pages)),
        starved=len(starved),
        samples=tuple(samples),
    )


def _source_budget(
    plan: Plan, visits: Mapping[str, list[float]], sources: set[str], begun_s: float, end_s: float
) -> float:
    number = sum(begun_s < at < end_s for url in sources for at in visits[url])
    interval = plan.bounds.of_kind(source=True).interval
    return number * interval.total_seconds() / (len(sources) * (end_s - begun_s))


def _known_pages(database_url: str) -> tuple[set[str], set[str]]:
    database = Database(database_url)
    rows = database.run_script(PAGES_SQL)
    database.close()
    return {row[0] for row in rows}, {row[0] for row in rows if row[2]}


def measure_policy(
    plan: Plan,
    policy: str,
    database_url: str,
    folder: Path,
    workers: int = 1,
    parts: int = 1,
    pause_s: float = 0.0,
) -> Report:
    """Crawl a new web with a policy; a database for it alone. In `parts` the crawl is stopped for a
    while and started again.
    """
    samples: list[Sample] = []
    with DemoServer(make_profile(plan)) as demo:
        settings = crawl_settings(plan, policy, demo, database_url)
        for part in range(parts):
            if part:
                time.sleep(pause_s)
            with ExitStack() as stack:
                for worker in range(workers):
                    own = folder.with_name(f"{folder.name}{worker}")
                    stack.enter_context(Crawler(demo, settings, own))
                wait_for_pages(demo)
                samples += watch_crawl(demo, database_url, plan.seconds / parts)
        return report_crawl(demo, plan, policy, database_url, samples)


def wait_for_pages(demo: DemoServer, timeout_s: float = 60.0) -> None:
    """Until the crawl has begun."""
    before = len(demo.log.records())
    until = time.monotonic() + timeout_s
    while len(demo.log.records()) < before + 20:
        if time.monotonic() > until:
            raise RuntimeError("the crawl did not begin")
        time.sleep(0.2)


def print_report(report: Report) -> None:
    measured = report.measured
    simulated = report.simulated
    print(
        f"{report.policy}: {report.pages} pages from the start, {report.visits} visits "
        f"({report.budget:.0%} of the budget; of that of sources {report.source_budget:.0%})"
    )
    print(f"  measured   {measured.freshness:.1%} fresh, age {measured.age_s:.2f} s")
    print(
        f"  simulated  {simulated.freshness:.1%} fresh, age {simulated.age_s:.2f} s, "
        f"{simulated.visits} visits"
    )
    print(f"  all copies {report.freshness:.1%} fresh, age {report.age_s:.2f} s")
    for each in report.live:
        print(
            f"  estimate after {each.at_s:.0f} s: {each.estimate:.1%}, {each.estimated_age_s:.2f} s;"
            f" in truth {each.freshness:.1%}, {each.age_s:.2f} s"
        )
    print(
        f"  {report.appeared} pages appeared, {report.unseen} of them not found; "
        f"{report.starved} visited once only"
    )
    for each in report.samples[:: max(len(report.samples) // 12, 1)]:
        print(
            f"    {each.at_s:6.1f} s  {each.pages:4} pages  {each.freshness:.1%} fresh, age "
            f"{each.age_s:5.2f} s; prices {each.page_price:.3f} {each.source_price:.3f}"
        )


def missed_bars(reports: Mapping[str, Report]) -> list[str]:
    missed = []
    for name, report in reports.items():
        if abs(report.off_simulator) > SIMULATOR_BAR:
            missed.append(f"{name}: {report.off_simulator:+.1%} off the simulator")
        if abs(report.off_estimate) > ESTIMATE_BAR:
            missed.append(f"{name}: estimate {report.off_estimate:+.1%} off")
        if report.unseen or report.starved:
            missed.append(f"{name}: starved")
    if {"optimal", "uniform"} <= reports.keys():
        less = reports["uniform"].measured.freshness - reports["optimal"].measured.freshness
        if less > UNIFORM_BAR:
            missed.append(f"optimal is {less:.1%} less fresh than uniform")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--interval", type=float, default=10)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--parts", type=int, default=1, help="stopped and started again in between")
    parser.add_argument("--pause", type=float, default=0, help="seconds between the parts")
    parser.add_argument("--policies", nargs="+", default=["optimal", "uniform"])
    given = parser.parse_args()
    plan = Plan(given.pages, given.interval, given.seconds)
    reports = {}
    for policy in given.policies:
        with tempfile.TemporaryDirectory(prefix="freshness-") as name, ExitStack() as stack:
            url = stack.enter_context(EmbeddedPostgres(Path(name) / "db")).start()
            reports[policy] = measure_policy(
                plan,
                policy,
                url,
                Path(name) / "crawl",
                workers=given.workers,
                parts=given.parts,
                pause_s=given.pause,
            )
        print_report(reports[policy])
    missed = missed_bars(reports)
    for text in missed:
        print(f"NOT REACHED: {text}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
