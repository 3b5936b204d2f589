"""A crawl of news sites of the demo web, judged by their server's log and by what the web knows of
itself: nothing that the crawler says counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from crawlproj.demo.log import AccessRecord
from crawlproj.demo.news_truth import (
    BAIT_KINDS,
    SOURCE_KINDS,
    NewsArticle,
    NewsTruth,
    UrlTruth,
)
from crawlproj.demo.web import Web

HOST_DELAY_S = 30.0
"""Between two requests to a host: with this, bait of twenty hosts is too little work to keep the
crawl busy, and enough to take the place of articles.
"""
TRIES = 20
"""So many random phases of visiting all equally often."""
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

    @property
    def strictest(self) -> float:
        """Articles, and looks at sources that brought some, of all fetches."""
        good = self.articles + self.brought
        bad = self.again + self.copies + self.bait + self.other + self.missing
        return good / max(1, good + bad + self.empty + self.archive)


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


def judge_crawl(
    records: Iterable[AccessRecord], web: Web, until: float
) -> tuple[Figures, NewsTruth]:
    """What the log shows, up to a moment (unix time)."""
    truth = NewsTruth(web)
    fetches = [fetch for fetch in read_fetches(records, truth) if fetch.at <= until]
    figures = Figures(fetches[0].at, min(fetches[-1].at, until), fetches)
    figures.note_articles()
    return figures, truth


def write_sites(web: Web) -> str:
    """The file of sites for `scrapy crawl news`: each is stated by its front page alone."""
    lines = ["sites:"]
    for spec in web.profile.hosts:
        url = web.url(spec.name)
        lines.append(f'  - {{name: {spec.name}, domains: [{spec.host}], seeds: ["{url}"]}}')
    return "\n".join(lines) + "\n"
