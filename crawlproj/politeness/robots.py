"""robots.txt of an origin: what a response means, what is stored of it, which URLs may be fetched.

RFC 9309: a file that is there holds; one that is *unavailable* (4xx, too many redirects) allows
everything; while it is *unreachable* (5xx, 429, no response) the origin is left alone, and the file
is requested again at longer and longer intervals. Rules that were read before stay in force
meanwhile, however long it takes: the RFC would let us drop them after 30 days, but that the owner
wants this is only a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from crawlproj.frontier.base import RobotsRow
from crawlproj.http.status import parse_retry_after
from crawlproj.politeness.robotstxt import (
    MAX_BYTES,
    RobotsRules,
    decode_robots,
    parse_sitemaps,
    rules_for,
)
from crawlproj.urls.canonical import origin_of

__all__ = [
    "MAX_BYTES",
    "Robots",
    "RobotsCache",
    "is_unreachable",
    "robots_from_row",
    "row_from_response",
    "same_rules",
]

FIRST_RETRY = timedelta(minutes=1)
LAST_RETRY = timedelta(days=1)
NO_RULES = "\n"
"""Stored for a file that is there and says nothing. An empty body means that no file was read."""
CACHED_CHARACTERS = 100_000_000
"""Of all files in the cache together."""


@dataclass(frozen=True, slots=True)
class Robots:
    """What holds for one origin.

    Without a file everything is allowed, or nothing while it is `unreachable`.
    """

    row: RobotsRow
    unreachable: bool
    _rules: dict[str, RobotsRules] = field(default_factory=dict, compare=False, repr=False)

    def agent_rules(self, agent: str) -> RobotsRules:
        """The rules for one robot, parsed when first needed: most files address many robots."""
        if agent not in self._rules:
            self._rules[agent] = rules_for(self.row.body, agent)
        return self._rules[agent]

    def allows(self, url: str, agent: str) -> bool:
        return not self.unreachable and self.agent_rules(agent).allows(url)

    def crawl_delay_s(self, agent: str) -> float | None:
        """Crawl-delay, or the pause that Request-rate demands, whichever is longer."""
        return self.agent_rules(agent).delay_s

    def sitemap_urls(self) -> list[str]:
        return parse_sitemaps(self.row.body, self.row.origin + "/robots.txt")


def is_unreachable(status: int) -> bool:
    """Server errors, "too many requests" and no response at all (0): keep away, retry later."""
    return status == 0 or status == 429 or status >= 500


def robots_from_row(row: RobotsRow) -> Robots:
    return Robots(row, unreachable=is_unreachable(row.status) and not row.body)


def same_rules(one: RobotsRow, other: RobotsRow) -> bool:
    """Whether both say the same about every URL."""
    return (
        one.body == other.body
        and robots_from_row(one).unreachable == robots_from_row(other).unreachable
    )


def row_from_response(
    url: str,
    host: str,
    status: int,
    body: bytes,
    now: datetime,
    ttl: timedelta,
    earlier: RobotsRow | None = None,
    headers: Mapping[str, str] | None = None,
) -> RobotsRow:
    """The row to store of a response; `headers` by their names in lower case."""
    headers = headers or {}
    if status == 304 and (earlier is None or not earlier.body):
        # "Not modified" of a file that we never read: it is there, but what it says is unknown.
        status = 0
    if is_unreachable(status):
        return _unreachable_row(
            url,
            host,
            status,
            now=now,
            earlier=earlier,
            retry_after=headers.get("retry-after"),
        )
    etag = headers.get("etag")
    modified = headers.get("last-modified")
    if status == 304 and earlier is not None:
        return replace(
            earlier,
            status=200,
            fetched=now,
            expires=now + ttl,
            failures=0,
            etag=etag or earlier.etag,
            modified=modified or earlier.modified,
        )
    if not 200 <= status < 300:
        return RobotsRow(origin_of(url), host, status, body="", fetched=now, expires=now + ttl)
    return RobotsRow(
        origin_of(url),
        host,
        status,
        body=decode_robots(body) or NO_RULES,
        fetched=now,
        expires=now + ttl,
        failures=0,
        etag=etag,
        modified=modified,
    )


def _unreachable_row(
    url: str,
    host: str,
    status: int,
    now: datetime,
    earlier: RobotsRow | None,
    retry_after: str | None,
) -> RobotsRow:
    """The row of a file that can't be reached: what was read before stays in force."""
    failures = 1
    if earlier is not None:
        failures += earlier.failures
    retry_after_s = parse_retry_after(retry_after, now) or 0.0
    requested = timedelta(seconds=min(retry_after_s, LAST_RETRY.total_seconds()))
    back_off = min(FIRST_RETRY * 2 ** min(failures - 1, 20), LAST_RETRY)
    expires = now + max(requested, back_off)
    if earlier is not None and earlier.body:
        return replace(earlier, status=status, fetched=now, expires=expires, failures=failures)
    return RobotsRow(
        origin_of(url), host, status, body="", fetched=now, expires=expires, failures=failures
    )


class RobotsCache:
    """Rules of the origins that are being crawled, bounded in number and size.

    What falls out of it is still in the frontier's database.
    """

    def __init__(
        self, agent: str, limit: int = 10_000, characters: int = CACHED_CHARACTERS
    ) -> None:
        self.agent = agent
        self._limit = limit
        self._characters = characters
        self._known: dict[str, Robots] = {}
        self._size = 0
        self._probes: set[str] = set()

    def add_row(self, row: RobotsRow) -> Robots:
        self._drop(row.origin)
        while self._known and self._is_full(len(row.body)):
            oldest = next(iter(self._known))
            self._drop(oldest)
        robots = robots_from_row(row)
        self._known[row.origin] = robots
        self._size += len(row.body)
        return robots

    def _is_full(self, added: int) -> bool:
        return len(self._known) >= self._limit or self._size + added > self._characters

    def _drop(self, origin: str) -> None:
        old = self._known.pop(origin, None)
        if old is not None:
            self._size -= len(old.row.body)
            self._probes.discard(origin)

    def schedule_probe(self, url: str) -> datetime | None:
        """When to try a forbidden URL again: one of each origin, once its rules have expired.

        Where everything is forbidden nothing else would make us read robots.txt again.
        """
        robots = self.get(url)
        if robots is None or robots.row.origin in self._probes:
            return None
        self._probes.add(robots.row.origin)
        return robots.row.expires

    def get(self, url: str) -> Robots | None:
        return self._known.get(origin_of(url))

    def get_fresh(self, url: str, now: datetime) -> Robots | None:
        """The rules, unless they are not known or too old: then robots.txt is fetched first."""
        robots = self.get(url)
        if robots is None or robots.row.expires <= now:
            return None
        return robots
