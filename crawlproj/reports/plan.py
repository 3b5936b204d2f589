"""What comes next: the frontier's queues played forward on the hosts' clocks. A forecast: answers
may change it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from crawlproj.config import Config
from crawlproj.database.arrays import array_literal
from crawlproj.database.queries import Queries
from crawlproj.frontier.base import Lane, RobotsRow
from crawlproj.politeness import robots
from crawlproj.revisit.shares import Shares
from crawlproj.scheduling.window import SHARE_CLASSES

MAX_PLANNED = 200


@dataclass(frozen=True, slots=True)
class PlannedUrl:
    """A URL and when it would be handed out. `due` is set for revisits and retries."""

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
        """Whose share pays for it; the same rule as `window.class_of`."""
        return SHARE_CLASSES.get(self.lane) or ("revisit" if self.read_before else "new")


@dataclass(slots=True)
class PlannedHost:
    """One host: when it may be asked, how long it rests between two requests, what it has."""

    name: str
    at: datetime
    delay_s: float
    shares: Shares
    later: deque[PlannedUrl] = field(default_factory=deque)
    lanes: dict[Lane, deque[PlannedUrl]] = field(default_factory=dict)

    def take_next(self) -> PlannedUrl | None:
        """The one that would be handed out at `at`; None: nothing then, and `at` moves on to when
        there is.
        """
        while self.later and self.later[0].due is not None and self.later[0].due <= self.at:
            planned = self.later.popleft()
            self.lanes.setdefault(planned.lane, deque()).append(planned)
        if urgent := self.lanes.get(Lane.URGENT):
            return urgent.popleft()
        by_share: dict[str, list[deque[PlannedUrl]]] = {}
        for lane in sorted(self.lanes):
            if queue := self.lanes[lane]:
                by_share.setdefault(queue[0].share, []).append(queue)
        chosen = self.shares.choose_class(list(by_share))
        if chosen is not None:
            return by_share[chosen][0].popleft()
        if self.later and self.later[0].due is not None:
            self.at = self.later[0].due
        return None

    @property
    def is_empty(self) -> bool:
        return not self.later and not any(self.lanes.values())


def plan_urls(
    db: Queries, crawl: int, config: Config, count: int, now: datetime
) -> list[PlannedUrl]:
    """The next `count` URLs of a crawl in the order in which one worker would hand them out."""
    queues = _queues(db, crawl, config, count=count, now=now)
    return [planned for planned, _ in zip(play_queues(queues), range(count), strict=False)]


def play_queues(queues: list[PlannedHost]) -> Iterator[PlannedUrl]:
    """Hand out, host by host, whoever may be asked first."""
    heap = [(queue.at, n, queue) for n, queue in enumerate(queues)]
    heapq.heapify(heap)
    while heap:
        at, n, queue = heapq.heappop(heap)
        planned = queue.take_next()
        if planned is not None:
            yield replace(planned, at=at)
            queue.at = at + timedelta(seconds=queue.delay_s)
        if not queue.is_empty:
            heapq.heappush(heap, (queue.at, n, queue))


def _queues(
    db: Queries, crawl: int, config: Config, count: int, now: datetime
) -> list[PlannedHost]:
    hosts = db.fetch_rows("plan_hosts", crawl=crawl, count=count, now=now)
    queues: dict[str, PlannedHost] = {}
    for _, name, allowed in hosts:
        queues[name] = PlannedHost(
            name, allowed or now, _delay_s(db, name, config), shares=Shares(config.spec.shares)
        )
    ids = array_literal(row[0] for row in hosts)
    names = array_literal(row[1] for row in hosts)
    for row in db.fetch_rows("plan_urls", crawl=crawl, host=ids, name=names, count=count):
        _, url, name, _, lane, state, depth, score, read_before, due = row
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
        queue = queues[name]
        (queue.lanes.setdefault(planned.lane, deque()) if due is None else queue.later).append(
            planned
        )
    for queue in queues.values():
        queue.later = deque(sorted(queue.later, key=lambda p: p.due or now))
    return list(queues.values())


def _delay_s(db: Queries, name: str, config: Config) -> float:
    origins = [row[0] for row in db.fetch_rows("explain_host_robots", host=name)]
    rows = (
        [RobotsRow(*row) for row in db.fetch_rows("get_robots", origins=origins)] if origins else []
    )
    asked = max(
        (robots.robots_from_row(row).crawl_delay_s(config.robot_name) or 0.0 for row in rows),
        default=0.0,
    )
    return max(config.host_rules.delay_s, min(asked, config.host_rules.max_crawl_delay_s))
