"""The frontier in memory: the twin of the real one, for tests and the simulator.

Plain rather than fast: queues are found by looking at all rows, and a commit that fails puts the old rows back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from crawlproj.frontier.base import (
    TIMED,
    Batch,
    Committed,
    CrawlSpec,
    Found,
    Host,
    Lane,
    Lease,
    NewUrl,
    Outcome,
    Outlook,
    Pause,
    RobotsRow,
    State,
    Ticket,
    Want,
)
from crawlproj.frontier.book import LIMITED, Book, Writer, clean
from crawlproj.frontier.rows import HostRow, Row, ServerRow, Work

SOON = timedelta(seconds=10)
"""A host that rests longer than this is not leased yet."""
RESOLVING = timedelta(seconds=60)
TRUSTED, SUSPECT = timedelta(days=1), timedelta(minutes=5)
"""How long an address is believed; less after failures."""
YIELD = timedelta(seconds=2)


@dataclass(slots=True)
class MemoryStore:
    """What several frontiers in memory share: as a database, without one."""

    hosts: dict[str, HostRow] = field(default_factory=dict)
    servers: dict[int, ServerRow] = field(default_factory=dict)
    origins: dict[str, RobotsRow] = field(default_factory=dict)
    crawls: dict[str, Book] = field(default_factory=dict)

    @contextmanager
    def transaction(self, crawl: str) -> Iterator[None]:
        """All that the block writes stays, or nothing if it raises."""
        saved = dict(self.hosts), dict(self.servers), dict(self.origins), self.crawls[crawl].copy()
        try:
            yield
        except BaseException:
            self.hosts, self.servers, self.origins, self.crawls[crawl] = saved
            raise


def utc_now() -> datetime:
    return datetime.now(UTC)


class MemoryFrontier:
    """See `base.Frontier`. Frontiers on one store are workers or crawls of one database."""

    def __init__(self, spec: CrawlSpec, store: MemoryStore | None = None, clock: Callable[[], datetime] = utc_now) -> None:
        self.spec = spec
        self.store = MemoryStore() if store is None else store
        self._clock = clock

    def now(self) -> datetime:
        return self._clock()

    def open(self) -> None:
        self.store.crawls.setdefault(self.spec.name, Book(self.spec.order, self.spec.max_depth))
        Writer(self._book, self.spec).open()

    def close(self) -> None:
        """Nothing to give back."""

    @property
    def _book(self) -> Book:
        return self.store.crawls[self.spec.name]

    def _spent(self) -> bool:
        return self._book.total.over(self.spec.pages, self.spec.bytes)

    def _work(self) -> dict[str, Work]:
        return self._book.work(self._spent())

    # Writing

    def add(self, urls: Sequence[NewUrl]) -> Committed:
        return self.commit(Batch(urls=urls))

    def commit(self, batch: Batch, worker: str = "") -> Committed:
        with self.store.transaction(self.spec.name):
            writer = Writer(self._book, self.spec)
            self._end(writer, batch.outcomes, worker)
            writer.add(batch.urls, self.now())
            writer.enforce_quotas()
            for url in batch.urls:
                self.store.hosts.setdefault(url.host, HostRow(url.host))
            self._put(batch)
            return writer.committed()

    def _put(self, batch: Batch) -> None:
        hosts, servers = self.store.hosts, self.store.servers
        for row in batch.robots:
            self.store.origins[row.origin] = replace(row, body=clean(row.body))
            if row.status and row.host in hosts:
                hosts[row.host] = replace(hosts[row.host], prepared=True)
        for name, pause in batch.clocks.items():
            if name in hosts:
                hosts[name] = replace(hosts[name], pause=pause)
        for id_, pause in batch.server_clocks.items():
            if id_ in servers:
                servers[id_] = replace(servers[id_], pause=Pause(pause.until, pause.reason))

    def _end(self, writer: Writer, outcomes: Sequence[Outcome], worker: str) -> None:
        for end in outcomes:
            row, server = self._book.rows.get(end.id), self.store.servers.get(end.server)
            current = row and server and (row.visit, server.epoch, server.worker) == (end.visit, end.epoch, worker)
            if row and current and row.id not in writer.done:
                writer.end(row, end)
            else:
                writer.late += 1

    # Hosts and servers

    def unresolved(self, limit: int) -> list[str]:
        now, work = self.now(), self._book.work(spent=False)
        free = [h for h in self.store.hosts.values() if h.name in work and past(h.taken_until, now) and self._unsure(h, now)]
        free.sort(key=lambda host: math.inf if (ready := work[host.name].ready) is None else ready)
        for host in free[:limit]:
            self.store.hosts[host.name] = replace(host, taken_until=now + RESOLVING)
        return [host.name for host in free[:limit]]

    def _unsure(self, host: HostRow, now: datetime) -> bool:
        """Its address is not known, or was last looked up too long ago while nobody holds its server."""
        if host.server is None or host.resolved is None:
            return True
        good_for = SUSPECT if host.pause and host.pause.failures else TRUSTED
        return past(self.store.servers[host.server].until, now) and host.resolved < now - good_for

    def resolved(self, addresses: Mapping[str, str]) -> None:
        servers = self.store.servers
        known = {server.address: server.id for server in servers.values()}
        for name, address in addresses.items():
            if name not in self.store.hosts:
                continue
            if address not in known:
                known[address] = len(servers) + 1
                servers[known[address]] = ServerRow(known[address], address)
            self.store.hosts[name] = replace(self.store.hosts[name], server=known[address], resolved=self.now())

    # Leases

    def lease(
        self, worker: str, servers: int, ranked: int | None = None, unprepared: int | None = None, unseen: int = 0
    ) -> list[Lease]:
        now, work = self.now(), self._work()
        until = now + self.spec.lease
        leases = []
        for id_, kind in self._choose(servers, ranked, unprepared, now, work).items():
            free = self.store.servers[id_]
            held = replace(free, epoch=free.epoch + 1, worker=worker, until=until, yielded=None)
            self.store.servers[id_] = held
            if free.worker is not None:
                self._count_unseen(id_, unseen)
            hosts = tuple(self._hosts(id_, now, work))
            leases.append(Lease(id_, free.address, held.epoch, until, hosts, free.pause, free.worker is not None, kind))
        return leases

    def _count_unseen(self, server: int, unseen: int) -> None:
        for host in list(self.store.hosts.values()):
            if host.server == server and host.pause is not None:
                pause = replace(host.pause, asked=host.pause.asked + unseen)
                self.store.hosts[host.name] = replace(host, pause=pause)

    def _choose(
        self, count: int, ranked: int | None, unprepared: int | None, now: datetime, work: Mapping[str, Work]
    ) -> dict[int, str]:
        """Servers by best rank up to the places of new URLs, by earliest time in the others, then the rest."""
        best, due = self._candidates((True, False) if unprepared is None else (True,), now, work)
        new, revisit = self.spec.shares.get("new", 0.0), self.spec.shares.get("revisit", 0.0)
        share = math.ceil(count * new / (new + revisit)) if new + revisit else count
        first = best[: share if ranked is None else ranked]
        order = [*((id_, "ranked") for id_ in first), *((id_, "timed") for id_ in due), *((id_, "ranked") for id_ in best)]
        chosen: dict[int, str] = {}
        for id_, kind in order:
            if len(chosen) < count:
                chosen.setdefault(id_, kind)
        if unprepared:
            rest, again = self._candidates((False,), now, work)
            limit = min(unprepared, count)
            fresh = [id_ for id_ in dict.fromkeys(rest[:limit] + again[:limit]) if id_ not in chosen]
            chosen |= dict.fromkeys(fresh[:unprepared], "unprepared")
        return chosen

    def _candidates(self, prepared: Sequence[bool], now: datetime, work: Mapping[str, Work]) -> tuple[list[int], list[int]]:
        ranked: dict[int, tuple[float, str]] = {}
        timed: dict[int, tuple[float, str]] = {}
        for name, here in work.items():
            host = self.store.hosts[name]
            if host.server is None or host.prepared not in prepared or not past(host.next_allowed, now + SOON):
                continue
            if not self._free(self.store.servers[host.server], now):
                continue
            for best, place in ((ranked, here.ready), (timed, here.due(now.timestamp()))):
                if place is not None:
                    other_place, other_name = best.get(host.server, (place, name))
                    best[host.server] = min(place, other_place), min(name, other_name)
        return sorted(ranked, key=ranked.__getitem__), sorted(timed, key=timed.__getitem__)

    def _free(self, server: ServerRow, now: datetime) -> bool:
        if not past(server.next_allowed, now + SOON):
            return False
        return past(server.until, now) or (server.worker is None and server.yielded != self.spec.name)

    def _hosts(self, server: int, now: datetime, work: Mapping[str, Work]) -> Iterator[Host]:
        for name, here in work.items():
            host = self.store.hosts[name]
            if host.server == server and here.waits(now.timestamp()):
                yield Host(name, server, host.pause, self._room(name), host.prepared)

    def arrivals(self, worker: str, servers: Sequence[int], known: Sequence[str]) -> list[Lease]:
        now, work, leases = self.now(), self._work(), []
        for server in self._held(worker, servers):
            fresh = [host for host in self._hosts(server.id, now, work) if host.name not in known]
            hosts = tuple(host for host in fresh if host.pause is None or host.pause.until <= now + SOON)
            if hosts and server.until:
                leases.append(Lease(server.id, server.address, server.epoch, server.until, hosts, server.pause))
        return leases

    def _room(self, host: str) -> int | None:
        if not self.spec.host_pages:
            return None
        return max(0, self.spec.host_pages - self._book.count(host).pages)

    def _held(self, worker: str, servers: Sequence[int]) -> list[ServerRow]:
        return [s for id_ in servers if (s := self.store.servers.get(id_)) and s.worker == worker]

    def renew(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        until = self.now() + self.spec.lease
        renewed = {s.id: replace(s, until=until) for s in self._held(worker, servers)}
        self.store.servers |= renewed
        return dict.fromkeys(renewed, until)

    def contested(self, servers: Sequence[int]) -> set[int]:
        now_s, contested = self.now().timestamp(), set()
        for name, book in self.store.crawls.items():
            if name != self.spec.name:
                waiting = [host for host, here in book.work(spent=False).items() if here.waits(now_s)]
                contested |= {self.store.hosts[host].server for host in waiting}
        return {id_ for id_ in servers if id_ in contested}

    def release(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        until, by = (self.now() + YIELD, self.spec.name) if yielding else (self.now(), None)
        self.store.servers |= {s.id: replace(s, worker=None, until=until, yielded=by) for s in self._held(worker, servers)}

    def refill(self, wants: Sequence[Want]) -> list[Ticket]:
        left = math.inf if not self.spec.pages else self.spec.pages - self._book.total.pages
        left = 0 if self._spent() else left - sum(len(want.holding) for want in wants)
        tickets: list[Ticket] = []
        for want in wants:
            server = self.store.servers.get(want.server)
            host = self.store.hosts.get(want.host)
            if server and server.epoch == want.epoch and host and host.server == want.server:
                rows = self._fill(want, left)
                left -= sum(row.lane in LIMITED for row in rows)
                tickets += [row.ticket(want.server, want.epoch) for row in rows]
        return tickets

    def _fill(self, want: Want, left: float) -> list[Row]:
        """The first of each lane; of new pages no more than the crawl (`left`) and the host have room for."""
        here = self._room(want.host)
        room = left if here is None else min(left, here - len(want.holding))
        rows: list[Row] = []
        for lane in Lane:
            count = int(min(want.count, max(0, room))) if lane in LIMITED else want.count
            taken = self._queue(want, lane)[:count]
            room -= len(taken) if lane in LIMITED else 0
            rows += taken
        return rows

    def _queue(self, want: Want, lane: Lane) -> list[Row]:
        now_s = self.now().timestamp()
        latest = now_s if lane in TIMED else math.inf
        rows = [row for row in self._book.rows.values() if row.host == want.host and row.lane is lane]
        queue = sorted((row.rank, row.id) for row in rows if row.rank is not None and row.rank <= latest)
        return [self._book.rows[id_] for _, id_ in queue if id_ not in want.holding]

    # Looking

    def robots(self, origins: Sequence[str]) -> dict[str, RobotsRow]:
        return {origin: self.store.origins[origin] for origin in origins if origin in self.store.origins}

    def rejudge(self, origin: str, allows: Callable[[str], bool]) -> int:
        revived = 0
        for name, book in self.store.crawls.items():
            ours = name == self.spec.name
            writer = Writer(book, self.spec if ours else CrawlSpec(name, book.order, max_depth=book.max_depth))
            writer.allow(origin, allows)
            writer.enforce_quotas()
            revived += writer.revived if ours else 0
        return revived

    def outlook(self, worker: str = "") -> Outlook:
        now, work = self.now(), self._work()
        elsewhere: set[int] = set()
        ready: list[datetime] = []
        later: list[datetime] = []
        for name, here in work.items():
            host = self.store.hosts[name]
            server = self.store.servers.get(host.server or 0)
            retry = None if here.retry is None else from_s(here.retry)
            waits = here.waits(now.timestamp())
            if server and not past(server.until, now) and server.worker != worker:
                if waits or retry:
                    elsewhere.add(server.id)
                continue
            allowed = max(now, host.next_allowed or now, server.next_allowed or now if server else now)
            if waits:
                ready.append(allowed)
            elif retry:
                later.append(max(retry, allowed))
        visits = [here.revisit for here in work.values() if here.revisit is not None]
        next_visit = from_s(min(visits)) if visits else None
        return Outlook(len(ready), min(ready + later, default=None), next_visit, len(elsewhere), self._spent())

    def look(self, ids: Sequence[int]) -> dict[int, Found]:
        return {id_: self._book.rows[id_].found() for id_ in ids if id_ in self._book.rows}

    def seeds(self) -> list[str]:
        rows = sorted((row.first_seen, row.id, row.url) for row in self._book.rows.values() if row.depth == 0)
        return [url for _, _, url in rows[:10_000]]

    def counts(self) -> dict[str, int]:
        states = Counter(row.state for row in self._book.rows.values())
        return {"known": len(self._book.rows), **{state.value: states[state] for state in State}}


def past(at: datetime | None, now: datetime) -> bool:
    return at is None or at <= now


def from_s(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
