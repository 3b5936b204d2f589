"""What workers share of prices: one price, which outlives them, and for which nobody waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

import pytest

from crawlproj.database.connection import Database
from crawlproj.frontier.base import CrawlSpec
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.revisit.base import Numbers
from crawlproj.scheduling.revisit_budget import NO_MOVES, RevisitBudget


def estimate(numbers: Numbers, age_s: float, source: bool) -> tuple[float, float]:
    return 1.0, 0.0


@pytest.fixture
def new_worker(database: Database, database_url: str) -> Callable[[], RevisitBudget]:
    def make() -> RevisitBudget:
        frontier = PostgresFrontier(database.new_connection(), CrawlSpec("crawl"))
        frontier.open()
        return RevisitBudget(frontier, estimate)

    return make


def test_workers_move_one_price_and_the_next_run_begins_with_it(
    new_worker: Callable[[], RevisitBudget],
) -> None:
    first = new_worker()
    second = new_worker()
    at_start = first.take_turn(NO_MOVES)
    assert at_start is not None and (at_start.page_price, at_start.source_price) == (1.0, 1.0)
    first.take_turn((2.0, 1.0))
    moved = second.take_turn((3.0, 0.5))
    assert moved is not None and (moved.page_price, moved.source_price) == (6.0, 0.5)
    again = new_worker().take_turn(NO_MOVES)
    assert again is not None, "before its first visit"
    assert (again.page_price, again.source_price) == (6.0, 0.5)


def test_nobody_waits_for_the_price_and_no_move_of_it_is_lost(
    new_worker: Callable[[], RevisitBudget], database_url: str
) -> None:
    worker = new_worker()
    worker.take_turn(NO_MOVES)
    with closing(Database(database_url)) as other, other.transaction() as transaction:
        transaction.run_script("update crawlproj.crawl set pages = pages + 1")
        started = time.monotonic()
        assert worker.take_turn((2.0, 1.0)) is None
        assert worker.take_turn((2.0, 0.5)) is None
        assert time.monotonic() - started < 5
    news = worker.take_turn((1.5, 1.0))
    assert news is not None and (news.page_price, news.source_price) == (6.0, 0.5)


def test_a_small_crawl_beside_a_big_one_knows_how_fresh_it_is(
    database: Database, new_worker: Callable[[], RevisitBudget]
) -> None:
    """Of its own pages those count that are visited again."""
    worker = new_worker()
    PostgresFrontier(database.new_connection(), CrawlSpec("big")).open()
    database.run_script("""
        set search_path = crawlproj;
        insert into host (name) select 'h' || n from generate_series(1, 3) n;
        insert into crawl_host (crawl, host, name, stage, revisit)
            select c.id, h.id, h.name, 2, h.id from crawl c, host h where c.name = 'crawl';
        insert into url (id, crawl, host, canonical, state, lane, rank, depth, score, first_seen, last_visit, last_read, source)
        select n * 7919::bigint * 100000007, c.id, 1 + n % 3, 'http://h/' || n, 'waiting',
            case when c.name = 'big' or n % 10 < 8 then 2 end, case when c.name = 'big' or n % 10 < 8 then n end,
            1, 1, now(), now(), now() - interval '1 day', n % 10 = 7
        from crawl c cross join generate_series(1, 20000) n
        where (c.name = 'crawl') = (n <= 100);
    """)
    seen: list[tuple[float, bool]] = []

    def note(numbers: Numbers, age_s: float, source: bool) -> tuple[float, float]:
        seen.append((age_s, source))
        return 0.25, age_s

    worker = RevisitBudget(worker._frontier, note)
    assert worker.estimate_freshness() == (0.25, pytest.approx(86_400, abs=99))
    assert (len(seen), sum(source for _, source in seen)) == (80, 10)
    news = worker.take_turn(NO_MOVES)
    assert news is not None and (news.pages, news.sources) == (70, 10)
