"""The keeper on the twin in memory, with a database that is lost in the middle of a turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crawlproj.errors import ArchiveError, DatabaseError
from crawlproj.fetch.resolver import Resolver
from crawlproj.frontier.base import Batch, Committed, CrawlSpec, NewUrl, Outcome, Pause, State, Want
from crawlproj.frontier.memory.frontier import MemoryFrontier
from crawlproj.politeness.guard import StaticNames
from crawlproj.scheduling.database_thread import DatabaseThread
from crawlproj.scheduling.messages import FromDatabase, Refill, ToDatabase
from crawlproj.scheduling.retrying import OutageRetry

NAMES = ("a.test", "b.test", "c.test")
CALLS = (
    "commit",
    "now",
    "release_servers",
    "renew_leases",
    "contested_servers",
    "heartbeat",
    "new_hosts_on_leases",
    "lease",
    "due_tickets",
    "get_robots",
)


class Flaky(MemoryFrontier):
    """Loses the connection once in a call of that name: before it was heard, or after it
    was done.
    """

    fails = ""
    heard = False

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in CALLS or super().__getattribute__("fails") != name:
            return found

        def call(*args: Any, **options: Any) -> Any:
            self.fails = ""
            if self.heard:
                found(*args, **options)
            raise DatabaseError(f"lost during {name}")

        return call


class Desk:
    """A keeper whose thread is the test's, and what it told."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)
        self.frontier = Flaky(CrawlSpec("c"), clock=lambda: self.now)
        self.frontier.open()
        self.frontier.add([NewUrl(n, f"http://{name}/", name) for n, name in enumerate(NAMES, 1)])
        self.frontier.put_addresses({name: f"192.0.2.{n}" for n, name in enumerate(NAMES)})
        self.resolver = Resolver(StaticNames({"*": "192.0.2.1"}))
        self.news: list[Any] = []
        self.keeper = DatabaseThread(
            self.frontier, "w", self.resolver, 1.0, list, self.news.append, lambda error: None
        )

    def turn(self, fill: Callable[[ToDatabase], None] = lambda tray: None) -> None:
        self.keeper.fill_message(fill)
        self.keeper._renewed_at = self.keeper._leased_at = self.keeper._heartbeat_at = float("-inf")
        self.keeper._with_retries(self.keeper.run_once)

    def outcome(self, ticket: Any) -> Outcome:
        return Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            ticket.epoch,
            State.WAITING,
            self.now,
            next_visit=None,
        )


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr("crawlproj.scheduling.retrying.AGAIN_S", 0.0)
    desk = Desk()
    yield desk
    desk.resolver.close()


def ask_for(servers: int) -> Callable[[ToDatabase], None]:
    def fill(tray: ToDatabase) -> None:
        tray.servers_wanted = tray.ranked = tray.unprepared = servers

    return fill


