"""The thread between the event loop and the frontier: it flushes, renews, leases and refills, so
that the event loop never waits.

The event loop fills a message (ToDatabase) and rings; this thread takes it, talks to the frontier,
and replies with another (FromDatabase). Everything in memory belongs to the event loop; everything
in the database belongs to this thread.
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
from crawlproj.scheduling.archiver import Archiver
from crawlproj.scheduling.messages import FromDatabase, ToDatabase, frontier_time
from crawlproj.scheduling.retrying import OutageRetry
from crawlproj.scheduling.sharing import PeerSummary, summarize_peers
from crawlproj.scheduling.worker import is_dead
from crawlproj.urls.canonical import origin_of

log = logging.getLogger(__name__)

MIN_GAP_S = 0.1
LEASE_GAP_S = 0.5
HEARTBEAT_GAP_S = 2.0
RECHECK_GAP_S = 5.0
"""How often we look for names that should be looked up again."""
PUSH_GAP_S = 0.2
"""How often we listen for pushes while there is nothing else to do."""
PREPARED_AT_ONCE = 20_000
"""So many names may wait to be looked up. Those that are known without asking never wait behind
them.
"""
FIRST_WANT = 8
ORIGINS = 5_000


class DatabaseThread(threading.Thread):
    """`tell` is called in this thread with News; `fail` once, with the error that ended it."""

    def __init__(
        self,
        frontier: Frontier,
        worker: str,
        resolver: Resolver,
        flush_s: float,
        pushes: Callable[[], Sequence[str]],
        tell: Callable[[FromDatabase], None],
        fail: Callable[[BaseException], None],
        agent: str = "",
        patience_s: float = 60.0,
        heal: Callable[[], object] | None = None,
        rest_s: float = 60.0,
        archiver: Archiver | None = None,
    ) -> None:
        """`heal` is called while the database is away, and brings it back if it can. `rest_s`: so
        long the servers of a worker rest that is found dead. `archiver`: what an end tells of is on
        disk there before the end is stored.
        """
        super().__init__(name="database", daemon=True)
        self.frontier = frontier
        self.worker = worker
        self.resolver = resolver
        self.flush_s = flush_s
        self._pushes = pushes
        self._tell = tell
        self._fail = fail
        self._agent = agent
        self._outage = OutageRetry(patience_s, heal)
        self._rest = timedelta(seconds=rest_s)
        self._archiver = archiver
        self._heartbeat_at = -HEARTBEAT_GAP_S
        self._rechecked_at = -RECHECK_GAP_S
        self._wanting = False
        self._turn_s = 0.0
        self._message = ToDatabase()
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
    def storage_blocked(self) -> bool:
        """The database or the archive can't store anything, or the archive does not keep up:
        nothing more is to be handed out.
        """
        return self._outage.away or (self._archiver is not None and self._archiver.full)

    def fill_message(self, fill: Callable[[ToDatabase], None], ring: bool = False) -> None:
        """Let the event loop put something into the message; `ring` asks for a turn soon rather than
        at the next flush.
        """
        with self._lock:
            fill(self._message)
        if ring:
            self._bell.set()

    def ring(self) -> None:
        """Ask for a turn soon."""
        self._bell.set()

    def flush_and_stop(self) -> None:
        """Flush what is there, release all leases, end."""
        self._end.set()
        self._bell.set()
        self.join()

    def run(self) -> None:
        try:
            while not self._end.is_set():
                self._wait()
                started = time.monotonic()
                self._with_retries(self.run_once)
                self._turn_s = time.monotonic() - started
                self._end.wait(max(0.0, MIN_GAP_S - self._turn_s))
            self._with_retries(self._flush_and_release)
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

    def _with_retries(self, work: Callable[[ToDatabase], None]) -> None:
        """A database or a disk that is away for a while is waited for; whatever was not done with
        the message stays in it.
        """
        since = time.monotonic()
        while True:
            with self._lock:
                message = self._message
                self._message = ToDatabase()
            try:
                work(message)
                break
            except (ArchiveError, DatabaseError) as error:
                with self._lock:
                    self._message.take_back(message)
                self._pushed = True
                self._outage.wait_or_raise(error, since)
        self._outage.note_success()

    def _commit(self, message: ToDatabase) -> None:
        batch = message.batch
        if not (
            batch.outcomes or batch.urls or batch.robots or batch.clocks or batch.server_clocks
        ):
            return
        if self._archiver is not None:
            self._archiver.flush_to_disk()
        self._rejudge(batch.robots)
        self._committed.append(self.frontier.commit(batch, self.worker))
        self._stored += [outcome.id for outcome in batch.outcomes]
        if self._archiver is not None:
            self._archiver.mark_stored(batch.outcomes)
        message.clear_batch()

    def _rejudge(self, rows: Sequence[RobotsRow]) -> None:
        """Before changed rules are stored, so that it is done again if we die in between."""
        before = self.frontier.get_robots([row.origin for row in rows]) if rows else {}
        for row in {row.origin: row for row in rows}.values():
            rules = robots.robots_from_row(row)
            if (
                row.origin in before
                and not robots.same_rules(row, before[row.origin])
                and not rules.unreachable
            ):
                revived = self.frontier.rejudge_forbidden(
                    row.origin, partial(rules.allows, agent=self._agent)
                )
                self._committed.append(
                    Committed(revived=revived, hosts=frozenset({row.host} if revived else ()))
                )

    def run_once(self, message: ToDatabase) -> None:
        """What is released is released after the ends and clocks that came before it are stored.
        What was leased or renewed is told, even if the database is lost before the turn is over.
        """
        self._commit(message)
        self._listen()
        reply = FromDatabase(
            *frontier_time(self.frontier), quiet=message.quiet, pushed=self._pushed
        )
        self._release(message)
        self._renew()
        contested = (
            self.frontier.contested_servers(sorted(self._renewed)) if self._renewed else set()
        )
        reply.others_wait = (
            bool(self._renewed) and message.servers_wanted <= 0 and self.frontier.has_free_servers()
        )
        reply.peers = self._heartbeat()
        self._lease(message, reply.pushed)
        self._borrow(message)
        reply.leases = self._leases
        reply.renewed = self._renewed
        reply.contested = contested
        reply.wants = message.wants + [
            Want(h.name, x.server, x.epoch, count=FIRST_WANT) for x in reply.leases for h in x.hosts
        ]
        reply.tickets = self.frontier.due_tickets(reply.wants, message.held)
        reply.robots = self._stored_robots(reply.tickets) | self.frontier.get_robots(
            [*message.robots_origins, *self._take_changed()]
        )
        if message.quiet is not None and not reply.tickets:
            reply.outlook = self.frontier.outlook(self.worker)
        self._leases = []
        self._renewed = None
        self._pushed = False
        self._report(reply)

    def _report(self, reply: FromDatabase) -> None:
        reply.stored = self._stored
        reply.committed = self._committed
        self._stored = []
        self._committed = []
        self._tell(reply)

    def _release(self, message: ToDatabase) -> None:
        self.frontier.release_servers(self.worker, message.release)
        self.frontier.release_servers(self.worker, message.yielded, yielding=True)
        self._held.difference_update(message.release, message.yielded)
        message.release = []
        message.yielded = []

    def _heartbeat(self) -> PeerSummary | None:
        """Who else is there? Those that died on this machine are buried, so that nobody waits for
        the end of their leases.
        """
        if time.monotonic() - self._heartbeat_at < min(
            HEARTBEAT_GAP_S, self.frontier.spec.lease.total_seconds() / 4
        ):
            return None
        peers = self.frontier.heartbeat(self.worker, self._wanting)
        self._heartbeat_at = time.monotonic()
        if dead := [peer.name for peer in peers if is_dead(peer.name)]:
            log.info(
                "Died on this machine, so what they held rests and is free then: %s",
                ", ".join(dead),
            )
            self.frontier.end_dead_workers(dead, self._rest)
        return summarize_peers(peer for peer in peers if peer.name not in dead)

    def _lease(self, message: ToDatabase, pushed: bool) -> None:
        """Names to be resolved, hosts that came up on held servers and new leases: looked for when
        there is reason to, else twice a second.
        """
        now = time.monotonic()
        reason = (
            pushed or message.eager or self._found_some or any(c.hosts for c in self._committed)
        )
        if not reason and now - self._leased_at < LEASE_GAP_S:
            return
        self._leased_at = now
        self._resolve()
        leases = self.frontier.new_hosts_on_leases(
            self.worker, sorted(self._held), message.known_hosts
        )
        self._wanting = False
        if message.servers_wanted > 0:
            found = self.frontier.lease(
                self.worker,
                message.servers_wanted,
                message.ranked,
                unprepared=message.unprepared,
                unseen=message.unseen,
            )
            leases += found
            self._wanting = not found
        self._leases += leases
        self._held.update(lease.server for lease in leases)
        self._found_some = bool(leases)
        if leases:
            self._bell.set()

    def _borrow(self, message: ToDatabase) -> None:
        if message.hosts_to_borrow:
            leases, homeless = self.frontier.lease_for_hosts(
                self.worker, message.hosts_to_borrow, message.unseen
            )
            self.resolver.submit(homeless)
            self._leases += leases
            self._held.update(lease.server for lease in leases)

    def mark_robots_changed(self, origins: Iterable[str]) -> None:
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
            self.resolver.submit(self.frontier.take_unresolved(free))
            if time.monotonic() - self._rechecked_at >= RECHECK_GAP_S:
                self._rechecked_at = time.monotonic()
                self.resolver.submit(self.frontier.take_outdated(free))
        if found := self.resolver.take_finished():
            self.frontier.put_addresses(found)

    def _stored_robots(self, tickets: Sequence[Ticket]) -> dict[str, RobotsRow]:
        """What is stored of origins that come up for the first time."""
        if len(self._origins) > ORIGINS:
            self._origins.clear()
        origins = {origin_of(ticket.url) for ticket in tickets} - self._origins
        found = self.frontier.get_robots(sorted(origins))
        self._origins |= origins
        return found

    def _renew(self) -> None:
        if (
            not self._held
            or time.monotonic() - self._renewed_at < self.frontier.spec.lease.total_seconds() / 4
        ):
            return
        self._renewed = self.frontier.renew_leases(self.worker, sorted(self._held))
        self._held &= self._renewed.keys()
        self._renewed_at = time.monotonic()

    def _flush_and_release(self, message: ToDatabase) -> None:
        self._commit(message)
        self.frontier.release_servers(self.worker, sorted(self._held))
        self.frontier.remove_worker(self.worker)
        self._report(FromDatabase(*frontier_time(self.frontier)))
