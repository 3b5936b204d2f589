"""The frontier in memory: it keeps the same contract as the real one, for tests and simulators.

It is plain rather than fast: queues are found by looking at all rows, and a commit that fails puts
the old rows back.
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
    HostText,
    Lane,
    Lease,
    LeftOutHost,
    NewUrl,
    Outcome,
    Outlook,
    Pause,
    Peer,
    Rejudged,
    RobotsRow,
    State,
    StoredUrl,
    Ticket,
    Verdict,
    Want,
)
from crawlproj.frontier.memory.crawl import CrawlWriter, MemoryCrawl
from crawlproj.frontier.memory.leases import MemoryLeases
from crawlproj.frontier.memory.rows import HostRow, ServerRow, UrlRow, clean_text
from crawlproj.frontier.memory.store import MemoryStore, has_passed
from crawlproj.frontier.quotas import PageQuota
from crawlproj.frontier.rules import CrawlRules

RESOLVING = timedelta(seconds=60)
"""So long a host is one worker's to resolve."""
TRUSTED = timedelta(days=1)
"""How long an address is believed."""
SUSPECT = timedelta(minutes=5)
"""The same after failures."""


def utc_now() -> datetime:
    return datetime.now(UTC)


UNRESOLVED = "?"
"""First letter of the server of a name without an address."""


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

    def apply_rules(self, rules: CrawlRules, wanted: Callable[[str], bool]) -> Rejudged:
        with self.store.transaction(self.spec.name):
            writer = CrawlWriter(self._crawl, self.spec)
            done = writer.apply_rules(rules, wanted, self.now())
            writer.enforce_quotas()
            for host in writer.hosts:
                self.store.hosts.setdefault(host, HostRow(host))
            self._crawl.refresh_waiting(self.now())
            return done

    def find_left_out(self, name: str) -> LeftOutHost | None:
        return self._crawl.left_out.get(name)

    def count_left_out(self) -> int:
        return len(self._crawl.left_out)

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
            writer.leave_out_hosts(batch.left_out.values(), self.now())
            writer.put_texts({n: t for n, t in batch.texts.items() if n in self.store.hosts})
            writer.put_listed(batch.listed)
            self._put_robots(batch.robots)
            self._put_clocks(batch, worker)
            self._crawl.refresh_waiting(self.now())
            return writer.make_committed()

    def get_host_texts(self, hosts: Sequence[str]) -> dict[str, HostText]:
        texts = self._crawl.texts
        return {name: texts[name] for name in hosts if name in texts}

    def preview_verdicts(self, outcomes: Sequence[Outcome]) -> dict[int, tuple[str, Verdict]]:
        return {}

    def try_to_write(self) -> None:
        """Nothing here is ever refused."""

    def _put_robots(self, rows: Sequence[RobotsRow]) -> None:
        hosts = self.store.hosts
        for row in rows:
            self.store.origins[row.origin] = replace(row, body=clean_text(row.body))
            if row.status and row.host in hosts:
                hosts[row.host] = replace(hosts[row.host], prepared=True)

    def _put_clocks(self, batch: Batch, worker: str) -> None:
        hosts = self.store.hosts
        for name, pause in batch.clocks.items():
            host = hosts.get(name)
            if host and self._may_replace(host.pause, pause, host.server, worker=worker):
                hosts[name] = replace(host, pause=Pause(pause.until, pause.reason, pause.failures))
        servers = self.store.servers
        for id_, pause in batch.server_clocks.items():
            server = servers.get(id_)
            if server and self._may_replace(server.pause, pause, id_, worker=worker):
                server = replace(server, next_allowed=pause.until, reason=pause.reason)
                if server.worker == worker:
                    server = replace(server, asked=dict(pause.asked), busy_at=pause.busy_at)
                servers[id_] = server

    def _may_replace(self, old: Pause | None, new: Pause, server: int | None, worker: str) -> bool:
        """A worker whose lease has moved on can only make a pause longer."""
        if old is None or new.until > old.until:
            return True
        holder = self.store.servers[server].worker if server is not None else None
        return holder == worker

    def _end(self, writer: CrawlWriter, outcomes: Sequence[Outcome], worker: str) -> None:
        for end in outcomes:
            row = self._crawl.rows.get(end.id)
            if row is None or row.id in writer.done or not self._is_current(row, end, worker):
                writer.late += 1
            else:
                writer.end_visit(row, end)

    def _is_current(self, row: UrlRow, end: Outcome, worker: str) -> bool:
        server = self.store.servers.get(end.server)
        if server is None:
            return False
        return (row.visit, server.epoch, server.worker) == (end.visit, end.epoch, worker)

    # Hosts and servers

    def take_unresolved(self, limit: int) -> list[str]:
        return self._take_names(limit, lambda host: host.server is None or host.resolved is None)

    def take_outdated(self, limit: int) -> list[str]:
        now = self.now()
        return self._take_names(limit, lambda host: self._unsure(host, now))

    def _take_names(self, limit: int, wanted: Callable[[HostRow], bool]) -> list[str]:
        now = self.now()
        queues = self._crawl.host_queues(spent=False)
        free: list[tuple[float, str]] = []
        for host in self.store.hosts.values():
            if host.name in queues and has_passed(host.taken_until, now) and wanted(host):
                rank = self._crawl.turn_rank(host.name, queues[host.name])
                free.append((math.inf if rank is None else rank, host.name))
        names = [name for _, name in sorted(free)[:limit]]
        for name in names:
            self.store.hosts[name] = replace(self.store.hosts[name], taken_until=now + RESOLVING)
        return names

    def _unsure(self, host: HostRow, now: datetime) -> bool:
        """Whether a host was last looked up too long ago, and nobody holds its server."""
        if host.server is None or host.resolved is None:
            return False
        good_for = TRUSTED
        if host.pause and host.pause.failures:
            good_for = SUSPECT
        is_free = has_passed(self.store.servers[host.server].until, now)
        return is_free and host.resolved < now - good_for

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

    def heartbeat(
        self, worker: str, wanting: bool, rules: Mapping[str, float] | None = None
    ) -> list[Peer]:
        return self._leases.heartbeat(worker, wanting, rules)

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
                tickets += [self._make_ticket(want, row) for row in rows]
        spent = self.store.quota_spent(self.spec)
        host_pages = {want.host: self._crawl.host_count(want.host).pages for want in wants}
        quota = PageQuota(self.spec, spent, self._crawl.total.pages, host_pages=host_pages)
        return quota.admit_tickets(tickets, wants, held)

    def _make_ticket(self, want: Want, row: UrlRow) -> Ticket:
        source = self._crawl.sources.get(row.id)
        named_by = self._crawl.named_by(row)
        return row.make_ticket(want.server, want.epoch, source, named_by=named_by)

    def _queue(self, want: Want, lane: Lane) -> list[UrlRow]:
        """What is due of a host in a lane, the best first."""
        rows = self._crawl.rows
        latest = math.inf
        if lane in TIMED_LANES:
            latest = self.now().timestamp()
        queue: list[tuple[float, int]] = []
        for row in rows.values():
            in_queue = row.host == want.host and row.lane is lane and row.id not in want.holding
            if in_queue and row.rank is not None and row.rank <= latest:
                queue.append((row.rank, row.id))
        return [rows[id_] for _, id_ in sorted(queue)]

    # Looking

    def get_robots(self, origins: Sequence[str]) -> dict[str, RobotsRow]:
        return {
            origin: self.store.origins[origin] for origin in origins if origin in self.store.origins
        }

    def rejudge_forbidden(self, origin: str, allows: Callable[[str], bool]) -> int:
        revived = 0
        for name, crawl in self.store.crawls.items():
            spec = self.spec
            if name != spec.name:  # whose quotas are not known here
                spec = CrawlSpec(name, crawl.order, max_depth=crawl.max_depth)
            writer = CrawlWriter(crawl, spec)
            writer.revive_allowed(origin, allows)
            writer.enforce_quotas()
            crawl.refresh_waiting(self.now())
            if name == self.spec.name:
                revived = writer.revived
        return revived

    def set_aside(self, id_: int, visit: int, *, status: int, why: str) -> bool:
        crawl = self.store.crawls[self.spec.name]
        row = crawl.rows.get(id_)
        if row is None or row.visit != visit:
            return False
        now = self.now()
        end = Outcome(
            id_, visit, server=0, epoch=0, state=State.DEAD, at=now, status=status, why=why
        )
        crawl.rows[id_] = row.end_visit(end, lane=None, rank=None)
        crawl.refresh_waiting(now)
        return True

    def outlook(self, worker: str = "") -> Outlook:
        now = self.now()
        queues = self.store.host_queues(self.spec)
        elsewhere: set[int] = set()
        ready: list[datetime] = []
        later: list[datetime] = []
        for name, queue in queues.items():
            host = self.store.hosts[name]
            server = self.store.servers.get(host.server or 0)
            is_due = queue.has_due_url(now.timestamp())
            if server and not has_passed(server.until, now) and server.worker != worker:
                if is_due or queue.retry is not None:
                    elsewhere.add(server.id)
                continue
            allowed = max(now, host.next_allowed or now)
            if server and server.next_allowed:
                allowed = max(allowed, server.next_allowed)
            if is_due:
                ready.append(allowed)
            elif queue.retry is not None:
                later.append(max(from_unix(queue.retry), allowed))
        visits = [
            from_unix(queue.revisit) for queue in queues.values() if queue.revisit is not None
        ]
        return Outlook(
            ready=min(len(ready), MAX_READY),
            soonest=min(ready + later, default=None),
            next_visit=min(visits, default=None),
            leased_elsewhere=len(elsewhere),
            spent=self.store.quota_spent(self.spec),
        )

    def unresolved_hosts(self, until: datetime) -> dict[str, datetime]:
        now_s = self.now().timestamp()
        found: dict[str, datetime] = {}
        for name, queue in sorted(self._crawl.host_queues(spent=False).items()):
            retries = queue.retry is not None and queue.retry <= until.timestamp()
            if not retries and not queue.has_due_url(now_s):
                continue
            host = self.store.hosts[name]
            server = self.store.servers.get(host.server or 0)
            if server is None or not server.address.startswith(UNRESOLVED):
                return {}
            assert host.resolved is not None
            found[name] = host.resolved
        return dict(list(found.items())[:1000])

    def get_urls(self, ids: Sequence[int]) -> dict[int, StoredUrl]:
        rows = self._crawl.rows
        return {id_: rows[id_].to_stored_url() for id_ in ids if id_ in rows}

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
