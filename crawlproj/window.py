"""The small part of the frontier that a worker holds in memory: leased hosts, their next URLs, their clocks.

Pure: no database, no Scrapy; times are seconds on one monotonic clock. At most one ticket of a host is out at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from itertools import count

from crawlproj.frontier.base import Lane, Lease, Ticket
from crawlproj.politeness import HostClock
from crawlproj.revisit.shares import Shares

CLASS_OF = {Lane.NEW: "new", Lane.REVISIT: "revisit", Lane.BACKFILL: "backfill"}


def class_of(ticket: Ticket) -> str:
    """Whose share pays for it: a retry counts as what it was before it failed."""
    return CLASS_OF.get(ticket.lane) or ("revisit" if ticket.block_digest is not None else "new")


@dataclass(slots=True, eq=False)
class HostWindow:
    """One leased host. `holding`: ids that must not be handed out again: waiting here, out, or ended but not yet stored."""

    name: str
    server: int
    epoch: int
    address: str
    clock: HostClock
    shares: Shares
    urgent: deque[Ticket] = field(default_factory=deque)
    classes: dict[str, deque[Ticket]] = field(default_factory=dict)
    holding: set[int] = field(default_factory=set)
    out: object | None = None
    more: bool = True
    deadline: float = 0.0

    @property
    def waiting(self) -> int:
        return len(self.urgent) + sum(map(len, self.classes.values()))

    def put(self, ticket: Ticket, first: bool = False) -> None:
        queue = self.urgent if ticket.lane is Lane.URGENT else self.classes.setdefault(class_of(ticket), deque())
        (queue.appendleft if first else queue.append)(ticket)
        self.holding.add(ticket.id)

    def pick(self) -> Ticket:
        if self.urgent:
            return self.urgent.popleft()
        chosen = self.shares.choose([name for name, queue in self.classes.items() if queue])
        assert chosen is not None, "pick() of a host with nothing waiting"
        return self.classes[chosen].popleft()


class Window:
    """All leased hosts of a worker, ordered by when they may be asked next."""

    def __init__(self, shares: Mapping[str, float], size: int) -> None:
        self.hosts: dict[str, HostWindow] = {}
        self._shares, self._size = shares, size
        self._heap: list[tuple[float, int, HostWindow]] = []
        self._order = count()

    def __len__(self) -> int:
        return sum(host.waiting for host in self.hosts.values())

    @property
    def out(self) -> int:
        return sum(host.out is not None for host in self.hosts.values())

    def admit(self, lease: Lease, deadline: float, clock_of: Callable[[datetime | None], HostClock]) -> None:
        for host in lease.hosts:
            known = self.hosts.get(host.name)
            if known is None:
                self.hosts[host.name] = HostWindow(
                    host.name, lease.server, lease.epoch, lease.address, clock_of(host.next_allowed), Shares(self._shares),
                    deadline=deadline,
                )  # fmt: skip

    def take(self, tickets: Iterable[Ticket]) -> int:
        """Put tickets in; those of hosts that are no longer held, or held already, are dropped."""
        taken = 0
        for ticket in tickets:
            host = self.hosts.get(ticket.host)
            if host is None or host.epoch != ticket.epoch or ticket.id in host.holding:
                continue
            host.put(ticket)
            self.ready(host)
            taken += 1
        return taken

    def ready(self, host: HostWindow) -> None:
        """Let the host be asked when its clock allows; entries that are no longer right are dropped when they come up."""
        if host.out is None and host.waiting:
            heappush(self._heap, (host.clock.next_at, next(self._order), host))

    def due(self, now: float) -> HostWindow | None:
        """The host that has been allowed for the longest time, taken off the heap; `ready` puts it back."""
        while (top := self._top()) is not None and top.clock.next_at <= now:
            heappop(self._heap)
            if now < top.deadline:
                return top
        return None

    def next_time(self) -> float | None:
        top = self._top()
        return top.clock.next_at if top is not None else None

    def _top(self) -> HostWindow | None:
        while self._heap:
            at, _, host = self._heap[0]
            if host.out is None and host.waiting and self.hosts.get(host.name) is host:
                if at == host.clock.next_at:
                    return host
                heappop(self._heap)
                self.ready(host)
            else:
                heappop(self._heap)
        return None

    def hungry(self) -> Iterator[HostWindow]:
        """Hosts that should be refilled: less than half of the window waits, and there may be more."""
        return (host for host in self.hosts.values() if host.more and host.waiting * 2 <= self._size)

    def leave(self, soon: float) -> list[HostWindow]:
        """Let go of hosts that have nothing more, or that may not be asked before `soon`; what they hold is still due elsewhere."""
        leaving = [h for h in self.hosts.values() if h.out is None and (h.clock.next_at > soon or not (h.holding or h.more))]
        for host in leaving:
            del self.hosts[host.name]
        return leaving

    def drop(self, servers: Iterable[int]) -> None:
        gone = set(servers)
        self.hosts = {name: host for name, host in self.hosts.items() if host.server not in gone}

    def servers(self) -> set[int]:
        return {host.server for host in self.hosts.values()}
