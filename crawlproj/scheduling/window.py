"""The small part of the frontier that a worker holds in memory: leased servers, their hosts, the
next URLs, the clocks.

Pure: no database, no Scrapy; times are seconds on one monotonic clock. At most one ticket of a host
is out at a time, at most so many hosts of a server, and none before both clocks allow it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf

from crawlproj.frontier.base import Lane, Lease, Ticket
from crawlproj.items import RobotsTicket
from crawlproj.politeness.clocks import FetchTiming, HostClock, PolitenessRules, ServerClock
from crawlproj.revisit.shares import Shares, SpareSlots

SHARE_CLASSES = {Lane.NEW: "new", Lane.REVISIT: "revisit", Lane.BACKFILL: "backfill"}
URGENT = "urgent"
"""No class of shares: it goes before all of them."""
HeapEntry = tuple[float, int]
UNSENT_WAIT_S = 0.02
"""Until one looks again whether another request has left: nobody knows how long its pause is."""
PACE_OVER_S = 0.5
"""A host's pace is measured over at least so long."""
PACE_REQUESTS = 4
"""From so many requests on its pace shows before that."""
AHEAD_S = 0.5
"""More is asked for when what waits will be gone sooner than this."""
WORTH_S = 2.0
"""A window holds as much as its host takes in so long, but not less than FRONTIER_WINDOW."""
LARGEST_WINDOW = 1_000
LARGEST_GROWTH = 2_000
"""All windows together hold at most so many more than FRONTIER_WINDOW each."""
GROWTH_AT_ONCE = 8
ROUND_WAIT_S = 0.5
"""Until one looks again whether a host may be asked that must wait for a general pause."""
SHORT_REST_S = 10.0
"""A server waits so long for a host of its round before it rather has its general pause."""


def share_class(ticket: Ticket) -> str:
    """The class whose share pays for it: a retry counts as what it was before it failed."""
    known = SHARE_CLASSES.get(ticket.lane)
    if known is not None:
        return known
    if ticket.block_digest is not None:
        return "revisit"
    return "new"


