"""How soon articles are fetched after they are published: `python -m benchmarks.news_delay`.

A crawl of the demo web `newsweb` (20 news sites, bait, archives) in accelerated time: all durations
of the crawl are divided by the speed as well. What is measured comes from the server's log and from
what the web knows of itself, not from the crawler. Exits with 1 if a bar is missed.

The delay of visiting all sources equally often is computed: the requests to sources that the log
shows are dealt out evenly, at random phases, to the sources that the crawl visited more than once;
what lies between the first visit that lists an article and the article's fetch is taken over from
the log. `--policy uniform --interval 20m` runs a crawl that really does so.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.demo.log import AccessRecord
from crawlproj.demo.news_truth import (
    BAIT_KINDS,
    SOURCE_KINDS,
    NewsArticle,
    NewsTruth,
    UrlTruth,
)
from crawlproj.demo.process import DemoProcess
from settings import base

ROOT = Path(__file__).resolve().parents[1]
HOURS = 12.0
GRACE_H = 1.0
"""Articles of the last hour need not be there yet."""
RULE_S = 12 * 3600.0
FEED_SHARE = 0.99
DELAY_RATIO = 0.6
NO_FEED_SHARE = 0.95
USEFUL_SHARE = 0.85
MAX_FETCHES = 2
TRIES = 20
"""So many random phases of visiting all equally often."""
HOST_DELAY_S = 30.0
"""Between two requests to a host: with this, bait of twenty hosts is too little work to keep the
crawl busy, and enough to take the place of articles.
"""
MINUTE_S = 60.0
DAY_S = 86_400.0


def scaled_settings(speed: float, interval_s: float = 15 * MINUTE_S) -> dict[str, object]:
    """The defaults with all durations divided by the speed, without what costs CPU and has no part
    in when a page is fetched.
    """

    def seconds(real: float) -> str:
        return f"{real / speed:.3f}s"

    return {
        "GUARD_ALLOW_PRIVATE": "1",
        "CRAWL_CONTINUOUS": "1",
        "SOURCE_INTERVAL": seconds(interval_s),
        "SOURCE_MIN": seconds(min(interval_s, 5 * MINUTE_S)),
        "REVISIT_INTERVAL": seconds(5 * DAY_S),
        "REVISIT_MIN": seconds(DAY_S / 2),
        "REVISIT_MAX": seconds(365 * DAY_S),
        "POLITENESS_DELAY": HOST_DELAY_S / speed,
        "POLITENESS_SERVER_DELAY": 0.5 / speed,
        "POLITENESS_SLOWDOWN": 0,
        "POLITENESS_PAUSE": 300 / speed,
        "POLITENESS_MAX_DELAY": 60 / speed,
        "FRONTIER_RETRY_DELAY": seconds(60),
        "FRONTIER_FLUSH": "0.3s",
        "WARC_ENABLED": "0",
        "LANGUAGE_ENABLED": "0",
        "DUPLICATES_ENABLED": "0",
        "NEARDUP_ENABLED": "0",
        "PARAGRAPH_ENABLED": "0",
        "DOCUMENTS_ENABLED": "0",
        "PANEL": "off",
        "LOG_LEVEL": "WARNING",
    }


@dataclass(slots=True)
class Fetch:
    """A request of the crawl, with what it was for."""

    at: float
    host: str
    path: str
    status: int
    truth: UrlTruth


@dataclass(slots=True)
class Figures:
    """All that is measured. Delays are seconds of the web's time."""

    begun: float
    ended: float
    fetches: list[Fetch]
    first: dict[tuple[str, int], float] = field(default_factory=dict)
    times: Counter[tuple[str, int]] = field(default_factory=Counter)

    def note_articles(self) -> None:
        for fetch in self.fetches:
            number = fetch.truth.number
            if number is not None and fetch.status == 200:
                self.first.setdefault((fetch.host, number), fetch.at)


