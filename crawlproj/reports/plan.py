"""A forecast of what is fetched next: the frontier's queues, played forward on the hosts' clocks.

What the servers respond may change it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

from crawlproj.config import Config
from crawlproj.database.arrays import array_literal
from crawlproj.database.queries import Queries
from crawlproj.frontier.base import Lane, RobotsRow
from crawlproj.reports.facts import capped_crawl_delay_s, kept_delay_s
from crawlproj.revisit.shares import Shares
from crawlproj.scheduling.window import SHARE_CLASSES

MAX_PLANNED = 200


@dataclass(frozen=True, slots=True)
class PlannedUrl:
    """A URL, and when it would be handed out (`at`).

    `due` is set for revisits and retries; `read_before` says that there is a text of it.
    """

    url: str
    host: str
    lane: Lane
    state: str
    depth: int
    score: float
    read_before: bool
    due: datetime | None
    at: datetime | None = None

    @property
    def share(self) -> str:
        """Whose share pays for it; the same rule as `scheduling.window.share_class`."""
        if self.lane in SHARE_CLASSES:
            return SHARE_CLASSES[self.lane]
        return "revisit" if self.read_before else "new"


@dataclass(slots=True)
class PlannedHost:
    """One host: when it may be asked, how long it rests between two requests, what is queued.

    `later` holds revisits and retries by their due time; `lanes` what may be handed out at once.
    """

    name: str
    at: datetime
    delay_s: float
    shares: Shares
    later: deque[PlannedUrl] = field(default_factory=deque)
    lanes: dict[Lane, deque[PlannedUrl]] = field(default_factory=dict)

    def take_next(self) -> PlannedUrl | None:
        """Remove and return the URL that would be handed out at `at`.

        None if there is none then; `at` moves on to when there is.
        """
        self._move_due_urls()
        urgent = self.lanes.get(Lane.URGENT)
        if urgent:
            return urgent.popleft()
        by_share: dict[str, deque[PlannedUrl]] = {}
        for lane in sorted(self.lanes):
            queue = self.lanes[lane]
            if queue:
                by_share.setdefault(queue[0].share, queue)
        chosen = self.shares.choose_class(list(by_share))
        if chosen is not None:
            return by_share[chosen].popleft()
        if self.later and self.later[0].due is not None:
            self.at = self.later[0].due
        return None

    def _move_due_urls(self) -> None:
        while self.later and self.later[0].due is not None and self.later[0].due <= self.at:
            planned = self.later.popleft()
            self.lanes.setdefault(planned.lane, deque()).append(planned)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to hand out."""
        return not self.later and not any(self.lanes.values())


def plan_urls(
    db: Queries, crawl: str, config: Config, count: int, now: datetime
) -> list[PlannedUrl]:
    """The next `count` URLs of a crawl in the order in which one worker would hand them out."""
    hosts = _planned_hosts(db, crawl, config, count=count, now=now)
    return list(islice(play_queues(hosts), count))


def play_queues(hosts: list[PlannedHost]) -> Iterator[PlannedUrl]:
    """Hand out the hosts' URLs; the host that may be asked first goes first."""
    heap = [(host.at, number, host) for number, host in enumerate(hosts)]
    heapq.heapify(heap)
    while heap:
        at, number, host = heapq.heappop(heap)
        planned = host.take_next()
        if planned is not None:
            yield replace(planned, at=at)
            host.at = at + timedelta(seconds=host.delay_s)
        if not host.is_empty:
            heapq.heappush(heap, (host.at, number, host))


def _planned_hosts(
    db: Queries, crawl_name: str, config: Config, count: int, now: datetime
) -> list[PlannedHost]:
    crawl = db.fetch_value("crawl_named", name=crawl_name)
    kept_s = kept_delay_s(db, crawl_name, config)
    hosts: dict[str, PlannedHost] = {}
    ids = []
    for id_, name, allowed in db.fetch_rows("plan_hosts", crawl=crawl, count=count, now=now):
        ids.append(id_)
        delay_s = max(kept_s, _crawl_delay_s(db, name, config))
        hosts[name] = PlannedHost(name, allowed or now, delay_s, shares=Shares(config.spec.shares))
    rows = db.fetch_rows(
        "plan_urls", crawl=crawl, host=array_literal(ids), name=array_literal(hosts), count=count
    )
    for _id, url, name, _visit, lane, state, depth, score, read_before, due in rows:
        planned = PlannedUrl(
            url,
            name,
            Lane(lane),
            state=state,
            depth=depth,
            score=score,
            read_before=read_before,
            due=due,
        )
        if due is None:
            hosts[name].lanes.setdefault(planned.lane, deque()).append(planned)
        else:
            hosts[name].later.append(planned)
    for host in hosts.values():
        host.later = deque(sorted(host.later, key=lambda planned: planned.due or now))
    return list(hosts.values())


def _crawl_delay_s(db: Queries, name: str, config: Config) -> float:
    origins = [origin for (origin,) in db.fetch_rows("explain_host_robots", host=name)]
    robots_rows = []
    if origins:
        robots_rows = [RobotsRow(*row) for row in db.fetch_rows("get_robots", origins=origins)]
    return capped_crawl_delay_s(robots_rows, config)
