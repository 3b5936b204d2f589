"""How soon articles are fetched after they are published: `python -m benchmarks.news_delay`.

A crawl of the demo web `newsweb` (20 news sites, bait, archives) in accelerated time: all durations
of the crawl are divided by the speed as well. What is measured comes from the server's log and from
what the web knows of itself, not from the crawler. Exits with 1 if a bar is missed.

The delay of visiting all sources equally often is computed: the requests to sources that the log
shows are dealt out evenly, at random phases, to the sources that the crawl visited more than once;
what lies between the first visit that lists an article and the article's fetch is taken over from
the log. `--policy uniform --interval 20` runs a crawl that really does so.
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
from collections import Counter
from pathlib import Path
from typing import Any

from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.demo.news_truth import NewsTruth
from crawlproj.demo.process import DemoProcess
from settings import base
from tests.support.news_judge import (
    MINUTE_S,
    Figures,
    Usefulness,
    delays,
    equal_delays,
    fetches_per_article,
    judge_crawl,
    judge_usefulness,
    percentile,
    scaled_settings,
    share_of,
    write_sites,
)

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
COST_SHARE = 0.02
"""Of the CPU of the crawl's process."""


def run_crawl(demo: DemoProcess, folder: Path, seconds: float, settings: dict[str, object]) -> str:
    """A crawl of all sites, each stated by its front page alone; its end of the log on trouble."""
    sites = folder / "sites.yaml"
    sites.write_text(write_sites(demo.web))
    command = [sys.executable, "-m", "benchmarks.source_cost", str(folder / "cost.json")]
    command += ["crawl", "news", "-a", f"sites={sites}"]
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
    sections = [article for article in no_feed if "/" not in article.sources]
    there, number, share = share_of(sections, first)
    bar(
        "  on pages of sections only",
        f"{there} of {number} ({share:.1%})",
        share >= NO_FEED_SHARE,
    )
    waited = delays(sections, first, speed)
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
    print(f"{'  and archive pages, too':42}{f'{useful.strictest:.1%}':>36}")
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


def read_cost(path: Path) -> dict[str, Any]:
    """What `benchmarks.source_cost` has written; nothing if the crawl failed."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def print_cost(cost: dict[str, Any]) -> list[str]:
    """Print how much CPU went into sources; returns the bar if it was missed."""
    share = sum(cost["parts"].values()) / cost["process_s"]
    good = share <= COST_SHARE
    name = "CPU of sources and hubs"
    print(f"{name:42}{f'{share:.2%}':>36}  {'ok' if good else 'MISSED'}")
    for part, seconds in sorted(cost["parts"].items(), key=lambda item: -item[1]):
        text = f"{seconds / cost['process_s']:.2%}"
        print(f"{f'    {part}':42}{text:>36}")
    return [] if good else [name]


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
            log_path.unlink(missing_ok=True)
            with DemoProcess(
                "newsweb", speed=words.speed, seed=words.seed, log_path=log_path
            ) as demo:
                settings["DNS_HOSTS"] = json.dumps(demo.dns_hosts)
                wall = time.time()
                said = run_crawl(demo, folder, minutes * 60, settings)
                cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
                cost = read_cost(folder / "cost.json")
                records = demo.records()
                web = demo.web
    if not records:
        print(said)
        return 1
    figures, truth = judge_crawl(records, web, until=wall + minutes * 60)
    print(f"speed {words.speed:g}, {minutes:g} minutes, seed {words.seed}, {words.policy}")
    missed = print_table(
        figures, truth, words.speed, seed=words.seed, grace_s=GRACE_H * 3600 / words.speed
    )
    if cost:
        missed += print_cost(cost)
    print(f"CPU of the crawl: {cpu.ru_utime + cpu.ru_stime:.0f} s in {minutes * 60:.0f} s")
    if missed:
        print(f"MISSED: {', '.join(missed)}")
        print(said)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
