"""Taking pushes out of Redis, step by step: whoever dies in between, nothing is lost and nothing is
added twice.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from redis.exceptions import ConnectionError as RedisGone

from crawlproj.database.connection import Database
from crawlproj.frontier.base import (
    Batch,
    Committed,
    CrawlSpec,
    Frontier,
    Lane,
    NewUrl,
    Outcome,
    State,
    Want,
)
from crawlproj.frontier.memory.frontier import MemoryFrontier
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.scheduling.redis.connection import RedisConnection
from crawlproj.scheduling.redis.push_queue import ABANDONED_S, PushQueue
from crawlproj.scheduling.redis.thread import PushResult, RedisThread
from crawlproj.urls.canonical import host_of, url_key
from tests.support.redis_server import RedisServer

KEY = "c:start_urls"
CRAWL = "c"


class Desk:
    """A courier on a frontier in memory, turned by hand; `arrived` is what came of each batch."""

    def __init__(self, server: RedisServer, frontier: Frontier) -> None:
        self.frontier = frontier
        self.arrived = list[PushResult]()
        self.pushed = PushQueue(server.client, KEY)
        self.courier = RedisThread(
            RedisConnection(server.client),
            self.pushed,
            frontier,
            self.read,
            self.arrived.append,
            lambda: None,
            lambda call: call(),
        )

    @staticmethod
    def read(payloads: Sequence[bytes | str]) -> tuple[list[NewUrl], int]:
        urls = [payload.decode() if isinstance(payload, bytes) else payload for payload in payloads]
        return [
            NewUrl(url_key(CRAWL, url), url, host_of(url), 1, lane=Lane.URGENT) for url in urls
        ], 0

    def turn(self) -> None:
        self.courier._safely(self.courier._turn)

    def visit_all(self) -> list[str]:
        """Everything that is queued, fetched and ended; which URLs that were."""
        frontier = self.frontier
        frontier.put_addresses(dict.fromkeys(frontier.take_unresolved(10), "127.0.0.1"))
        wants = [
            Want(h.name, x.server, x.epoch, 1000) for x in frontier.lease("w", 10) for h in x.hosts
        ]
        tickets = frontier.due_tickets(wants)
        ends = [
            Outcome(t.id, t.visit, t.server, t.epoch, State.WAITING, frontier.now(), 200)
            for t in tickets
        ]
        frontier.commit(Batch(ends), "w")
        frontier.release_servers("w", [want.server for want in wants])
        return [ticket.url for ticket in tickets]


@pytest.fixture
def frontier() -> MemoryFrontier:
    frontier = MemoryFrontier(CrawlSpec(CRAWL))
    frontier.open()
    return frontier


@pytest.fixture
def desk(redis_server: RedisServer, frontier: MemoryFrontier) -> Desk:
    return Desk(redis_server, frontier)


@pytest.fixture
def urls() -> list[str]:
    return [f"http://a.test/{n}" for n in range(5)]


def long_ago(server: RedisServer, age_s: float) -> None:
    """As if all that lies aside had been taken so long ago."""
    for token in server.client.zrange(f"{KEY}:taken", 0, -1):
        server.client.zadd(f"{KEY}:taken", {token: server.client.time()[0] - age_s})


def break_once(monkeypatch: pytest.MonkeyPatch, where: object, name: str, after: bool) -> None:
    """The next call of it fails, before or after it has done its work."""
    real: Callable[..., object] = getattr(where, name)

    def fail(*args: object, **kwargs: object) -> object:
        monkeypatch.setattr(where, name, real)
        if after:
            real(*args, **kwargs)
        raise RedisGone("gone")

    monkeypatch.setattr(where, name, fail)


def test_what_is_pushed_is_taken_stored_and_removed(
    desk: Desk, redis_server: RedisServer, urls: list[str]
) -> None:
    redis_server.client.rpush(KEY, *urls)
    desk.turn()
    assert desk.arrived == [PushResult(5, 0, 0)]
    assert redis_server.client.keys() == []
    assert sorted(desk.visit_all()) == urls


def test_two_workers_never_take_the_same(redis_server: RedisServer, urls: list[str]) -> None:
    redis_server.client.rpush(KEY, *urls)
    one = PushQueue(redis_server.client, KEY)
    two = PushQueue(redis_server.client, KEY)
    first = one.take_batch(3)
    second = two.take_batch(3)
    assert first is not None and second is not None
    assert [*first.payloads, *second.payloads] == [url.encode() for url in urls]
    assert two.take_batch(3) is None
    assert two.under_way, "neither is stored yet"
    one.delete_batch(first)
    two.delete_batch(second)
    assert two.take_batch(3) is None
    assert not two.under_way


def test_what_a_dead_worker_had_taken_is_stored_by_another(
    desk: Desk, redis_server: RedisServer, urls: list[str]
) -> None:
    redis_server.client.rpush(KEY, *urls)
    PushQueue(redis_server.client, KEY).take_batch(10)
    desk.turn()
    assert desk.courier.busy and not desk.arrived, "its owner may be alive"
    long_ago(redis_server, ABANDONED_S + 1)
    desk.courier._swept_at = -1000
    desk.turn()
    assert sorted(desk.visit_all()) == urls
    assert redis_server.client.keys() == []


def test_what_was_stored_and_visited_before_its_worker_died_is_not_fetched_again(
    desk: Desk, redis_server: RedisServer, urls: list[str]
) -> None:
    redis_server.client.rpush(KEY, *urls)
    taken = PushQueue(redis_server.client, KEY).take_batch(10)
    desk.frontier.add(desk.read(urls)[0])
    assert sorted(desk.visit_all()) == urls
    long_ago(redis_server, ABANDONED_S + 1)
    desk.turn()
    assert (taken is not None, desk.arrived) == (True, [PushResult(5, 0, 5)])
    assert desk.visit_all() == []


def test_a_visit_that_ends_while_a_push_is_done_again_is_not_repeated(
    desk: Desk, redis_server: RedisServer, urls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis goes just after the push was stored; when it is stored again, the visits end between
    the look and the writing.
    """
    redis_server.client.rpush(KEY, *urls)
    break_once(monkeypatch, desk.pushed, "delete_batch", after=False)
    desk.turn()
    real = desk.frontier.commit
    fetched = list[str]()

    def commit(batch: Batch, worker: str = "") -> Committed:
        if batch.urls and not fetched:
            monkeypatch.setattr(desk.frontier, "commit", real)
            fetched.extend(desk.visit_all())
        return real(batch, worker)

    monkeypatch.setattr(desk.frontier, "commit", commit)
    desk.turn()
    assert sorted(fetched) == urls
    assert desk.visit_all() == []