def read_fetches(records: Iterable[AccessRecord], truth: NewsTruth) -> list[Fetch]:
    """The requests for pages, in the order in which they began."""
    found = []
    for record in sorted(records, key=lambda record: record.started_at):
        host = record.host.partition(":")[0].lower()
        if record.path == "/robots.txt" or host not in truth.sites:
            continue
        judged = truth.judge(host, record.path, record.started_at)
        found.append(Fetch(record.started_at, host, record.path, record.status, judged))
    return found


def delays(
    articles: Sequence[NewsArticle], first: dict[tuple[str, int], float], speed: float
) -> list[float]:
    return sorted(
        (first[article.host, article.number] - article.published) * speed
        for article in articles
        if (article.host, article.number) in first
    )


def equal_delays(
    articles: Sequence[NewsArticle], figures: Figures, truth: NewsTruth, speed: float, seed: int
) -> tuple[list[float], float, int]:
    """Delays if the requests to sources had been dealt out evenly; the interval; how many."""
    visits: dict[tuple[str, str], list[float]] = defaultdict(list)
    for fetch in figures.fetches:
        if fetch.path in truth.source_paths(fetch.host):
            visits[fetch.host, fetch.path].append(fetch.at)
    sources = {source: times for source, times in visits.items() if len(times) > 1}
    requests = sum(map(len, sources.values()))
    if not requests:
        return [], 0.0, 0
    interval = (figures.ended - figures.begun) * len(sources) / requests
    by_host: dict[str, list[str]] = defaultdict(list)
    for host, path in sources:
        by_host[host].append(path)
    random = Random(seed)
    found = []
    for _ in range(TRIES):
        phases = {source: random.random() * interval for source in sources}
        for article in articles:
            key = (article.host, article.number)
            if key not in figures.first:
                continue
            listed = [path for path in by_host[article.host] if path in article.sources]
            seen = [
                at
                for path in listed
                for at in sources[article.host, path]
                if article.published <= at <= figures.first[key]
            ]
            lag = figures.first[key] - min(seen) if seen else 0.0
            waits = []
            for path in listed:
                since = article.published - figures.begun - phases[article.host, path]
                wait = -since % interval
                if truth.lists(article.host, path, article.number, article.published + wait):
                    waits.append(wait)
            if waits:
                found.append((min(waits) + lag) * speed)
    return sorted(found), interval * speed, len(sources)


def percentile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def share_of(
    articles: Sequence[NewsArticle], first: dict[tuple[str, int], float]
) -> tuple[int, int, float]:
    there = sum((article.host, article.number) in first for article in articles)
    return there, len(articles), there / max(1, len(articles))


@dataclass(frozen=True, slots=True)
class Usefulness:
    """200s by what they were for. `brought`: visits of sources that listed an article for the first
    time; `empty`: those that did not, which are the price of looking.
    """

    articles: int
    brought: int
    empty: int
    archive: int
    again: int
    copies: int
    bait: int
    other: int
    missing: int

    @property
    def share(self) -> float:
        """Of all pages but empty looks at sources."""
        good = self.articles + self.brought + self.archive
        return good / max(
            1, good + self.again + self.copies + self.bait + self.other + self.missing
        )

    @property
    def strict(self) -> float:
        """The same where an empty look that had to be read in full is waste, too."""
        good = self.articles + self.brought + self.archive
        bad = self.again + self.copies + self.bait + self.other + self.missing
        return good / max(1, good + bad + self.empty)


