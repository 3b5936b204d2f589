"""The frontier in memory: the twin of the real one, for tests and the simulator.

Plain rather than fast: queues are found by looking at all rows, and a commit that fails puts the
old rows back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from crawlproj.frontier.base import (
    MAX_READY,
    TIMED_LANES,
    Batch,
    Committed,
    CrawlSpec,
    Lane,
    Lease,
    NewUrl,
    Outcome,
    Outlook,
    Pause,
    Peer,
    RobotsRow,
    State,
    StoredUrl,
    Ticket,
    Want,
)
from crawlproj.frontier.memory.crawl import CrawlWriter, MemoryCrawl, clean_text
from crawlproj.frontier.memory.leases import MemoryLeases
from crawlproj.frontier.memory.rows import HostRow, ServerRow, UrlRow
from crawlproj.frontier.memory.store import MemoryStore, has_passed
from crawlproj.frontier.quotas import PageQuota

RESOLVING = timedelta(seconds=60)
TRUSTED = timedelta(days=1)
SUSPECT = timedelta(minutes=5)
"""How long an address is believed; less after failures."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class MemoryFrontier:
    """See `base.Frontier`. Frontiers on one store are workers or crawls of one database."""

    def __init__(
        self,
        spec: CrawlSpec,
        store: MemoryStore | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.spec = spec
        self.store = MemoryStore() if store is None else store
        self._clock = clock
        self._leases = MemoryLeases(spec, self.store, clock)

    def now(self) -> datetime:
        return self._clock()

    def open(self) -> None:
        self.store.crawls.setdefault(
            self.spec.name, MemoryCrawl(self.spec.order, self.spec.max_depth)
        )
        CrawlWriter(self._crawl, self.spec).apply_spec()
        self.store.mend_clocks(self.now())
        self._crawl.refresh_waiting(self.now())

    def close(self) -> None:
        """Nothing to give back."""

    @property
    def _crawl(self) -> MemoryCrawl:
        return self.store.crawls[self.spec.name]

    # Writing

    def add(self, urls: Sequence[NewUrl]) -> Committed:
        return self.commit(Batch(urls=urls))

    def commit(self, batch: Batch, worker: str = "") -> Committed:
        with self.store.transaction(self.spec.name):
            writer = CrawlWriter(self._crawl, self.spec)
            self._end(writer, batch.outcomes, worker)
            writer.add_urls(batch.urls, self.now(), batch.since)
            writer.enforce_quotas()
            for url in batch.urls:
                self.store.hosts.setdefault(url.host, HostRow(url.host))
            self._put(batch, worker)
            self._crawl.refresh_waiting(self.now())
            return writer.make_committed()

    def _put(self, batch: Batch, worker: str) -> None:
        hosts = self.store.hosts
        servers = self.store.servers
        for row in batch.robots:
            self.store.origins[row.origin] = replace(row, body=clean_text(row.body))
            if row.status and row.host in hosts:
                hosts[row.host] = replace(hosts[row.host], prepared=True)
        for name, pause in batch.clocks.items():
            if name in hosts and self._may_replace(
                hosts[name].pause, pause, hosts[name].server, worker=worker
            ):
                hosts[name] = replace(hosts[name], pause=pause)
        for id_, pause in batch.server_clocks.items():
            if id_ in servers and self._may_replace(servers[id_].pause, pause, id_, worker=worker):
                servers[id_] = replace(servers[id_], pause=Pause(pause.until, pause.reason))

    def _may_replace(self, old: Pause | None, new: Pause, server: int | None, worker: str) -> bool:
        """A worker whose lease has moved on can only make a rest longer."""
        holder = self.store.servers[server].worker if server is not None else None
        return old is None or new.until > old.until or holder == worker

    def _end(self, writer: CrawlWriter, outcomes: Sequence[Outcome], worker: str) -> None:
        for end in outcomes:
            row = self._crawl.rows.get(end.id)
            server = self.store.servers.get(end.server)
            current = (
                row
                and server
                and (row.visit, server.epoch, server.worker) == (end.visit, end.epoch, worker)
            )
            if row and current and row.id not in writer.done:
                writer.end_visit(row, end)
            else:
                writer.late += 1

    # Hosts and servers

    def take_unresolved(self, limit: int) -> list[str]:
        return self._take_names(limit, lambda host: host.server is None or host.resolved is None)

    def take_outdated(self, limit: int) -> list[str]:
        now = self.now()
        return self._take_names(limit, lambda host: self._unsure(host, now))

    def _take_names(self, limit: int, wanted: Callable[[HostRow], bool]) -> list[str]:
        now = self.now()
        work = self._crawl.host_queues(spent=False)
        free = [
            h
            for h in self.store.hosts.values()
            if h.name in work and has_passed(h.taken_until, now) and wanted(h)
        ]
        places = {host.name: self._crawl.turn_rank(host.name, work[host.name]) for host in free}
        free.sort(
            key=lambda host: (
                math.inf if (place := places[host.name]) is None else place,
                host.name,
            )
        )
        for host in free[:limit]:
            self.store.hosts[host.name] = replace(host, taken_until=now + RESOLVING)
        return [host.name for host in free[:limit]]

    def _unsure(self, host: HostRow, now: datetime) -> bool:
        """It was last looked up too long ago, and nobody holds its server."""
        if host.server is None or host.resolved is None:
            return False
        good_for = SUSPECT if host.pause and host.pause.failures else TRUSTED
        return (
            has_passed(self.store.servers[host.server].until, now)
            and host.resolved < now - good_for
        )

    def put_addresses(self, addresses: Mapping[str, str]) -> None:
        servers = self.store.servers
        known = {server.address: server.id for server in servers.values()}
        for name, address in addresses.items():
            if name not in self.store.hosts:
                continue
            if address not in known:
                known[address] = len(servers) + 1
                servers[known[address]] = ServerRow(known[address], address)
            self.store.hosts[name] = replace(
                self.store.hosts[name], server=known[address], resolved=self.now()
            )

    # Leases

    def lease(
        self,
        worker: str,
        servers: int,
        ranked: int | None = None,
        unprepared: int | None = None,
        unseen: int = 0,
    ) -> list[Lease]:
        return self._leases.lease(worker, servers, ranked, unprepared=unprepared, unseen=unseen)

    def new_hosts_on_leases(
        self, worker: str, servers: Sequence[int], known: Sequence[str]
    ) -> list[Lease]:
        return self._leases.new_hosts_on_leases(worker, servers, known)

    def lease_for_hosts(
        self, worker: str, names: Sequence[str], unseen: int = 0
    ) -> tuple[list[Lease], list[str]]:
        return self._leases.lease_for_hosts(worker, names, unseen)

    def renew_leases(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        return self._leases.renew_leases(worker, servers)

    def contested_servers(self, servers: Sequence[int]) -> set[int]:
        return self._leases.contested_servers(servers)

    def has_free_servers(self) -> bool:
        return self._leases.has_free_servers()

    def release_servers(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        self._leases.release_servers(worker, servers, yielding)

    def heartbeat(self, worker: str, wanting: bool) -> list[Peer]:
        return self._leases.heartbeat(worker, wanting)

    def remove_worker(self, worker: str) -> None:
        self.store.workers.pop(worker, None)

    def end_dead_workers(self, workers: Sequence[str], rest: timedelta) -> int:
        return self._leases.end_dead_workers(workers, rest)

    def due_tickets(self, wants: Sequence[Want], held: int | None = None) -> list[Ticket]:
        tickets: list[Ticket] = []
        for want in wants:
            server = self.store.servers.get(want.server)
            host = self.store.hosts.get(want.host)
            if server and server.epoch == want.epoch and host and host.server == want.server:
                lanes = [Lane.URGENT] if want.urgent else list(Lane)
                rows = [row for lane in lanes for row in self._queue(want, lane)[: want.count]]
                tickets += [row.make_ticket(want.server, want.epoch) for row in rows]
        counts = {want.host: self._crawl.host_count(want.host).pages for want in wants}
        return PageQuota(
            self.spec, self.store.quota_spent(self.spec), self._crawl.total.pages, host_pages=counts
        ).admit_tickets(tickets, wants, held)

    def _queue(self, want: Want, lane: Lane) -> list[UrlRow]:
        now_s = self.now().timestamp()
        latest = now_s if lane in TIMED_LANES else math.inf
        rows = [
            row for row in self._crawl.rows.values() if row.host == want.host and row.lane is lane
        ]
        queue = sorted(
            (row.rank, row.id) for row in rows if row.rank is not None and row.rank <= latest
        )
        return [self._crawl.rows[id_] for _, id_ in queue if id_ not in want.holding]

    # Looking

    def get_robots(self, origins: Sequence[str]) -> dict[str, RobotsRow]:
        return {
            origin: self.store.origins[origin] for origin in origins if origin in self.store.origins
        }

    def rejudge_forbidden(self, origin: str, allows: Callable[[str], bool]) -> int:
        revived = 0
        for name, book in self.store.crawls.items():
            ours = name == self.spec.name
            writer = CrawlWriter(
                book, self.spec if ours else CrawlSpec(name, book.order, max_depth=book.max_depth)
            )
            writer.revive_allowed(origin, allows)
            writer.enforce_quotas()
            book.refresh_waiting(self.now())
            revived += writer.revived if ours else 0
        return revived

    def outlook(self, worker: str = "") -> Outlook:
        now = self.now()
        work = self.store.host_queues(self.spec)
        elsewhere: set[int] = set()
        ready: list[datetime] = []
        later: list[datetime] = []
        for name, here in work.items():
            host = self.store.hosts[name]
            server = self.store.servers.get(host.server or 0)
            retry = None if here.retry is None else from_unix(here.retry)
            waits = here.has_due_url(now.timestamp())
            if server and not has_passed(server.until, now) and server.worker != worker:
                if waits or retry:
                    elsewhere.add(server.id)
                continue
            allowed = max(
                now, host.next_allowed or now, server.next_allowed or now if server else now
            )
            if waits:
                ready.append(allowed)
            elif retry:
                later.append(max(retry, allowed))
        visits = [here.revisit for here in work.values() if here.revisit is not None]
        next_visit = from_unix(min(visits)) if visits else None
        return Outlook(
            min(len(ready), MAX_READY),
            min(ready + later, default=None),
            next_visit,
            leased_elsewhere=len(elsewhere),
            spent=self.store.quota_spent(self.spec),
        )

    def get_urls(self, ids: Sequence[int]) -> dict[int, StoredUrl]:
        return {
            id_: self._crawl.rows[id_].to_stored_url() for id_ in ids if id_ in self._crawl.rows
        }

    def seed_urls(self) -> list[str]:
        rows = sorted(
            (row.first_seen, row.id, row.url) for row in self._crawl.rows.values() if row.depth == 0
        )
        return [url for _, _, url in rows[:10_000]]

    def count_urls(self) -> dict[str, int]:
        states = Counter(row.state for row in self._crawl.rows.values())
        return {"known": len(self._crawl.rows), **{state.value: states[state] for state in State}}


def from_unix(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