def test_a_url_that_was_visited_before_it_was_pushed_is_fetched_again(
    desk: Desk, redis_server: RedisServer
) -> None:
    for _ in range(2):
        redis_server.client.rpush(KEY, "http://a.test/1")
        desk.turn()
        assert desk.visit_all() == ["http://a.test/1"]


@pytest.mark.parametrize("after", [False, True], ids=["before it was done", "after it was done"])
@pytest.mark.parametrize("step", ["_move", "delete_batch"])
def test_a_connection_that_is_lost_at_any_step_loses_and_repeats_nothing(
    step: str,
    after: bool,
    desk: Desk,
    redis_server: RedisServer,
    urls: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redis_server.client.rpush(KEY, *urls)
    break_once(monkeypatch, desk.pushed, step, after)
    desk.turn()
    fetched = desk.visit_all()
    redis_server.client.rpush(KEY, "http://a.test/more")
    for _ in range(3):
        desk.turn()
        fetched += desk.visit_all()
    assert sorted(fetched) == sorted([*urls, "http://a.test/more"])
    assert redis_server.client.keys() == []


def test_a_push_that_the_database_refuses_holds_up_no_other(
    redis_server: RedisServer, database: Database, urls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frontier = PostgresFrontier(database, CrawlSpec(CRAWL))
    frontier.open()
    desk = Desk(redis_server, frontier)

    def read(payloads: Sequence[bytes | str]) -> tuple[list[NewUrl], int]:
        rows = Desk.read(payloads)[0]
        return [replace(row, request="no JSON") if row.url == urls[2] else row for row in rows], 0

    monkeypatch.setattr(desk.courier, "_read", read)
    redis_server.client.rpush(KEY, *urls)
    desk.turn()
    assert desk.arrived == [PushResult(5, 1, 0)]
    assert redis_server.client.keys() == []
    assert (
        sorted(
            found.url for found in frontier.get_urls([url_key(CRAWL, url) for url in urls]).values()
        )
        == urls[:2] + urls[3:]
    )


@pytest.fixture
def forgetful() -> Iterator[RedisServer]:
    """A Redis that starts anew from the last snapshot that it was told to make."""
    with RedisServer("--appendonly", "no", "--save", "") as server:
        yield server


def test_a_redis_that_comes_back_with_an_old_snapshot_repeats_nothing(
    forgetful: RedisServer, frontier: MemoryFrontier
) -> None:
    desk = Desk(forgetful, frontier)
    client = forgetful.client
    desk.turn()
    old = ["http://a.test/1", "http://a.test/2"]
    lost = "http://a.test/3"
    client.rpush(KEY, *old)
    client.save()
    client.rpush(KEY, lost)
    desk.turn()
    assert sorted(desk.visit_all()) == [*old, lost]
    forgetful.stop(signal.SIGKILL)
    desk.turn()
    forgetful.start()
    assert client.llen(KEY) == 2, "they are there again"
    client.rpush(KEY, "http://a.test/4")
    desk.turn()
    assert desk.visit_all() == ["http://a.test/4"]
    desk.turn()
    client.rpush(KEY, old[0])
    desk.turn()
    assert desk.visit_all() == [old[0]], "pushed anew when all was quiet: that is meant"


def test_items_wait_for_a_redis_that_is_away_and_too_many_are_counted(
    desk: Desk, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlproj.scheduling.redis.thread.ITEMS", 3)
    redis_server.stop(signal.SIGKILL)
    for n in range(5):
        desk.courier.send_item("c:items", str(n))
    desk.turn()
    assert (desk.courier.sent, desk.courier.lost) == (0, 2)
    redis_server.start()
    desk.turn()
    assert redis_server.client.lrange("c:items", 0, -1) == [b"0", b"1", b"2"]
    assert (desk.courier.sent, desk.courier.lost) == (3, 2)
