"""A running crawl at one moment, in figures: taken from memory only, so that looking costs
nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from crawlproj.formatting import format_count, format_duration, format_time
from crawlproj.frontier.base import DuplicateKind, Outlook
from crawlproj.politeness.clocks import HostClock
from crawlproj.scheduling.crawl_worker import CrawlWorker

SHORT_WAIT_S = 2.0
"""Shorter pauses are the normal rhythm of a polite crawl and need no explanation."""
AREAS = ("failed", "forbidden", "gone")
LIMITS = {
    "pages/cut": "read only in part",
    "links/too_many": "had more links than are taken",
    "links/too_long": "links longer than 2,000 characters, recorded but not followed",
    "watchdog/set_aside": "too slow to read, set aside",
    "frontier/set_aside": "refused by the database, set aside",
}
"""Stats of what limits have left out, and their words."""


@dataclass(frozen=True, slots=True)
class ArticleTally:
    """What became of the pages of this run that are articles."""

    new: int = 0
    versions: int = 0
    """New texts of articles that were known."""
    same: int = 0
    """Other addresses of articles that were known."""
    failed: int = 0
    alarms: int = 0
    """How often a site's selectors did not fit."""

    @property
    def found(self) -> int:
        return self.new + self.versions + self.same + self.failed


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the URLs that were handed out in this run. `reasons`: area -> reason -> how
    many.
    """

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    moved: int = 0
    gone: int = 0
    forbidden: int = 0
    failed: int = 0
    found: int = 0
    responses: int = 0
    robots_unreachable: int = 0
    media: int = 0
    """Links to media, which are recorded and not followed."""
    reasons: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    limited: Mapping[str, int] = field(default_factory=dict)
    """What limits have left out, in words -> how often."""
    noise: int = 0
    """Pages whose text differed by what does not count as a change."""
    change_ratio: float | None = None
    """Which part of the visits to known pages has found a change, by the weights of the pages."""
    set_aside: int = 0
    """Answers that can't be the page they were asked for."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """Pages that are copies of others, by how that was found."""
    articles: ArticleTally = field(default_factory=lambda: ArticleTally())
    silent_sources: int = 0
    """Sources that bring nothing any more; known only when the crawl has ended."""
    disagreeing_sources: int = 0
    """Sources that list nothing of what others of their site bring; known as late."""
    missed_links: int = 0
    """What these have missed, by estimate."""

    @property
    def useful_share(self) -> float | None:
        """Of what was fetched, how much brought an article or a new version of one; None if no
        articles are wanted, or nothing was fetched.
        """
        if not self.articles.found or not self.responses:
            return None
        return min(1.0, (self.articles.new + self.articles.versions) / self.responses)

    @property
    def revisits(self) -> int:
        """Visits to pages that were known and are still there. Those that found nothing changed are
        wasted.
        """
        return self.changed + self.unchanged

    @property
    def pages_read(self) -> int:
        return self.new + self.changed + self.unchanged

    @property
    def urls_ended(self) -> int:
        return self.pages_read + self.moved + self.gone + self.forbidden + self.failed


def count_articles(stats: Mapping[str, Any]) -> ArticleTally:
    """Read a crawl's stats as an ArticleTally."""
    failed = sum(n for name, n in stats.items() if name.startswith("articles/failed/"))
    return ArticleTally(
        stats.get("articles/new", 0),
        stats.get("articles/versions", 0),
        stats.get("articles/same", 0) + stats.get("articles/copies", 0),
        failed=failed,
        alarms=stats.get("articles/alarms", 0),
    )


