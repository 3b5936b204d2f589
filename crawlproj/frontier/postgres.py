"""The frontier on Postgres: the real one.

Opening, commits and questions are here; leases are in `leases`, what a commit writes of URLs and
pages is in `writes`, and rows become Tickets in `rows`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from crawlproj.content.language import Sample
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.database.queries import Queries
from crawlproj.errors import DatabaseError
from crawlproj.frontier.base import (
    LONGEST_PAUSE,
    Batch,
    Committed,
    CrawlSpec,
    DuplicateKind,
    HostText,
    Judge,
    Lease,
    LeftOutHost,
    NewUrl,
    Outcome,
    Outlook,
    Peer,
    Rejudged,
    RobotsRow,
    State,
    StoredUrl,
    Ticket,
    Verdict,
    Want,
)
from crawlproj.frontier.batches import harmless_page, split_batch, sum_commits
from crawlproj.frontier.changed_rules import RulesChange
from crawlproj.frontier.leases import Leases
from crawlproj.frontier.outlook import read_outlook
from crawlproj.frontier.quotas import PageQuota
from crawlproj.frontier.rejudge import revive_allowed
from crawlproj.frontier.rows import read_stored_urls, read_tickets
from crawlproj.frontier.rules import CrawlRules
from crawlproj.frontier.writes import (
    EndedVisits,
    UrlWriter,
    count_hints,
    end_columns,
    hide_pages,
    put_article_sources,
    put_contents,
    put_host_texts,
    put_listed,
    put_locations,
    put_sources,
    put_states,
    retire_pages,
    settle_articles,
)

log = logging.getLogger(__name__)
T = TypeVar("T")

TRIES = 5
CONFLICTS = frozenset({"40001", "40P01", "55P03"})
"""SQLSTATEs of two commits that locked the same rows the other way round. Postgres refuses one of
them, which is then simply repeated.
"""
SUM_EVERY = 1000
"""Commits after which what they have counted is summed up."""


class _TakenBack(Exception):
    """Rolls a transaction back that has done its duty."""


class PostgresFrontier:
    """One crawl in one database. See `base` for the contract; SQL is in `database/sql/queries/`
    under the names used here.
    """

    def __init__(
        self,
        database: Database,
        spec: CrawlSpec,
        clock: Callable[[], datetime] | None = None,
        find_languages: Callable[[Sequence[Sample]], list[str]] | None = None,
    ) -> None:
        """`find_languages` is given samples of new texts, and gives the language of each."""
        self.spec = spec
        self.judge: Judge | None = None
        """Says of which pages others are copies; None: nobody does."""
        self.keeps_copies = False
        """Whether copies of known articles become articles, too."""
        self._find_languages = find_languages
        self.db = database
        self._clock = clock
        self._crawl = 0
        self._commits = 0
        self._writer = UrlWriter(spec)
        self._leases = Leases(database, spec, self._now, spent=self._spent)

    def now(self) -> datetime:
        return self._now(self.db)

    def _now(self, queries: Queries) -> datetime:
        if self._clock:
            return self._clock()
        now: datetime = queries.fetch_value("now")
        return now

    def open(self) -> None:
        spec = self.spec
        with self.db.transaction() as tx:
            row = tx.fetch_row(
                "crawl_open", name=spec.name, ordering=spec.order, max_depth=spec.max_depth
            )
            assert row is not None
            self._crawl, ordering, max_depth = row
            self._writer.crawl = self._leases.crawl = self._crawl
            self._mend_clocks(tx)
            if (ordering, max_depth) != (spec.order, spec.max_depth):
                self._apply_spec(
                    tx,
                    new_order=ordering != spec.order,
                    new_depth=max_depth != spec.max_depth,
                )
            tx.run("sum_counts", crawl=self._crawl)

    def _mend_clocks(self, tx: Transaction) -> None:
        """End pauses and leases that last longer than any that we make: the database's clock was
        wrong when they were written.
        """
        now = self._now(tx)
        tx.run("mend_host_clocks", latest=now + LONGEST_PAUSE)
        tx.run("mend_server_clocks", latest=now + LONGEST_PAUSE, now=now)

    def _apply_spec(self, tx: Transaction, new_order: bool, new_depth: bool) -> None:
        """Known URLs follow the other order or depth limit that the spider came back with."""
        crawl = self._crawl
        ordering = self.spec.order
        max_depth = self.spec.max_depth
        tx.run("crawl_change", crawl=crawl, ordering=ordering, max_depth=max_depth)
        if new_order:
            tx.run("rerank", crawl=crawl, ordering=ordering)
        if new_depth and max_depth:
            tx.run("too_deep", crawl=crawl, max_depth=max_depth)
        if new_depth:
            tx.run("deep_enough", crawl=crawl, ordering=ordering, max_depth=max_depth)
        self._settle(tx, tx.fetch_value("all_hosts", crawl=crawl) or [], {}, now=self._now(tx))

    def apply_rules(self, rules: CrawlRules, wanted: Callable[[str], bool]) -> Rejudged:
        change = RulesChange(
            self.db,
            self._crawl,
            self.spec,
            run_transaction=self._retry_conflicts,
            settle=lambda tx, hosts: self._settle(tx, hosts, {}, now=self._now(tx)),
            add=self.add,
        )
        return change.apply(rules, wanted)

    def add(self, urls: Sequence[NewUrl]) -> Committed:
        return sum_commits([self.commit(piece) for piece in split_batch(Batch(urls=urls))])

    @property
    def crawl_id(self) -> int:
        """The number of this crawl in the database."""
        return self._crawl

    def commit(self, batch: Batch, worker: str = "") -> Committed:
        languages = self._languages_of(batch.outcomes)
        looked_up = None
        if self.judge is not None:
            looked_up = self.judge.look_up(self.db, batch.outcomes)
        return self._retry_conflicts(
            lambda tx: self._commit(tx, batch, worker, languages=languages, looked_up=looked_up)
        )

    def _languages_of(self, outcomes: Sequence[Outcome]) -> dict[int, str]:
        """The languages of the new texts among them."""
        if self._find_languages is None:
            return {}
        samples = {
            outcome.id: Sample(outcome.content.text.sample, outcome.content.language)
            for outcome in outcomes
            if outcome.content is not None and outcome.content.text is not None
        }
        if not samples:
            return {}
        return dict(zip(samples, self._find_languages(list(samples.values())), strict=True))

    def _retry_conflicts(self, work: Callable[[Transaction], T]) -> T:
        for tries_left in reversed(range(TRIES)):
            try:
                with self.db.transaction() as tx:
                    return work(tx)
            except Exception as error:
                self._writer.forget_hosts()
                conflict = isinstance(error, DatabaseError) and error.sqlstate in CONFLICTS
                if not tries_left or not conflict:
                    raise
                log.info("A commit met another one and is done again")
        raise AssertionError("unreachable")

    def preview_verdicts(self, outcomes: Sequence[Outcome]) -> dict[int, tuple[str, Verdict]]:
        if self.judge is None:
            return {}
        read = [outcome for outcome in outcomes if outcome.content is not None]
        verdicts: dict[int, Verdict] = {}
        if read:
            verdicts = self.judge.preview(self.db, read)
        unchanged = [outcome.id for outcome in outcomes if outcome.content is None]
        if unchanged:
            rows = self.db.fetch_rows("stored_verdicts", ids=array_literal(unchanged))
            for id_, original, kind, similarity in rows:
                if original is not None:
                    verdicts[id_] = Verdict(original, DuplicateKind(kind), similarity)
        originals = self.get_urls([verdict.original for verdict in verdicts.values()])
        return {
            id_: (originals[verdict.original].url, verdict)
            for id_, verdict in verdicts.items()
            if verdict.original in originals
        }

    def try_to_write(self) -> None:
        def write_and_take_back(tx: Transaction) -> None:
            harmless = harmless_page(self.spec.name, self._now(tx))
            self._commit(tx, Batch(urls=[harmless.url], robots=[harmless.robots]), "")
            put_contents(tx, [harmless.outcome], {harmless.url.id}, {})
            raise _TakenBack

        with suppress(_TakenBack):
            self._retry_conflicts(write_and_take_back)

    def _commit(
        self,
        tx: Transaction,
        batch: Batch,
        worker: str,
        languages: Mapping[int, str] | None = None,
        looked_up: Any = None,
    ) -> Committed:
        now = self._now(tx)
        touched: set[int] = set()
        ends = self._end(tx, batch.outcomes, worker, touched=touched, languages=languages or {})
        result = self._writer.write_urls(
            tx, batch.urls, now, touched=touched, nearer=ends.nearer, since=batch.since
        )
        self._writer.leave_out_hosts(tx, batch.left_out.values(), now)
        self._put_robots(tx, batch.robots)
        self._put_clocks(tx, batch, worker)
        put_host_texts(tx, self._crawl, batch.texts)
        put_listed(tx, self._crawl, batch.listed)
        self._settle(tx, sorted(touched), ends.counted, now=now)
        self._commits += 1
        if self._commits % SUM_EVERY == 0:
            tx.run("sum_counts", crawl=self._crawl)
        # After the 1st, 2nd, 4th, 8th commit and so on: the tables have doubled perhaps, and a plan
        # for small tables does not suit bigger ones.
        if self._commits.bit_count() == 1:
            tx.run("discard")
        verdicts: dict[int, Verdict] = {}
        lock_s = 0.0
        if self.judge is not None:
            before_s = self.judge.lock_s
            judged = [*ends.read, *ends.gone, *ends.hidden]
            verdicts = self.judge.settle(tx, judged, ends.hosts, looked_up)
            lock_s = self.judge.lock_s - before_s
        article_copies = 0
        if ends.articles and not self.keeps_copies:
            copies = [id_ for id_ in ends.articles if id_ in verdicts]
            if copies:
                article_copies = tx.run("drop_article_copies", pages=array_literal(copies))
        return replace(
            result,
            done=frozenset(ends.done),
            late=len(batch.outcomes) - len(ends.done),
            verdicts=verdicts,
            lock_s=lock_s,
            articles=len(ends.articles) - article_copies,
            article_copies=article_copies,
        )

    def _end(
        self,
        tx: Transaction,
        outcomes: Sequence[Outcome],
        worker: str,
        touched: set[int],
        languages: Mapping[int, str],
    ) -> EndedVisits:
        """Write the outcomes. Of several for one URL the first current one counts, so that later
        ones are tried only if the earlier are late.
        """
        ended = EndedVisits()
        left = list(outcomes)
        while left:
            first = {outcome.id: outcome for outcome in reversed(left)}
            in_order = [first[id_] for id_ in sorted(first)]
            rows = tx.fetch_rows(
                "end_visits",
                crawl=self._crawl,
                ordering=self.spec.order,
                worker=worker,
                **end_columns(in_order),
            )
            ended.add_rows(rows, first)
            left = [o for o in left if o.id not in ended.done and o is not first[o.id]]
        put_contents(tx, ended.read, ended.fresh, languages)
        ended.articles = put_article_sources(tx, self._crawl, ended.read)
        put_locations(tx, ended.stored_again)
        ended.gone = retire_pages(tx, ended.outcomes)
        hide_pages(tx, ended.hidden)
        put_states(tx, ended.outcomes)
        put_sources(tx, self._crawl, ended.outcomes)
        touched.update(settle_articles(tx, self.spec.order, ended.outcomes))
        count_hints(tx, ended.outcomes, ended.hosts)
        touched.update(ended.counted)
        return ended

    def _settle(
        self,
        tx: Transaction,
        hosts: Sequence[int],
        counted: Mapping[int, Sequence[int]],
        now: datetime,
    ) -> None:
        """Note what hosts have given and have to offer.

        Their rows are locked first, in one order: what another commit has just added is seen then,
        and what it adds later waits for us. Else a host could be noted as empty that is not.
        """
        if hosts:
            tx.run("lock_hosts", crawl=self._crawl, hosts=array_literal(hosts))
        self._count_pages(tx, counted)
        self._refresh_hosts(tx, hosts, now)

    def _count_pages(self, tx: Transaction, counted: Mapping[int, Sequence[int]]) -> None:
        """Add pages and bytes to what is counted for each host and for the crawl."""
        if not any(pages or size for pages, size in counted.values()):
            return
        rows = [(host, pages, size) for host, (pages, size) in sorted(counted.items())]
        hosts, all_pages, sizes = zip(*rows, strict=True)
        tx.run(
            "count_pages",
            crawl=self._crawl,
            host=array_literal(hosts),
            pages=array_literal(all_pages),
            bytes=array_literal(sizes),
        )

    def _refresh_hosts(self, tx: Transaction, hosts: Sequence[int], now: datetime) -> None:
        """Ignore new URLs of hosts that are over their quota, then note what each host has to
        offer.
        """
        full = self._writer.full_hosts(tx, hosts)
        if full:
            tx.run("ignore_over_quota", crawl=self._crawl, hosts=array_literal(full))
        if hosts:
            tx.run("refresh_hosts", crawl=self._crawl, hosts=array_literal(hosts), now=now)

    def _put_clocks(self, tx: Transaction, batch: Batch, worker: str) -> None:
        if batch.clocks:
            pauses = list(batch.clocks.values())
            tx.run(
                "put_clocks",
                name=array_literal(batch.clocks),
                at=array_literal(p.until for p in pauses),
                reason=array_literal(p.reason for p in pauses),
                failures=array_literal(p.failures for p in pauses),
                worker=worker,
            )
        if batch.server_clocks:
            pauses = list(batch.server_clocks.values())
            tx.run(
                "put_server_clocks",
                id=array_literal(batch.server_clocks),
                at=array_literal(p.until for p in pauses),
                reason=array_literal(p.reason for p in pauses),
                asked=array_literal(json.dumps(dict(p.asked)) for p in pauses),
                busy_at=array_literal(p.busy_at for p in pauses),
                worker=worker,
            )

    def _put_robots(self, tx: Transaction, rows: Sequence[RobotsRow]) -> None:
        latest = {row.origin: row for row in rows}
        if not latest:
            return
        columns = {
            field.name: array_literal(getattr(row, field.name) for row in latest.values())
            for field in fields(RobotsRow)
        }
        tx.run("notify_robots", origin=columns["origin"], body=columns["body"])
        tx.run("put_robots", **columns)
        prepared = sorted({row.host for row in latest.values() if row.status})
        if prepared:
            tx.run("prepare_hosts", names=array_literal(prepared))

    def take_unresolved(self, limit: int) -> list[str]:
        return self._take_names("take_unresolved", limit)

    def take_outdated(self, limit: int) -> list[str]:
        return self._take_names("take_outdated", limit)

    def _take_names(self, query: str, limit: int) -> list[str]:
        rows = self.db.fetch_rows(query, crawl=self._crawl, now=self.now(), count=limit)
        return [name for (name,) in rows]

    def put_addresses(self, addresses: Mapping[str, str]) -> None:
        if addresses:
            columns = {
                "name": array_literal(addresses),
                "address": array_literal(addresses.values()),
            }
            self._retry_conflicts(lambda tx: tx.run("put_addresses", now=self._now(tx), **columns))

    def _totals(self, queries: Queries) -> tuple[bool, int]:
        """Whether a total quota is used up, and how many pages were read; without such a quota
        nothing is looked up.
        """
        spec = self.spec
        if not spec.pages and not spec.bytes:
            return False, 0
        row = queries.fetch_row("crawl_totals", crawl=self._crawl)
        assert row is not None
        pages, size = row
        spent = 0 < spec.pages <= pages or 0 < spec.bytes <= size
        return spent, pages

    def _spent(self, queries: Queries) -> bool:
        spent, _ = self._totals(queries)
        return spent

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
        self._leases.remove_worker(worker)

    def end_dead_workers(self, workers: Sequence[str], rest: timedelta) -> int:
        return self._leases.end_dead_workers(workers, rest)

    def due_tickets(self, wants: Sequence[Want], held: int | None = None) -> list[Ticket]:
        if not wants:
            return []
        holding = array_literal(sorted({key for want in wants for key in want.holding}))
        with self.db.transaction() as tx:
            spent, pages = self._totals(tx)
            rows = tx.fetch_rows(
                "refill",
                crawl=self._crawl,
                now=self._clock and self._clock(),
                holding=holding,
                **_want_columns(wants),
            )
        tickets, host_pages = read_tickets(rows)
        quota = PageQuota(self.spec, spent, pages, host_pages=host_pages)
        return quota.admit_tickets(tickets, wants, held)

    def get_robots(self, origins: Sequence[str]) -> dict[str, RobotsRow]:
        if not origins:
            return {}
        rows = self.db.fetch_rows("get_robots", origins=list(origins))
        stored = [RobotsRow(*row) for row in rows]
        return {row.origin: row for row in stored}

    def get_host_texts(self, hosts: Sequence[str]) -> dict[str, HostText]:
        if not hosts:
            return {}
        rows = self.db.fetch_rows(
            "get_host_texts", crawl=self._crawl, names=array_literal(sorted(hosts))
        )
        return {name: HostText(noise, probe) for name, noise, probe in rows}

    def rejudge_forbidden(self, origin: str, allows: Callable[[str], bool]) -> int:
        revived = revive_allowed(self.db, origin, allows, on_queued=self._on_queued)
        return revived.get(self._crawl, 0)

    def _on_queued(self, tx: Transaction, crawl: int, hosts: list[int]) -> None:
        """Note what hosts of any crawl have to offer; only this crawl's quotas are known here."""
        if crawl == self._crawl:
            self._settle(tx, hosts, {}, now=self._now(tx))
        else:
            tx.run("lock_hosts", crawl=crawl, hosts=array_literal(hosts))
            tx.run("refresh_hosts", crawl=crawl, hosts=array_literal(hosts), now=self._now(tx))

    def set_aside(self, id_: int, visit: int, *, status: int, why: str) -> bool:
        return self._retry_conflicts(
            lambda tx: self._set_aside(tx, id_, visit, status=status, why=why)
        )

    def _set_aside(self, tx: Transaction, id_: int, visit: int, *, status: int, why: str) -> bool:
        now = self._now(tx)
        rows = tx.fetch_rows(
            "set_aside",
            crawl=self._crawl,
            id=id_,
            visit=visit,
            status=status,
            why=why,
            now=now,
        )
        for (host,) in rows:
            self._settle(tx, [host], {}, now=now)
        return bool(rows)

    def outlook(self, worker: str = "") -> Outlook:
        return read_outlook(
            self.db, self._crawl, worker, now=self.now(), spent=self._spent(self.db)
        )

    def unresolved_hosts(self, until: datetime) -> dict[str, datetime]:
        rows = self.db.fetch_rows(
            "outlook_unresolved", crawl=self._crawl, now=self.now(), until=until
        )
        if not all(unresolved for _, _, unresolved in rows):
            return {}
        return {name: resolved for name, resolved, _ in rows}

    def get_urls(self, ids: Sequence[int]) -> dict[int, StoredUrl]:
        if not ids:
            return {}
        return read_stored_urls(
            self.db.fetch_rows("look", crawl=self._crawl, ids=array_literal(ids))
        )

    def seed_urls(self) -> list[str]:
        return [url for (url,) in self.db.fetch_rows("seeds", crawl=self._crawl)]

    def count_urls(self) -> dict[str, int]:
        counts = {state.value: 0 for state in State}
        counts |= dict(self.db.fetch_rows("counts", crawl=self._crawl))
        return {"known": sum(counts.values()), **counts}

    def find_left_out(self, name: str) -> LeftOutHost | None:
        row = self.db.fetch_row("explain_left_out", crawl=self._crawl, name=name)
        if row is None:
            return None
        url, reason, first_seen = row
        return LeftOutHost(name, url, reason, first_seen)

    def count_left_out(self) -> int:
        number: int = self.db.fetch_value("count_left_out", crawl=self._crawl)
        return number

    def close(self) -> None:
        self.db.close()


def _want_columns(wants: Sequence[Want]) -> dict[str, str]:
    return {
        "name": array_literal([want.host for want in wants]),
        "server": array_literal([want.server for want in wants]),
        "epoch": array_literal([want.epoch for want in wants]),
        "count": array_literal([want.count for want in wants]),
        "urgent": array_literal([want.urgent for want in wants]),
    }
