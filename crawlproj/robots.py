"""robots.txt of an origin: what was stored, what it means, and whether a URL may be fetched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from protego import Protego

from crawlproj.frontier.base import RobotsRow
from crawlproj.urls import origin

MAX_BYTES = 500 * 1024
"""RFC 9309 lets a robot stop reading here."""
FIRST_RETRY = timedelta(minutes=1)
LAST_RETRY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one origin. Without `rules` everything is allowed, or nothing while it is `unreachable`."""

    row: RobotsRow
    rules: Protego | None
    unreachable: bool

    def allows(self, url: str, agent: str) -> bool:
        if self.rules is None:
            return not self.unreachable
        return bool(self.rules.can_fetch(url, agent))

    def crawl_delay_s(self, agent: str) -> float | None:
        """Crawl-delay, or the pause that Request-rate asks for, whichever is longer."""
        if self.rules is None:
            return None
        rate = self.rules.request_rate(agent)
        pauses = [self.rules.crawl_delay(agent), rate.seconds / rate.requests if rate and rate.requests else None]
        return max((pause for pause in pauses if pause is not None and pause == pause), default=None)

    def sitemaps(self) -> list[str]:
        return list(self.rules.sitemaps) if self.rules is not None else []


def is_unreachable(status: int) -> bool:
    """Server errors, "too many requests" and no answer at all mean: keep away and ask again later."""
    return status == 0 or status == 429 or status >= 500


def read(row: RobotsRow) -> Robots:
    if is_unreachable(row.status) and not row.body:
        return Robots(row, None, unreachable=True)
    return Robots(row, Protego.parse(row.body) if row.body else None, unreachable=False)


def answered(
    url: str, host: str, status: int, body: bytes, now: datetime, ttl: timedelta, earlier: RobotsRow | None = None
) -> RobotsRow:
    """What to store of an answer. While the file can't be reached, rules that were read before stay in force."""
    if is_unreachable(status):
        failures = earlier.failures + 1 if earlier else 1
        pause = min(FIRST_RETRY * 2 ** min(failures - 1, 20), LAST_RETRY)
        known = earlier.body if earlier else ""
        return RobotsRow(origin(url), host, status, known, now, now + pause, failures)
    text = body[:MAX_BYTES].decode("utf-8-sig", "replace").replace("\0", "") if 200 <= status < 300 else ""
    return RobotsRow(origin(url), host, status, text, now, now + ttl)


class RobotsCache:
    """Rules of the origins that are being crawled, bounded; the store behind it is the frontier's."""

    def __init__(self, agent: str, limit: int = 10_000) -> None:
        self.agent = agent
        self._limit = limit
        self._known: dict[str, Robots] = {}

    def put(self, row: RobotsRow) -> Robots:
        if len(self._known) >= self._limit:
            del self._known[next(iter(self._known))]
        robots = self._known[row.origin] = read(row)
        return robots

    def get(self, url: str) -> Robots | None:
        return self._known.get(origin(url))

    def current(self, url: str, now: datetime) -> Robots | None:
        """None: not known or too old, fetch it first."""
        robots = self.get(url)
        return robots if robots is not None and robots.row.expires > now else None
