"""Leases of servers in Postgres: which are taken, kept, given back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import merge
from math import ceil
from typing import Any

from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.database.queries import Queries
from crawlproj.frontier.base import CrawlSpec, Host, Lease, Pause, Peer

SOON = timedelta(seconds=10)
"""A host that rests longer than this is not leased yet."""
YIELD = timedelta(seconds=2)
"""So long other crawls come first on a server that was given back for them."""
UNPREPARED = 1
PREPARED = 2
"""Stages of a host in `crawl_host`; those of 0 have no server."""


class Leases:
    """Those of one crawl. `now` and `spent` (is a total quota used up?) are asked inside the
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
            chosen = self._choose(
                tx,
                servers,
                ranked,
                unprepared=unprepared,
                args={"crawl": self.crawl, "now": now, "soon": now + SOON},
                spent=spent,
            )
            if not chosen:
                return []
            taken = self._take(tx, worker, chosen, now=now, unseen=unseen)
            hosts = defaultdict(list)
            held = array_literal(row[0] for row in taken)
            for server, *fields in tx.fetch_rows(
                "lease_hosts", crawl=self.crawl, servers=held, now=now, spent=spent
            ):
                hosts[server].append(self._host(server, *fields))
        return [_lease(row, hosts[row[0]], chosen[row[0]]) for row in taken]

    def _choose(
        self,
        tx: Transaction,
        count: int,
        ranked: int | None,
        unprepared: int | None,
        args: Mapping[str, Any],
        spent: bool,
    ) -> dict[int, str]:
        """Servers by best rank and by earliest time, and the kind of each. Each class first gets
        its places, then what is left.
        """

        def look(
            kind: str, stages: Sequence[int], limit: int, besides: Iterable[int] = ()
        ) -> list[int]:
            if limit <= 0:
                return []
            seen = list(besides)
            every: dict[str, Any] = {
                **args,
                "seen": array_literal(seen),
                "count": limit + len(seen),
            }
            queues = (
                [("lease_ranked", {"spent": spent})]
                if kind == "ranked"
                else [("lease_retry", {}), ("lease_revisit", {})]
            )
            walks = [
                tx.fetch_rows(name, stage=stage, **more, **every)
                for stage in stages
                for name, more in queues
            ]
            return _merged(walks)[:limit]

        new = self._spec.shares.get("new", 0.0)
        revisit = self._spec.shares.get("revisit", 0.0)
        quota = (
            ranked
            if ranked is not None
            else ceil(count * new / (new + revisit))
            if new + revisit
            else count
        )
        stages = (PREPARED, UNPREPARED) if unprepared is None else (PREPARED,)
        chosen = dict.fromkeys(look("ranked", stages, min(quota, count)), "ranked")
        for kind in ("timed", "ranked"):
            chosen |= dict.fromkeys(look(kind, stages, count - len(chosen), besides=chosen), kind)
        if unprepared:
            limit = min(unprepared, count)
            rest = [*look("ranked", (UNPREPARED,), limit), *look("timed", (UNPREPARED,), limit)]
            fresh = [server for server in dict.fromkeys(rest) if server not in chosen][:unprepared]
            chosen |= dict.fromkeys(fresh, "unprepared")
        return chosen

    def new_hosts_on_leases(
        self, worker: str, servers: Sequence[int], known: Sequence[str]
    ) -> list[Lease]:
        if not servers:
            return []
        now = self._now(self._db)
        spent = self._spent(self._db)
        args = {
            "crawl": self.crawl,
            "worker": worker,
            "now": now,
            "soon": now + SOON,
            "spent": spent,
        }
        leases: dict[int, Lease] = {}
        for id_, address, epoch, until, allowed, reason, *host in self._db.fetch_rows(
            "arrivals", servers=array_literal(servers), known=array_literal(known), **args
        ):
            lease = leases.get(id_) or Lease(
                id_, address, epoch, until=until, hosts=(), pause=_pause(allowed, reason)
            )
            leases[id_] = replace(lease, hosts=(*lease.hosts, self._host(id_, *host)))
        return list(leases.values())

    def lease_for_hosts(
        self, worker: str, names: Sequence[str], unseen: int = 0
    ) -> tuple[list[Lease], list[str]]:
        with self._db.transaction() as tx:
            now = self._now(tx)
            args = {"crawl": self.crawl, "names": array_literal(names), "soon": now + SOON}
            tx.run("add_hosts", names=array_literal(names))
            wanted = {row[0] for row in tx.fetch_rows("named_hosts", **args)} - {None}
            rows = tx.fetch_rows("held_servers", worker=worker, servers=array_literal(wanted))
            rows += self._take(
                tx, worker, wanted - {row[0] for row in rows}, now=now, unseen=unseen
            )
            hosts = defaultdict(list)
            for server, *fields in tx.fetch_rows("named_hosts", **args):
                hosts[server].append(self._host(server, *fields))
        leases = [_lease(row, hosts[row[0]]) for row in rows]
        return leases, [host.name for host in hosts.get(None, [])]

    def _take(
        self, tx: Transaction, worker: str, servers: Collection[int], now: datetime, unseen: int
    ) -> list[tuple[Any, ...]]:
        until = now + self._spec.lease
        taken = tx.fetch_rows(
            "lease_take",
            crawl=self.crawl,
            worker=worker,
            servers=array_literal(servers),
            now=now,
            until=until,
        )
        if unseen and (dead := [row[0] for row in taken if row[6]]):
            tx.run("count_unseen", servers=array_literal(dead), unseen=unseen)
        return taken

    def _host(
        self,
        server: int,
        name: str,
        allowed: datetime | None,
        reason: str,
        asked: int,
        failures: int,
        prepared: bool,
        pages: int,
    ) -> Host:
        room = max(0, self._spec.host_pages - pages) if self._spec.host_pages else None
        return Host(
            name,
            server,
            _pause(allowed, reason, asked, failures=failures),
            pages_left=room,
            prepared=prepared,
        )

    def renew_leases(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        until = self._now(self._db) + self._spec.lease
        return (
            dict(
                self._db.fetch_rows(
                    "renew", worker=worker, servers=array_literal(servers), until=until
                )
            )
            if servers
            else {}
        )

    def contested_servers(self, servers: Sequence[int]) -> set[int]:
        rows = (
            self._db.fetch_rows(
                "contested",
                crawl=self.crawl,
                servers=array_literal(servers),
                now=self._now(self._db),
            )
            if servers
            else []
        )
        return {row[0] for row in rows}

    def release_servers(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        if servers:
            now = self._now(self._db)
            until, yielded = (now + YIELD, self.crawl) if yielding else (now, None)
            with self._db.transaction() as tx:
                tx.run(
                    "end_turns",
                    crawl=self.crawl,
                    worker=worker,
                    servers=array_literal(servers),
                    now=now,
                )
                tx.run(
                    "release",
                    worker=worker,
                    servers=array_literal(servers),
                    until=until,
                    yielded=yielded,
                )

    def has_free_servers(self) -> bool:
        with self._db.transaction() as tx:
            now = self._now(tx)
            return bool(
                self._choose(
                    tx,
                    1,
                    None,
                    unprepared=None,
                    args={"crawl": self.crawl, "now": now, "soon": now + SOON},
                    spent=self._spent(tx),
                )
            )

    def heartbeat(self, worker: str, wanting: bool) -> list[Peer]:
        with self._db.transaction() as tx:
            now = self._now(tx)
            tx.run(
                "attend",
                worker=worker,
                crawl=self.crawl,
                wanting=wanting,
                until=now + self._spec.lease,
            )
            return [
                Peer(*row)
                for row in tx.fetch_rows("peers", worker=worker, crawl=self.crawl, now=now)
            ]

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


def _lease(row: tuple[Any, ...], hosts: Sequence[Host], kind: str = "ranked") -> Lease:
    server, address, epoch, until, allowed, reason, dead = row
    return Lease(
        server,
        address,
        epoch,
        until=until,
        hosts=tuple(hosts),
        pause=_pause(allowed, reason),
        taken_over=dead,
        kind=kind,
    )


def _merged(walks: Iterable[Sequence[tuple[float, str, int]]]) -> list[int]:
    """Servers of several walks, each where its best host stands: by rank or time, then by name."""
    return list(dict.fromkeys(server for _, _, server in merge(*walks)))


def _pause(
    allowed: datetime | None, reason: str, asked: int = 0, failures: int = 0
) -> Pause | None:
    return Pause(allowed, reason, asked, failures=failures) if allowed is not None else None
