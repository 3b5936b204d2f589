"""The frontier on Postgres: the real one."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from crawlproj.db import Database, Queries, Transaction
from crawlproj.errors import DatabaseError
from crawlproj.frontier import judging
from crawlproj.frontier.base import (
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
from crawlproj.frontier.columns import array
from crawlproj.frontier.writing import Ended, UrlWriter, end_columns, put_contents

log = logging.getLogger(__name__)

SOON = timedelta(seconds=10)
"""A host that rests longer than this is not leased yet."""
YIELD = timedelta(seconds=2)
"""So long other crawls come first on a server that was given back for them."""
TRIES = 5
CONFLICTS = frozenset({"40001", "40P01", "55P03"})
"""Two commits that lock the same rows the other way round: Postgres ends one, which is then simply done again."""


class PostgresFrontier:
    """One crawl in one database. See `base` for the contract; SQL is in `sql/queries.sql` under the names used here."""

    def __init__(self, database: Database, spec: CrawlSpec, clock: Callable[[], datetime] | None = None) -> None:
        self.spec = spec
        self.db = database
        self._clock = clock
        self._crawl = 0
        self._writer = UrlWriter(spec)

    def now(self) -> datetime:
        return self._now(self.db)

    def _now(self, queries: Queries) -> datetime:
        now: datetime = self._clock() if self._clock else queries.value("now")
        return now

    def open(self) -> None:
        spec = self.spec
        with self.db.transaction() as tx:
            row = tx.row("crawl_open", name=spec.name, ordering=spec.order, max_depth=spec.max_depth)
            assert row is not None
            self._crawl, ordering, max_depth = row
            self._writer.crawl = self._crawl
            if (ordering, max_depth) != (spec.order, spec.max_depth):
                self._change(tx, ordering != spec.order, max_depth != spec.max_depth)

    def _change(self, tx: Transaction, order: bool, depth: bool) -> None:
        """The spider came back with another order or depth limit: known URLs follow it."""
        crawl, ordering, max_depth = self._crawl, self.spec.order, self.spec.max_depth
        tx.run("crawl_change", crawl=crawl, ordering=ordering, max_depth=max_depth)
        if order:
            tx.run("rerank", crawl=crawl, ordering=ordering)
        if depth and max_depth:
            tx.run("too_deep", crawl=crawl, max_depth=max_depth)
        if depth:
            tx.run("deep_enough", crawl=crawl, ordering=ordering, max_depth=max_depth)
        self._sweep(tx, tx.value("all_hosts", crawl=crawl) or [])

    def add(self, urls: Sequence[NewUrl]) -> Committed:
        return self.commit(Batch(urls=urls))

    def commit(self, batch: Batch, worker: str = "") -> Committed:
        for left in reversed(range(TRIES)):
            try:
                with self.db.transaction() as tx:
                    return self._commit(tx, batch, worker)
            except DatabaseError as error:
                self._writer.forget()
                if not left or error.sqlstate not in CONFLICTS:
                    raise
                log.info("A commit met another one and is done again")
        raise AssertionError("unreachable")

    def _commit(self, tx: Transaction, batch: Batch, worker: str) -> Committed:
        now = self._now(tx)
        touched: set[int] = set()
        ends = self._end(tx, batch.outcomes, worker, touched)
        result = self._writer.write(tx, batch.urls, now, touched, ends.nearer)
        self._put_robots(tx, batch.robots)
        self._put_clocks(tx, batch)
        self._sweep(tx, sorted(touched))
        return replace(result, done=frozenset(ends.done), late=len(batch.outcomes) - len(ends.done))

    def _end(self, tx: Transaction, outcomes: Sequence[Outcome], worker: str, touched: set[int]) -> Ended:
        """Of several ends of one URL the first current one counts, so the later ones are tried only if the earlier are late."""
        ended = Ended()
        left = list(outcomes)
        while left:
            first = {outcome.id: outcome for outcome in reversed(left)}
            turn = [first[key] for key in sorted(first)]
            rows = tx.rows("end_visits", crawl=self._crawl, ordering=self.spec.order, worker=worker, **end_columns(turn))
            ended.take(rows, first)
            left = [o for o in left if o.id not in ended.done and o is not first[o.id]]
        put_contents(tx, ended.read, ended.fresh)
        self._count(tx, ended.counted)
        touched.update(ended.counted)
        return ended

    def _count(self, tx: Transaction, counted: Mapping[int, Sequence[int]]) -> None:
        if any(pages or size for pages, size in counted.values()):
            hosts = sorted(counted)
            pages, size = array(counted[h][0] for h in hosts), array(counted[h][1] for h in hosts)
            tx.run("count_pages", crawl=self._crawl, host=array(hosts), pages=pages, bytes=size)

    def _sweep(self, tx: Transaction, hosts: Sequence[int]) -> None:
        """New URLs of hosts that are over their quota are ignored; then what each host has to offer is noted."""
        if full := self._writer.full(tx, hosts):
            tx.run("ignore_over_quota", crawl=self._crawl, hosts=array(full))
        if hosts:
            tx.run("refresh_hosts", crawl=self._crawl, hosts=array(hosts))

    def _put_clocks(self, tx: Transaction, batch: Batch) -> None:
        if batch.clocks:
            pauses = list(batch.clocks.values())
            tx.run(
                "put_clocks", name=array(batch.clocks), at=array(p.until for p in pauses), reason=array(p.reason for p in pauses),
                asked=array(p.asked for p in pauses), failures=array(p.failures for p in pauses),
            )  # fmt: skip
        if batch.server_clocks:
            rests = list(batch.server_clocks.values())
            ids, at, why = array(batch.server_clocks), array(p.until for p in rests), array(p.reason for p in rests)
            tx.run("put_server_clocks", id=ids, at=at, reason=why)

    def _put_robots(self, tx: Transaction, rows: Sequence[RobotsRow]) -> None:
        latest = {row.origin: row for row in rows}
        if latest:
            names = ("origin", "host", "status", "body", "fetched", "expires", "failures", "etag", "modified")
            tx.run("put_robots", **{name: array(getattr(row, name) for row in latest.values()) for name in names})
            if prepared := sorted({row.host for row in latest.values() if row.status}):
                tx.run("prepare_hosts", names=array(prepared))

    def unresolved(self, limit: int) -> list[str]:
        return [row[0] for row in self.db.rows("take_unresolved", crawl=self._crawl, now=self.now(), count=limit)]

    def resolved(self, addresses: Mapping[str, str]) -> None:
        if addresses:
            self.db.run("put_addresses", name=array(addresses), address=array(addresses.values()), now=self.now())

    def _spent(self, tx: Queries) -> tuple[bool, int | None]:
        spec = self.spec
        if not spec.pages and not spec.bytes:
            return False, None
        row = tx.row("crawl_totals", crawl=self._crawl)
        assert row is not None
        spent = bool((spec.pages and row[0] >= spec.pages) or (spec.bytes and row[1] >= spec.bytes))
        return spent, max(0, spec.pages - row[0]) if spec.pages else None

    def lease(
        self, worker: str, servers: int, ranked: int | None = None, unprepared: int | None = None, unseen: int = 0
    ) -> list[Lease]:
        with self.db.transaction() as tx:
            now = self._now(tx)
            spent = self._spent(tx)[0]
            chosen = self._choose(tx, servers, ranked, unprepared, {"crawl": self._crawl, "now": now, "soon": now + SOON}, spent)
            if not chosen:
                return []
            ids, until = array(chosen), now + self.spec.lease
            taken = tx.rows("lease_take", crawl=self._crawl, worker=worker, servers=ids, now=now, until=until)
            if unseen and (dead := [row[0] for row in taken if row[6]]):
                tx.run("count_unseen", servers=array(dead), unseen=unseen)
            hosts = defaultdict(list)
            held = array(row[0] for row in taken)
            for server, *fields in tx.rows("lease_hosts", crawl=self._crawl, servers=held, now=now, spent=spent):
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

        new, revisit = self.spec.shares.get("new", 0.0), self.spec.shares.get("revisit", 0.0)
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
        now, spent = self.now(), self._spent(self.db)[0]
        args = {"crawl": self._crawl, "worker": worker, "now": now, "soon": now + SOON, "spent": spent}
        leases: dict[int, Lease] = {}
        for id_, address, epoch, until, allowed, reason, *host in self.db.rows(
            "arrivals", servers=array(servers), known=array(known), **args
        ):
            lease = leases.get(id_) or Lease(id_, address, epoch, until, (), _pause(allowed, reason))
            leases[id_] = replace(lease, hosts=(*lease.hosts, self._host(id_, *host)))
        return list(leases.values())

    def _host(
        self, server: int, name: str, allowed: datetime | None, reason: str, asked: int, failures: int, prepared: bool, pages: int
    ) -> Host:
        room = max(0, self.spec.host_pages - pages) if self.spec.host_pages else None
        return Host(name, server, _pause(allowed, reason, asked, failures), room, prepared)

    def renew(self, worker: str, servers: Sequence[int]) -> dict[int, datetime]:
        until = self.now() + self.spec.lease
        return dict(self.db.rows("renew", worker=worker, servers=array(servers), until=until)) if servers else {}

    def contested(self, servers: Sequence[int]) -> set[int]:
        rows = self.db.rows("contested", crawl=self._crawl, servers=array(servers), now=self.now()) if servers else []
        return {row[0] for row in rows}

    def release(self, worker: str, servers: Sequence[int], yielding: bool = False) -> None:
        if servers:
            now = self.now()
            until, yielded = (now + YIELD, self._crawl) if yielding else (now, None)
            self.db.run("release", worker=worker, servers=array(servers), until=until, yielded=yielded)

    def refill(self, wants: Sequence[Want]) -> list[Ticket]:
        if not wants:
            return []
        with self.db.transaction() as tx:
            columns = self._want_columns(tx, wants)
            holding = array(sorted({key for want in wants for key in want.holding}))
            rows = tx.rows("refill", crawl=self._crawl, now=self._now(tx), holding=holding, **columns)
        tickets = [Ticket(row[0], row[1], row[2], row[3], row[4], row[5], Lane(row[6]), State(row[7]), *row[8:]) for row in rows]
        return self._within_quota(tickets, wants)

    def _want_columns(self, tx: Transaction, wants: Sequence[Want]) -> dict[str, str]:
        self._room: dict[str, int] = {}
        ids: dict[str, int] = {}
        for name, key, pages in tx.rows("host_pages", crawl=self._crawl, names=[w.host for w in wants]):
            ids[name] = key
            if self.spec.host_pages:
                self._room[name] = self.spec.host_pages - (pages or 0)
        self._left = self._spent(tx)
        rows = [(w.host, ids[w.host], w.server, w.epoch, lane, w.count) for w in wants if w.host in ids for lane in Lane]
        names = ("name", "host", "server", "epoch", "lane", "count")
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return dict(zip(names, map(array, columns), strict=True))

    def _within_quota(self, tickets: list[Ticket], wants: Sequence[Want]) -> list[Ticket]:
        """New pages that the quotas no longer leave room for stay where they are."""
        spent, left = self._left
        if not self._room and not spent and left is None:
            return tickets
        room = {w.host: self._room[w.host] - len(w.holding) for w in wants if w.host in self._room}
        total = left - sum(len(w.holding) for w in wants) if left is not None else None
        kept = []
        for ticket in tickets:
            if ticket.lane in (Lane.NEW, Lane.BACKFILL):
                if spent or (total is not None and total <= 0) or room.get(ticket.host, 1) <= 0:
                    continue
                if total is not None:
                    total -= 1
                if ticket.host in room:
                    room[ticket.host] -= 1
            kept.append(ticket)
        return kept

    def robots(self, origins: Sequence[str]) -> dict[str, RobotsRow]:
        rows = self.db.rows("get_robots", origins=list(origins)) if origins else []
        return {row[0]: RobotsRow(*row) for row in rows}

    def rejudge(self, origin: str, allows: Callable[[str], bool]) -> int:
        return judging.rejudge(self.db, origin, allows, self._queued).get(self._crawl, 0)

    def _queued(self, tx: Transaction, crawl: int, hosts: list[int]) -> None:
        if crawl == self._crawl:
            self._sweep(tx, hosts)
        else:
            tx.run("refresh_hosts", crawl=crawl, hosts=array(hosts))

    def outlook(self, worker: str = "") -> Outlook:
        spent = self._spent(self.db)[0]
        row = self.db.row("outlook", crawl=self._crawl, now=self.now(), worker=worker, spent=spent)
        assert row is not None
        return Outlook(ready=row[0], soonest=row[1], next_visit=row[2], leased_elsewhere=row[3], spent=spent)

    def look(self, ids: Sequence[int]) -> dict[int, Found]:
        rows = self.db.rows("look", crawl=self._crawl, ids=array(ids)) if ids else []
        return {
            row[0]: Found(row[0], row[1], row[2], State(row[3]), None if row[4] is None else Lane(row[4]), *row[5:]) for row in rows
        }

    def seeds(self) -> list[str]:
        return [row[0] for row in self.db.rows("seeds", crawl=self._crawl)]

    def counts(self) -> dict[str, int]:
        counts = {state.value: 0 for state in State} | dict(self.db.rows("counts", crawl=self._crawl))
        return {"known": sum(counts.values()), **counts}

    def close(self) -> None:
        self.db.close()


def _pause(allowed: datetime | None, reason: str, asked: int = 0, failures: int = 0) -> Pause | None:
    return Pause(allowed, reason, asked, failures) if allowed is not None else None