def judge_usefulness(figures: Figures, truth: NewsTruth) -> Usefulness:
    count: Counter[str] = Counter()
    listed: dict[str, set[int]] = defaultdict(set)
    versions: dict[tuple[str, int], int] = {}
    pages: set[tuple[str, str]] = set()
    for fetch in figures.fetches:
        kind = fetch.truth.kind
        if kind in SOURCE_KINDS:
            shown = truth.sites[fetch.host].listed_numbers(
                fetch.path, truth.web.world.age_at(fetch.at)
            )
            new = set(shown) - listed[fetch.host]
            listed[fetch.host] |= new
            if new:
                count["brought"] += 1
            elif fetch.status == 200:
                count["empty"] += 1
        elif fetch.status == 304:
            count["again"] += 1
        elif fetch.truth.number is not None:
            key = (fetch.host, fetch.truth.number)
            site = truth.sites[fetch.host]
            version = site.articles.version_at(key[1], truth.web.world.age_at(fetch.at))[0]
            if key not in versions:
                count["articles"] += 1
            elif (fetch.host, fetch.path) not in pages:
                count["copies"] += 1
            else:
                count["articles" if version > versions[key] else "again"] += 1
            versions[key] = version
        elif kind in BAIT_KINDS:
            count["bait"] += 1
        elif kind == "archive":
            count["again" if (fetch.host, fetch.path) in pages else "archive"] += 1
        elif kind == "missing":
            count["missing"] += 1
        else:
            count["again" if (fetch.host, fetch.path) in pages else "other"] += 1
        pages.add((fetch.host, fetch.path))
    names = Usefulness.__dataclass_fields__
    return Usefulness(**{name: count[name] for name in names})


def fetches_per_article(figures: Figures) -> list[int]:
    """By how many addresses each article was fetched (200)."""
    addresses: dict[tuple[str, int], set[str]] = defaultdict(set)
    for fetch in figures.fetches:
        if fetch.truth.number is not None and fetch.status == 200:
            addresses[fetch.host, fetch.truth.number].add(fetch.path)
    return sorted(map(len, addresses.values()))


def run_crawl(demo: DemoProcess, folder: Path, seconds: float, settings: dict[str, object]) -> str:
    """A crawl of all sites, each stated by its front page alone; its end of the log on trouble."""
    lines = ["sites:"]
    for name in demo.profile.seeds:
        url = demo.url(name)
        lines.append(f'  - {{name: {name}, domains: [{name}.demo.test], seeds: ["{url}"]}}')
    sites = folder / "sites.yaml"
    sites.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "scrapy", "crawl", "news", "-a", f"sites={sites}"]
    for name, value in settings.items():
        command += ["-s", f"{name}={value}"]
    command += ["-s", f"CLOSESPIDER_TIMEOUT={seconds}"]
    clean = {name: value for name, value in os.environ.items() if name not in base.OURS}
    ran = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    return f"exit code {ran.returncode}\n{ran.stdout[-2500:]}\n{ran.stderr[-1500:]}"