@pytest.mark.parametrize("heard", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", CALLS)
def test_nothing_is_forgotten_wherever_in_a_turn_the_connection_is_lost(
    call: str, heard: bool, desk: Desk
) -> None:
    desk.turn(ask_for(2))
    (first,) = desk.news
    assert len(first.leases) == len(first.tickets) == 2
    done, back = first.tickets

    def fill(tray: ToDatabase) -> None:
        ask_for(1)(tray)
        tray.outcomes.append(desk.outcome(done))
        tray.clocks[done.host] = Pause(desk.now + timedelta(seconds=3), "delay")
        tray.release.append(back.server)
        tray.known_hosts = [done.host]
        tray.quiet = 7

    desk.frontier.fails = call
    desk.frontier.heard = heard
    desk.turn(fill)
    assert desk.frontier.fails == "" and not desk.keeper.storage_blocked
    second = desk.news[1]
    assert second.stored == [done.id] and desk.frontier.get_urls([done.id])[done.id].visit == 1
    assert desk.frontier.store.hosts[done.host].next_allowed == desk.now + timedelta(seconds=3)
    assert (
        second.renewed is not None
        and done.server in second.renewed
        and back.server not in second.renewed
    )
    # What was given back is leased anew by someone: by this worker, or it is free.
    held = {
        server.id: server for server in desk.frontier.store.servers.values() if server.worker == "w"
    }
    told = {lease.server for lease in second.leases} | {done.server}
    assert told <= held.keys()
    if (call, heard) == ("lease", True):
        assert len(held.keys() - told) == 1, (
            "nobody heard of it, so it is held until the lease is over"
        )
    else:
        assert held.keys() == told == desk.keeper._held


def test_a_lease_that_nobody_heard_of_is_taken_over_with_a_full_delay(desk: Desk) -> None:
    desk.frontier.fails = "lease"
    desk.frontier.heard = True
    desk.turn(ask_for(3))
    assert desk.news[0].leases == []
    desk.turn(ask_for(3))
    assert desk.news[1].leases == []
    desk.now += timedelta(seconds=121)
    desk.turn(ask_for(3))
    assert [lease.taken_over for lease in desk.news[2].leases] == [True] * 3


def test_a_takeover_is_told_as_such_although_the_connection_was_lost_after_it(desk: Desk) -> None:
    desk.frontier.lease("dead", 3)
    desk.now += timedelta(seconds=121)
    desk.frontier.fails = "due_tickets"
    desk.turn(ask_for(3))
    # They come again as arrivals, which changes nothing for those who have heard of them.
    assert [lease.taken_over for lease in desk.news[0].leases][:3] == [True] * 3


def test_an_end_that_comes_during_a_commit_is_stored_before_its_server_is_given_back(
    desk: Desk,
) -> None:
    desk.turn(ask_for(1))
    (ticket,) = desk.news[0].tickets
    commit = desk.frontier.commit

    def slow(batch: Batch, worker: str = "") -> Committed:
        desk.frontier.commit = commit  # type: ignore[method-assign]
        desk.keeper.fill_message(
            lambda tray: (
                tray.outcomes.append(desk.outcome(ticket)),
                tray.release.append(ticket.server),
            )
        )  # type: ignore[arg-type, return-value]
        return commit(batch, worker)

    desk.frontier.commit = slow  # type: ignore[method-assign]
    desk.turn(lambda tray: tray.urls.append(NewUrl(9, "http://a.test/9", "a.test")))
    desk.turn()
    assert [committed.late for news in desk.news for committed in news.committed] == [0, 0]
    assert desk.frontier.store.servers[ticket.server].worker is None


def test_a_push_may_have_been_missed_while_the_connection_was_lost(desk: Desk) -> None:
    desk.turn()
    desk.frontier.fails = "now"
    desk.turn()
    desk.turn()
    assert [news.pushed for news in desk.news] == [False, True, False]


def test_the_end_gives_back_everything_although_the_connection_is_lost(desk: Desk) -> None:
    desk.turn(ask_for(2))
    done = desk.news[0].tickets[0]
    desk.keeper.fill_message(lambda tray: tray.outcomes.append(desk.outcome(done)))
    desk.frontier.fails = "commit"
    desk.frontier.heard = True
    desk.keeper._with_retries(desk.keeper._flush_and_release)
    assert desk.frontier.get_urls([done.id])[done.id].visit == 1
    assert {server.worker for server in desk.frontier.store.servers.values()} == {None}
    assert desk.frontier.store.workers == {}
    assert desk.frontier.due_tickets([Want(done.host, done.server, done.epoch, 5)]) == []


def test_what_is_too_much_for_a_turn_is_left_and_its_server_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlproj.scheduling.database_thread.STORE_S", 0.0)
    monkeypatch.setattr("crawlproj.scheduling.database_thread.MAX_URLS", 2_000)
    desk.turn(ask_for(2))
    big, small = desk.news[0].tickets
    urls = [
        NewUrl(10 + n, f"http://a.test/{n:04}{'x' * 1_900}", "a.test", 1, parent=big.id)
        for n in range(2_001)
    ]
    blocked: list[bool] = []

    def fill(tray: ToDatabase) -> None:
        ask_for(0)(tray)
        tray.urls += urls
        tray.outcomes += [desk.outcome(big), desk.outcome(small)]
        tray.release += [big.server, small.server]
        tray.known_hosts = list(NAMES)
        tray.quiet = 7

    def store_some() -> FromDatabase:
        blocked.append(desk.keeper.storage_blocked)
        desk.turn(fill if len(desk.news) == 1 else ask_for(0))
        return desk.news[-1]

    first = store_some()
    assert first.stored == [small.id] and first.outlook is None
    assert desk.frontier.store.servers[small.server].worker is None
    assert desk.frontier.store.servers[big.server].worker == "w"
    assert desk.keeper._bell.is_set(), "the next turn comes at once"
    while not desk.frontier.get_urls([big.id])[big.id].visit:
        assert desk.frontier.store.servers[big.server].worker == "w"
        store_some()
    assert desk.news[-1].stored == [big.id] and len(desk.news) > 3
    assert desk.frontier.store.servers[big.server].worker is None
    assert len(desk.frontier.get_urls([url.id for url in urls])) == 2_001
    desk.keeper.fill_message(lambda tray: tray.urls.extend(urls))
    assert desk.keeper.storage_blocked and not any(blocked), "more than the limit waits"


def test_patience_ends_with_a_clear_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("crawlproj.scheduling.retrying.AGAIN_S", 0.0)
    healed: list[int] = []
    patience = OutageRetry(5.0, lambda: healed.append(1))
    clock = [100.0]
    monkeypatch.setattr("crawlproj.scheduling.retrying.time.monotonic", lambda: clock[0])
    for clock[0] in (101.0, 103.0, 105.0):
        patience.wait_or_raise(DatabaseError("no room", "53100"), 100.0)
    assert patience.away and len(healed) == 3
    clock[0] = 105.5
    with pytest.raises(
        DatabaseError, match=r"no use of the database for 5 s \(DATABASE_PATIENCE\): no room"
    ):
        patience.wait_or_raise(DatabaseError("no room", "53100"), 100.0)
    assert [record.getMessage() for record in caplog.records] == [
        "Nothing is handed out, because the database is away; waiting up to 5 s: no room"
    ]
    patience.note_success()
    assert patience.away, "a disk that is nearly full takes something now and then"
    clock[0] = 108.6
    patience.note_success()
    assert not patience.away and "answers again after 9 s" in caplog.text


def test_a_database_that_was_away_for_another_reason_counts_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("crawlproj.scheduling.retrying.AGAIN_S", 0.0)
    patience = OutageRetry(5.0)
    patience.wait_or_raise(DatabaseError("lost the connection"), time.monotonic())
    patience.note_success()
    assert not patience.away


def test_a_wrong_statement_is_not_tried_again() -> None:
    with pytest.raises(DatabaseError, match="no such column"):
        OutageRetry(60.0).wait_or_raise(DatabaseError("no such column", "42703"), 0.0)


class Stuck:
    """An archive whose disk is full for so many flushes."""

    full = False

    def __init__(self, desk: Desk, failures: int = 0) -> None:
        self._desk = desk
        self.failures = failures
        self.visits = list[int]()

    def mark_stored(self, outcomes: Sequence[Outcome]) -> None: ...

    def flush_to_disk(self) -> None:
        """Notes what was stored when it was asked."""
        self.visits.append(
            sum(row.visit for row in self._desk.frontier.get_urls([1, 2, 3]).values())
        )
        if self.failures:
            self.failures -= 1
            raise ArchiveError("The archive can't be written: no room")


def with_archive(desk: Desk, failures: int, patience_s: float = 60.0) -> Stuck:
    vault: Any = Stuck(desk, failures)
    desk.keeper._archiver = desk.keeper._writer.archiver = vault
    desk.keeper._outage = desk.keeper._writer.outage = OutageRetry(patience_s)
    return vault  # type: ignore[no-any-return]


def test_an_end_is_stored_only_after_its_record_is_on_disk(desk: Desk) -> None:
    desk.turn(ask_for(1))
    vault = with_archive(desk, 0)
    (ticket,) = desk.news[0].tickets
    desk.turn(lambda tray: tray.outcomes.append(desk.outcome(ticket)))
    assert vault.visits == [0]
    assert desk.news[1].stored == [ticket.id]


def test_a_full_disk_of_the_archive_is_waited_for_and_nothing_is_lost(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.turn(ask_for(1))
    vault = with_archive(desk, 3)
    (ticket,) = desk.news[0].tickets
    desk.turn(lambda tray: tray.outcomes.append(desk.outcome(ticket)))
    assert vault.visits == [0, 0, 0, 0]
    assert desk.news[1].stored == [ticket.id] and not desk.keeper.storage_blocked
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(";")[0] for text in said] == [
        "Nothing is handed out, because the archive is away", "The archive answers again after 0 s",
    ]  # fmt: skip


def test_a_disk_that_stays_full_ends_the_crawl_and_the_end_is_not_stored(desk: Desk) -> None:
    desk.turn(ask_for(1))
    with_archive(desk, 1000, patience_s=0.0)
    (ticket,) = desk.news[0].tickets
    with pytest.raises(ArchiveError, match="no use of the archive") as lost:
        desk.turn(lambda tray: tray.outcomes.append(desk.outcome(ticket)))
    assert lost.value.end == "archive_lost" and desk.keeper.storage_blocked
    assert desk.frontier.get_urls([ticket.id])[ticket.id].visit == 0


def test_nothing_is_handed_out_while_the_archive_does_not_keep_up(desk: Desk) -> None:
    vault = with_archive(desk, 0)
    assert not desk.keeper.storage_blocked
    vault.full = True
    assert desk.keeper.storage_blocked


def test_a_refill_comes_before_what_is_stored_and_is_not_forgotten_with_the_connection(
    desk: Desk,
) -> None:
    """A quick host would run dry while a big batch is stored."""
    desk.turn(ask_for(1))
    first = desk.news.pop()
    assert isinstance(first, FromDatabase)
    (done,) = first.tickets
    more = [NewUrl(n, f"http://{done.host}/{n}", done.host) for n in range(100, 120)]
    desk.frontier.add(more)
    want = Want(done.host, done.server, done.epoch, 10, frozenset({done.id}))
    desk.frontier.fails = "due_tickets"
    desk.keeper.ask_refill(want, 1, 1)
    desk.turn(lambda tray: tray.outcomes.append(desk.outcome(done)))
    refill, reply = desk.news
    assert isinstance(refill, Refill) and isinstance(reply, FromDatabase)
    assert [ticket.host for ticket in refill.tickets] == [done.host] * 10
    assert reply.stored == [done.id] and refill.wants == [want]
    assert not desk.keeper._refills


def test_a_refill_wakes_the_thread_but_brings_no_turn(desk: Desk) -> None:
    desk.turn(ask_for(1))
    first = desk.news.pop()
    assert isinstance(first, FromDatabase)
    (done,) = first.tickets
    desk.frontier.add([NewUrl(n, f"http://{done.host}/{n}", done.host) for n in range(100, 120)])
    desk.keeper._turn_wanted = False
    desk.keeper.flush_s = 30.0
    desk.keeper.start()
    desk.keeper.ask_refill(Want(done.host, done.server, done.epoch, 5), 1, 1)
    deadline = time.monotonic() + 20
    while not desk.news and time.monotonic() < deadline:
        time.sleep(0.005)
    assert [type(reply) for reply in desk.news] == [Refill]
    desk.keeper.flush_and_stop()