@dataclass(slots=True, eq=False)
class HostWindow:
    """One leased host, and its URLs that come next.

    `held_ids` must not be handed out again: they wait here, are in flight, or have ended but are
    not stored yet. `foreign_robots`: robots.txt files of other hosts that have moved here.
    `delays_s`: the Crawl-delay of each of its origins. `more`, `more_urgent`: the database may have
    more of them; `deep`: classes of which it had more than it was asked for. `parked`: not asked
    for now, though URLs wait. `size`: so many URLs are to be held. `refilling`: more of them come
    between two turns; `hurried`: a turn was asked for to get more.
    """

    name: str
    server: ServerWindow
    clock: HostClock
    shares: Shares
    size: int
    prepared: bool = True
    urgent: deque[Ticket] = field(default_factory=deque)
    classes: dict[str, deque[Ticket]] = field(default_factory=dict)
    held_ids: set[int] = field(default_factory=set)
    foreign_robots: deque[RobotsTicket] = field(default_factory=deque)
    delays_s: dict[str, float] = field(default_factory=dict)
    in_flight: object | None = None
    sent_at: float | None = None
    more: bool = True
    more_urgent: bool = False
    deep: frozenset[str] = frozenset()
    refilling: bool = False
    hurried: bool = False
    parked: bool = False
    entry: HeapEntry | None = None
    _pace: float = 0.0
    _paced_from: float = -inf
    _paced: int = 0

    def note_start(self, now: float) -> None:
        """Count a request that starts now."""
        self._paced += 1
        elapsed_s = now - self._paced_from
        if elapsed_s >= PACE_OVER_S:
            self._pace = self._paced / elapsed_s
            self._paced_from = now
            self._paced = 0

    def pace(self, now: float) -> float:
        """How many requests a second start, lately."""
        elapsed_s = now - self._paced_from
        if self._paced < PACE_REQUESTS or elapsed_s <= 0:
            return self._pace
        return max(self._pace, self._paced / elapsed_s)

    def runs_dry_soon(self, now: float) -> bool:
        """Is more to be asked for at once, since what waits will be gone before the next turn?"""
        if self.refilling or self.hurried or self.server.leaving:
            return False
        shortest = self.shortest_queue
        return shortest * 2 <= self.size and shortest + 1 <= self.pace(now) * AHEAD_S

    @property
    def shortest_queue(self) -> int:
        """How many wait of the class that must be refilled first, or else would lose its share."""
        if not self.deep:
            return self.waiting
        if URGENT in self.deep:  # the others get nothing before it is done
            return len(self.urgent)
        return min(len(self.classes.get(name, ())) for name in self.deep)

    @property
    def waiting(self) -> int:
        """The number of tickets that wait here."""
        return len(self.foreign_robots) + len(self.urgent) + sum(map(len, self.classes.values()))

    def add_ticket(self, ticket: Ticket, first: bool = False) -> None:
        """Let a ticket wait in the queue of its class, at the end or at the head of it."""
        if ticket.lane is Lane.URGENT:
            queue = self.urgent
        else:
            queue = self.classes.setdefault(share_class(ticket), deque())
        if first:
            queue.appendleft(ticket)
        else:
            queue.append(ticket)
        self.held_ids.add(ticket.id)

    @property
    def unmovable_ids(self) -> frozenset[int]:
        """What is held and can't be moved ahead any more: it is in flight, has ended, or is urgent
        already.
        """
        movable = {ticket.id for queue in self.classes.values() for ticket in queue}
        return frozenset(self.held_ids - movable)

    def move_to_urgent(self, ticket: Ticket) -> bool:
        """Move a ticket that has become urgent ahead; return False if it does not wait here."""
        for queue in self.classes.values():
            for waiting in queue:
                if waiting.id == ticket.id:
                    queue.remove(waiting)
                    self.add_ticket(ticket)
                    return True
        return False

    def has_enough(self, ticket: Ticket) -> bool:
        """Is it not needed yet? Queues of classes with a small share would grow with each refill
        of the others.
        """
        if ticket.lane is Lane.URGENT:
            return False
        return len(self.classes.get(share_class(ticket), ())) >= 2 * self.size

    def set_crawl_delay(self, origin: str, crawl_delay_s: float | None) -> None:
        """Set the Crawl-delay of an origin. All origins share one clock, so the longest counts."""
        self.delays_s[origin] = crawl_delay_s or 0.0
        self.clock = self.clock.with_crawl_delay(max(self.delays_s.values()))

    def pop_ticket(self) -> Ticket:
        """Take out the next ticket: an urgent one, else one of the class whose turn it is."""
        if self.urgent:
            return self.urgent.popleft()
        chosen = self.shares.choose_class([name for name, queue in self.classes.items() if queue])
        assert chosen is not None, "pop_ticket() of a host with nothing waiting"
        return self.classes[chosen].popleft()


@dataclass(slots=True, eq=False)
class ServerWindow:
    """One lease: a server and its hosts.

    `heap` orders its hosts by their clocks; an entry that is not its host's `entry` any more is
    stale. While a request to one of them has not left yet (`unsent`), nobody knows from when the
    server's delay counts, and no other starts. `leaving`: it is to be given back. Hosts that must
    wait for the next general pause are in `members`, but not in `heap`.
    """

    id: int
    address: str
    epoch: int
    deadline: float
    limit: int
    clock: ServerClock
    leased_at: float = 0.0
    leaving: bool = False
    in_flight: int = 0
    unsent: HostWindow | None = None
    members: set[HostWindow] = field(default_factory=set)
    heap: list[tuple[float, int, HostWindow]] = field(default_factory=list)
    entry: HeapEntry | None = None

    def first_host(self) -> HostWindow | None:
        """The host that may be asked first, None if none has anything waiting."""
        while self.heap:
            at, number, host = self.heap[0]
            if host.entry == (at, number):
                return host
            heappop(self.heap)
        return None

    def ready_at(self) -> float | None:
        """When its next request may start, None if there is nothing to start."""
        if self.leaving or self.unsent is not None or self.in_flight >= self.limit:
            return None
        host = self.first_host()
        if host is None:
            return None
        return max(self.clock.next_at, host.clock.next_at)