def print_table(
    figures: Figures, truth: NewsTruth, speed: float, seed: int, grace_s: float
) -> list[str]:
    """Print what was measured; returns the bars that were missed."""
    missed: list[str] = []

    def bar(name: str, text: str, good: bool) -> None:
        print(f"{name:42}{text:>36}  {'ok' if good else 'MISSED'}")
        if not good:
            missed.append(name)

    every = truth.articles_at(figures.ended - grace_s)
    new = [article for article in every if article.published > figures.begun]
    feeds = [article for article in new if article.in_feed]
    no_feed = [article for article in new if not truth.has_source(article.host)]
    broken = [a for a in new if truth.has_source(a.host) and not a.in_feed]
    archived = [article for article in every if not article.sources]
    first = figures.first
    there, number, share = share_of(feeds, first)
    bar("feed articles fetched", f"{there} of {number} ({share:.1%})", share >= FEED_SHARE)
    waited = delays(feeds, first, speed)
    latest = waited[-1] if waited else float("inf")
    bar("latest of them", f"{latest / 60:.0f} min", latest <= RULE_S)
    equal, interval, sources = equal_delays(feeds, figures, truth, speed, seed)
    median = percentile(waited, 0.5)
    equal_median = percentile(equal, 0.5)
    print(
        f"{'delay of feed articles, median / p95':42}"
        f"{f'{median / 60:.1f} / {percentile(waited, 0.95) / 60:.1f} min':>36}"
    )
    name = f"  equally often ({sources} sources, {interval / 60:.0f} min)"
    print(f"{name:42}{f'{equal_median / 60:.1f} / {percentile(equal, 0.95) / 60:.1f} min':>36}")
    ratio = median / equal_median
    bar("  ratio of the medians", f"{ratio:.2f}", ratio <= DELAY_RATIO)
    there, number, share = share_of(no_feed, first)
    bar(
        "articles without feed or sitemap",
        f"{there} of {number} ({share:.1%})",
        share >= NO_FEED_SHARE,
    )
    waited = delays(no_feed, first, speed)
    text = f"{percentile(waited, 0.5) / 60:.1f} / {percentile(waited, 0.95) / 60:.1f} min"
    print(f"{'  their delay, median / p95':42}{text:>36}")
    there, number, share = share_of(broken, first)
    print(
        f"{'articles that a feed of the site missed':42}{f'{there} of {number} ({share:.1%})':>36}"
    )
    there, number, share = share_of(archived, first)
    bar("archive articles reached", f"{there} of {number} ({share:.1%})", there > 0)
    useful = judge_usefulness(figures, truth)
    bar("useful share", f"{useful.share:.1%}", useful.share >= USEFUL_SHARE)
    print(f"{'  with empty looks at sources as waste':42}{f'{useful.strict:.1%}':>36}")
    for name in Usefulness.__dataclass_fields__:
        print(f"{f'    {name}':42}{getattr(useful, name):>36}")
    many = fetches_per_article(figures)
    most = many[-1] if many else 0
    over = sum(times > MAX_FETCHES for times in many)
    bar(
        "addresses fetched per article, at most",
        f"{most} ({over} above {MAX_FETCHES})",
        most <= MAX_FETCHES,
    )
    length_s = figures.ended - figures.begun
    print(
        f"{'requests':42}"
        f"{f'{len(figures.fetches)} ({len(figures.fetches) / length_s:.1f} a second)':>36}"
    )
    kinds = Counter(fetch.truth.kind for fetch in figures.fetches)
    print("  " + ", ".join(f"{kind} {number}" for kind, number in kinds.most_common()))
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", type=float, default=120.0)
    parser.add_argument("--minutes", type=float, help="default: 13 hours of the web's time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", default="optimal")
    parser.add_argument("--interval", type=float, default=15.0, help="SOURCE_INTERVAL in minutes")
    parser.add_argument("--articles", action="store_true", help="take articles from pages, too")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE of the crawl")
    parser.add_argument("--keep", type=Path, help="keep the server's log here")
    words = parser.parse_args()
    minutes = words.minutes or (HOURS + GRACE_H) * 60 / words.speed
    settings = scaled_settings(words.speed, words.interval * MINUTE_S)
    settings["REVISIT_POLICY"] = words.policy
    settings["ARTICLE_PROCESSES"] = int(words.articles)
    settings |= dict(pair.split("=", 1) for pair in words.set)
    with tempfile.TemporaryDirectory(prefix="news-delay-") as name:
        folder = Path(name)
        with EmbeddedPostgres(folder / "db") as postgres:
            settings |= {"CRAWL_DIR": folder / "crawl", "DATABASE_URL": postgres.start()}
            log_path = words.keep or folder / "demo.jsonl"
            with DemoProcess(
                "newsweb", speed=words.speed, seed=words.seed, log_path=log_path
            ) as demo:
                settings["DNS_HOSTS"] = json.dumps(demo.dns_hosts)
                wall = time.time()
                said = run_crawl(demo, folder, minutes * 60, settings)
                cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
                truth = NewsTruth(demo.web)
                fetches = read_fetches(demo.records(), truth)
    if not fetches:
        print(said)
        return 1
    figures = Figures(fetches[0].at, min(fetches[-1].at, wall + minutes * 60), fetches)
    figures.note_articles()
    print(f"speed {words.speed:g}, {minutes:g} minutes, seed {words.seed}, {words.policy}")
    missed = print_table(
        figures, truth, words.speed, seed=words.seed, grace_s=GRACE_H * 3600 / words.speed
    )
    print(f"CPU of the crawl: {cpu.ru_utime + cpu.ru_stime:.0f} s in {minutes * 60:.0f} s")
    if missed:
        print(f"MISSED: {', '.join(missed)}")
        print(said)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
