"""The thread between scheduler and frontier: it flushes, renews, leases, refills, so that the event loop never waits.

The event loop fills the tray and rings; the keeper takes the tray, talks to the frontier and answers with News. Everything in
memory belongs to the event loop; everything in the database belongs to this thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from crawlproj import robots
from crawlproj.errors import DatabaseError
from crawlproj.frontier.base import Batch, Committed, Frontier, Lease, NewUrl, Outcome, Outlook, Pause, RobotsRow, Ticket, Want
from crawlproj.names import Resolver
from crawlproj.urls import origin

log = logging.getLogger(__name__)

MIN_GAP_S = 0.1
LEASE_GAP_S = 0.5
PUSH_GAP_S = 0.2
"""How often we listen for pushes while there is nothing else to do."""
PREPARED_AT_ONCE = 64
FIRST_WANT = 8
ORIGINS = 5_000
GRACE_S = 30.0
"""How long a database may be away before the crawl gives up."""


@dataclass(slots=True)
class Tray:
    """What the event loop has for the frontier since the last turn."""

    outcomes: list[Outcome] = field(default_factory=list)
    urls: list[NewUrl] = field(default_factory=list)
    robots: list[RobotsRow] = field(default_factory=list)
    clocks: dict[str, Pause] = field(default_factory=dict)
    server_clocks: dict[int, Pause] = field(default_factory=dict)
    wants: list[Want] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    yielded: list[int] = field(default_factory=list)
    room: int = 0
    ranked: int = 0
    unprepared: int = 0
    eager: bool = False
    """There is room that was not there before: look for leases at once."""
    unseen: int = 0
    held: int = 0
    known: list[str] = field(default_factory=list)
    quiet: int | None = None
    """Number of the moment at which nothing at all was held here; asks for the outlook."""

    def take_batch(self) -> Batch:
        batch = Batch(self.outcomes, self.urls, self.robots, self.clocks, self.server_clocks)
        self.outcomes, self.urls, self.robots, self.clocks, self.server_clocks = [], [], [], {}, {}
        return batch

    def put_back(self, batch: Batch) -> None:
        self.outcomes = [*batch.outcomes, *self.outcomes]
        self.urls = [*batch.urls, *self.urls]
        self.robots = [*batch.robots, *self.robots]
        self.clocks = {**batch.clocks, **self.clocks}
        self.server_clocks = {**batch.server_clocks, **self.server_clocks}


@dataclass(slots=True)
class News:
    """What a turn brought. `stored`: ends that are safe now; `asked`: whose wants were answered by `tickets`."""

    now: datetime
    monotonic: float
    stored: list[int] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    renewed: dict[int, datetime] | None = None
    contested: set[int] = field(default_factory=set)
    tickets: list[Ticket] = field(default_factory=list)
    asked: list[Want] = field(default_factory=list)
    robots: dict[str, RobotsRow] = field(default_factory=dict)
    pushed: bool = False
    outlook: Outlook | None = None
    quiet: int | None = None


class Keeper(threading.Thread):
    """`tell` is called in this thread with News; `fail` once, with the error that ended it."""

    def __init__(
        self, frontier: Frontier, worker: str, resolver: Resolver, flush_s: float, pushes: Callable[[], Sequence[str]],
        tell: Callable[[News], None], fail: Callable[[BaseException], None], agent: str = "",
    ) -> None:  # fmt: skip
        super().__init__(name="keeper", daemon=True)
        self.frontier, self.worker, self.resolver, self.flush_s = frontier, worker, resolver, flush_s
        self._pushes, self._tell, self._fail, self._agent = pushes, tell, fail, agent
        self._tray = Tray()
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._end = threading.Event()
        self._held: set[int] = set()
        self._found_some = self._pushed = False
        self._origins: set[str] = set()
        self._renewed_at = self._leased_at = time.monotonic()
        self._stored: list[int] = []
        self._committed: list[Committed] = []

    def put(self, fill: Callable[[Tray], None], ring: bool = False) -> None:
        """Let the event loop put something into the tray; `ring` asks for a turn soon rather than at the next flush."""
        with self._lock:
            fill(self._tray)
        if ring:
            self._bell.set()

    def finish(self) -> None:
        """Flush what is there, release all leases, end."""
        self._end.set()
        self._bell.set()
        self.join()

    def run(self) -> None:
        try:
            while not self._end.is_set():
                self._wait()
                started = time.monotonic()
                self._patiently(self.turn)
                self._end.wait(max(0.0, MIN_GAP_S - (time.monotonic() - started)))
            self._patiently(self._last)
        except BaseException as error:
            self._fail(error)

    def _wait(self) -> None:
        """Until the bell rings, a push comes, or it is time to flush."""
        until = time.monotonic() + self.flush_s
        while not self._pushed and (left := until - time.monotonic()) > 0 and not self._bell.wait(min(left, PUSH_GAP_S)):
            self._listen()
        self._bell.clear()

    def _listen(self) -> None:
        """A push that was heard is not forgotten before a turn has come to its end. One may be lost with the connection."""
        try:
            self._pushed = bool(self._pushes()) or self._pushed
        except DatabaseError:
            self._pushed = True

    def _patiently(self, work: Callable[[], None]) -> None:
        """A database that is away for a moment is waited for; what was to be written stays in the tray."""
        since = time.monotonic()
        while True:
            try:
                return work()
            except DatabaseError as error:
                if time.monotonic() - since > GRACE_S:
                    raise
                log.warning("The database does not answer, trying again: %s", error)
                time.sleep(1.0)

    def _commit(self) -> None:
        with self._lock:
            batch = self._tray.take_batch()
        if not (batch.outcomes or batch.urls or batch.robots or batch.clocks or batch.server_clocks):
            return
        try:
            self._rejudge(batch.robots)
            self._committed.append(self.frontier.commit(batch, self.worker))
        except BaseException:
            with self._lock:
                self._tray.put_back(batch)
            raise
        self._stored += [outcome.id for outcome in batch.outcomes]

    def _rejudge(self, rows: Sequence[RobotsRow]) -> None:
        """Before changed rules are stored, so that it is done again if we die in between."""
        before = self.frontier.robots([row.origin for row in rows]) if rows else {}
        for row in {row.origin: row for row in rows}.values():
            rules = robots.read(row)
            if row.origin in before and not robots.same_rules(row, before[row.origin]) and not rules.unreachable:
                revived = self.frontier.rejudge(row.origin, partial(rules.allows, agent=self._agent))
                self._committed.append(Committed(revived=revived, hosts=frozenset({row.host} if revived else ())))

    def turn(self) -> None:
        self._commit()
        with self._lock:
            tray, self._tray = self._tray, Tray()
            self._tray.put_back(tray.take_batch())
        self._listen()
        news = News(self.frontier.now(), time.monotonic(), quiet=tray.quiet, pushed=self._pushed)
        self._release(tray.release)
        self._release(tray.yielded, yielding=True)
        news.renewed = self._renew()
        if news.renewed:
            news.contested = self.frontier.contested(sorted(news.renewed))
        news.leases = self._lease(tray, news.pushed)
        news.asked = tray.wants + [Want(h.name, x.server, x.epoch, FIRST_WANT) for x in news.leases for h in x.hosts]
        news.tickets = self.frontier.refill(news.asked, tray.held)
        news.robots = self._robots(news.tickets)
        if tray.quiet is not None and not news.tickets:
            news.outlook = self.frontier.outlook(self.worker)
        self._pushed = False
        self._report(news)

    def _report(self, news: News) -> None:
        news.stored, news.committed, self._stored, self._committed = self._stored, self._committed, [], []
        self._tell(news)

    def _release(self, servers: Sequence[int], yielding: bool = False) -> None:
        self.frontier.release(self.worker, servers, yielding)
        self._held.difference_update(servers)

    def _lease(self, tray: Tray, pushed: bool) -> list[Lease]:
        """Names to be resolved, hosts that came up on held servers and new leases: looked for when there is reason to, else twice a
        second."""
        now = time.monotonic()
        reason = pushed or tray.eager or self._found_some or any(c.hosts for c in self._committed)
        if not reason and now - self._leased_at < LEASE_GAP_S:
            return []
        self._leased_at = now
        self._resolve()
        leases = self.frontier.arrivals(self.worker, sorted(self._held), tray.known)
        if tray.room > 0:
            leases += self.frontier.lease(self.worker, tray.room, tray.ranked, tray.unprepared, tray.unseen)
        self._held.update(lease.server for lease in leases)
        self._found_some = bool(leases)
        if leases:
            self._bell.set()
        return leases

    def _resolve(self) -> None:
        """Names that are stuck cost a thread each, never a turn."""
        if (free := PREPARED_AT_ONCE - self.resolver.pending) > 0:
            self.resolver.submit(self.frontier.unresolved(free))
        if found := self.resolver.finished():
            self.frontier.resolved(found)

    def _robots(self, tickets: Sequence[Ticket]) -> dict[str, RobotsRow]:
        """What is stored of origins that come up for the first time."""
        if len(self._origins) > ORIGINS:
            self._origins.clear()
        origins = {origin(ticket.url) for ticket in tickets} - self._origins
        self._origins |= origins
        return self.frontier.robots(sorted(origins))

    def _renew(self) -> dict[int, datetime] | None:
        if not self._held or time.monotonic() - self._renewed_at < self.frontier.spec.lease.total_seconds() / 4:
            return None
        renewed = self.frontier.renew(self.worker, sorted(self._held))
        self._held &= renewed.keys()
        self._renewed_at = time.monotonic()
        return renewed

    def _last(self) -> None:
        self._commit()
        self.frontier.release(self.worker, sorted(self._held))
        self._report(News(self.frontier.now(), time.monotonic()))