class Window:
    """All leases of a worker, ordered by when they may be asked next."""

    def __init__(
        self,
        shares: Mapping[str, float],
        size: int,
        rules: PolitenessRules,
        freshness_target: float = 0.0,
    ) -> None:
        self.rules = rules
        self.hosts: dict[str, HostWindow] = {}
        self.servers: dict[int, ServerWindow] = {}
        self._shares = shares
        self._spare = SpareSlots(freshness_target)
        self._size = size
        self._growth = 0
        self._heap: list[tuple[float, int, ServerWindow]] = []
        self._order = count()

    def __len__(self) -> int:
        return sum(host.waiting for host in self.hosts.values())

    @property
    def in_flight(self) -> int:
        return sum(server.in_flight for server in self.servers.values())

    @property
    def has_in_flight(self) -> bool:
        return any(server.in_flight for server in self.servers.values())

    def admit_lease(
        self,
        lease: Lease,
        deadline: float,
        now: float,
        clock: ServerClock,
        hosts: Mapping[str, HostClock],
    ) -> None:
        """Take a lease, or more hosts of one that is held."""
        server = self.servers.get(lease.server)
        if server is None or server.epoch != lease.epoch:
            server = ServerWindow(
                lease.server,
                lease.address,
                lease.epoch,
                deadline=deadline,
                limit=max(1, self.rules.server.hosts),
                clock=clock,
                leased_at=now,
            )
            self.servers[lease.server] = server
        for host in lease.hosts:
            if host.name not in self.hosts:
                added = HostWindow(
                    host.name,
                    server,
                    hosts[host.name],
                    shares=Shares(self._shares, self._spare),
                    size=self._size,
                    prepared=host.prepared,
                )
                self.hosts[host.name] = added
                server.members.add(added)

    def set_freshness(self, freshness: float | None) -> None:
        """So fresh the copies of the crawl are by estimate: requests that no class is owed go where
        they are needed.
        """
        self._spare.set_freshness(freshness)

    def change_rules(self, rules: PolitenessRules) -> None:
        """Keep other rules from now on."""
        self.rules = rules
        for server in self.servers.values():
            server.limit = max(1, rules.server.hosts)
            self._place_members(server)
            self._requeue_server(server)

    def add_tickets(self, tickets: Iterable[Ticket]) -> int:
        """Put tickets in, and return how many; those that are held already, or whose host is no
        longer, are dropped.
        """
        taken = 0
        changed: dict[str, HostWindow] = {}
        for ticket in tickets:
            host = self.hosts.get(ticket.host)
            if host is None or host.server.epoch != ticket.epoch:
                continue
            if ticket.id in host.held_ids:
                if ticket.lane is Lane.URGENT and host.move_to_urgent(ticket):
                    taken += 1
                continue
            if host.has_enough(ticket):
                continue
            host.add_ticket(ticket)
            changed[ticket.host] = host
            taken += 1
        for host in changed.values():
            self.requeue_host(host)
        return taken

    def resize(self, host: HostWindow, now: float, may_grow: bool) -> None:
        """Let the window of a host hold what it takes at its pace; that of a slow one stays as
        small as it was.
        """
        self._growth -= host.size - self._size
        largest = self._size
        if may_grow:
            allowed = self._size + LARGEST_GROWTH - self._growth
            largest = min(LARGEST_WINDOW, host.size * GROWTH_AT_ONCE, allowed)
        host.size = max(self._size, min(largest, ceil(host.pace(now) * WORTH_S)))
        self._growth += host.size - self._size

    def requeue_host(self, host: HostWindow) -> None:
        """Put a host where its clock says. To be called whenever its clock, its tickets or
        `in_flight` have changed.
        """
        if self.hosts.get(host.name) is not host:
            return
        self._place_host(host)
        self._requeue_server(host.server)

    def _place_host(self, host: HostWindow) -> None:
        may_start = host.in_flight is None and host.waiting and not host.parked
        if not may_start or not self.may_ask(host):
            host.entry = None
        elif host.entry is None or host.entry[0] != host.clock.next_at:
            host.entry = (host.clock.next_at, next(self._order))
            heappush(host.server.heap, (*host.entry, host))

    def may_ask(self, host: HostWindow) -> bool:
        """Whether a host may be asked before the next general pause of its server."""
        return host.server.clock.may_ask(host.name, self.rules.server)

    def _place_members(self, server: ServerWindow) -> None:
        """Put all hosts of a server where they belong: a round has begun, is full or over."""
        for host in server.members:
            self._place_host(host)

    def _needs_pause(self, server: ServerWindow) -> bool:
        """Whether it is time for a general pause: the round is over, or none of its hosts can be
        asked soon while others wait. As long as a request is under way, it is not.
        """
        rules = self.rules.server
        asked = server.clock.asked
        if server.in_flight or not asked or not rules.has_pauses:
            return False
        if server.clock.round_is_over(rules):
            return True
        if len(asked) < rules.hosts:
            return False
        soon = server.clock.busy_at + min(SHORT_REST_S, rules.pause_s)
        hosts = [host for name in asked if (host := self.hosts.get(name)) is not None]
        if any(host.server is server and _is_able(host, soon) for host in hosts):
            return False
        return any(host.waiting and host.name not in asked for host in server.members)

    def _requeue_server(self, server: ServerWindow) -> None:
        if self._needs_pause(server):
            server.clock = server.clock.pausing(self.rules.server)
            self._place_members(server)
        at = server.ready_at()
        if at is None:
            server.entry = None
        elif server.entry is None or server.entry[0] != at:
            server.entry = (at, next(self._order))
            heappush(self._heap, (*server.entry, server))

    def _first_server(self) -> ServerWindow | None:
        while self._heap:
            at, number, server = self._heap[0]
            if server.entry == (at, number):
                return server
            heappop(self._heap)
        return None

    def extend_lease(self, server: ServerWindow, deadline: float) -> None:
        """Go on with a lease that was renewed, also if it had come to its deadline."""
        server.deadline = deadline
        self._requeue_server(server)

    def due_host(self, now: float) -> HostWindow | None:
        """The host that could have been asked for the longest time; None if none may be now.

        It stays first until `start_request` or `requeue_host` is called for it.
        """
        while True:
            server = self._first_server()
            if server is None or server.entry is None or server.entry[0] > now:
                return None
            if now < server.deadline:
                return server.first_host()
            server.entry = None

    def next_time(self) -> float | None:
        """When the next request may start; None while there is none to start."""
        server = self._first_server()
        if server is None or server.entry is None:
            return None
        return server.entry[0]

    def start_request(
        self, host: HostWindow, ticket: object, now: float, reaches_server: bool = True
    ) -> None:
        """Hand out a ticket. One that will not reach the server leaves the server's clock alone."""
        host.in_flight = ticket
        host.sent_at = None
        host.note_start(now)
        host.server.in_flight += 1
        if reaches_server:
            self._count_start(host, now)
            host.server.unsent = None
            if self.rules.server.delay_s:
                host.server.unsent = host
        self.requeue_host(host)

    def _count_start(self, host: HostWindow, now: float) -> None:
        """Set the server's clock by a request that starts. Who may be asked is decided anew when it
        ends a round, or the last place in it is taken.
        """
        server = host.server
        rules = self.rules.server
        others = server.in_flight - (host.in_flight is not None)
        before = server.clock
        counted = before.counting(host.name, now, rules, idle=not others)
        server.clock = counted.after_start(now, rules)
        is_full = len(counted.asked) >= rules.hosts and host.name not in before.asked
        if is_full or counted.round_is_over(rules) or len(counted.asked) < len(before.asked):
            self._place_members(server)

    def mark_sent(self, host: HostWindow, now: float) -> None:
        """Count the server's pause from now: the request has left, perhaps later than planned."""
        host.sent_at = now
        self._clear_unsent(host)
        host.server.clock = host.server.clock.after_start(now, self.rules.server)
        self._requeue_server(host.server)

    def take_turn(self, host: HostWindow, now: float) -> float:
        """How long a request without a ticket must still wait; 0: it goes now, and both clocks
        count it, so that no other starts with it.
        """
        wait_s = max(host.clock.next_at, host.server.clock.next_at) - now
        if host.server.unsent is not None:
            wait_s = max(wait_s, UNSENT_WAIT_S)
        if not self.may_ask(host):
            wait_s = max(wait_s, ROUND_WAIT_S)
        if wait_s > 0:
            return wait_s
        host.clock = host.clock.resting_until(now + host.clock.delay_s(self.rules.host), "delay")
        self._count_start(host, now)
        self.requeue_host(host)
        return 0.0

    def _clear_unsent(self, host: HostWindow) -> None:
        if host.server.unsent is host:
            host.server.unsent = None

    def update_clocks(self, host: HostWindow, timing: FetchTiming) -> None:
        """Set the clocks of a host and of its server by how a fetch went.

        One that ended without having left, as far as we know, may have reached the server as a
        connection at any moment up to its end: the pauses count from there.
        """
        sent_at = host.sent_at
        if sent_at is None or sent_at < timing.started:  # that of the request before
            sent_at = timing.ended
            self.mark_sent(host, sent_at)
        timing = replace(timing, sent=sent_at)
        host.clock = host.clock.after_fetch(timing, self.rules.host)
        host.server.clock = host.server.clock.after_end(timing.ended, self.rules.server)
        self.requeue_host(host)

    def finish_request(self, host: HostWindow) -> None:
        """Let a host go on whose request in flight has ended."""
        host.in_flight = None
        self._clear_unsent(host)
        host.server.in_flight -= 1
        self.requeue_host(host)

    def hosts_to_refill(self) -> Iterator[HostWindow]:
        """Hosts of which less than half of the window waits, while the database may have more."""
        return (
            host
            for host in self.hosts.values()
            if host.more
            and not host.refilling
            and not host.server.leaving
            and host.waiting * 2 <= host.size
        )

    def hosts_with_urgent(self) -> Iterator[HostWindow]:
        """Hosts that may have more that is urgent, and hold little of it."""
        return (
            host
            for host in self.hosts.values()
            if host.more_urgent and not host.server.leaving and len(host.urgent) * 4 <= self._size
        )

    def release_hosts(self, soon: float) -> list[HostWindow]:
        """Let go of hosts that have nothing more, that may not be asked before `soon`, or whose
        server is to be given back. What they hold stays due in the database.
        """
        leaving = [
            host
            for host in self.hosts.values()
            if host.in_flight is None and _is_released(host, soon)
        ]
        for host in leaving:
            self._remove_host(host)
        return leaving

    def drop_servers(self, servers: Iterable[int]) -> None:
        """Forget servers whose leases are lost; what is in flight ends by itself."""
        for server in servers:
            self.servers.pop(server, None)
        for host in [host for host in self.hosts.values() if host.server.id not in self.servers]:
            self._remove_host(host)

    def release_idle_servers(self) -> list[ServerWindow]:
        """Let go of servers without hosts."""
        busy = {host.server.id for host in self.hosts.values()}
        gone = [server for server in self.servers.values() if server.id not in busy]
        for server in gone:
            del self.servers[server.id]
        return gone

    def _remove_host(self, host: HostWindow) -> None:
        host.entry = None
        if self.hosts.pop(host.name, None) is not None:
            self._growth -= host.size - self._size
        host.server.members.discard(host)
        self._requeue_server(host.server)


def _is_able(host: HostWindow, soon: float) -> bool:
    """Whether a host has something to be asked for, or may get it from the database, and does not
    rest for longer.
    """
    has_work = (host.waiting and not host.parked) or host.more or host.held_ids
    return bool(has_work) and host.clock.next_at <= soon


def _is_released(host: HostWindow, soon: float) -> bool:
    if host.server.leaving or max(host.clock.next_at, host.server.clock.next_at) > soon:
        return True
    return not (host.held_ids or host.more or host.foreign_robots)
