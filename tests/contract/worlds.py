"""What the frontier's contract needs around it: a clock to turn, fresh names, and a worker's hands.

A world is one store with any number of frontiers on it. Names, addresses and ids are new in each
world, so that worlds on one database don't meet.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from crawlproj.database.connection import Database
from crawlproj.frontier.base import (
    LANE_OF,
    TIMED_LANES,
    Batch,
    Committed,
    Content,
    CrawlSpec,
    Frontier,
    Lease,
    Links,
    NewUrl,
    Outcome,
    State,
    StoredUrl,
    Ticket,
    Want,
)
from crawlproj.frontier.memory.frontier import MemoryFrontier, MemoryStore
from crawlproj.frontier.memory.rows import SourceRow
from crawlproj.frontier.postgres import PostgresFrontier
from tests.conftest import TEMPLATE, beside

DAY_S = 86_400


class Clock:
    """Time that stands still until it is advanced."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def after(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)


class World:
    """One store. `make` builds a frontier on it, `versions` tells when a page's kept
    readings were, `source` what is stored of a source.
    """

    make: Callable[[CrawlSpec, Clock | None], Frontier]
    versions: Callable[[Frontier, int], list[datetime]]
    source: Callable[[Frontier, int], SourceRow]

    def __init__(self, tag: str = "", clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.tag = tag or secrets.token_hex(6)
        self._opened: list[Frontier] = []

    def frontier(self, crawl: str = "one", real_clock: bool = False, **limits: Any) -> Frontier:
        """An opened frontier of the crawl; each call is another worker's."""
        frontier = self.make(
            CrawlSpec(f"{crawl}-{self.tag}", **limits), None if real_clock else self.clock
        )
        frontier.open()
        self._opened.append(frontier)
        return frontier

    def host(self, name: str) -> str:
        return f"{name}.{self.tag}.example"

    def address(self, name: str) -> str:
        """An address of its own for each name."""
        digest = hashlib.blake2b(f"{self.tag} {name}".encode(), digest_size=15).digest()
        return str(ipaddress.IPv6Address(b"\xfd" + digest))

    def url(self, frontier: Frontier, path: str = "/", host: str = "a", **fields: Any) -> NewUrl:
        url = f"http://{self.host(host)}{path}"
        return NewUrl(url_id(frontier, url), url, self.host(host), **fields)

    def at(self, frontier: Frontier, url: str, host: str, depth: int = 1) -> NewUrl:
        """A found URL on a host that is not of this world's own domain."""
        return NewUrl(url_id(frontier, url), url, host, depth)

    def id(self, frontier: Frontier, path: str, host: str = "a") -> int:
        return self.url(frontier, path, host).id

    def see(self, frontier: Frontier, path: str = "/", host: str = "a") -> StoredUrl:
        id_ = self.id(frontier, path, host)
        return frontier.get_urls([id_])[id_]

    def resolve(self, frontier: Frontier, *hosts: str) -> None:
        """Give each host the server of its own name."""
        frontier.put_addresses({self.host(name): self.address(name) for name in hosts})

    def give(self, frontier: Frontier, *paths: str, host: str = "a", **fields: Any) -> Committed:
        """Add paths to a host that has its own server."""
        committed = frontier.add([self.url(frontier, path, host, **fields) for path in paths])
        self.resolve(frontier, host)
        return committed

    def close(self) -> None:
        for frontier in self._opened:
            frontier.close()


class MemoryWorld(World):
    def __init__(self, tag: str = "", clock: Clock | None = None) -> None:
        super().__init__(tag, clock)
        self._store = MemoryStore()

    def make(self, spec: CrawlSpec, clock: Clock | None) -> Frontier:
        if clock is None:
            return MemoryFrontier(spec, self._store)
        return MemoryFrontier(spec, self._store, clock)

    def versions(self, frontier: Frontier, id_: int) -> list[datetime]:
        return [at for url, at, _ in self._store.crawls[frontier.spec.name].versions if url == id_]

    def source(self, frontier: Frontier, id_: int) -> SourceRow:
        return self._store.crawls[frontier.spec.name].sources[id_]


class PostgresWorld(World):
    def __init__(self, dsn: str, tag: str = "", clock: Clock | None = None) -> None:
        super().__init__(tag, clock)
        self._dsn = dsn

    def make(self, spec: CrawlSpec, clock: Clock | None) -> Frontier:
        return PostgresFrontier(Database(self._dsn), spec, clock)

    def versions(self, frontier: Frontier, id_: int) -> list[datetime]:
        assert isinstance(frontier, PostgresFrontier)
        rows = frontier.db.run_script(
            f"select at from crawlproj.page_version where url = {int(id_)} order by at"
        )
        return [at for (at,) in rows]

    def source(self, frontier: Frontier, id_: int) -> SourceRow:
        assert isinstance(frontier, PostgresFrontier)
        names = [field.name for field in fields(SourceRow)]
        rows = frontier.db.run_script(
            f"select {', '.join(names)} from crawlproj.source where url = {int(id_)}"
        )
        return SourceRow(**dict(zip(names, rows[0], strict=True)))


@dataclass(slots=True)
class Hand:
    """A worker: leases, takes tickets, ends them."""

    world: World
    frontier: Frontier
    name: str = "worker"
    leases: dict[int, Lease] = field(default_factory=dict)

    def lease(self, servers: int = 10) -> list[Lease]:
        leases = self.frontier.lease(self.name, servers)
        self.leases |= {lease.server: lease for lease in leases}
        return leases

    def wants(self, count: int = 10, holding: Iterable[int] = ()) -> list[Want]:
        held = frozenset(holding)
        return [
            Want(host.name, lease.server, lease.epoch, count, held)
            for lease in self.leases.values()
            for host in lease.hosts
        ]

    def tickets(self, count: int = 10, holding: Iterable[int] = ()) -> list[Ticket]:
        """What the leased hosts offer; leases first if nothing is leased."""
        if not self.leases:
            self.lease()
        return self.frontier.due_tickets(self.wants(count, holding))

    def ticket(self, path: str = "/", host: str = "a") -> Ticket:
        wanted = self.world.id(self.frontier, path, host)
        return next(ticket for ticket in self.tickets(100) if ticket.id == wanted)

    def outcome(self, ticket: Ticket, state: State = State.WAITING, **fields: Any) -> Outcome:
        clock = self.world.clock
        if LANE_OF.get(state) in TIMED_LANES:
            fields.setdefault("next_visit", clock.after(60 if state is State.RETRY else DAY_S))
        fields.setdefault("at", clock.now)
        return Outcome(ticket.id, ticket.visit, ticket.server, ticket.epoch, state, **fields)

    def end(
        self,
        ticket: Ticket,
        state: State = State.WAITING,
        urls: Sequence[NewUrl] = (),
        **fields: Any,
    ) -> Committed:
        return self.frontier.commit(Batch([self.outcome(ticket, state, **fields)], urls), self.name)


def url_id(frontier: Frontier, url: str) -> int:
    digest = hashlib.blake2b(f"{frontier.spec.name} {url}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def page(*links: int, text: str = "text") -> Content:
    """Something to read, with links to these ids."""
    count = len(links)
    body, block = (
        hashlib.blake2b(f"{kind} {text}".encode(), digest_size=16).digest()
        for kind in ("body", "block")
    )
    known = Links(links, ("a",) * count, tuple(f"link {n}" for n in range(count)))
    return Content(body, block, "title", "text/html", "utf-8", "en", len(text), links=known)


def whole_rank(url: StoredUrl) -> int:
    """The rank of a URL in a crawl that goes breadth-first, without the order of finding: its
    depth.
    """
    assert url.rank is not None
    return math.floor(url.rank)


def request_json(**fields: Any) -> str:
    return json.dumps({"url": "http://a.example/", "method": "POST", **fields})


@cache
def contract_database(server: str) -> str:
    """One database on that server for all contracts of a run: worlds don't meet on it, and making
    one takes time.
    """
    name = f"contract_{os.getpid()}"
    admin = Database(server)
    admin.run_script(f"create database {name} template {TEMPLATE}")
    admin.close()
    return beside(server, name)
