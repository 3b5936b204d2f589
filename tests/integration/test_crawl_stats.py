"""The table of a crawl's history: minutes become hours, hours become days, and nothing is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from crawlproj.articles.delays import count_delay
from crawlproj.database.connection import Database
from crawlproj.errors import DatabaseError
from crawlproj.frontier.base import CrawlSpec
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.reports.facts import status_facts
from crawlproj.reports.history import crawl_history
from crawlproj.scheduling.crawl_stats import FIGURES, ROLLS, CrawlStats
from tests.support.sources import Sources

COLUMNS = (*FIGURES, "failed")
FILL = f"""
insert into crawl_stat (crawl, span_s, at, {", ".join(COLUMNS)})
select c.id, 60, date_trunc('minute', now()) - make_interval(mins => n), {{values}}
from generate_series(0, 90 * 1440, 7) n cross join crawl c
""".format(values=", ".join(f"n % {number + 3} + 1" for number in range(len(COLUMNS))))
"""Ninety days of minutes, of all crawls."""
DAY_S = 86_400


@pytest.fixture
def frontier(database: Database) -> Iterator[PostgresFrontier]:
    for name in ("other", "crawl"):
        opened = PostgresFrontier(database, CrawlSpec(name))
        opened.open()
    database.run_script(FILL)
    yield opened


def totals(database: Database) -> dict[str, tuple[int, ...]]:
    columns = ", ".join(f"sum(s.{name})::bigint" for name in COLUMNS)
    rows = database.run_script(
        f"select c.name, {columns} from crawl_stat s join crawl c on c.id = s.crawl group by 1"
    )
    return {name: tuple(figures) for name, *figures in rows}


def spans(database: Database, crawl: str = "crawl") -> dict[int, tuple[int, int]]:
    """Of each span how many rows there are, and how many seconds ago the oldest began."""
    rows = database.run_script(f"""
        select span_s, count(*), extract(epoch from now() - min(at))::int
        from crawl_stat s join crawl c on c.id = s.crawl where c.name = '{crawl}' group by 1""")
    return {span_s: (number, age_s) for span_s, number, age_s in rows}


def assert_rolled(database: Database) -> None:
    found = spans(database)
    assert found.keys() == {60, 3600, DAY_S}
    # Whatever is older became part of a longer span, whose beginning may be older by all of it.
    assert found[60][1] <= 2 * DAY_S + 60
    assert found[3600][1] <= 60 * DAY_S + 3600
    assert 29 <= found[DAY_S][0] <= 32
    # In the first minutes of an hour the last one has no row yet: there is one in seven minutes.
    assert 58 * 24 - 1 <= found[3600][0] <= 59 * 24 + 2
    odd = "select count(*) from crawl_stat where extract(epoch from at)::bigint % span_s <> 0"
    assert database.run_script(odd) == [(0,)]


def test_old_minutes_become_hours_and_days_once(
    database: Database, frontier: PostgresFrontier
) -> None:
    before = totals(database)
    CrawlStats(frontier).write()
    assert totals(database) == before
    assert_rolled(database)
    assert spans(database, "other").keys() == {60}
    rolled = database.run_script("select * from crawl_stat order by 1, 2, 3")
    CrawlStats(frontier).write()
    assert database.run_script("select * from crawl_stat order by 1, 2, 3") == rolled
    # What grows old later is added to the same hours and days.
    database.run_script("update crawl_stat set at = at - interval '90 minutes' where span_s = 60")
    CrawlStats(frontier).write()
    assert totals(database) == before


def test_figures_are_added_to_their_minute_by_each_worker(
    database: Database, frontier: PostgresFrontier
) -> None:
    before = totals(database)["crawl"]
    workers = [CrawlStats(frontier), CrawlStats(frontier)]
    for number, worker in enumerate(workers, 1):
        worker.add({name: place * number for place, name in enumerate(COLUMNS)})
        worker.add({"fetches": 1})
        worker.write()
        worker.write()
    after = totals(database)["crawl"]
    gained = [new - old for new, old in zip(after, before, strict=True)]
    assert gained == [
        3 * place + (2 if name == "fetches" else 0) for place, name in enumerate(COLUMNS)
    ]


def test_two_workers_that_roll_at_once_lose_and_double_nothing(
    database: Database, frontier: PostgresFrontier
) -> None:
    before = totals(database)
    start = threading.Barrier(4)
    failed: list[BaseException] = []

    def work(adds: bool) -> None:
        with closing(database.new_connection()) as own:
            other = PostgresFrontier(own, CrawlSpec("crawl"))
            other.open()
            start.wait()
            try:
                for _ in range(10):
                    stats = CrawlStats(other)
                    if adds:
                        stats.add({"fetches": 1, "useful": 2})
                    stats.write()
                    # Everything is older now: what was rolled is rolled with other minutes again.
                    if not adds:
                        own.run_script("""
                            update crawl_stat set at = at - interval '1 day' where span_s = 60
                            and at < now() - interval '1 day'""")
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(number == 0,)) for number in range(3)]
    threads.append(threading.Thread(target=work, args=(True,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    after = totals(database)
    gained = dict(zip(COLUMNS, map(int.__sub__, after["crawl"], before["crawl"]), strict=True))
    assert {name: number for name, number in gained.items() if number} == {
        "fetches": 20,
        "useful": 40,
    }
    assert after["other"] == before["other"]


@pytest.mark.parametrize("span_s", [60, 3600])
def test_worker_that_dies_while_it_rolls_leaves_all_as_it_was(
    database: Database, frontier: PostgresFrontier, span_s: int
) -> None:
    before = totals(database)
    if span_s > 60:
        # It dies between the two.
        database.run("roll_crawl_stats", crawl=frontier.crawl_id, **ROLLS[0])
        assert totals(database) == before
    died: list[BaseException] = []
    with closing(database.new_connection()) as own, closing(database.new_connection()) as holder:
        worker = PostgresFrontier(own, CrawlSpec("crawl"))
        worker.open()
        ((pid,),) = own.run_script("select pg_backend_pid()")

        def roll() -> None:
            try:
                CrawlStats(worker).write()
            except DatabaseError as error:
                died.append(error)

        with holder.transaction() as tx:
            # Somewhere in the middle of what is old it has to wait.
            tx.run_script(f"""
                select 1 from crawl_stat where span_s = {span_s} and crawl = {frontier.crawl_id}
                and at < now() - interval '70 days' order by at desc limit 1 for update""")
            thread = threading.Thread(target=roll)
            thread.start()
            waits = f"select wait_event_type = 'Lock' from pg_stat_activity where pid = {pid}"
            while database.run_script(waits) != [(True,)]:
                assert thread.is_alive()
            database.run_script(f"select pg_terminate_backend({pid})")
            thread.join()
    assert died
    assert totals(database) == before
    CrawlStats(frontier).write()
    assert totals(database) == before
    assert_rolled(database)


def test_delays_of_minutes_become_those_of_their_day(
    database: Database, frontier: PostgresFrontier
) -> None:
    """A busy minute and a quiet one weigh as many articles as they have; and two workers that count
    the same minute count it once.
    """
    world = Sources(database, "crawl")
    database.run_script(
        "delete from crawl_stat; update crawl set created = now() - interval '1 year'"
    )
    waited = [10.0] * 30 + [4000.0] * 9 + [90_000.0]
    for number, delay_s in enumerate(waited):
        date = (world.now - timedelta(seconds=delay_s)).isoformat()
        world.add_article(f"https://a.test/{number}", 0, date)
    for _ in range(2):
        stats = CrawlStats(frontier)
        stats.add({"fetches": 40, "articles": 40})
        stats.write()
    ((at, delays),) = database.run_script("select at, delays from crawl_stat where delays <> '{}'")
    assert at == world.now.replace(second=0, microsecond=0) and sum(delays.values()) == 40

    # The 30 quick ones came in one minute, the others in nine of the same day; then all are rolled.
    quick = count_delay(10.0)
    slow = {name: number for name, number in delays.items() if name != quick}
    database.run_script(f"""
        delete from crawl_stat;
        insert into crawl_stat (crawl, span_s, at, delays)
        select {frontier.crawl_id}, 60, date_trunc('day', now()) - interval '70 days' + make_interval(mins => n), case n
            when 0 then '{json.dumps({quick: 30})}' when 90 then '{json.dumps(slow)}' else '{{}}' end::jsonb
        from generate_series(0, 100) n""")
    CrawlStats(frontier).write()
    assert spans(database).keys() == {DAY_S}
    (row,) = crawl_history(database, "crawl", world.now)["rows"]
    assert row["delay_p50_s"] == pytest.approx(10, rel=0.05)
    assert row["delay_p95_s"] == pytest.approx(4000, rel=0.05)


def test_change_ratio_of_history_is_by_weight(
    database: Database, frontier: PostgresFrontier
) -> None:
    database.run_script("delete from crawl_stat")
    stats = CrawlStats(frontier)
    stats.add({"changed": 1, "unchanged": 3, "weight": 6000, "weight_changed": 3000})
    stats.write()
    (row,) = crawl_history(database, "crawl", frontier.now())["rows"]
    assert (row["wasted"], row["wasted_share"], row["change_ratio"]) == (3, 0.75, 0.5)
    figures = status_facts(database, frontier.now())["crawl"]
    assert (figures["wasted"], figures["revisits"], figures["change_ratio"]) == (3, 4, 0.5)
