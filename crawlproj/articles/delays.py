"""How soon articles are fetched after they are published: the figure by which a news crawl is
judged.

Dates of publication are what sites say, so they are checked: a date without a time says too little,
one in the future is wrong, and what was published before the crawl knew the site is no news that
it has missed.

Over time they are kept as counts: how many articles had a delay of about so long. Counts of
minutes can be added up to those of hours and days, which percentiles can't.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from typing import Final, NamedTuple

from crawlproj.database.queries import Queries
from crawlproj.urls.canonical import host_of
from crawlproj.urls.domains import registered_domain

MOST: Final = 20_000
"""So many articles tell the delays of all; of more some are drawn by lot."""
STEPS: Final = 8
"""Delays that are counted together differ by less than the eighth root of two."""
SHORTEST_S: Final = 0.01
FEW: Final = 5
"""A site with fewer articles is not named for its delays."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Half of `number` new articles were fetched within `p50_s` of their publication, and 95 % of
    them within `p95_s`.
    """

    number: int
    p50_s: float
    p95_s: float


def publication_time(
    said: str | None, listed: datetime | None, fetched: datetime
) -> datetime | None:
    """When an article was published, by what its page says (in ISO 8601) and by what listed it: the
    later one of those that have a time and can be true; None if none can.
    """
    times = []
    if said is not None:
        try:
            at = datetime.fromisoformat(said)
        except ValueError:
            at = None
        # Without a zone it may be hours away.
        if at is not None and at.tzinfo is not None and _has_time(at):
            times.append(at)
    if listed is not None and _has_time(listed.astimezone(UTC)):
        times.append(listed)
    return max((at for at in times if at <= fetched), default=None)


def _has_time(at: datetime) -> bool:
    """Midnight is how a day without a time is stored."""
    return at.timetz().replace(tzinfo=None) != time()


def summarize_delays(delays_s: Sequence[float]) -> Delays | None:
    """The percentiles of delays; None if there are none."""
    if not delays_s:
        return None
    ordered = sorted(delays_s)
    return Delays(len(ordered), _percentile(ordered, 0.5), _percentile(ordered, 0.95))


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that so many of all do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def count_delay(delay_s: float) -> str:
    """Under which name a delay is counted."""
    return str(round(STEPS * math.log2(max(delay_s, SHORTEST_S))))


def summarize_counts(counts: Mapping[str, int]) -> Delays | None:
    """The percentiles of delays that were counted, each within 5 %; None if there are none."""
    number = sum(counts.values())
    if not number:
        return None
    ordered = sorted((int(name), count) for name, count in counts.items())
    return Delays(number, _counted_percentile(ordered, 0.5), _counted_percentile(ordered, 0.95))


def _counted_percentile(ordered: Sequence[tuple[int, int]], share: float) -> float:
    wanted = share * sum(count for _, count in ordered)
    so_far = 0
    for name, count in ordered:
        so_far += count
        if so_far >= wanted:
            return float(2.0 ** (name / STEPS))
    raise ValueError("no delays")


@dataclass(slots=True)
class SiteArticles:
    """How many articles of a site were found of late, and the delays of those, or of some of them
    that were drawn by lot, whose publication is known and was not missed.
    """

    number: int = 0
    delays_s: list[float] = field(default_factory=list)


class TimedArticle(NamedTuple):
    """An article whose delay is known: the registered domain of its site, when it was found."""

    site: str
    found: datetime
    delay_s: float


def timed_articles(db: Queries, crawl: int, since: datetime) -> Iterator[TimedArticle]:
    """The articles that a crawl has found since then, as far as their delays can be told."""
    known: dict[str, datetime] = dict(db.fetch_rows("sites_known", crawl=crawl))
    rows = db.fetch_rows("dated_articles", crawl=crawl, since=since, count=MOST)
    for url, said, listed, fetched, found in rows:
        site = registered_domain(host_of(url))
        published = publication_time(said, listed, fetched)
        if published is not None and published >= (known.get(site) or known[""]):
            yield TimedArticle(site, found, (fetched - published).total_seconds())


def read_articles(db: Queries, crawl: int, since: datetime) -> dict[str, SiteArticles]:
    """The articles that a crawl has found since then, by the registered domain of their site."""
    sites: dict[str, SiteArticles] = {}
    for host, number in db.fetch_rows("report_article_hosts", crawl=crawl, since=since):
        sites.setdefault(registered_domain(host), SiteArticles()).number += number
    for site, _, delay_s in timed_articles(db, crawl, since):
        sites.setdefault(site, SiteArticles()).delays_s.append(delay_s)
    return sites


def read_delays(db: Queries, crawl: int, since: datetime) -> Delays | None:
    """The delays over all sites of a crawl since then."""
    return summarize_delays([delay_s for *_, delay_s in timed_articles(db, crawl, since)])


def read_site_delays(
    db: Queries, crawl: int, since: datetime
) -> tuple[Delays | None, list[tuple[str, Delays]]]:
    """The delays over all sites of a crawl since then; and those of each site with more than a few
    such articles, the slowest first.
    """
    sites: dict[str, list[float]] = {}
    for site, _, delay_s in timed_articles(db, crawl, since):
        sites.setdefault(site, []).append(delay_s)
    slowest = []
    for site, delays_s in sites.items():
        delays = summarize_delays(delays_s)
        if delays is not None and delays.number >= FEW:
            slowest.append((site, delays))
    slowest.sort(key=lambda item: (-item[1].p50_s, item[0]))
    return summarize_delays([delay for delays_s in sites.values() for delay in delays_s]), slowest


def count_delays(db: Queries, crawl: int, since: datetime) -> dict[datetime, Counter[str]]:
    """How soon the articles of each minute since then were fetched, as counts."""
    minutes: dict[datetime, Counter[str]] = {}
    for _, found, delay_s in timed_articles(db, crawl, since):
        minute = found.replace(second=0, microsecond=0)
        minutes.setdefault(minute, Counter())[count_delay(delay_s)] += 1
    return minutes