def count_outcomes(stats: Mapping[str, Any]) -> Tally:
    """Read a crawl's stats as a Tally."""
    reasons: dict[str, Counter[str]] = {area: Counter() for area in AREAS}
    for name, value in stats.items():
        area, _, reason = name.partition("/")
        if area in reasons and reason:
            reasons[area][reason.replace("_", " ")] += value
    unchanged = sum(
        stats.get(f"pages/{name}", 0)
        for name in ("same_bytes", "same_text", "not_modified", "noise")
    )
    change_ratio = None
    if stats.get("revisit/weight"):
        change_ratio = stats.get("revisit/weight_changed", 0) / stats["revisit/weight"]
    number = {area: sum(found.values()) for area, found in reasons.items()}
    return Tally(
        stats.get("pages/first", 0),
        stats.get("pages/changed", 0),
        unchanged,
        moved=stats.get("end/moved", 0),
        gone=number["gone"],
        forbidden=number["forbidden"],
        failed=number["failed"],
        found=stats.get("frontier/added", 0),
        responses=stats.get("response_received_count", 0),
        media=stats.get("links/media", 0),
        robots_unreachable=stats.get("robots/unreachable", 0),
        reasons=reasons,
        limited={words: stats[name] for name, words in LIMITS.items() if stats.get(name)},
        noise=stats.get("pages/noise", 0),
        change_ratio=change_ratio,
        set_aside=stats.get("pages/wall", 0) + stats.get("pages/soft_gone", 0),
        copies={
            kind.value: stats[f"duplicates/{kind.value}"]
            for kind in DuplicateKind
            if stats.get(f"duplicates/{kind.value}")
        },
        articles=count_articles(stats),
        silent_sources=stats.get("sources/silent", 0),
        disagreeing_sources=stats.get("sources/disagreeing", 0),
        missed_links=stats.get("sources/missed", 0),
    )


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """The leased hosts: how many are asked at this moment, how many rest and why. `held`: URLs that
    wait here. `wait_reason` says in words why nothing happens, if so.
    """

    known: int = 0
    busy: int = 0
    held: int = 0
    resting: Mapping[str, int] = field(default_factory=dict)
    wait_reason: str = ""
    freshness: float | None = None
    age_s: float | None = None
    """How fresh the copies of the crawl are by estimate."""
    articles_of_day: int | None = None
    """How many articles the crawl has found in the last 24 hours."""


def host_snapshot(worker: CrawlWorker) -> HostSnapshot:
    """What the worker's hosts do at this moment."""
    hosts = worker.leases.window.hosts.values()
    now = time.monotonic()
    resting = [
        host.clock
        for host in hosts
        if host.in_flight is None and host.waiting and host.clock.next_at > now
    ]
    busy = sum(host.in_flight is not None for host in hosts)
    wait_reason = ""
    if not busy and resting:
        wait_reason = _why_resting(worker, resting, now)
    elif not busy and not hosts:
        wait_reason = why_nothing_held(
            worker.outlook,
            worker.clock.now(),
            orphans_until=worker.leases.orphans_until,
            lease=worker.config.spec.lease,
        )
    return HostSnapshot(
        len(hosts),
        busy,
        len(worker.leases.window),
        resting=Counter(clock.reason for clock in resting),
        wait_reason=wait_reason,
        freshness=worker.freshness,
        age_s=worker.age_s,
        articles_of_day=worker.articles_of_day,
    )


def _why_resting(worker: CrawlWorker, resting: Sequence[HostClock], now: float) -> str:
    first = min(resting, key=lambda clock: clock.next_at)
    if first.next_at <= now + SHORT_WAIT_S:
        return ""
    until = format_time(worker.clock.latest_datetime(first.next_at), worker.clock.now())
    return f"waiting for {format_count(len(resting), 'host')} until {until}: {first.reason}"


def why_nothing_held(
    outlook: Outlook, now: datetime, *, orphans_until: datetime | None, lease: timedelta
) -> str:
    """Why there is nothing to do for now. `orphans_until`: servers that dead workers held rest
    until then; `lease`: for so long a worker holds a server after it last said that it lives.
    """
    if outlook.soonest is not None and outlook.soonest > now:
        until = format_time(outlook.soonest, now)
        if orphans_until is not None and outlook.soonest <= orphans_until:
            return (
                f"waiting until {until}: a worker was killed, and nobody knows what it asked last, "
                "so its servers rest until then"
            )
        return f"waiting until {until}: a host rests, or a retry is due then"
    if outlook.leased_elsewhere:
        servers = format_count(outlook.leased_elsewhere, "server")
        return (
            f"waiting for {servers} that other workers have (the lease of one that was killed ends "
            f"within {format_duration(lease)})"
        )
    if outlook.next_visit is not None and outlook.next_visit > now:
        return f"nothing is due; the next visit is at {format_time(outlook.next_visit, now)}"
    return "looking for something to do"
