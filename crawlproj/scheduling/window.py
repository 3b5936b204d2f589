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

from crawlproj.frontier.base import Lane, Lease, Ticket
from crawlproj.items import RobotsTicket
from crawlproj.politeness.clocks import FetchTiming, HostClock, HostRules, ServerClock, ServerRules
from crawlproj.revisit.shares import Shares

SHARE_CLASSES = {Lane.NEW: "new", Lane.REVISIT: "revisit", Lane.BACKFILL: "backfill"}
HeapEntry = tuple[float, int]


def share_class(ticket: Ticket) -> str:
    """Whose share pays for it: a retry counts as what it was before it failed."""
    return SHARE_CLASSES.get(ticket.lane) or (
        "revisit" if ticket.block_digest is not None else "new"
    )


@dataclass(slots=True, eq=False)
class HostWindow:
    """One leased host. `holding`: ids that must not be handed out again: waiting here, out, or
    ended but not yet stored. `errands`: files of other hosts that have moved here. `delays_s`: the
    Crawl-delay of each of its origins. `pressed`: it may have more that is urgent.
    """

    name: str
    server: ServerWindow
    clock: HostClock
    shares: Shares
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
    parked: bool = False
    entry: HeapEntry | None = None

    @property
    def waiting(self) -> int:
        return len(self.foreign_robots) + len(self.urgent) + sum(map(len, self.classes.values()))

    def add_ticket(self, ticket: Ticket, first: bool = False) -> None:
        queue = (
            self.urgent
            if ticket.lane is Lane.URGENT
            else self.classes.setdefault(share_class(ticket), deque())
        )
        (queue.appendleft if first else queue.append)(ticket)
        self.held_ids.add(ticket.id)

    @property
    def unmovable_ids(self) -> frozenset[int]:
        """What is held and can't be moved ahead any more: it is out, or has ended, or is urgent
        already.
        """
        return frozenset(
            self.held_ids - {ticket.id for queue in self.classes.values() for ticket in queue}
        )

    def move_to_urgent(self, ticket: Ticket) -> bool:
        """It waits here, and has become urgent; False if it does not wait here."""
        for queue in self.classes.values():
            if known := next((each for each in queue if each.id == ticket.id), None):
                queue.remove(known)
                self.add_ticket(ticket)
                return True
        return False

    def set_crawl_delay(self, origin: str, crawl_delay_s: float | None) -> None:
        """What an origin of this host asks for. They share one clock, so the longest counts."""
        self.delays_s[origin] = crawl_delay_s or 0.0
        self.clock = self.clock.with_crawl_delay(max(self.delays_s.values()))

    def pop_ticket(self) -> Ticket:
        if self.urgent:
            return self.urgent.popleft()
        chosen = self.shares.choose_class([name for name, queue in self.classes.items() if queue])
        assert chosen is not None, "pick() of a host with nothing waiting"
        return self.classes[chosen].popleft()


