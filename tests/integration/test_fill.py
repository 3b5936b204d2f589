"""A made-up crawl is one that the frontier goes on with as if it were its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.fill import fill
from benchmarks.madeup import ENDS, Maker
from benchmarks.rounds import Round
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database
from crawlproj.frontier.base import CrawlSpec, Lane, State
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.urls.canonical import host_of, url_key
from tests.support.catalog import catalog

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEPT = (
    "select crawl, host, name, stage, ready, retry, revisit, pages, bytes from crawl_host "
    "order by host"
)


@pytest.fixture
def filled(new_database: Callable[[str], str]) -> Iterator[tuple[PostgresFrontier, Maker]]:
    dsn = new_database("template0")
    maker = fill(dsn, "filled", 4000, 400, NOW)
    frontier = PostgresFrontier(Database(dsn), CrawlSpec("filled"), lambda: NOW)
    frontier.open()
    yield frontier, maker
    frontier.close()


def test_a_filled_database_has_the_schema_and_the_references_of_any_other(
    filled: tuple[PostgresFrontier, Maker], database: Database
) -> None:
    db = filled[0].db
    assert catalog(db) == catalog(database)
    for table, column, other, key in db.run_script(
        "select conrelid::regclass::text, (select attname from pg_attribute where attrelid = "
        "conrelid and attnum = conkey[1]),"
        " confrelid::regclass::text, (select attname from pg_attribute where attrelid = confrelid "
        "and attnum = confkey[1]) from pg_constraint where contype = 'f' and connamespace = "
        "'crawlproj'::regnamespace"
    ):
        missing = f"select count(*) from {table} t where t.{column} is not null and not exists"
        assert db.run_script(f"{missing} (select from {other} o where o.{key} = t.{column})") == [
            (0,)
        ], (
            table,
            column,
        )


def test_what_is_kept_twice_agrees(filled: tuple[PostgresFrontier, Maker]) -> None:
    frontier, maker = filled
    db = frontier.db
    kept = db.run_script(KEPT)
    hosts = array_literal(row[1] for row in kept)
    db.run_script("update crawl_host set ready = null, retry = null, revisit = null")
    db.run("refresh_hosts", crawl=maker.crawl, hosts=hosts, now=frontier.now())
    assert db.run_script(KEPT) == kept
    counted = dict(db.run_script("select state, count(*) from url group by state"))
    assert counted == {
        state: number for state, number in frontier.count_urls().items() if state != "known"
    }
    assert set(counted) == set(State) and frontier.count_urls()["known"] == 4000
    pages = db.run_script(
        "select host, count(*) from url u join page p on p.url = u.id group by host"
    )
    assert {row[1]: row[7] for row in kept if row[7]} == dict(pages)
    assert db.run_script("select sum(pages), sum(bytes) from crawl_host") == db.run_script(
        "select pages, bytes from crawl"
    )
    stages = "select id, case when server is null then 0 when prepared then 2 else 1 end from host"
    assert {row[1]: row[3] for row in kept} == dict(db.run_script(stages))


def test_rows_are_what_the_frontier_writes(filled: tuple[PostgresFrontier, Maker]) -> None:
    """Each URL under the id of its text, on the host of its text, in the lane and at the place that
    its state gives it.
    """
    frontier, _ = filled
    rows = frontier.get_urls([row[0] for row in frontier.db.run_script("select id from url")])
    assert len(rows) == 4000
    for row in rows.values():
        assert row.id == url_key("filled", row.url) and row.host == host_of(row.url)
        if row.state in (State.NEW, State.IGNORED):
            assert (row.visit, row.last_visit, row.next_visit) == (0, None, None)
            assert row.rank == {Lane.URGENT: 0.0, None: None}.get(row.lane, -row.score)
            assert (row.lane is None) == (row.state is State.IGNORED)
        else:
            assert (
                row.visit and row.last_visit and (row.status, row.why, row.tries) == ENDS[row.state]
            )
            assert row.rank == (row.next_visit.timestamp() if row.next_visit else None)
            assert row.lane == (
                None
                if not row.next_visit
                else Lane.RETRY
                if row.state is State.RETRY
                else Lane.REVISIT
            )


def test_counts_are_summed_up_now_and_then(
    filled: tuple[PostgresFrontier, Maker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each statement leaves a row per state; they must not become millions."""
    monkeypatch.setattr("crawlproj.frontier.postgres.SUM_EVERY", 5)
    frontier, _ = filled
    work = Round(frontier)
    work.lease(50)
    work.refill()
    for _ in range(25):
        work.turn(5, NOW)
    counted = dict(frontier.db.run_script("select state, count(*) from url group by state"))
    assert counted == {
        state: number for state, number in frontier.count_urls().items() if state != "known"
    }
    assert frontier.db.run_script("select count(*) <= 9 from url_count") == [(True,)]
    frontier.db.run_script("delete from url where state = 'dead'")
    assert frontier.count_urls()["dead"] == 0
    frontier.db.run_script("delete from crawl")
    assert frontier.db.run_script("select count(*) from url_count") == [(0,)]


def test_the_frontier_works_on_from_it(filled: tuple[PostgresFrontier, Maker]) -> None:
    frontier, _ = filled
    work = Round(frontier)
    names = frontier.take_unresolved(1000)
    frontier.put_addresses(dict.fromkeys(names, "10.9.9.9"))
    assert names and frontier.take_unresolved(1000) == []
    before = frontier.count_urls()
    leases = work.lease(50)
    assert len(leases) >= 50 and {lease.kind for lease in leases} == {
        "ranked",
        "timed",
        "unprepared",
    }
    tickets = work.refill()
    assert {ticket.lane for ticket in tickets} >= set(Lane) - {Lane.URGENT}
    committed = work.turn(len(tickets), NOW)
    assert (len(committed.done), committed.late) == (len(tickets), 0)
    assert frontier.count_urls()["known"] == before[
        "known"
    ] + committed.added and committed.added > len(tickets)
    assert not {ticket.id for ticket in work.refill()} & {
        t.id for t in tickets if t.lane is Lane.REVISIT
    }
    counted = dict(frontier.db.run_script("select state, count(*) from url group by state"))
    assert counted == {
        state: number for state, number in frontier.count_urls().items() if state != "known"
    }
    frontier.renew_leases("round", list(work.leases))
    assert frontier.outlook("other").leased_elsewhere == len(work.leases)
    later = PostgresFrontier(frontier.db, frontier.spec, lambda: NOW + timedelta(days=40))
    later.open()
    assert later.outlook().ready == 100 and len(later.lease("later", 100)) == 100
