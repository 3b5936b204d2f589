"""The thread between the event loop and the frontier: it stores, renews, leases and refills, so
that the event loop never waits.

The event loop fills a message (ToDatabase) and rings; this thread takes it, talks to the frontier,
and replies with another (FromDatabase). Everything in memory belongs to the event loop; everything
in the database belongs to this thread.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from crawlproj.errors import ArchiveError, DatabaseError
from crawlproj.fetch.resolver import Resolver
from crawlproj.frontier.base import Frontier, Lease, RobotsRow, Ticket, Want
from crawlproj.politeness.clocks import PolitenessRules
from crawlproj.scheduling.archiver import Archiver
from crawlproj.scheduling.batch_writer import BatchWriter
from crawlproj.scheduling.messages import FromDatabase, ToDatabase, frontier_time
from crawlproj.scheduling.retrying import OutageRetry
from crawlproj.scheduling.sharing import summarize_peers
from crawlproj.scheduling.worker import is_dead
from crawlproj.urls.canonical import origin_of

log = logging.getLogger(__name__)

MIN_GAP_S = 0.1
STORE_S = 1.0
"""About so long a turn stores before it goes on to renew and to lease."""
MAX_URLS = 100_000
"""So many new URLs may wait for the database before nothing more is handed out."""
LEASE_GAP_S = 0.5
HEARTBEAT_GAP_S = 2.0
RECHECK_GAP_S = 5.0
"""How often names are taken that should be looked up again."""
PUSH_GAP_S = 0.2
"""How often this thread listens for pushes while there is nothing else to do."""
PREPARED_AT_ONCE = 20_000
"""So many names may wait to be looked up. Those that are known without asking never wait behind
them.
"""
FIRST_WANT = 8
"""So many URLs of a host that has just been leased."""
ORIGINS = 5_000
"""So many origins are remembered whose stored robots.txt has been sent."""


class DatabaseThread(threading.Thread):
    """`on_message` is called in this thread with each reply; `on_failure` once, with the error that
    ended it.
    """

    def __init__(
        self,
        frontier: Frontier,
        worker: str,
        resolver: Resolver,
        flush_s: float,
        poll_pushes: Callable[[], Sequence[str]],
        on_message: Callable[[FromDatabase], None],
        on_failure: Callable[[BaseException], None],
        robot_name: str = "",
        patience_s: float = 60.0,
        heal: Callable[[], object] | None = None,
        rest_s: float = 60.0,
        archiver: Archiver | None = None,
        rules: PolitenessRules | None = None,
    ) -> None:
        """`heal` is called while the database is away, and brings it back if it can. `rest_s`: so
        long the servers of a worker rest that is found dead. `archiver`: the record of a visit is
        on disk there before its end is stored. `rules`: this worker's own, for the others.
        """
        super().__init__(name="database", daemon=True)
        self.frontier = frontier
        self.worker = worker
        self.resolver = resolver
        self.flush_s = flush_s
        self._poll_pushes = poll_pushes
        self._on_message = on_message
        self._on_failure = on_failure
        self._outage = OutageRetry(patience_s, heal)
        self._writer = BatchWriter(frontier, worker, self._outage, archiver, robot_name=robot_name)
        self._rules = rules or PolitenessRules()
        self._rest = timedelta(seconds=rest_s)
        self._archiver = archiver
        self._heartbeat_at = -HEARTBEAT_GAP_S
        self._rechecked_at = -RECHECK_GAP_S
        self._wanting = False
        self._turn_s = 0.0
        self._message = ToDatabase()
        self._taken = ToDatabase()
        """The message of this turn."""
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._end = threading.Event()
        self._held: set[int] = set()
        self._found_some = False
        self._pushed = False
        self._origins: set[str] = set()
        self._changed: set[str] = set()
        self._renewed_at = time.monotonic()
        self._leased_at = self._renewed_at
        self._leases: list[Lease] = []
        self._renewed: dict[int, datetime] | None = None

    @property
    def storage_blocked(self) -> bool:
        """Is nothing more to be handed out? The database or the archive can't store anything, or
        does not keep up.
        """
        if self._outage.away or len(self._message.urls) + len(self._taken.urls) > MAX_URLS:
            return True
        return self._archiver is not None and self._archiver.full

    def fill_message(self, fill: Callable[[ToDatabase], None], ring: bool = False) -> None:
        """Let the event loop put something into the message; `ring` asks for a turn soon rather
        than at the next flush.
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
            self._on_failure(error)

    def _wait(self) -> None:
        """Wait until the bell rings, a push comes, or it is time to flush: what ends now is to be
        stored within `flush_s`.
        """
        until = time.monotonic() + self.flush_s - min(self._turn_s, self.flush_s / 2)
        while not self._pushed:
            left_s = until - time.monotonic()
            if left_s <= 0 or self._bell.wait(min(left_s, PUSH_GAP_S)):
                break
            self._listen()
        self._bell.clear()

    def _listen(self) -> None:
        """Note a push; it is not forgotten before a turn has come to its end."""
        try:
            if self._poll_pushes():
                self._pushed = True
        except DatabaseError:
            # A push may be lost with the connection.
            self._pushed = True

    def _with_retries(self, work: Callable[[ToDatabase], None]) -> None:
        """Wait for a database or a disk that is away for a while; whatever was not done with the
        message stays in it.
        """
        since = time.monotonic()
        while True:
            with self._lock:
                message = self._message
                self._message = ToDatabase()
                self._taken = message
            try:
                work(message)
                break
            except (ArchiveError, DatabaseError) as error:
                with self._lock:
                    self._message.take_back(message)
                    self._taken = ToDatabase()
                self._pushed = True
                self._outage.wait_or_raise(error, since)
        self._outage.note_success()

    def run_once(self, message: ToDatabase) -> None:
        """Do one turn: store, release, renew, lease and refill, then reply.

        What is released is released after the ends and clocks that came before it are stored. What
        was leased or renewed is reported by a later turn if the database is lost before this one is
        over. What is too much for one turn is left for the next, which then comes at once.
        """
        self._writer.store_message(message, time.monotonic() + STORE_S)
        self._listen()
        reply = FromDatabase(
            *frontier_time(self.frontier), quiet=message.quiet, pushed=self._pushed
        )
        self._release(message)
        self._renew()
        if self._renewed:
            reply.contested = self.frontier.contested_servers(sorted(self._renewed))
            if message.servers_wanted <= 0:
                reply.others_wait = self.frontier.has_free_servers()
        self._heartbeat(reply)
        self._lease(message, reply.pushed)
        self._borrow(message)
        reply.leases = self._leases
        reply.renewed = self._renewed
        reply.wants = message.wants + _first_wants(reply.leases)
        reply.tickets = self.frontier.due_tickets(reply.wants, message.held)
        reply.robots = self._stored_robots(reply.tickets)
        origins = [*message.robots_origins, *self._take_changed()]
        reply.robots |= self.frontier.get_robots(origins)
        if message.quiet is not None and not reply.tickets and not message.unfinished:
            reply.outlook = self.frontier.outlook(self.worker)
        self._leases = []
        self._renewed = None
        self._pushed = False
        self._put_back_rest(message)
        self._report(reply)

    def _put_back_rest(self, message: ToDatabase) -> None:
        """Leave what was not done to the next turn."""
        if message.unfinished:
            with self._lock:
                self._message.take_back(message)
                self._taken = ToDatabase()
            self._bell.set()

    def _report(self, reply: FromDatabase) -> None:
        reply.stored = self._writer.stored
        reply.committed = self._writer.committed
        self._writer.stored = []
        self._writer.committed = []
        self._on_message(reply)

    def _release(self, message: ToDatabase) -> None:
        """Give servers back, but those that have ends or clocks here which are not stored yet."""
        release = [server for server in message.release if not message.has_work_of(server)]
        yielded = [server for server in message.yielded if not message.has_work_of(server)]
        self.frontier.release_servers(self.worker, release)
        self.frontier.release_servers(self.worker, yielded, yielding=True)
        self._held.difference_update(release, yielded)
        message.release = [server for server in message.release if server not in release]
        message.yielded = [server for server in message.yielded if server not in yielded]

    def _heartbeat(self, reply: FromDatabase) -> None:
        """Say that this worker lives, and hear of the others. The leases of those that died on this
        machine are ended, so that nobody waits for them.
        """
        gap_s = min(HEARTBEAT_GAP_S, self.frontier.spec.lease.total_seconds() / 4)
        if time.monotonic() - self._heartbeat_at < gap_s:
            return
        peers = self.frontier.heartbeat(self.worker, self._wanting, self._rules.as_settings())
        self._heartbeat_at = time.monotonic()
        dead = [peer.name for peer in peers if is_dead(peer.name)]
        if dead:
            log.info(
                "Died on this machine, so what they held rests and is free then: %s",
                ", ".join(dead),
            )
            self.frontier.end_dead_workers(dead, self._rest)
        living = [peer for peer in peers if peer.name not in dead]
        reply.peers = summarize_peers(living)
        reply.rules = self._rules.strictest(peer.rules for peer in living)

    def _lease(self, message: ToDatabase, pushed: bool) -> None:
        """Look for names to be resolved, hosts that came up on held servers, and servers to lease:
        at once when there is reason to, else twice a second.
        """
        now = time.monotonic()
        queued = any(committed.hosts for committed in self._writer.committed)
        has_reason = pushed or message.eager or self._found_some or queued
        if not has_reason and now - self._leased_at < LEASE_GAP_S:
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
        """Lease hosts that have no work for us, but the robots.txt of one that has."""
        if message.hosts_to_borrow:
            leases, unresolved = self.frontier.lease_for_hosts(
                self.worker, message.hosts_to_borrow, message.unseen
            )
            self.resolver.submit(unresolved)
            self._leases += leases
            self._held.update(lease.server for lease in leases)

    def mark_robots_changed(self, origins: Iterable[str]) -> None:
        """Note that another worker has stored other rules for these origins; from any thread."""
        with self._lock:
            self._changed |= self._origins & set(origins)

    def _take_changed(self) -> set[str]:
        with self._lock:
            changed = self._changed
            self._changed = set()
        return changed

    def _resolve(self) -> None:
        """Let names be looked up, and store what was found. One that is stuck costs a thread, never
        a turn.
        """
        free = PREPARED_AT_ONCE - self.resolver.pending
        if free > 0:
            self.resolver.submit(self.frontier.take_unresolved(free))
            if time.monotonic() - self._rechecked_at >= RECHECK_GAP_S:
                self._rechecked_at = time.monotonic()
                self.resolver.submit(self.frontier.take_outdated(free))
        found = self.resolver.take_finished()
        if found:
            self.frontier.put_addresses(found)

    def _stored_robots(self, tickets: Sequence[Ticket]) -> dict[str, RobotsRow]:
        """The stored robots.txt of origins that come up for the first time."""
        if len(self._origins) > ORIGINS:
            self._origins.clear()
        origins = {origin_of(ticket.url) for ticket in tickets} - self._origins
        found = self.frontier.get_robots(sorted(origins))
        self._origins |= origins
        return found

    def _renew(self) -> None:
        gap_s = self.frontier.spec.lease.total_seconds() / 4
        if not self._held or time.monotonic() - self._renewed_at < gap_s:
            return
        self._renewed = self.frontier.renew_leases(self.worker, sorted(self._held))
        self._held &= self._renewed.keys()
        self._renewed_at = time.monotonic()

    def _flush_and_release(self, message: ToDatabase) -> None:
        self._writer.store_message(message, math.inf)
        self.frontier.release_servers(self.worker, sorted(self._held))
        self.frontier.remove_worker(self.worker)
        self._report(FromDatabase(*frontier_time(self.frontier)))


def _first_wants(leases: Iterable[Lease]) -> list[Want]:
    return [
        Want(host.name, lease.server, lease.epoch, count=FIRST_WANT)
        for lease in leases
        for host in lease.hosts
    ]