@dataclass(slots=True, eq=False)
class ServerWindow:
    """One lease. `heap` orders its hosts by their clocks; an entry that is not its host's `entry`
    any more is stale. While a request to one of them has not left yet (`unsent`), nobody knows from
    when the server's delay counts, and no other starts.
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
    heap: list[tuple[float, int, HostWindow]] = field(default_factory=list)
    entry: HeapEntry | None = None

    def first_host(self) -> HostWindow | None:
        while self.heap and self.heap[0][2].entry != self.heap[0][:2]:
            heappop(self.heap)
        return self.heap[0][2] if self.heap else None

    def ready_at(self) -> float | None:
        """When its next request may start, None if there is nothing to start."""
        if self.leaving or self.unsent is not None or self.in_flight >= self.limit:
            return None
        host = self.first_host()
        return None if host is None else max(self.clock.next_at, host.clock.next_at)


class Window:
    """All leases of a worker, ordered by when they may be asked next."""

    def __init__(
        self, shares: Mapping[str, float], size: int, rules: HostRules, server_rules: ServerRules
    ) -> None:
        self.hosts: dict[str, HostWindow] = {}
        self.servers: dict[int, ServerWindow] = {}
        self._shares = shares
        self._size = size
        self._rules = rules
        self._server_rules = server_rules
        self._heap: list[tuple[float, int, ServerWindow]] = []
        self._order = count()

    def __len__(self) -> int:
        return sum(host.waiting for host in self.hosts.values())

    @property
    def in_flight(self) -> int:
        return sum(server.in_flight for server in self.servers.values())

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
            limit = max(1, self._server_rules.hosts)
            server = ServerWindow(
                lease.server,
                lease.address,
                lease.epoch,
                deadline=deadline,
                limit=limit,
                clock=clock,
                leased_at=now,
            )
            self.servers[lease.server] = server
        for host in lease.hosts:
            if host.name not in self.hosts:
                made = HostWindow(
                    host.name,
                    server,
                    hosts[host.name],
                    shares=Shares(self._shares),
                    prepared=host.prepared,
                )
                self.hosts[host.name] = made

    def add_tickets(self, tickets: Iterable[Ticket]) -> int:
        """Put tickets in; those of hosts that are no longer held, or held already, are dropped."""
        taken = 0
        for ticket in tickets:
            host = self.hosts.get(ticket.host)
            if host is None or host.server.epoch != ticket.epoch:
                continue
            if ticket.id in host.held_ids:
                taken += ticket.lane is Lane.URGENT and host.move_to_urgent(ticket)
                continue
            host.add_ticket(ticket)
            self.requeue_host(host)
            taken += 1
        return taken

    def requeue_host(self, host: HostWindow) -> None:
        """The host may be asked when its clock allows. To be called whenever its clock, its tickets
        or `out` have changed.
        """
        if self.hosts.get(host.name) is not host:
            return
        if host.in_flight is None and host.waiting and not host.parked:
            if host.entry is None or host.entry[0] != host.clock.next_at:
                host.entry = (host.clock.next_at, next(self._order))
                heappush(host.server.heap, (*host.entry, host))
        else:
            host.entry = None
        self._requeue_server(host.server)

    def _requeue_server(self, server: ServerWindow) -> None:
        at = server.ready_at()
        if at is None:
            server.entry = None
        elif server.entry is None or server.entry[0] != at:
            server.entry = (at, next(self._order))
            heappush(self._heap, (*server.entry, server))

    def _first_server(self) -> ServerWindow | None:
        while self._heap and self._heap[0][2].entry != self._heap[0][:2]:
            heappop(self._heap)
        return self._heap[0][2] if self._heap else None

    def extend_lease(self, server: ServerWindow, deadline: float) -> None:
        """The lease was renewed: what had come to its deadline goes on."""
        server.deadline = deadline
        self._requeue_server(server)

    def due_host(self, now: float) -> HostWindow | None:
        """The host that may be asked for the longest time. `start` takes it out, `ready` puts it
        back in its place.
        """
        while (
            (server := self._first_server()) is not None
            and server.entry is not None
            and server.entry[0] <= now
        ):
            if now < server.deadline:
                return server.first_host()
            server.entry = None
        return None

    def next_time(self) -> float | None:
        server = self._first_server()
        return server.entry[0] if server is not None and server.entry is not None else None

    def start_request(
        self, host: HostWindow, ticket: object, now: float, asks: bool = True
    ) -> None:
        """The ticket is handed out. One that will not reach the server (`asks` False) leaves the
        server's clock alone.
        """
        host.in_flight = ticket
        host.sent_at = None
        host.server.in_flight += 1
        if asks:
            host.server.clock = host.server.clock.after_start(now, self._server_rules)
            host.server.unsent = host if self._server_rules.delay_s else None
        self.requeue_host(host)

    def mark_sent(self, host: HostWindow, now: float) -> None:
        """The request has left, perhaps later than planned."""
        host.sent_at = now
        self._clear_unsent(host)
        host.server.clock = host.server.clock.after_start(now, self._server_rules)
        self._requeue_server(host.server)

    def _clear_unsent(self, host: HostWindow) -> None:
        if host.server.unsent is host:
            host.server.unsent = None

    def update_clocks(self, host: HostWindow, answer: FetchTiming) -> None:
        if host.sent_at is not None:
            answer = replace(answer, sent=max(host.sent_at, answer.started))
        clock = host.clock.after_fetch(answer, self._rules)
        host.server.clock, host.clock = host.server.clock.after_fetch(
            clock, answer.ended, self._server_rules
        )
        self.requeue_host(host)

    def finish_request(self, host: HostWindow) -> None:
        """What was out has ended."""
        host.in_flight = None
        self._clear_unsent(host)
        host.server.in_flight -= 1
        self.requeue_host(host)

    def hosts_to_refill(self) -> Iterator[HostWindow]:
        """Hosts that should be refilled: less than half of the window waits, and there may
        be more.
        """
        return (
            h
            for h in self.hosts.values()
            if h.more and not h.server.leaving and h.waiting * 2 <= self._size
        )

    def hosts_with_urgent(self) -> Iterator[HostWindow]:
        """Hosts that may have more that is urgent, and hold little of it."""
        return (
            h
            for h in self.hosts.values()
            if h.more_urgent and not h.server.leaving and len(h.urgent) * 4 <= self._size
        )

    def release_hosts(self, soon: float) -> list[HostWindow]:
        """Let go of hosts that have nothing more, that may not be asked before `soon`, or whose
        server is to be given back; what they hold is still due elsewhere.
        """
        leaving = [h for h in self.hosts.values() if h.in_flight is None and _done_with(h, soon)]
        for host in leaving:
            self._remove_host(host)
        return leaving

    def drop_servers(self, servers: Iterable[int]) -> None:
        """The leases are lost; what is out ends by itself."""
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
        self.hosts.pop(host.name, None)
        self._requeue_server(host.server)


def _done_with(host: HostWindow, soon: float) -> bool:
    resting = max(host.clock.next_at, host.server.clock.next_at) > soon
    return resting or host.server.leaving or not (host.held_ids or host.more or host.foreign_robots)
