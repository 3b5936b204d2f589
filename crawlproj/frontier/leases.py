"""Leases of servers in Postgres: which are taken, kept, given back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from crawlproj.db import Database, Queries, Transaction
from crawlproj.frontier.base import CrawlSpec, Host, Lease, Pause, Peer
from crawlproj.frontier.columns import array

SOON = timedelta(seconds=10)
"""A host that rests longer than this is not leased yet."""
YIELD = timedelta(seconds=2)
"""So long other crawls come first on a server that was given back for them."""


class Leases:
    """Those of one crawl. `now` and `spent` (is a total quota used up?) are asked inside the transaction that they are for."""

    def __init__(
        self, database: Database, spec: CrawlSpec, now: Callable[[Queries], datetime], spent: Callable[[Queries], bool]
    ) -> None:
        self.crawl = 0
        self._db, self._spec, self._now, self._spent = database, spec, now, spent

    def lease(
        self, worker: str, servers: int, ranked: int | None = None, unprepared: int | None = None, unseen: int = 0
    ) -> list[Lease]:
        with self._db.transaction() as tx:
            now = self._now(tx)
            spent = self._spent(tx)
            chosen = self._choose(tx, servers, ranked, unprepared, {"crawl": self.crawl, "now": now, "soon": now + SOON}, spent)
            if not chosen:
                return []
            ids, until = array(chosen), now + self._spec.lease
            taken = tx.rows("lease_take", crawl=self.crawl, worker=worker, servers=ids, now=now, until=until)
            if unseen and (dead := [row[0] for row in taken if row[6]]):
                tx.run("count_unseen", servers=array(dead), unseen=unseen)
            hosts = defaultdict(list)
            held = array(row[0] for row in taken)
            for server, *fields in tx.rows("lease_hosts", crawl=self.crawl, servers=held, now=now, spent=spent):
                hosts[server].append(self._host(server, *fields))
        return [
            Lease(id_, address, epoch, end, tuple(hosts[id_]), _pause(allowed, reason), dead, chosen[id_])
            for id_, address, epoch, end, allowed, reason, dead in taken
        ]

    def _choose(
        self, tx: Transaction, count: int, ranked: int | None, unprepared: int | None, args: Mapping[str, Any], spent: bool
    ) -> dict[int, str]:
        """Servers by best rank and by earliest time, and the kind of each. Each class first gets its places, then what is left."""

        def look(prepared: Sequence[bool], limit: int) -> tuple[list[int], list[int]]:
            flags = array(prepared)
            by_rank = tx.rows("lease_ranked", spent=spent, prepared=flags, count=limit, **args)
            by_time = tx.rows("lease_timed", prepared=flags, count=limit, **args)
            return [row[0] for row in by_rank], [row[0] for row in by_time]

        new, revisit = self._spec.shares.get("new", 0.0), self._spec.shares.get("revisit", 0.0)
        quota = ranked if ranked is not None else ceil(count * new / (new + revisit)) if new + revisit else count
        best, due = look((True, False) if unprepared is None else (True,), count)
        first = best[:quota]
        chosen = dict.fromkeys(first, "ranked")
        for kind, servers in (("timed", due), ("ranked", best)):
            for server in servers:
                if len(chosen) < count:
                    chosen.setdefault(server, kind)
        if unprepared:
            rest, again = look((False,), min(unprepared, count))
            fresh = [server for server in dict.fromkeys(rest + again) if server not in chosen][:unprepared]
            chosen |= dict.fromkeys(fresh, "unprepared")
        return chosen

    def arrivals(self, worker: str, servers: Sequence[int], known: Sequence[str]) -> list[Lease]:
        if not servers:
            return []
        now, spent = self._now(self._db), self._spent(self._db)
        args = {"crawl": self.crawl, "worker": worker, "now": now, "soon": now + SOON, "spent": spent}
        leases: dict[int, Lease] = {}
        for id_, address, epoch, until, allowed, reason, *host in self._db.rows(
            "arrivals", servers=array(servers), known=array(known), **args
        ):
            lease = leases.get(id_) or Lease(id_, address, epoch, until, (), _pause(allowed, reason))
            leases[id_] = replace(lease, hosts=(*lease.hosts, self._host(id_, *host)))
        return list(leases.values())

    def _host(
        self, server: int, name: str, allowed: datetime | None, reason: str, asked: int, failures: int, prepared: bool, pages: int
    ) -> Host:
        room = max(0, self._spec.host_pages - pages) if self._spec.host_pages else None
        return Host(name, server, _pause(allowed, reason, asked, failures), room, prepared)

    def renew(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        until = self._now(self._db) + self._spec.lease
        return dict(self._db.rows("renew", worker=worker, servers=array(servers), until=until)) if servers else {}

    def contested(self, servers: Sequence[int]) -> set[int]:
        rows = self._db.rows("contested", crawl=self.crawl, servers=array(servers), now=self._now(self._db)) if servers else []
        return {row[0] for row in rows}

    def release(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        if servers:
            now = self._now(self._db)
            until, yielded = (now + YIELD, self.crawl) if yielding else (now, None)
            self._db.run("release", worker=worker, servers=array(servers), until=until, yielded=yielded)

    def attend(self, worker: str, wanting: bool) -> list[Peer]:
        with self._db.transaction() as tx:
            now = self._now(tx)
            tx.run("attend", worker=worker, crawl=self.crawl, wanting=wanting, until=now + self._spec.lease)
            return [Peer(*row) for row in tx.rows("peers", worker=worker, crawl=self.crawl, now=now)]

    def leave(self, worker: str) -> None:
        self._db.run("leave", worker=worker, now=self._now(self._db))

    def bury(self, workers: Sequence[str], rest: timedelta) -> int:
        if not workers:
            return 0
        with self._db.transaction() as tx:
            now, names = self._now(tx), array(workers)
            tx.run("forget_workers", workers=names)
            return tx.run("bury", workers=names, now=now, rested=now + rest)


def _pause(allowed: datetime | None, reason: str, asked: int = 0, failures: int = 0) -> Pause | None:
    return Pause(allowed, reason, asked, failures) if allowed is not None else None
