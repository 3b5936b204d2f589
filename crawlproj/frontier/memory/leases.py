"""Leases of servers in memory: which are chosen, kept, given back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from crawlproj.frontier.base import CrawlSpec, Host, Lease, Pause, Peer
from crawlproj.frontier.memory.crawl import MemoryCrawl
from crawlproj.frontier.memory.rows import HostQueue, HostRow, ServerRow, WorkerRow
from crawlproj.frontier.memory.store import MemoryStore, has_passed

SOON = timedelta(seconds=10)
"""A host that rests longer than this is not leased yet."""
YIELD = timedelta(seconds=2)


class MemoryLeases:
    """The twin of `leases.Leases`."""

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
        work = self._store.host_queues(self._spec)
        leases = []
        for id_, kind in self._choose(servers, ranked, unprepared, now=now, work=work).items():
            free = self._store.servers[id_]
            held = self._take(free, worker, now, unseen=unseen)
            assert held is not None and held.until is not None
            hosts = tuple(self._hosts(id_, now, work))
            dead = free.worker is not None
            leases.append(
                Lease(
                    id_,
                    free.address,
                    held.epoch,
                    until=held.until,
                    hosts=hosts,
                    pause=free.pause,
                    taken_over=dead,
                    kind=kind,
                )
            )
        return leases

    def _count_unseen(self, server: int, unseen: int) -> None:
        for host in list(self._store.hosts.values()):
            if host.server == server and host.pause is not None:
                pause = replace(host.pause, asked=host.pause.asked + unseen)
                self._store.hosts[host.name] = replace(host, pause=pause)

    def _choose(
        self,
        count: int,
        ranked: int | None,
        unprepared: int | None,
        now: datetime,
        work: Mapping[str, HostQueue],
    ) -> dict[int, str]:
        """Servers by best rank up to the places of new URLs, by earliest time in the others, then
        the rest.
        """
        best, due = self._candidates((True, False) if unprepared is None else (True,), now, work)
        new = self._spec.shares.get("new", 0.0)
        revisit = self._spec.shares.get("revisit", 0.0)
        share = math.ceil(count * new / (new + revisit)) if new + revisit else count
        first = best[: share if ranked is None else ranked]
        order = [
            *((id_, "ranked") for id_ in first),
            *((id_, "timed") for id_ in due),
            *((id_, "ranked") for id_ in best),
        ]
        chosen: dict[int, str] = {}
        for id_, kind in order:
            if len(chosen) < count:
                chosen.setdefault(id_, kind)
        if unprepared:
            rest, again = self._candidates((False,), now, work)
            limit = min(unprepared, count)
            fresh = [
                id_ for id_ in dict.fromkeys(rest[:limit] + again[:limit]) if id_ not in chosen
            ]
            chosen |= dict.fromkeys(fresh[:unprepared], "unprepared")
        return chosen

    def _candidates(
        self, prepared: Sequence[bool], now: datetime, work: Mapping[str, HostQueue]
    ) -> tuple[list[int], list[int]]:
        """Servers where their best host stands: by rank or time, then by name."""
        ranked: dict[int, tuple[float, str]] = {}
        timed: dict[int, tuple[float, str]] = {}
        for name, here in work.items():
            host = self._store.hosts[name]
            if (
                host.server is None
                or host.prepared not in prepared
                or not has_passed(host.next_allowed, now + SOON)
            ):
                continue
            if not self._free(self._store.servers[host.server], now):
                continue
            for best, place in (
                (ranked, self._crawl.turn_rank(name, here)),
                (timed, here.due_time(now.timestamp())),
            ):
                if place is not None:
                    at = place, name
                    best[host.server] = min(at, best.get(host.server, at))
        return sorted(ranked, key=ranked.__getitem__), sorted(timed, key=timed.__getitem__)

    def _free(self, server: ServerRow, now: datetime) -> bool:
        if not has_passed(server.next_allowed, now + SOON):
            return False
        return has_passed(server.until, now) or (
            server.worker is None and server.yielded != self._spec.name
        )

    def _hosts(self, server: int, now: datetime, work: Mapping[str, HostQueue]) -> Iterator[Host]:
        for name, here in work.items():
            host = self._store.hosts[name]
            if host.server == server and here.has_due_url(now.timestamp()):
                yield Host(
                    name,
                    server,
                    host.pause,
                    pages_left=self._pages_left(name),
                    prepared=host.prepared,
                )

    def new_hosts_on_leases(
        self, worker: str, servers: Sequence[int], known: Sequence[str]
    ) -> list[Lease]:
        now = self._now()
        work = self._store.host_queues(self._spec)
        leases = []
        for server in self._held(worker, servers):
            fresh = [host for host in self._hosts(server.id, now, work) if host.name not in known]
            hosts = tuple(
                host for host in fresh if host.pause is None or host.pause.until <= now + SOON
            )
            if hosts and server.until:
                leases.append(
                    Lease(
                        server.id,
                        server.address,
                        server.epoch,
                        until=server.until,
                        hosts=hosts,
                        pause=server.pause,
                    )
                )
        return leases

    def lease_for_hosts(
        self, worker: str, names: Sequence[str], unseen: int = 0
    ) -> tuple[list[Lease], list[str]]:
        now = self._now()
        hosts = self._store.hosts
        names = [
            name
            for name in dict.fromkeys(names)
            if has_passed(hosts.setdefault(name, HostRow(name)).next_allowed, now + SOON)
        ]
        leases = []
        for id_ in dict.fromkeys(hosts[name].server for name in names):
            server = self._store.servers.get(id_ or 0)
            if server is None or not has_passed(server.next_allowed, now + SOON):
                continue
            if (
                held := server
                if server.worker == worker
                else self._take(server, worker, now, unseen=unseen)
            ):
                assert held.until is not None
                here = [hosts[name] for name in names if hosts[name].server == id_]
                given = tuple(
                    Host(
                        h.name,
                        held.id,
                        h.pause,
                        pages_left=self._pages_left(h.name),
                        prepared=h.prepared,
                    )
                    for h in here
                )
                dead = server.worker not in (None, worker)
                leases.append(
                    Lease(
                        held.id,
                        held.address,
                        held.epoch,
                        until=held.until,
                        hosts=given,
                        pause=held.pause,
                        taken_over=dead,
                    )
                )
        return leases, [name for name in names if hosts[name].server is None]

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
        self._store.servers[server.id] = held
        if server.worker is not None:
            self._count_unseen(server.id, unseen)
        return held

    def _pages_left(self, host: str) -> int | None:
        if not self._spec.host_pages:
            return None
        return max(
            0, self._spec.host_pages - self._store.crawls[self._spec.name].host_count(host).pages
        )

    def _held(self, worker: str, servers: Sequence[int]) -> list[ServerRow]:
        return [s for id_ in servers if (s := self._store.servers.get(id_)) and s.worker == worker]

    def renew_leases(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        until = self._now() + self._spec.lease
        renewed = {s.id: replace(s, until=until) for s in self._held(worker, servers)}
        self._store.servers |= renewed
        return dict.fromkeys(renewed, until)

    def contested_servers(self, servers: Sequence[int]) -> set[int]:
        now_s = self._now().timestamp()
        contested = set()
        for name, book in self._store.crawls.items():
            if name != self._spec.name:
                waiting = [
                    host
                    for host, here in book.host_queues(spent=False).items()
                    if here.has_due_url(now_s)
                ]
                contested |= {self._store.hosts[host].server for host in waiting}
        return {id_ for id_ in servers if id_ in contested}

    @property
    def _crawl(self) -> MemoryCrawl:
        return self._store.crawls[self._spec.name]

    def has_free_servers(self) -> bool:
        return bool(
            self._choose(1, None, None, now=self._now(), work=self._store.host_queues(self._spec))
        )

    def _end_turns(self, servers: Sequence[int], now: datetime) -> None:
        for name in self._crawl.waiting_since:
            host = self._store.hosts[name]
            if host.server in servers:
                rest_s = (
                    0.0 if host.next_allowed is None else (host.next_allowed - now).total_seconds()
                )
                self._crawl.waiting_since[name] = now.timestamp() + min(
                    3600.0, 60 * max(0.0, rest_s)
                )

    def release_servers(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        self._end_turns([server.id for server in self._held(worker, servers)], self._now())
        until, by = (self._now() + YIELD, self._spec.name) if yielding else (self._now(), None)
        self._store.servers |= {
            s.id: replace(s, worker=None, until=until, yielded=by)
            for s in self._held(worker, servers)
        }

    def heartbeat(self, worker: str, wanting: bool) -> list[Peer]:
        now = self._now()
        workers = self._store.workers
        workers[worker] = WorkerRow(self._spec.name, wanting, now + self._spec.lease)
        held = Counter(
            s.worker
            for s in self._store.servers.values()
            if s.worker and not has_passed(s.until, now)
        )
        living = sorted(
            (name, row)
            for name, row in workers.items()
            if name != worker and not has_passed(row.until, now)
        )
        return [
            Peer(name, row.crawl == self._spec.name, row.wanting, held=held[name])
            for name, row in living
        ]

    def end_dead_workers(self, workers: Sequence[str], rest: timedelta) -> int:
        now = self._now()
        buried = 0
        for name in workers:
            self._store.workers.pop(name, None)
        for server in list(self._store.servers.values()):
            if server.worker in workers and server.until and not has_passed(server.until, now):
                until = max(min(server.until, now + rest), server.next_allowed or now)
                self._store.servers[server.id] = replace(
                    server, until=now, pause=Pause(until, "taken over")
                )
                buried += 1
        return buried
