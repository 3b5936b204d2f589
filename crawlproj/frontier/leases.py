"""Leases of servers in Postgres: which are chosen, taken, kept, given back."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import merge
from typing import Any, NamedTuple

from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.database.queries import Queries
from crawlproj.frontier.base import CrawlSpec, Host, Lease, Pause, Peer
from crawlproj.revisit.shares import ranked_servers

SOON = timedelta(seconds=10)
"""A host that rests longer than this is not leased yet."""
YIELD = timedelta(seconds=2)
"""So long other crawls come first on a server that was given back for them."""
UNPREPARED = 1
PREPARED = 2
"""Stages of a host in `crawl_host`; a host of stage 0 has no server yet."""


class LeasedServer(NamedTuple):
    """A row of `lease_take` and `held_servers`. `was_dead`: the worker before did not give the
    server back.
    """

    id: int
    address: str
    epoch: int
    until: datetime
    next_allowed: datetime | None
    reason: str
    asked: dict[str, int]
    busy_at: datetime | None
    was_dead: bool = False


class Leases:
    """The leases of one crawl. `now` and `spent` (is a total quota used up?) are called with the
    transaction that they are for.
    """

    def __init__(
        self,
        database: Database,
        spec: CrawlSpec,
        now: Callable[[Queries], datetime],
        spent: Callable[[Queries], bool],
    ) -> None:
        self.crawl = 0
        self._db = database
        self._spec = spec
        self._now = now
        self._spent = spent

    def lease(
        self,
        worker: str,
        servers: int,
        ranked: int | None = None,
        unprepared: int | None = None,
        unseen: int = 0,
    ) -> list[Lease]:
        with self._db.transaction() as tx:
            now = self._now(tx)
            spent = self._spent(tx)
            chosen = self._choose(tx, servers, ranked, unprepared=unprepared, now=now, spent=spent)
            if not chosen:
                return []
            taken = self._take(tx, worker, chosen, now=now, unseen=unseen)
            rows = tx.fetch_rows(
                "lease_hosts",
                crawl=self.crawl,
                servers=array_literal([server.id for server in taken]),
                now=now,
                spent=spent,
            )
            hosts = self._hosts_by_server(rows)
        return [_lease(server, hosts[server.id], chosen[server.id]) for server in taken]

    def _choose(
        self,
        tx: Transaction,
        count: int,
        ranked: int | None,
        unprepared: int | None,
        now: datetime,
        spent: bool,
    ) -> dict[int, str]:
        """Servers by best rank and by earliest time, and the kind of each. Each kind first gets its
        share, then what the other leaves.
        """

        def candidates(
            kind: str, stages: Sequence[int], limit: int, besides: Collection[int] = ()
        ) -> list[int]:
            if limit <= 0:
                return []
            args: dict[str, Any] = {
                "crawl": self.crawl,
                "now": now,
                "soon": now + SOON,
                "seen": array_literal(besides),
                "count": limit + len(besides),
            }
            walks = []
            for stage in stages:
                if kind == "ranked":
                    walks.append(tx.fetch_rows("lease_ranked", stage=stage, spent=spent, **args))
                else:
                    walks.append(tx.fetch_rows("lease_retry", stage=stage, **args))
                    walks.append(tx.fetch_rows("lease_revisit", stage=stage, **args))
            return _merge_walks(walks)[:limit]

        if ranked is None:
            ranked = ranked_servers(self._spec.shares, count)
        stages = (PREPARED, UNPREPARED) if unprepared is None else (PREPARED,)
        chosen = dict.fromkeys(candidates("ranked", stages, min(ranked, count)), "ranked")
        for kind in ("timed", "ranked"):
            left = count - len(chosen)
            chosen |= dict.fromkeys(candidates(kind, stages, left, besides=chosen), kind)
        if unprepared:
            limit = min(unprepared, count)
            best = candidates("ranked", (UNPREPARED,), limit)
            due = candidates("timed", (UNPREPARED,), limit)
            fresh = [server for server in dict.fromkeys(best + due) if server not in chosen]
            chosen |= dict.fromkeys(fresh[:unprepared], "unprepared")
        return chosen

    def new_hosts_on_leases(
        self, worker: str, servers: Sequence[int], known: Sequence[str]
    ) -> list[Lease]:
        if not servers:
            return []
        now = self._now(self._db)
        rows = self._db.fetch_rows(
            "arrivals",
            crawl=self.crawl,
            worker=worker,
            servers=array_literal(servers),
            known=array_literal(known),
            now=now,
            soon=now + SOON,
            spent=self._spent(self._db),
        )
        held: dict[int, LeasedServer] = {}
        hosts: dict[int, list[Host]] = defaultdict(list)
        columns = len(LeasedServer._fields) - 1
        for row in rows:
            server = LeasedServer(*row[:columns])
            held[server.id] = server
            hosts[server.id].append(self._host(server.id, *row[columns:]))
        return [_lease(server, hosts[server.id]) for server in held.values()]

    def lease_for_hosts(
        self, worker: str, names: Sequence[str], unseen: int = 0
    ) -> tuple[list[Lease], list[str]]:
        with self._db.transaction() as tx:
            now = self._now(tx)
            args = {"crawl": self.crawl, "names": array_literal(names), "soon": now + SOON}
            tx.run("add_hosts", names=array_literal(names))
            wanted = {server for server, *_ in tx.fetch_rows("named_hosts", **args)} - {None}
            servers = tx.fetch_rows_as(
                "held_servers", LeasedServer, worker=worker, servers=array_literal(wanted)
            )
            free = wanted - {server.id for server in servers}
            servers += self._take(tx, worker, free, now=now, unseen=unseen)
            # Taking a server may have changed the clocks of its hosts.
            hosts = self._hosts_by_server(tx.fetch_rows("named_hosts", **args))
        leases = [_lease(server, hosts[server.id]) for server in servers]
        return leases, [host.name for host in hosts[None]]

    def _take(
        self, tx: Transaction, worker: str, servers: Collection[int], now: datetime, unseen: int
    ) -> list[LeasedServer]:
        taken = tx.fetch_rows_as(
            "lease_take",
            LeasedServer,
            crawl=self.crawl,
            worker=worker,
            servers=array_literal(servers),
            now=now,
            until=now + self._spec.lease,
        )
        dead = [server.id for server in taken if server.was_dead]
        if not unseen or not dead:
            return taken
        rows = tx.fetch_rows("count_unseen", servers=array_literal(dead), unseen=unseen, now=now)
        by_id = {server.id: server for server in taken}
        for id_, next_allowed, asked, busy_at in rows:
            by_id[id_] = by_id[id_]._replace(
                next_allowed=next_allowed, asked=asked, busy_at=busy_at
            )
        return list(by_id.values())

    def _hosts_by_server(
        self, rows: Iterable[tuple[Any, ...]]
    ) -> defaultdict[int | None, list[Host]]:
        """Rows of `lease_hosts` and `named_hosts`; under None those whose server is not known."""
        hosts: defaultdict[int | None, list[Host]] = defaultdict(list)
        for server, *host in rows:
            hosts[server].append(self._host(server, *host))
        return hosts

    def _host(
        self,
        server: int,
        name: str,
        next_allowed: datetime | None,
        reason: str,
        failures: int,
        prepared: bool,
        pages: int,
    ) -> Host:
        """A host out of the columns that the queries for leases end with."""
        pause = None
        if next_allowed is not None:
            pause = Pause(next_allowed, reason, failures)
        pages_left = None
        if self._spec.host_pages:
            pages_left = max(0, self._spec.host_pages - pages)
        return Host(name, server, pause, pages_left=pages_left, prepared=prepared)

    def renew_leases(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        if not servers:
            return {}
        until = self._now(self._db) + self._spec.lease
        rows = self._db.fetch_rows(
            "renew", worker=worker, servers=array_literal(servers), until=until
        )
        return dict(rows)

    def contested_servers(self, servers: Sequence[int]) -> set[int]:
        if not servers:
            return set()
        rows = self._db.fetch_rows(
            "contested", crawl=self.crawl, servers=array_literal(servers), now=self._now(self._db)
        )
        return {server for (server,) in rows}

    def release_servers(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        if not servers:
            return
        ids = array_literal(servers)
        now = self._now(self._db)
        until = now
        yielded = None
        if yielding:
            until = now + YIELD
            yielded = self.crawl
        with self._db.transaction() as tx:
            tx.run("end_turns", crawl=self.crawl, worker=worker, servers=ids, now=now)
            tx.run("release", worker=worker, servers=ids, until=until, yielded=yielded)

    def has_free_servers(self) -> bool:
        with self._db.transaction() as tx:
            now = self._now(tx)
            spent = self._spent(tx)
            return bool(self._choose(tx, 1, None, unprepared=None, now=now, spent=spent))

    def heartbeat(
        self, worker: str, wanting: bool, rules: Mapping[str, float] | None = None
    ) -> list[Peer]:
        with self._db.transaction() as tx:
            now = self._now(tx)
            tx.run(
                "attend",
                worker=worker,
                crawl=self.crawl,
                wanting=wanting,
                until=now + self._spec.lease,
                rules=json.dumps(dict(rules or {})),
            )
            rows = tx.fetch_rows("peers", worker=worker, crawl=self.crawl, now=now)
            return [Peer(*row) for row in rows]

    def remove_worker(self, worker: str) -> None:
        self._db.run("leave", worker=worker, now=self._now(self._db))

    def end_dead_workers(self, workers: Sequence[str], rest: timedelta) -> int:
        if not workers:
            return 0
        with self._db.transaction() as tx:
            now = self._now(tx)
            names = array_literal(workers)
            tx.run("forget_workers", workers=names)
            return tx.run("bury", workers=names, now=now, rested=now + rest)


def _lease(server: LeasedServer, hosts: Sequence[Host], kind: str = "ranked") -> Lease:
    pause = None
    if server.next_allowed is not None:
        pause = Pause(
            server.next_allowed, server.reason, asked=server.asked, busy_at=server.busy_at
        )
    return Lease(
        server.id,
        server.address,
        server.epoch,
        until=server.until,
        hosts=tuple(hosts),
        pause=pause,
        taken_over=server.was_dead,
        kind=kind,
    )


def _merge_walks(walks: Iterable[Sequence[tuple[Any, ...]]]) -> list[int]:
    """Servers of several walks in one order: by the rank or time of their best host, then by its
    name.
    """
    return list(dict.fromkeys(server for _, _, server in merge(*walks)))
