"""The thread between the event loop and the frontier: it stores, renews, leases and refills, so
that the event loop never waits.

The event loop fills a message (ToDatabase) and rings; this thread takes it, talks to the frontier,
and replies with another (FromDatabase). What a quick host needs before the next turn comes between
(Refill), also while much is stored: it would run dry meanwhile. Everything in memory belongs to the
event loop; everything in the database belongs to this thread.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from crawlproj.errors import ArchiveError, DatabaseError
from crawlproj.fetch.resolver import NO_SUCH_NAME, Resolver
from crawlproj.frontier.base import (
    Frontier,
    HostText,
    Lease,
    Outlook,
    RobotsRow,
    Ticket,
    Verdict,
    Want,
)
from crawlproj.politeness.clocks import PolitenessRules
from crawlproj.scheduling.archiver import Archiver
from crawlproj.scheduling.batch_writer import BatchWriter
from crawlproj.scheduling.crawl_stats import CrawlStats
from crawlproj.scheduling.duplicate_notes import DuplicateNotes
from crawlproj.scheduling.messages import FromDatabase, Refill, ToDatabase, frontier_time
from crawlproj.scheduling.request_log import RequestLog
from crawlproj.scheduling.retrying import OutageRetry
from crawlproj.scheduling.revisit_budget import NO_MOVES, RevisitBudget
from crawlproj.scheduling.sharing import summarize_peers
from crawlproj.scheduling.source_watch import SourceWatch
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
UNRESOLVED_GAP_S = 1.0
"""How often it is asked whether all that is left are names that do not resolve."""
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
        on_message: Callable[[FromDatabase | Refill], None],
        on_failure: Callable[[BaseException], None],
        robot_name: str = "",
        patience_s: float = 60.0,
        heal: Callable[[], object] | None = None,
        rest_s: float = 60.0,
        archiver: Archiver | None = None,
        request_log: RequestLog | None = None,
        wait_for_hosts_s: float = 0.0,
        rules: PolitenessRules | None = None,
        notes: DuplicateNotes | None = None,
        stats: CrawlStats | None = None,
        budget: RevisitBudget | None = None,
        source_watch: SourceWatch | None = None,
    ) -> None:
        """`heal` is called while the database is away, and brings it back if it can. `rest_s`: so
        long the servers of a worker rest that is found dead. `archiver` and `request_log`: the
        record and the line of a visit are on disk there before its end is stored.
        `wait_for_hosts_s`: so long a crawl waits for hosts that rest. `rules`: this worker's own,
        for the others. `notes`: tells the archive of copies. `stats`: writes the crawl's history.
        `budget`: shares what revisits may cost. `source_watch`: says which sources are silent.
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
        self._writer = BatchWriter(
            frontier,
            worker,
            self._outage,
            archiver=archiver,
            robot_name=robot_name,
            request_log=request_log,
        )
        self._rules = rules or PolitenessRules()
        self._notes = notes
        self._stats = stats
        self._budget = budget
        self._source_watch = source_watch
        self._rest = timedelta(seconds=rest_s)
        self._archiver = archiver
        self._heartbeat_at = -HEARTBEAT_GAP_S
        self._rechecked_at = -RECHECK_GAP_S
        self._patience = timedelta(seconds=wait_for_hosts_s)
        self._began = datetime.max.replace(tzinfo=UTC)
        """The frontier's time when this thread began."""
        self._unresolved_at = -UNRESOLVED_GAP_S
        self._wanting = False
        self._turn_s = 0.0
        self._message = ToDatabase()
        self._taken = ToDatabase()
        """The message of this turn."""
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._turn_wanted = False
        self._not_before = 0.0
        self._refills: dict[str, Want] = {}
        self._refill_held = 0
        self._refill_seen = 0
        self._tickets_sent = 0
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
            self.ring()

    def ring(self) -> None:
        """Ask for a turn soon."""
        self._turn_wanted = True
        self._bell.set()

    def ask_refill(self, want: Want, held: int, tickets_seen: int) -> None:
        """Ask for tickets of a host that come at once, not with the next turn. `held` and
        `tickets_seen` are those of a message.
        """
        with self._lock:
            self._message.remove_want(want.host)
            self._refills[want.host] = want
            self._refill_held = held
            self._refill_seen = tickets_seen
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
                self._not_before = started + MIN_GAP_S
            self._with_retries(self._flush_and_release)
        except BaseException as error:
            self._on_failure(error)

    def _wait(self) -> None:
        """Wait until a turn is asked for, a push comes, or it is time to flush: what ends now is to
        be stored within `flush_s`. Refills are served meanwhile.
        """
        earliest = max(self._not_before, time.monotonic())
        flush_at = earliest + self.flush_s - min(self._turn_s, self.flush_s / 2)
        while not self._end.is_set():
            until = flush_at
            if self._pushed or self._turn_wanted:
                until = earliest
            left_s = until - time.monotonic()
            if left_s <= 0:
                break
            if not self._bell.wait(min(left_s, PUSH_GAP_S)):
                self._listen()
                continue
            self._bell.clear()
            try:
                self._serve_refills()
            except DatabaseError:  # the turn finds it away as well, and waits for it
                break
        self._turn_wanted = False

    def _serve_refills(self) -> None:
        """Bring the tickets that were asked for with `ask_refill`."""
        with self._lock:
            wants = list(self._refills.values())
            held = self._refill_held
            seen = self._refill_seen
            self._refills = {}
        if not wants:
            return
        try:
            tickets = self._due_tickets(wants, held, seen)
            robots = self._stored_robots(tickets)
        except DatabaseError:
            with self._lock:
                self._refills = {want.host: want for want in wants} | self._refills
            raise
        self._on_message(Refill(wants, tickets, robots))

    def _due_tickets(self, wants: Sequence[Want], held: int, seen: int) -> list[Ticket]:
        """`held` and `seen` are those of the event loop when it asked; what it had not seen yet
        counts as held.
        """
        tickets = self.frontier.due_tickets(wants, held + self._tickets_sent - seen)
        self._tickets_sent += len(tickets)
        return tickets

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
        self._writer.store_message(message, time.monotonic() + STORE_S, self._serve_refills)
        # After it, so that pages which have just been stored are seen.
        previews = self._preview_verdicts(message)
        if self._notes is not None:
            self._notes.write_if_due()
        if self._stats is not None:
            self._stats.add(message.figures)
            message.figures = Counter()
            self._stats.write_if_due()
        self._listen()
        reply = FromDatabase(
            *frontier_time(self.frontier), quiet=message.quiet, pushed=self._pushed
        )
        reply.previews = previews
        if self._budget is not None:
            reply.budget = self._budget.take_turn(message.price_moves)
            message.price_moves = NO_MOVES
        if self._source_watch is not None:
            reply.fallen_silent = self._source_watch.take_turn()
        self._began = min(self._began, reply.now)
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
        reply.texts = self._texts_of(reply.leases)
        reply.renewed = self._renewed
        reply.wants = message.wants + _first_wants(reply.leases)
        reply.tickets = self._due_tickets(reply.wants, message.held, message.tickets_seen)
        reply.robots = self._stored_robots(reply.tickets)
        origins = [*message.robots_origins, *self._take_changed()]
        reply.robots |= self.frontier.get_robots(origins)
        if message.quiet is not None and not reply.tickets and not message.unfinished:
            reply.outlook = self.frontier.outlook(self.worker)
            if message.nothing_fetched:
                reply.unresolved = self._unresolved_names(reply.outlook, reply.now)
        self._leases = []
        self._renewed = None
        self._pushed = False
        self._put_back_rest(message)
        self._report(reply)

    def _texts_of(self, leases: Sequence[Lease]) -> dict[str, HostText]:
        """What is known of the texts of hosts that were just leased."""
        names = sorted({host.name for lease in leases for host in lease.hosts})
        if not names:
            return {}
        return self.frontier.get_host_texts(names)

    def _preview_verdicts(self, message: ToDatabase) -> dict[int, tuple[str, Verdict] | None]:
        """Say of pages whose items wait whether they are copies. It is asked again if what follows
        in this turn fails. If one of them cannot be judged, all pass as no copies.
        """
        if not message.previews:
            return {}
        try:
            verdicts = self.frontier.preview_verdicts(message.previews)
        except (ArchiveError, DatabaseError):
            raise
        except Exception:
            log.exception("Pages whose items wait cannot be judged, they pass as no copies")
            verdicts = {}
        return {page.id: verdicts.get(page.id) for page in message.previews}

    def _unresolved_names(self, outlook: Outlook, now: datetime) -> dict[str, str]:
        """Names that do not resolve, and why, if all that is due soon is on such hosts. Each was
        looked up since this worker began.
        """
        until = now + self._patience
        if outlook.leased_elsewhere or outlook.soonest is None or not now < outlook.soonest < until:
            return {}
        if time.monotonic() - self._unresolved_at < UNRESOLVED_GAP_S:
            return {}
        self._unresolved_at = time.monotonic()
        hosts = self.frontier.unresolved_hosts(until)
        stale = [name for name, looked_up in hosts.items() if looked_up < self._began]
        if stale:
            self.resolver.submit(stale)
            return {}
        return {name: self.resolver.failures.get(name, NO_SUCH_NAME) for name in hosts}

    def _put_back_rest(self, message: ToDatabase) -> None:
        """Leave what was not done to the next turn."""
        if message.unfinished:
            with self._lock:
                self._message.take_back(message)
                self._taken = ToDatabase()
            self.ring()

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
        reply.peers = summarize_peers(living, len(dead))
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
            self.ring()

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
        if self._notes is not None:
            while self._notes.write_some():
                pass
        if self._stats is not None:
            self._stats.add(message.figures)
            message.figures = Counter()
            self._stats.write()
        self.frontier.release_servers(self.worker, sorted(self._held))
        self.frontier.remove_worker(self.worker)
        self._report(FromDatabase(*frontier_time(self.frontier)))


def _first_wants(leases: Iterable[Lease]) -> list[Want]:
    return [
        Want(host.name, lease.server, lease.epoch, count=FIRST_WANT)
        for lease in leases
        for host in lease.hosts
    ]
