"""What a worker holds, and what it asks the database thread for: leases, hosts, tickets, clocks. Lives on
the event loop, never waits.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import ceil

from crawlproj.config import Config
from crawlproj.frontier.base import Host, Lane, Lease, Outlook, Pause, Want
from crawlproj.frontier.clock import FrontierClock
from crawlproj.politeness.clocks import HostClock, ServerClock
from crawlproj.revisit.shares import lease_limits
from crawlproj.scheduling.database_thread import DatabaseThread
from crawlproj.scheduling.messages import FromDatabase, ToDatabase
from crawlproj.scheduling.moved_robots import MovedRobots
from crawlproj.scheduling.sharing import PeerSummary
from crawlproj.scheduling.window import HostWindow, ServerWindow, Window

GIVE_GAP_S = 5.0
"""Between two times of giving servers to other workers: so long they take to be seen with them."""
REST_S = 10.0
"""A host that rests longer than this is given back meanwhile."""
REMEMBERED = 1_000
"""Clocks of so many hosts that were let go."""
SAME_S = 0.01
"""Clocks that are stored and read again differ by less."""


class WorkerLeases:
    """`exhausted` turns True when nothing is left to do or to wait for. `ending` are ends that are
    not stored yet.
    """

    def __init__(
        self,
        config: Config,
        timeout_s: float,
        now: tuple[datetime, float, float],
        count: Callable[[str, int], None],
    ) -> None:
        self.config = config
        self._timeout_s = timeout_s
        self._count = count
        self.clock = FrontierClock(*now)
        self.window = Window(
            config.spec.shares, config.window, config.host_rules, server_rules=config.server_rules
        )
        self.moved_robots = MovedRobots(self.window)
        self.unstored: dict[int, HostWindow | None] = {}
        self.outlook = Outlook()
        self.exhausted = False
        self.database_thread: DatabaseThread
        self._kinds: dict[int, str] = {}
        self._given_back: dict[int, int] = {}
        self._released_clocks: dict[str, HostClock] = {}
        self._unprepared = 0
        self._unseen = ceil(
            (config.spec.lease.total_seconds() - timeout_s) / max(config.host_rules.delay_s, 0.1)
        )
        """How often a worker may have asked a host after it last stored a clock."""
        self._change_count = 0
        self._peers = PeerSummary()
        self._gave_at = 0.0
        self._shared = set[int]()

    def mark_changed(self) -> None:
        """Something has happened here: an outlook from before is no longer right."""
        self._change_count += 1
        self.exhausted = False

    def handle_message(self, reply: FromDatabase) -> None:
        """Take in what the database thread brought; then `ask`."""
        self.clock.add_sample(reply.now, reply.sent_at, reply.received_at)
        self._stored(reply)
        if reply.renewed is not None:
            self._apply_renewals(reply.renewed, reply.contested)
        for lease in reply.leases:
            self._admit(lease)
        if reply.peers is not None:
            self._give_back_excess(reply.peers)
        if reply.others_wait:
            self._take_turns()
        self.window.add_tickets(reply.tickets)
        self._mark_refilled(reply)
        if reply.outlook is not None and reply.quiet == self._change_count:
            self.outlook = reply.outlook
            self.exhausted = self._nothing_left(reply.outlook)

    def _stored(self, reply: FromDatabase) -> None:
        for key in reply.stored:
            if (host := self.unstored.pop(key, None)) is not None:
                host.held_ids.discard(key)
        for committed in reply.committed:
            for name in ("late", "added", "revived", "nearer", "refused"):
                if number := getattr(committed, name):
                    self._count(f"frontier/{name}", number)
            for name in committed.hosts:
                if name in self.window.hosts:
                    self.window.hosts[name].more = True
        if reply.pushed:
            for held in self.window.hosts.values():
                held.more = held.more_urgent = True

    def _admit(self, lease: Lease) -> None:
        """A server that was taken over from a worker that died starts with a full delay. News of
        one that has been given back meanwhile come too late.
        """
        if self._given_back.get(lease.server) == lease.epoch:
            return
        now = time.monotonic()
        rules = self.config.host_rules
        server = (
            ServerClock(self.clock.not_before(lease.pause.until), lease.pause.reason)
            if lease.pause
            else ServerClock()
        )
        hosts = {host.name: self._clock(host) for host in lease.hosts}
        if lease.taken_over:
            self._count("frontier/taken_over", 1)
            server = server.after_start(now, self.config.server_rules)
            for name, clock in hosts.items():
                server, hosts[name] = server.after_fetch(
                    clock.taken_over(now, rules), now, self.config.server_rules
                )
        self.window.admit_lease(
            lease,
            self.clock.not_after(lease.until) - self._timeout_s,
            now,
            clock=server,
            hosts=hosts,
        )
        self._kinds.setdefault(lease.server, lease.kind)
        self.mark_changed()

    def _clock(self, host: Host) -> HostClock:
        """As it is stored, or as it was when we let go of the host: that may be newer than what was
        read in the meantime.
        """
        pause = host.pause
        left = self._released_clocks.pop(host.name, HostClock())
        if pause is None:
            return left
        stored = HostClock(
            self.clock.not_before(pause.until),
            pause.reason,
            pause.failures,
            request_count=pause.asked,
        )
        return left if left.next_at > stored.next_at + SAME_S else stored

    def _mark_refilled(self, reply: FromDatabase) -> None:
        """A host that was asked for more and had nothing has nothing until a commit or a push says
        so. Only who asks for what is urgent hears of what waits here already.
        """
        got = {ticket.host for ticket in reply.tickets}
        urgent = Counter(ticket.host for ticket in reply.tickets if ticket.lane is Lane.URGENT)
        for want in reply.wants:
            if (host := self.window.hosts.get(want.host)) is not None:
                host.more_urgent = urgent[want.host] >= want.count or (
                    host.more_urgent and not want.urgent
                )
                host.more = host.more and (want.urgent or want.host in got)

    def _apply_renewals(self, renewed: Mapping[int, datetime], contested: set[int]) -> None:
        """Leases go on, are lost, or have been held long enough while others wait. Clocks are
        stored, should this worker die.
        """
        lost = self._kinds.keys() - renewed.keys()
        now = time.monotonic()
        for server in self.window.servers.values():
            if server.id in renewed:
                server.leaving = server.leaving or (
                    server.id in contested and now - server.leased_at > self.config.tenure_s
                )
                self.window.extend_lease(
                    server, self.clock.not_after(renewed[server.id]) - self._timeout_s
                )
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
        now = time.monotonic()
        held = [server for server in self.window.servers.values() if not server.leaving]
        if not (excess := peers.servers_to_return(len(held))) or now - self._gave_at < GIVE_GAP_S:
            return
        self._gave_at = now
        waiting: Counter[int] = Counter()
        for host in self.window.hosts.values():
            waiting[host.server.id] += host.waiting + 1
        for server in sorted(held, key=lambda server: (server.in_flight, waiting[server.id]))[
            :excess
        ]:
            server.leaving = True
            self._shared.add(server.id)
        self._count("frontier/given", excess)

    def _take_turns(self) -> None:
        """Servers that were held for long enough make room for those that wait: a quarter at a
        time, the longest held first.
        """
        now = time.monotonic()
        held = [server for server in self.window.servers.values() if not server.leaving]
        over = sorted(
            (s for s in held if now - s.leased_at > self.config.tenure_s),
            key=lambda server: server.leased_at,
        )
        for server in over[: ceil(self.config.servers / 4)]:
            server.leaving = True
            self._shared.add(server.id)
            self._count("frontier/turns", 1)

    def _nothing_left(self, outlook: Outlook) -> bool:
        if self.config.continuous or outlook.leased_elsewhere:
            return False
        return outlook.soonest is None or outlook.soonest > self.clock.now() + self.config.patience

    def release_and_refill(self, pushed: bool) -> None:
        """Let go of hosts and servers that have nothing to do, and ask for what is wanted; after a
        push also for what is urgent of hosts that have enough, since it goes ahead of all that
        waits here.
        """
        left = self.window.release_hosts(time.monotonic() + REST_S)
        idle = self.window.release_idle_servers()
        self._store_clocks(left, idle)
        self._remember(left)
        for server in idle:
            self._kinds.pop(server.id, None)
            self._given_back[server.id] = server.epoch
        size = self.config.window
        urgent = set(self.window.hosts_with_urgent())
        hosts = [host for host in self.window.hosts_to_refill() if host not in urgent]
        wants = [
            Want(
                h.name,
                h.server.id,
                h.server.epoch,
                count=max(1, size - h.waiting, size // 2),
                holding=frozenset(h.held_ids),
            )
            for h in hosts
        ]
        wants += [
            Want(
                h.name,
                h.server.id,
                h.server.epoch,
                count=max(1, size // 2),
                holding=h.unmovable_ids,
                urgent=True,
            )
            for h in urgent
        ]

        def fill(message: ToDatabase) -> None:
            message.wants = wants
            message.known_hosts = list(self.window.hosts)
            message.quiet = None if self.window.hosts or self.unstored else self._change_count
            message.held = sum(len(h.held_ids) for h in self.window.hosts.values())
            message.hosts_to_borrow = self.moved_robots.hosts_to_borrow()
            message.robots_origins = self.moved_robots.wanted_origins()
            self._set_capacity(message)
            message.eager = eager
            message.release.extend(
                server.id for server in idle if not server.leaving or server.id in shared
            )
            message.yielded.extend(
                server.id for server in idle if server.leaving and server.id not in shared
            )

        shared = self._shared & {server.id for server in idle}
        self._shared -= shared
        unprepared = sum(not host.prepared for host in self.window.hosts.values())
        eager = bool(idle) or unprepared < self._unprepared
        self._unprepared = unprepared
        self.database_thread.fill_message(
            fill,
            ring=pushed
            or eager
            or any(not h.waiting and h.in_flight is None for h in (*hosts, *urgent)),
        )

    def _remember(self, left: Sequence[HostWindow]) -> None:
        for host in left:
            self._released_clocks.pop(host.name, None)
            self._released_clocks[host.name] = host.clock
        while len(self._released_clocks) > REMEMBERED:
            del self._released_clocks[next(iter(self._released_clocks))]

    def _set_capacity(self, message: ToDatabase) -> None:
        """How many servers may be leased, and of which kind."""
        held = list(self._kinds.values())
        room, message.ranked = lease_limits(self.config.spec.shares, self.config.servers, held)
        message.servers_wanted = min(
            room, self._peers.server_limit(len(held), self.config.servers) - len(held)
        )
        message.unseen = self._unseen
        message.unprepared = max(0, 2 * self.config.prepare - self._unprepared)

    def _store_clocks(self, hosts: Iterable[HostWindow], servers: Iterable[ServerWindow]) -> None:
        clocks = {
            h.name: Pause(
                self.clock.latest_datetime(h.clock.next_at),
                h.clock.reason,
                h.clock.request_count,
                failures=h.clock.failures,
            )
            for h in hosts
            if h.clock.next_at
        }
        rests = {
            s.id: Pause(self.clock.latest_datetime(s.clock.next_at), s.clock.reason)
            for s in servers
            if s.clock.next_at
        }

        def fill(message: ToDatabase) -> None:
            message.clocks.update(clocks)
            message.server_clocks.update(rests)

        if clocks or rests:
            self.database_thread.fill_message(fill)

    def store_all_clocks(self) -> None:
        """Store all clocks, so that the next worker keeps the pauses."""
        self._store_clocks(self.window.hosts.values(), self.window.servers.values())
