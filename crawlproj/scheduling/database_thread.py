"""The thread between scheduler and frontier: it flushes, renews, leases, refills, so that the event
loop never waits.

The event loop fills the tray and rings; the keeper takes the tray, talks to the frontier and
answers with News. Everything in memory belongs to the event loop; everything in the database
belongs to this thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from crawlproj.errors import ArchiveError, DatabaseError
from crawlproj.fetch.resolver import Resolver
from crawlproj.frontier.base import Committed, Frontier, Lease, RobotsRow, Ticket, Want
from crawlproj.politeness import robots
from crawlproj.scheduling.archiver import Vault
from crawlproj.scheduling.messages import News, Tray, moment
from crawlproj.scheduling.retrying import Patience
from crawlproj.scheduling.sharing import Crew, crew_of
from crawlproj.scheduling.worker import is_dead
from crawlproj.urls.canonical import origin

log = logging.getLogger(__name__)

MIN_GAP_S = 0.1
LEASE_GAP_S = 0.5
CREW_GAP_S = 2.0
DOUBT_GAP_S = 5.0
"""How often we look for names that should be looked up again."""
PUSH_GAP_S = 0.2
"""How often we listen for pushes while there is nothing else to do."""
PREPARED_AT_ONCE = 20_000
"""So many names may wait to be looked up. Those that are known without asking never wait behind
them.
"""
FIRST_WANT = 8
ORIGINS = 5_000


class Keeper(threading.Thread):
    """`tell` is called in this thread with News; `fail` once, with the error that ended it."""

    def __init__(
        self,
        frontier: Frontier,
        worker: str,
        resolver: Resolver,
        flush_s: float,
        pushes: Callable[[], Sequence[str]],
        tell: Callable[[News], None],
        fail: Callable[[BaseException], None],
        agent: str = "",
        patience_s: float = 60.0,
        heal: Callable[[], object] | None = None,
        rest_s: float = 60.0,
        vault: Vault | None = None,
    ) -> None:
        """`heal` is called while the database is away, and brings it back if it can. `rest_s`: so
        long the servers of a worker rest that is found dead. `vault`: what an end tells of is on
        disk there before the end is stored.
        """
        super().__init__(name="keeper", daemon=True)
        self.frontier = frontier
        self.worker = worker
        self.resolver = resolver
        self.flush_s = flush_s
        self._pushes = pushes
        self._tell = tell
        self._fail = fail
        self._agent = agent
        self._patience = Patience(patience_s, heal)
        self._rest = timedelta(seconds=rest_s)
        self._vault = vault
        self._attended_at = -CREW_GAP_S
        self._doubted_at = -DOUBT_GAP_S
        self._wanting = False
        self._turn_s = 0.0
        self._tray = Tray()
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._end = threading.Event()
        self._held: set[int] = set()
        self._found_some = self._pushed = False
        self._origins: set[str] = set()
        self._changed: set[str] = set()
        self._renewed_at = self._leased_at = time.monotonic()
        self._stored: list[int] = []
        self._committed: list[Committed] = []
        self._leases: list[Lease] = []
        self._renewed: dict[int, datetime] | None = None

    @property
    def away(self) -> bool:
        """The database or the archive can't store anything, or the archive does not keep up:
        nothing more is to be handed out.
        """
        return self._patience.away or (self._vault is not None and self._vault.full)

    def put(self, fill: Callable[[Tray], None], ring: bool = False) -> None:
        """Let the event loop put something into the tray; `ring` asks for a turn soon rather than
        at the next flush.
        """
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
                self._turn_s = time.monotonic() - started
                self._end.wait(max(0.0, MIN_GAP_S - self._turn_s))
            self._patiently(self._last)
        except BaseException as error:
            self._fail(error)

    def _wait(self) -> None:
        """Until the bell rings, a push comes, or it is time to flush: what ends now is to be stored
        within `flush_s`.
        """
        until = time.monotonic() + self.flush_s - min(self._turn_s, self.flush_s / 2)
        while (
            not self._pushed
            and (left := until - time.monotonic()) > 0
            and not self._bell.wait(min(left, PUSH_GAP_S))
        ):
            self._listen()
        self._bell.clear()

    def _listen(self) -> None:
        """A push that was heard is not forgotten before a turn has come to its end. One may be lost
        with the connection.
        """
        try:
            self._pushed = bool(self._pushes()) or self._pushed
        except DatabaseError:
            self._pushed = True

    def _patiently(self, work: Callable[[Tray], None]) -> None:
        """A database or a disk that is away for a while is waited for; whatever was not done with
        the tray stays in it.
        """
        since = time.monotonic()
        while True:
            with self._lock:
                tray = self._tray
                self._tray = Tray()
            try:
                work(tray)
                break
            except (ArchiveError, DatabaseError) as error:
                with self._lock:
                    self._tray.take_back(tray)
                self._pushed = True
                self._patience.failed(error, since)
        self._patience.succeeded()

    def _commit(self, tray: Tray) -> None:
        batch = tray.batch
        if not (
            batch.outcomes or batch.urls or batch.robots or batch.clocks or batch.server_clocks
        ):
            return
        if self._vault is not None:
            self._vault.settle()
        self._rejudge(batch.robots)
        self._committed.append(self.frontier.commit(batch, self.worker))
        self._stored += [outcome.id for outcome in batch.outcomes]
        if self._vault is not None:
            self._vault.stored(batch.outcomes)
        tray.clear_batch()

    def _rejudge(self, rows: Sequence[RobotsRow]) -> None:
        """Before changed rules are stored, so that it is done again if we die in between."""
        before = self.frontier.robots([row.origin for row in rows]) if rows else {}
        for row in {row.origin: row for row in rows}.values():
            rules = robots.read(row)
            if (
                row.origin in before
                and not robots.same_rules(row, before[row.origin])
                and not rules.unreachable
            ):
                revived = self.frontier.rejudge(
                    row.origin, partial(rules.allows, agent=self._agent)
                )
                self._committed.append(
                    Committed(revived=revived, hosts=frozenset({row.host} if revived else ()))
                )

    def turn(self, tray: Tray) -> None:
        """What is released is released after the ends and clocks that came before it are stored.
        What was leased or renewed is told, even if the database is lost before the turn is over.
        """
        self._commit(tray)
        self._listen()
        news = News(*moment(self.frontier), quiet=tray.quiet, pushed=self._pushed)
        self._release(tray)
        self._renew()
        contested = self.frontier.contested(sorted(self._renewed)) if self._renewed else set()
        news.crowded = bool(self._renewed) and tray.room <= 0 and self.frontier.crowded()
        news.crew = self._attend()
        self._lease(tray, news.pushed)
        self._borrow(tray)
        news.leases = self._leases
        news.renewed = self._renewed
        news.contested = contested
        news.asked = tray.wants + [
            Want(h.name, x.server, x.epoch, FIRST_WANT) for x in news.leases for h in x.hosts
        ]
        news.tickets = self.frontier.refill(news.asked, tray.held)
        news.robots = self._robots(news.tickets) | self.frontier.robots(
            [*tray.elsewhere, *self._take_changed()]
        )
        if tray.quiet is not None and not news.tickets:
            news.outlook = self.frontier.outlook(self.worker)
        self._leases = []
        self._renewed = None
        self._pushed = False
        self._report(news)

    def _report(self, news: News) -> None:
        news.stored = self._stored
        news.committed = self._committed
        self._stored = []
        self._committed = []
        self._tell(news)

    def _release(self, tray: Tray) -> None:
        self.frontier.release(self.worker, tray.release)
        self.frontier.release(self.worker, tray.yielded, yielding=True)
        self._held.difference_update(tray.release, tray.yielded)
        tray.release = []
        tray.yielded = []

    def _attend(self) -> Crew | None:
        """Who else is there? Those that died on this machine are buried, so that nobody waits for
        the end of their leases.
        """
        if time.monotonic() - self._attended_at < min(
            CREW_GAP_S, self.frontier.spec.lease.total_seconds() / 4
        ):
            return None
        peers = self.frontier.attend(self.worker, self._wanting)
        self._attended_at = time.monotonic()
        if dead := [peer.name for peer in peers if is_dead(peer.name)]:
            log.info(
                "Died on this machine, so what they held rests and is free then: %s",
                ", ".join(dead),
            )
            self.frontier.bury(dead, self._rest)
        return crew_of(peer for peer in peers if peer.name not in dead)

    def _lease(self, tray: Tray, pushed: bool) -> None:
        """Names to be resolved, hosts that came up on held servers and new leases: looked for when
        there is reason to, else twice a second.
        """
        now = time.monotonic()
        reason = pushed or tray.eager or self._found_some or any(c.hosts for c in self._committed)
        if not reason and now - self._leased_at < LEASE_GAP_S:
            return
        self._leased_at = now
        self._resolve()
        leases = self.frontier.arrivals(self.worker, sorted(self._held), tray.known)
        self._wanting = False
        if tray.room > 0:
            found = self.frontier.lease(
                self.worker, tray.room, tray.ranked, tray.unprepared, tray.unseen
            )
            leases += found
            self._wanting = not found
        self._leases += leases
        self._held.update(lease.server for lease in leases)
        self._found_some = bool(leases)
        if leases:
            self._bell.set()

    def _borrow(self, tray: Tray) -> None:
        if tray.errands:
            leases, homeless = self.frontier.borrow(self.worker, tray.errands, tray.unseen)
            self.resolver.submit(homeless)
            self._leases += leases
            self._held.update(lease.server for lease in leases)

    def forget(self, origins: Iterable[str]) -> None:
        """Another worker has stored other rules for these; from any thread."""
        with self._lock:
            self._changed |= self._origins & set(origins)

    def _take_changed(self) -> set[str]:
        with self._lock:
            changed = self._changed
            self._changed = set()
        return changed

    def _resolve(self) -> None:
        """Names that are stuck cost a thread each, never a turn."""
        if (free := PREPARED_AT_ONCE - self.resolver.pending) > 0:
            self.resolver.submit(self.frontier.unresolved(free))
            if time.monotonic() - self._doubted_at >= DOUBT_GAP_S:
                self._doubted_at = time.monotonic()
                self.resolver.submit(self.frontier.outdated(free))
        if found := self.resolver.finished():
            self.frontier.resolved(found)

    def _robots(self, tickets: Sequence[Ticket]) -> dict[str, RobotsRow]:
        """What is stored of origins that come up for the first time."""
        if len(self._origins) > ORIGINS:
            self._origins.clear()
        origins = {origin(ticket.url) for ticket in tickets} - self._origins
        found = self.frontier.robots(sorted(origins))
        self._origins |= origins
        return found

    def _renew(self) -> None:
        if (
            not self._held
            or time.monotonic() - self._renewed_at < self.frontier.spec.lease.total_seconds() / 4
        ):
            return
        self._renewed = self.frontier.renew(self.worker, sorted(self._held))
        self._held &= self._renewed.keys()
        self._renewed_at = time.monotonic()

    def _last(self, tray: Tray) -> None:
        self._commit(tray)
        self.frontier.release(self.worker, sorted(self._held))
        self.frontier.leave(self.worker)
        self._report(News(*moment(self.frontier)))
