"""What a worker holds, and what it asks the database thread for: leases, hosts, tickets, clocks.

Lives on the event loop, never waits.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil

from crawlproj.config import Config
from crawlproj.fetch.resolver import describe_failures
from crawlproj.frontier.base import Host, Lane, Lease, Outlook, Pause, Want
from crawlproj.frontier.clock import FrontierClock
from crawlproj.politeness.clocks import HostClock, PolitenessRules, ServerClock
from crawlproj.revisit.shares import lease_limits
from crawlproj.scheduling.database_thread import DatabaseThread
from crawlproj.scheduling.messages import FromDatabase, Refill, ToDatabase
from crawlproj.scheduling.moved_robots import MovedRobots
from crawlproj.scheduling.sharing import PeerSummary
from crawlproj.scheduling.window import SHARE_CLASSES, URGENT, HostWindow, ServerWindow, Window

log = logging.getLogger(__name__)

GIVE_GAP_S = 5.0
"""Between two times of giving servers to other workers: it takes them so long to be seen with
them.
"""
REST_S = 10.0
"""A host that rests longer than this is given back meanwhile."""
REMEMBERED = 1_000
"""So many clocks of hosts that were let go are kept."""
SAME_S = 0.01
"""Clocks that are stored and read again differ by less."""


class WorkerLeases:
    """The leases of this worker, in `window`, and what came of them.

    `exhausted` turns True when nothing is left to do or to wait for. `unstored`: ids whose end is
    not stored yet, and their hosts.
    """

    def __init__(
        self,
        config: Config,
        timeout_s: float,
        now: tuple[datetime, float, float],
        count: Callable[[str, int], None],
        on_rules_changed: Callable[[PolitenessRules], None],
    ) -> None:
        """`on_rules_changed` is called when other rules of politeness come into force."""
        self.config = config
        self._on_rules_changed = on_rules_changed
        self._timeout_s = timeout_s
        self._count = count
        self.clock = FrontierClock(*now)
        self.window = Window(
            config.spec.shares,
            config.window,
            config.rules,
            freshness_target=config.revisit.freshness_target,
        )
        self.moved_robots = MovedRobots(self.window)
        self.unstored: dict[int, HostWindow | None] = {}
        self.outlook = Outlook()
        self.exhausted = False
        self.nothing_fetched = True
        """No response has come yet."""
        self.unresolved: dict[str, str] = {}
        """Names that do not resolve, and why, if that is all that is left."""
        self.database_thread: DatabaseThread
        self._tickets_seen = 0
        self._kinds: dict[int, str] = {}
        """The kind of each server that is held: leased by rank, or by time."""
        self._given_back: dict[int, int] = {}
        """The epoch in which a server was given back last."""
        self._released_clocks: dict[str, HostClock] = {}
        self._unprepared = 0
        self._unseen = ceil(
            (config.spec.lease.total_seconds() - timeout_s) / max(config.rules.host.delay_s, 0.1)
        )
        """How often a worker may have asked a host after it last stored a clock."""
        self._change_count = 0
        self._peers = PeerSummary()
        self.orphans_until: datetime | None = None
        """Until when servers rest that dead workers held, if there were such workers."""
        self._gave_at = 0.0
        self._shared = set[int]()
        """Servers that are given back for other workers, or other servers, of this crawl."""

    def mark_changed(self) -> None:
        """Something has happened here: an outlook from before is no longer right."""
        self._change_count += 1
        self.exhausted = False
        if not self.config.continuous:
            self.unresolved = {}

    def handle_message(self, reply: FromDatabase) -> None:
        """Take in what the database thread brought; `release_and_refill` comes next."""
        self.clock.add_sample(reply.now, reply.sent_at, reply.received_at)
        self._apply_commits(reply)
        # The first reply brings them, before anything is leased.
        if reply.rules is not None and reply.rules != self.window.rules:
            self.change_rules(reply.rules)
        if reply.renewed is not None:
            self._apply_renewals(reply.renewed, reply.contested)
        for lease in reply.leases:
            self._admit(lease)
        if reply.peers is not None:
            self._give_back_excess(reply.peers)
        if reply.others_wait:
            self._take_turns()
        self._take_tickets(reply)
        if reply.outlook is not None and reply.quiet == self._change_count:
            self.outlook = reply.outlook
            self._note_unresolved(reply.unresolved)
            self.exhausted = self._nothing_left(reply.outlook)

    def handle_refill(self, refill: Refill) -> None:
        """Take in the tickets that came between two turns."""
        self._take_tickets(refill)

    def _take_tickets(self, reply: FromDatabase | Refill) -> None:
        self._tickets_seen += len(reply.tickets)
        self.window.add_tickets(reply.tickets)
        self._mark_refilled(reply)

    def change_rules(self, rules: PolitenessRules) -> None:
        """Keep other rules of politeness from now on, and say so: workers with stricter ones have
        come, or gone.
        """
        self.window.change_rules(rules)
        self._on_rules_changed(rules)
        self._count("politeness/rules_changed", 1)
        own = self.config.rules.as_settings()
        changed = [
            f"{name} {value:g} (not {own[name]:g})"
            for name, value in rules.as_settings().items()
            if value != own[name]
        ]
        if changed:
            log.warning(
                "Other workers on this database have stricter rules, which are kept here too: %s",
                ", ".join(changed),
            )
        else:
            log.warning("No other worker has stricter rules any more: our own are in force again")

    def _apply_commits(self, reply: FromDatabase) -> None:
        for key in reply.stored:
            host = self.unstored.pop(key, None)
            if host is not None:
                host.held_ids.discard(key)
        for committed in reply.committed:
            for name in ("late", "added", "revived", "nearer", "refused", "set_aside"):
                number = getattr(committed, name)
                if number:
                    self._count(f"frontier/{name}", number)
            if committed.lock_s >= 0.001:
                self._count("duplicates/lock_ms", round(committed.lock_s * 1000))
            for id_, verdict in committed.verdicts.items():
                # Not those that are judged anew since their original has changed.
                if id_ in committed.done:
                    self._count(f"duplicates/{verdict.kind.value}", 1)
            for name in committed.hosts:
                if name in self.window.hosts:
                    self.window.hosts[name].more = True
        if reply.pushed:
            for held in self.window.hosts.values():
                held.more = True
                held.more_urgent = True

    def _admit(self, lease: Lease) -> None:
        """Take a lease, unless it has been given back meanwhile. A server that is taken over from a
        worker that died starts with a full delay.
        """
        if self._given_back.get(lease.server) == lease.epoch:
            return
        now = time.monotonic()
        server = self._server_clock_of(lease, now)
        hosts = {host.name: self._clock_of(host) for host in lease.hosts}
        if lease.taken_over:
            self._count("frontier/taken_over", 1)
            server = server.after_start(now, self.window.rules.server)
            for name, clock in hosts.items():
                hosts[name] = clock.taken_over(now, self.window.rules.host)
        deadline = self.clock.not_after(lease.until) - self._timeout_s
        self.window.admit_lease(lease, deadline, now, clock=server, hosts=hosts)
        self._kinds.setdefault(lease.server, lease.kind)
        self.mark_changed()

    def _server_clock_of(self, lease: Lease, now: float) -> ServerClock:
        """The clock as it is stored."""
        pause = lease.pause
        if pause is None:
            return ServerClock()
        busy_at = now
        if pause.busy_at is not None:
            busy_at = min(now, self.clock.not_before(pause.busy_at))
        return ServerClock(
            self.clock.not_before(pause.until), pause.reason, asked=pause.asked, busy_at=busy_at
        )

    def _clock_of(self, host: Host) -> HostClock:
        """The clock as it is stored, or as it was when we let go of the host: that may be newer
        than what was read in the meantime.
        """
        pause = host.pause
        released = self._released_clocks.pop(host.name, HostClock())
        if pause is None:
            return released
        stored = HostClock(self.clock.not_before(pause.until), pause.reason, pause.failures)
        if released.next_at > stored.next_at + SAME_S:
            return released
        return stored

    def _mark_refilled(self, reply: FromDatabase | Refill) -> None:
        """A host for which more was wanted, and nothing came, has nothing until a commit or a push
        says so; one of which as many came as were wanted has more. Only a want of what is urgent
        also brings what waits here already.
        """
        came = Counter((ticket.host, ticket.lane) for ticket in reply.tickets)
        for want in reply.wants:
            host = self.window.hosts.get(want.host)
            if host is None or host.server.epoch != want.epoch:
                continue
            if came[want.host, Lane.URGENT] >= want.count:
                host.more_urgent = True
            elif want.urgent:
                host.more_urgent = False
                host.deep -= {URGENT}
            if want.urgent:
                continue
            host.refilling = False
            host.hurried = False
            host.deep = frozenset(
                name
                for lane, name in {Lane.URGENT: URGENT, **SHARE_CLASSES}.items()
                if came[want.host, lane] >= want.count
            )
            if not any(came[want.host, lane] for lane in Lane):
                host.more = False

    def _apply_renewals(self, renewed: Mapping[int, datetime], contested: set[int]) -> None:
        """Leases go on, are lost, or have been held long enough while others wait. Clocks are
        stored, should this worker die.
        """
        now = time.monotonic()
        for server in self.window.servers.values():
            if server.id in renewed:
                if server.id in contested and now - server.leased_at > self.config.tenure_s:
                    server.leaving = True
                deadline = self.clock.not_after(renewed[server.id]) - self._timeout_s
                self.window.extend_lease(server, deadline)
        lost = self._kinds.keys() - renewed.keys()
        if lost:
            self._count("frontier/lost_leases", len(lost))
            self._kinds = {
                server: kind for server, kind in self._kinds.items() if server not in lost
            }
            self.window.drop_servers(lost)
        self._store_clocks(self.window.hosts.values(), self.window.servers.values())

    def _give_back_excess(self, peers: PeerSummary) -> None:
        """Give back what is beyond our share, servers with least to do first, if another worker of
        this crawl has too little.
        """
        self._peers = peers
        if peers.died:
            # A server with many hosts has its general pause first: which were asked is not known.
            rules = self.window.rules
            rest_s = max(rules.host.max_delay_s, rules.server.pause_s)
            self.orphans_until = self.clock.now() + timedelta(seconds=rest_s)
        now = time.monotonic()
        held = [server for server in self.window.servers.values() if not server.leaving]
        excess = peers.servers_to_return(len(held))
        if not excess or now - self._gave_at < GIVE_GAP_S:
            return
        self._gave_at = now
        waiting: Counter[int] = Counter()
        for host in self.window.hosts.values():
            waiting[host.server.id] += host.waiting + 1
        held.sort(key=lambda server: (server.in_flight, waiting[server.id]))
        for server in held[:excess]:
            server.leaving = True
            self._shared.add(server.id)
        self._count("frontier/given", excess)

    def _take_turns(self) -> None:
        """Give back servers that were held for long enough, for those that wait: a quarter at a
        time, the longest held first.
        """
        now = time.monotonic()
        held_long = [
            server
            for server in self.window.servers.values()
            if not server.leaving and now - server.leased_at > self.config.tenure_s
        ]
        held_long.sort(key=lambda server: server.leased_at)
        for server in held_long[: ceil(self.config.servers / 4)]:
            server.leaving = True
            self._shared.add(server.id)
            self._count("frontier/turns", 1)

    def _nothing_left(self, outlook: Outlook) -> bool:
        if self.config.continuous or outlook.leased_elsewhere:
            return False
        if self.unresolved:
            return True
        return outlook.soonest is None or outlook.soonest > self.clock.now() + self.config.patience

    def _note_unresolved(self, names: dict[str, str]) -> None:
        """A crawl that can't ask anyone says so once: it ends, or goes on trying if it is
        continuous.
        """
        if names and not self.unresolved and self.config.continuous:
            log.warning("Nothing can be fetched now, it is tried on: %s", describe_failures(names))
        if not self.unresolved:
            self.unresolved = names

    def release_and_refill(self, pushed: bool) -> None:
        """Let go of hosts and servers that have nothing to do, and ask the database for more."""
        idle = self._release_idle()
        # What is urgent is wanted also of hosts that have enough: it goes ahead of what waits here.
        urgent = set(self.window.hosts_with_urgent())
        hosts = [host for host in self.window.hosts_to_refill() if host not in urgent]
        wants = [self._want(host) for host in hosts]
        wants += [self._urgent_want(host) for host in urgent]
        # Those that must wait for a general pause of their server take no place from others.
        unprepared = sum(
            not host.prepared and self.window.may_ask(host) for host in self.window.hosts.values()
        )
        eager = bool(idle) or unprepared < self._unprepared
        self._unprepared = unprepared
        starving = any(not host.waiting and host.in_flight is None for host in (*hosts, *urgent))

        def fill(message: ToDatabase) -> None:
            message.wants = wants
            message.tickets_seen = self._tickets_seen
            message.eager = eager
            self._fill_released(message, idle)
            self._fill_holdings(message)
            self._fill_capacity(message)

        self.database_thread.fill_message(fill, ring=pushed or eager or starving)

    def _release_idle(self) -> list[ServerWindow]:
        hosts = self.window.release_hosts(time.monotonic() + REST_S)
        servers = self.window.release_idle_servers()
        self._store_clocks(hosts, servers)
        self._keep_clocks(hosts)
        for server in servers:
            self._kinds.pop(server.id, None)
            self._given_back.pop(server.id, None)
            self._given_back[server.id] = server.epoch
        while len(self._given_back) > REMEMBERED:
            del self._given_back[next(iter(self._given_back))]
        return servers

    def _want(self, host: HostWindow) -> Want:
        self.window.resize(host, time.monotonic(), self._may_grow)
        size = host.size
        return Want(
            host.name,
            host.server.id,
            host.server.epoch,
            count=max(1, size - host.shortest_queue, size // 2),
            holding=frozenset(host.held_ids),
        )

    @property
    def _may_grow(self) -> bool:
        """May windows hold more than FRONTIER_WINDOW? Not if pages beyond a quota would be asked
        for then, or if what was found last is to be read first.
        """
        spec = self.config.spec
        if spec.order == "dfs" or spec.bytes or spec.host_bytes:
            return False
        return not spec.pages or not self._peers.others

    def refill_ahead(self, host: HostWindow, now: float) -> None:
        """Ask for more of a quick host before it has run dry. If the database has none, what was
        found since the last turn is stored first.
        """
        if not host.runs_dry_soon(now):
            return
        want = self._want(host)
        if not host.deep:
            host.hurried = True
            self.database_thread.fill_message(lambda message: message.add_want(want), ring=True)
            return
        host.refilling = True
        held = sum(len(other.held_ids) for other in self.window.hosts.values())
        self.database_thread.ask_refill(want, held, self._tickets_seen)
        self._count("frontier/refills_ahead", 1)

    def _urgent_want(self, host: HostWindow) -> Want:
        return Want(
            host.name,
            host.server.id,
            host.server.epoch,
            count=max(1, self.config.window // 2),
            holding=host.unmovable_ids,
            urgent=True,
        )

    def _fill_released(self, message: ToDatabase, servers: Sequence[ServerWindow]) -> None:
        """A server that leaves for another crawl is yielded: that crawl then comes first."""
        for server in servers:
            if server.leaving and server.id not in self._shared:
                message.yielded.append(server.id)
            else:
                message.release.append(server.id)
            self._shared.discard(server.id)

    def _fill_holdings(self, message: ToDatabase) -> None:
        """Say what is held here. With nothing held, and all stored, the outlook is wanted too."""
        hosts = self.window.hosts
        message.known_hosts = list(hosts)
        message.held = sum(len(host.held_ids) for host in hosts.values())
        message.nothing_fetched = self.nothing_fetched
        message.quiet = None
        if not hosts and not self.unstored:
            message.quiet = self._change_count
        message.hosts_to_borrow = self.moved_robots.hosts_to_borrow()
        message.robots_origins = self.moved_robots.wanted_origins()

    def _keep_clocks(self, hosts: Sequence[HostWindow]) -> None:
        for host in hosts:
            self._released_clocks.pop(host.name, None)
            self._released_clocks[host.name] = host.clock
        while len(self._released_clocks) > REMEMBERED:
            del self._released_clocks[next(iter(self._released_clocks))]

    def _fill_capacity(self, message: ToDatabase) -> None:
        """Say how many servers may be leased, and of which kind."""
        servers = self.config.servers
        held = list(self._kinds.values())
        free, message.ranked = lease_limits(self.config.spec.shares, servers, held)
        share = self._peers.server_limit(len(held), servers)
        message.servers_wanted = min(free, share - len(held))
        message.unseen = self._unseen
        message.unprepared = max(0, 2 * self.config.prepare - self._unprepared)

    def _store_clocks(self, hosts: Iterable[HostWindow], servers: Iterable[ServerWindow]) -> None:
        host_pauses = {host.name: self._pause_of(host) for host in hosts if host.clock.next_at}
        server_pauses = {
            server.id: self._server_pause_of(server) for server in servers if server.clock.next_at
        }

        def fill(message: ToDatabase) -> None:
            message.clocks.update(host_pauses)
            message.server_clocks.update(server_pauses)

        if host_pauses or server_pauses:
            self.database_thread.fill_message(fill)

    def _pause_of(self, host: HostWindow) -> Pause:
        clock = host.clock
        return Pause(self.clock.latest_datetime(clock.next_at), clock.reason, clock.failures)

    def _server_pause_of(self, server: ServerWindow) -> Pause:
        clock = server.clock
        return Pause(
            self.clock.latest_datetime(clock.next_at),
            clock.reason,
            asked=clock.asked,
            busy_at=self.clock.latest_datetime(clock.busy_at),
        )

    def store_all_clocks(self) -> None:
        """Store all clocks, so that the next worker keeps the pauses."""
        self._store_clocks(self.window.hosts.values(), self.window.servers.values())
