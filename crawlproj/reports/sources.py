"""The sources of a crawl as people ask for them: what each brings, when it was visited and will be,
what is wrong with it; and how soon the articles of each site are fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from crawlproj.articles.delays import SiteArticles, read_articles, summarize_delays
from crawlproj.database.queries import Queries
from crawlproj.formatting import printable
from crawlproj.news.opml import OpmlFeed, write_opml
from crawlproj.reports.facts import LATELY
from crawlproj.revisit.silence import SourceFacts, estimate_missed
from crawlproj.scheduling.source_watch import (
    WatchedSource,
    find_problems,
    read_facts,
    read_part,
    with_silence,
)
from crawlproj.urls.canonical import host_of

DAY_S: Final = 86_400.0
DAY: Final = timedelta(days=1)


def source_facts(db: Queries, crawl: int, k: float, host: str = "") -> list[dict[str, Any]]:
    """All sources of a crawl, or those of a site or host, as plain values: those that are silent
    first, then those with another problem, then those that bring most. `k`: see SOURCE_SILENCE.
    """
    found = []
    for rows in _iterate_parts(db, crawl):
        facts = read_facts(db, rows)
        problems = find_problems(facts, k)
        for row, source in zip(rows, facts, strict=True):
            if not host or host in (row.site, host_of(row.url)):
                found.append(_as_values(row, source, problems.get(row.url, "")))
    return sorted(found, key=_order)


def _iterate_parts(db: Queries, crawl: int) -> Iterator[list[WatchedSource]]:
    """The sources of whole sites, some at a time."""
    site = ""
    while True:
        rows, site = read_part(db, crawl, site)
        yield rows
        if not site:
            return


def _as_values(row: WatchedSource, source: SourceFacts, problem: str) -> dict[str, Any]:
    missed = row.missed
    if row.silent_since is not None:
        missed = estimate_missed(source)
        problem = with_silence(problem, source)
    return {
        "url": row.url,
        "kind": row.kind,
        "site": row.site,
        "title": row.title,
        "entries": row.entries,
        "visits": row.visits,
        "new_links": row.new_links,
        "links_per_day": _links_per_day(source),
        "first_visit": row.first_visit,
        "last_visit": row.last_visit,
        "next_visit": row.next_visit,
        "interval_s": row.interval_s,
        "last_new": row.last_new,
        "gap_s": row.gap_s,
        "newest": row.newest,
        "state": row.state,
        "status": row.status,
        "silent_since": row.silent_since,
        "missed": missed,
        "problem": problem or row.problem,
    }


def _links_per_day(source: SourceFacts) -> float | None:
    """So many new links it brings a day, without those that it listed at first; None if that can't
    be told yet.
    """
    known_s = (source.last_visit - source.first_visit).total_seconds()
    if source.visits < 2 or known_s <= 0:
        return None
    return round(source.links_brought / known_s * DAY_S, 2)


def _order(source: dict[str, Any]) -> tuple[bool, bool, float, str]:
    silent = source["silent_since"] is not None
    return (not silent, not source["problem"], -(source["links_per_day"] or 0), source["url"])


def site_figures(db: Queries, crawl: int, now: datetime) -> dict[str, dict[str, Any]]:
    """Of each site with articles of late how many there are a day, and how soon they were fetched
    after their publication; the sites with most of them first.
    """
    sites = read_articles(db, crawl, now - LATELY)
    began: datetime | None = db.fetch_value("report_crawl_began", crawl=crawl)
    days = LATELY / DAY
    if began is not None:
        days = min(days, max(1.0, (now - began) / DAY))
    ordered = sorted(sites.items(), key=lambda site: (-site[1].number, site[0]))
    return {site: _site_values(articles, days) for site, articles in ordered}


def _site_values(articles: SiteArticles, days: float) -> dict[str, Any]:
    values: dict[str, Any] = {
        "articles": articles.number,
        "articles_per_day": round(articles.number / days, 2),
        "timed": len(articles.delays_s),
        "delay_p50_s": None,
        "delay_p95_s": None,
    }
    delays = summarize_delays(articles.delays_s)
    if delays is not None:
        values |= {"delay_p50_s": delays.p50_s, "delay_p95_s": delays.p95_s}
    return values


def sources_as_opml(title: str, sources: Sequence[dict[str, Any]]) -> str:
    """The feeds among sources as OPML, which feed readers take."""
    feeds = [
        OpmlFeed(source["url"], printable(source["title"]), f"https://{source['site']}/")
        for source in sources
        if source["kind"] == "feed"
    ]
    return write_opml(sorted(feeds, key=lambda feed: feed.url), title)
