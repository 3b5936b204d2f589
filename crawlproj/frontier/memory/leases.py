"""Leases of servers in memory: which are chosen, kept, given back. The rules are those of
`frontier.leases`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from crawlproj.frontier.base import CrawlSpec, Host, Lease, Peer
from crawlproj.frontier.memory.crawl import MemoryCrawl
from crawlproj.frontier.memory.rows import HostQueue, HostRow, ServerRow, WorkerRow
from crawlproj.frontier.memory.store import MemoryStore, has_passed
from crawlproj.revisit.shares import ranked_servers

SOON = timedelta(seconds=10)
"""A host that rests longer than this is not leased yet."""
YIELD = timedelta(seconds=2)
"""So long other crawls come first on a server that was given back for them."""


class MemoryLeases:
    """The leases of one crawl: does what `frontier.leases.Leases` does on Postgres."""

    def __init__(self, spec: CrawlSpec, store: MemoryStore, now: Callable[[], datetime]) -> None:
        self._spec = spec
        self._store = store
        self._now = now

    def lease(
        self,
        worker: str,
        servers: int,
        ranked: int | None = None,
        unprepared: int | None = None,
        unseen: int = 0,
    ) -> list[Lease]:
        now = self._now()
        queues = self._store.host_queues(self._spec)
        leases = []
        for id_, kind in self._choose(servers, ranked, unprepared, now=now, queues=queues).items():
            free = self._store.servers[id_]
            held = self._take(free, worker, now, unseen=unseen)
            assert held is not None
            lease = _lease(held, self._hosts(id_, now, queues))
            leases.append(replace(lease, taken_over=free.worker is not None, kind=kind))
        return leases

    def _count_unseen(self, server: ServerRow, now: datetime, unseen: int) -> ServerRow:
        asked = dict(server.asked)
        for host in self._store.hosts.values():
            if host.server == server.id:
                asked[host.name] = asked.get(host.name, 0) + unseen
        allowed = server.next_allowed or now
        return replace(server, next_allowed=allowed, asked=asked, busy_at=now)

    def _choose(
        self,
        count: int,
        ranked: int | None,
        unprepared: int | None,
        now: datetime,
        queues: Mapping[str, HostQueue],
    ) -> dict[int, str]:
        """Servers and their kinds: by best rank up to the share of new URLs, then by earliest time,
        then what is left by rank.
        """
        stages = (True, False) if unprepared is None else (True,)
        best, due = self._candidates(stages, now, queues)
        if ranked is None:
            ranked = ranked_servers(self._spec.shares, count)
        order = [
            *((id_, "ranked") for id_ in best[:ranked]),
            *((id_, "timed") for id_ in due),
            *((id_, "ranked") for id_ in best),
        ]
        chosen: dict[int, str] = {}
        for id_, kind in order:
            if len(chosen) < count:
                chosen.setdefault(id_, kind)
        if unprepared:
            best, due = self._candidates((False,), now, queues)
            limit = min(unprepared, count)
            fresh = dict.fromkeys(best[:limit] + due[:limit])
            left = [id_ for id_ in fresh if id_ not in chosen]
            chosen |= dict.fromkeys(left[:unprepared], "unprepared")
        return chosen

    def _candidates(
        self, prepared: Sequence[bool], now: datetime, queues: Mapping[str, HostQueue]
    ) -> tuple[list[int], list[int]]:
        """Free servers by rank and by time, each at the position of its best host; equal ones by
        the host's name.
        """
        ranked: dict[int, tuple[float, str]] = {}
        timed: dict[int, tuple[float, str]] = {}
        for name, queue in queues.items():
            host = self._store.hosts[name]
            if host.server is None or host.prepared not in prepared:
                continue
            if not has_passed(host.next_allowed, now + SOON):
                continue
            if not self._free(self._store.servers[host.server], now):
                continue
            _keep_best(ranked, host.server, self._crawl.turn_rank(name, queue), name=name)
            _keep_best(timed, host.server, queue.due_time(now.timestamp()), name=name)
        return sorted(ranked, key=ranked.__getitem__), sorted(timed, key=timed.__getitem__)

    def _free(self, server: ServerRow, now: datetime) -> bool:
        if not has_passed(server.next_allowed, now + SOON):
            return False
        return has_passed(server.until, now) or (
            server.worker is None and server.yielded != self._spec.name
        )

    def _hosts(self, server: int, now: datetime, queues: Mapping[str, HostQueue]) -> list[Host]:
        """Hosts of a server that have something due."""
        due = []
        for name, queue in queues.items():
            host = self._store.hosts[name]
            if host.server == server and queue.has_due_url(now.timestamp()):
                due.append(self._host(host, server))
        return due

    def _host(self, row: HostRow, server: int) -> Host:
        return Host(
            row.name,
            server,
            row.pause,
            pages_left=self._pages_left(row.name),
            prepared=row.prepared,
        )

    def new_hosts_on_leases(
        self, worker: str, servers: Sequence[int], known: Sequence[str]
    ) -> list[Lease]:
        now = self._now()
        queues = self._store.host_queues(self._spec)
        leases = []
        for server in self._held(worker, servers):
            hosts = [
                host
                for host in self._hosts(server.id, now, queues)
                if host.name not in known and (host.pause is None or host.pause.until <= now + SOON)
            ]
            if hosts and server.until:
                leases.append(_lease(server, hosts))
        return leases

    def lease_for_hosts(
        self, worker: str, names: Sequence[str], unseen: int = 0
    ) -> tuple[list[Lease], list[str]]:
        now = self._now()
        hosts = self._store.hosts
        for name in names:
            hosts.setdefault(name, HostRow(name))
        wanted = [
            hosts[name]
            for name in dict.fromkeys(names)
            if has_passed(hosts[name].next_allowed, now + SOON)
        ]
        leases = []
        for id_ in dict.fromkeys(host.server for host in wanted):
            server = self._store.servers.get(id_ or 0)
            if server is None or not has_passed(server.next_allowed, now + SOON):
                continue
            held: ServerRow | None = server
            if server.worker != worker:
                held = self._take(server, worker, now, unseen=unseen)
            if held is not None:
                # Taking a server may have changed the clocks of its hosts.
                rows = [hosts[host.name] for host in wanted if host.server == id_]
                lease = _lease(held, [self._host(row, held.id) for row in rows])
                taken_over = server.worker not in (None, worker)
                leases.append(replace(lease, taken_over=taken_over))
        return leases, [host.name for host in wanted if host.server is None]

    def _take(self, server: ServerRow, worker: str, now: datetime, unseen: int) -> ServerRow | None:
        if not self._free(server, now):
            return None
        held = replace(
            server,
            epoch=server.epoch + 1,
            worker=worker,
            until=now + self._spec.lease,
            yielded=None,
        )
        if server.worker is not None and unseen:
            held = self._count_unseen(held, now, unseen)
        self._store.servers[server.id] = held
        return held

    def _pages_left(self, host: str) -> int | None:
        if not self._spec.host_pages:
            return None
        return max(0, self._spec.host_pages - self._crawl.host_count(host).pages)

    def _held(self, worker: str, servers: Sequence[int]) -> list[ServerRow]:
        known = [self._store.servers[id_] for id_ in servers if id_ in self._store.servers]
        return [server for server in known if server.worker == worker]

    def renew_leases(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        until = self._now() + self._spec.lease
        held = self._held(worker, servers)
        self._store.servers |= {server.id: replace(server, until=until) for server in held}
        return {server.id: until for server in held}

    def contested_servers(self, servers: Sequence[int]) -> set[int]:
        now_s = self._now().timestamp()
        contested = set()
        for name, crawl in self._store.crawls.items():
            if name == self._spec.name:
                continue
            for host, queue in crawl.host_queues(spent=False).items():
                if queue.has_due_url(now_s):
                    contested.add(self._store.hosts[host].server)
        return {id_ for id_ in servers if id_ in contested}

    @property
    def _crawl(self) -> MemoryCrawl:
        return self._store.crawls[self._spec.name]

    def has_free_servers(self) -> bool:
        queues = self._store.host_queues(self._spec)
        return bool(self._choose(1, None, None, now=self._now(), queues=queues))

    def _end_turns(self, servers: Sequence[int], now: datetime) -> None:
        """Hosts that had their turn wait from now on, the slow and the failing up to an hour
        longer.
        """
        for name in self._crawl.waiting_since:
            host = self._store.hosts[name]
            if host.server in servers:
                penalty_s = 0.0
                if host.next_allowed is not None:
                    pause_s = max(0.0, (host.next_allowed - now).total_seconds())
                    penalty_s = min(3600.0, 60 * pause_s)
                self._crawl.waiting_since[name] = now.timestamp() + penalty_s

    def release_servers(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        now = self._now()
        held = self._held(worker, servers)
        self._end_turns([server.id for server in held], now)
        until = now
        yielded = None
        if yielding:
            until = now + YIELD
            yielded = self._spec.name
        for server in held:
            free = replace(server, worker=None, until=until, yielded=yielded)
            self._store.servers[server.id] = free

    def heartbeat(
        self, worker: str, wanting: bool, rules: Mapping[str, float] | None = None
    ) -> list[Peer]:
        now = self._now()
        workers = self._store.workers
        until = now + self._spec.lease
        workers[worker] = WorkerRow(self._spec.name, wanting, until, dict(rules or {}))
        leased = [row for row in self._store.servers.values() if not has_passed(row.until, now)]
        held = Counter(row.worker for row in leased)
        living = sorted(
            name
            for name, row in workers.items()
            if name != worker and not has_passed(row.until, now)
        )
        return [
            Peer(
                name,
                workers[name].crawl == self._spec.name,
                workers[name].wanting,
                held=held[name],
                rules=workers[name].rules,
            )
            for name in living
        ]

    def end_dead_workers(self, workers: Sequence[str], rest: timedelta) -> int:
        now = self._now()
        ended = 0
        for name in workers:
            self._store.workers.pop(name, None)
        for server in list(self._store.servers.values()):
            if server.worker in workers and server.until and not has_passed(server.until, now):
                rests_until = max(min(server.until, now + rest), server.next_allowed or now)
                self._store.servers[server.id] = replace(
                    server, until=now, next_allowed=rests_until, reason="taken over"
                )
                ended += 1
        return ended


def _lease(server: ServerRow, hosts: Sequence[Host]) -> Lease:
    assert server.until is not None
    return Lease(
        server.id,
        server.address,
        server.epoch,
        until=server.until,
        hosts=tuple(hosts),
        pause=server.pause,
    )


def _keep_best(
    best: dict[int, tuple[float, str]], server: int, rank: float | None, name: str
) -> None:
    """Note a host of a server if it has a rank and stands before what is noted so far."""
    if rank is not None:
        position = (rank, name)
        best[server] = min(position, best.get(server, position))
