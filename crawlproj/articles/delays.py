"""How soon articles are fetched after they are published: the figure by which a news crawl is
judged.

Dates of publication are what sites say, so they are checked: a date without a time says too little,
one in the future is wrong, and what was published before the crawl knew the site is no news that
it has missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from typing import Final

from crawlproj.database.queries import Queries
from crawlproj.urls.canonical import host_of
from crawlproj.urls.domains import registered_domain

MOST: Final = 20_000
"""Articles that are looked at, the latest ones."""


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


@dataclass(slots=True)
class SiteArticles:
    """The articles of a site that were found of late, and the delays of those whose publication is
    known and was not missed.
    """

    number: int = 0
    delays_s: list[float] = field(default_factory=list)


def read_articles(db: Queries, crawl: int, since: datetime) -> dict[str, SiteArticles]:
    """The articles that a crawl has found since then, by the registered domain of their site."""
    known: dict[str, datetime] = dict(db.fetch_rows("sites_known", crawl=crawl))
    rows = db.fetch_rows("dated_articles", crawl=crawl, since=since, count=MOST)
    sites: dict[str, SiteArticles] = {}
    for url, said, listed, fetched in rows:
        site = registered_domain(host_of(url))
        articles = sites.setdefault(site, SiteArticles())
        articles.number += 1
        published = publication_time(said, listed, fetched)
        if published is not None and published >= (known.get(site) or known[""]):
            articles.delays_s.append((fetched - published).total_seconds())
    return sites


def read_delays(db: Queries, crawl: int, since: datetime) -> Delays | None:
    """The delays over all sites of a crawl since then."""
    sites = read_articles(db, crawl, since).values()
    return summarize_delays([delay for articles in sites for delay in articles.delays_s])
