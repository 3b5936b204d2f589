"""What the database refuses is set aside, and nothing is too much for it: on a real Postgres whose
triggers refuse what a test tells them to.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crawlproj.database.connection import Database, Transaction
from crawlproj.errors import DatabaseError
from crawlproj.frontier.base import Batch, Committed, NewUrl, Outcome, RobotsRow, State, Ticket
from crawlproj.frontier.batches import LARGEST_CHARS, PIECE_CHARS, split_batch
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.scheduling.batch_writer import BatchWriter
from crawlproj.scheduling.messages import ToDatabase
from crawlproj.scheduling.redis.thread import RedisThread
from crawlproj.scheduling.retrying import OutageRetry
from tests.conftest import TEMPLATE, beside
from tests.contract.worlds import Hand, PostgresWorld, page

TRIGGER = """
create function refuse() returns trigger language plpgsql as $$
begin {what}; return new; end $$;
create trigger refuse before {event} for each row when ({when}) execute function refuse();
"""


class Desk:
    """A writer on a Postgres of its own, with tickets that are handed out."""

    def __init__(self, dsn: str, pages: int) -> None:
        self.world = PostgresWorld(dsn)
        frontier = self.world.frontier(real_clock=True)
        assert isinstance(frontier, PostgresFrontier)
        self.frontier = frontier
        self.world.give(frontier, *[f"/{number}" for number in range(pages)])
        self.hand = Hand(self.world, frontier)
        self.tickets: list[Ticket] = self.hand.tickets(pages)
        self.writer = BatchWriter(frontier, self.hand.name, OutageRetry(60.0))
        self.commits = 0
        self._commit = frontier.commit
        frontier.commit = self._counted  # type: ignore[method-assign]

    def _counted(self, batch: Batch, worker: str = "") -> Committed:
        self.commits += 1
        return self._commit(batch, worker)

    def refuse(
        self, when: str, event: str = "insert or update on url", what: str = "raise 'poison'"
    ) -> None:
        script = TRIGGER.format(event=event, when=when, what=what)
        self.frontier.db.run_script(f"drop function if exists refuse cascade; {script}")

    def end(self, ticket: Ticket, **fields: Any) -> Outcome:
        now = self.frontier.now()
        return self.hand.outcome(ticket, at=now, next_visit=now + timedelta(days=1), **fields)

    def ends(self) -> list[Outcome]:
        """An end with a page of its own for each ticket."""
        return [self.end(ticket, content=page(text=ticket.url)) for ticket in self.tickets]

    def link(self, ticket: Ticket, path: str, host: str = "a") -> NewUrl:
        return self.world.url(self.frontier, path, host, depth=1, parent=ticket.id)

    def store(self, message: ToDatabase, until: float = float("inf")) -> None:
        self.writer.store_message(message, until)

    @property
    def set_aside(self) -> int:
        return sum(commit.set_aside for commit in self.writer.committed)

    def whys(self) -> dict[int, str]:
        """Why each handed out URL ended; of those that did."""
        stored = self.frontier.get_urls([ticket.id for ticket in self.tickets])
        return {id_: url.why for id_, url in stored.items() if url.visit == 1}

    def count(self, table: str, where: str = "true") -> int:
        return int(self.frontier.db.run_script(f"select count(*) from {table} where {where}")[0][0])


@pytest.fixture(scope="module")
def one_database(servers: Callable[[str], str]) -> Iterator[str]:
    """A database for all tests here: making one takes longer than any of them."""
    server = servers("embedded")
    name = f"batch_writer_{os.getpid()}"
    admin = Database(server)
    admin.run_script(f"create database {name} template {TEMPLATE}")
    yield beside(server, name)
    admin.run_script(f"drop database {name} with (force)")
    admin.close()


@pytest.fixture
def make_desk(
    one_database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int], Desk]]:
    monkeypatch.setattr("crawlproj.scheduling.retrying.AGAIN_S", 0.0)
    desks: list[Desk] = []

    def make(pages: int) -> Desk:
        desks.append(Desk(one_database, pages))
        return desks[-1]

    yield make
    for desk in desks:
        desk.frontier.db.run_script(
            "drop function if exists refuse cascade; truncate crawl, host, server, origin cascade"
        )
        desk.world.close()


def test_what_is_refused_is_set_aside_and_the_ends_of_all_others_are_stored(
    make_desk: Callable[[int], Desk], caplog: pytest.LogCaptureFixture
) -> None:
    desk = make_desk(205)
    refused = "new.canonical like '%/poison' or new.etag = 'poison'"
    desk.refuse(refused)
    ends = desk.ends()
    broken = {
        17: replace(ends[17], etag="poison"),
        18: replace(ends[18], status=70_000),
        90: replace(ends[90], content=replace(page(), length=1 << 40)),
        91: replace(ends[91], modified="x" * (LARGEST_CHARS + 1)),
        204: replace(ends[204], tries=1 << 20, state=State.RETRY),
    }
    for number, outcome in broken.items():
        ends[number] = outcome
    urls = [desk.link(ticket, f"{ticket.url[-4:]}/next") for ticket in desk.tickets]
    long_host = "".join(hashlib.sha256(b"%d" % number).hexdigest() for number in range(200))
    bad_urls = [
        desk.link(desk.tickets[0], "/poison"),
        NewUrl(1, "http://nul/", "nul\0.test", 1, parent=desk.tickets[1].id),
        NewUrl(2, "http://lone/", "lone\ud800.test", 1, parent=desk.tickets[2].id),
        NewUrl(3, "http://long/", long_host, 1, parent=desk.tickets[3].id),
        replace(desk.link(desk.tickets[4], "/json"), request="{no json"),
        replace(desk.link(desk.tickets[5], "/giant"), request="x" * (LARGEST_CHARS + 1)),
    ]
    message = ToDatabase(outcomes=ends, urls=urls[:100] + bad_urls + urls[100:])
    desk.store(message)
    assert not message.unfinished
    culprits = {desk.tickets[number].id for number in broken}
    whys = desk.whys()
    assert len(whys) == 205 and sorted(desk.writer.stored) == sorted(whys)
    assert {id_ for id_, why in whys.items() if why} == culprits
    assert all(whys[id_].startswith("set aside: ") for id_ in culprits)
    assert whys[desk.tickets[17].id] == "set aside: Postgres refused end_visits: poison"
    assert desk.count("page") == 200 and desk.count("url") == 205 + 205
    assert desk.set_aside == len(broken) + len(bad_urls)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(lines) == desk.set_aside
    assert any(f"the end of {desk.tickets[17].url}" in line for line in lines)
    assert desk.commits < 160, "halved, not tried one by one"
    # It does not happen again: pages wait for their next visit, the retry is over.
    states = desk.frontier.get_urls(sorted(culprits))
    assert {states[desk.tickets[number].id].state for number in (17, 18, 90, 91)} == {State.WAITING}
    assert states[desk.tickets[204].id].state is State.DEAD
    assert not {ticket.id for ticket in desk.hand.tickets(1_000)} & culprits
    assert desk.count("host", "name like '%invalid'") == 0


def test_robots_txt_and_clocks_are_set_aside_on_the_safe_side(
    make_desk: Callable[[int], Desk],
) -> None:
    desk = make_desk(1)
    now = desk.frontier.now()
    host = desk.world.host("a")
    bad = RobotsRow(f"http://{host}", host, 200, "poison", now, now, etag="e")
    good = RobotsRow(f"https://{host}", host, 200, "User-agent: *", now, now)
    desk.refuse("new.body = 'poison'", "insert or update on origin")
    desk.store(ToDatabase(robots=[bad, good], outcomes=desk.ends()))
    stored = desk.frontier.get_robots([bad.origin, good.origin])
    assert stored[good.origin].status == 200
    assert (stored[bad.origin].status, stored[bad.origin].body) == (0, "")
    assert desk.set_aside == 1 and len(desk.whys()) == 1


@pytest.mark.parametrize(
    ("when", "event"),
    [
        ("true", "insert or update on url"),
        ("true", "insert on page"),
        ("true", "insert on page_links"),
    ],
)
def test_if_something_harmless_is_refused_too_nothing_is_set_aside(
    make_desk: Callable[[int], Desk], when: str, event: str
) -> None:
    desk = make_desk(30)
    desk.refuse(when, event)
    message = ToDatabase(outcomes=desk.ends(), urls=[desk.link(desk.tickets[0], "/new")])
    with pytest.raises(DatabaseError, match="poison"):
        desk.store(message)
    assert desk.set_aside == 0 and len(message.outcomes) + len(desk.writer.stored) == 30
    assert desk.commits < 15, "the first culprit is enough"


def test_a_missing_column_is_raised_at_once(make_desk: Callable[[int], Desk]) -> None:
    desk = make_desk(30)
    desk.frontier.db.run_script("alter table page rename title to headline")
    message = ToDatabase(outcomes=desk.ends())
    with pytest.raises(DatabaseError) as raised:
        desk.store(message)
    desk.frontier.db.run_script("alter table page rename headline to title")
    assert raised.value.sqlstate == "42703" and desk.commits == 1
    assert len(message.outcomes) == 30 and desk.whys() == {}


def store_with_retries(desk: Desk, message: ToDatabase) -> None:
    """As the database thread does."""
    since = time.monotonic()
    while message.unfinished:
        try:
            desk.store(message)
        except DatabaseError as error:
            desk.writer.outage.wait_or_raise(error, since)


def test_a_page_over_which_the_connection_is_lost_each_time_is_set_aside(
    make_desk: Callable[[int], Desk],
) -> None:
    desk = make_desk(20)
    end_backend = "perform pg_terminate_backend(pg_backend_pid())"
    desk.refuse("new.etag = 'poison'", "update on url", end_backend)
    ends = desk.ends()
    ends[7] = replace(ends[7], etag="poison")
    store_with_retries(desk, ToDatabase(outcomes=ends))
    whys = desk.whys()
    assert len(whys) == 20 and desk.set_aside == 1 and not desk.writer.outage.away
    assert [id_ for id_, why in whys.items() if why] == [ends[7].id]


def test_a_connection_that_is_lost_for_another_reason_sets_nothing_aside(
    make_desk: Callable[[int], Desk],
) -> None:
    desk = make_desk(20)
    message = ToDatabase(outcomes=desk.ends())
    lost_next = [True] * 40
    db = desk.frontier.db
    connect = db.connect

    def away_for_a_while() -> None:
        if lost_next:
            lost_next.pop()
            db.close()
            raise DatabaseError("cannot reach Postgres")
        connect()

    db.connect = away_for_a_while  # type: ignore[method-assign]
    store_with_retries(desk, message)
    assert not lost_next and len(desk.whys()) == 20
    assert desk.set_aside == 0 and desk.commits == 2


def test_what_is_too_much_for_one_message_is_sent_in_pieces(
    make_desk: Callable[[int], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk(12)
    giant = desk.tickets[3]
    urls = [desk.link(giant, f"/{number}/{'x' * 1_900}") for number in range(3_000)]
    urls += [desk.link(ticket, f"/from{ticket.url[-2:]}") for ticket in desk.tickets]
    message = ToDatabase(outcomes=desk.ends(), urls=urls)
    sent: list[int] = []
    send = Transaction._send

    def measured(self: Transaction, name: str, text: str, args: dict[str, Any] | None) -> Any:
        sent.append(sum(len(str(value)) for value in (args or {}).values()))
        return send(self, name, text, args)

    monkeypatch.setattr(Transaction, "_send", measured)
    desk.store(message, until=0.0)
    # The ends of all others don't wait for the URLs of one page; its own does.
    assert desk.whys().keys() == {ticket.id for ticket in desk.tickets} - {giant.id}
    assert message.has_work_of(giant.server)
    turns = 1
    while message.unfinished:
        assert giant.id not in desk.whys()
        desk.store(message, until=0.0)
        turns += 1
    assert giant.id in desk.whys() and desk.count("url") == 12 + 3_000 + 12
    assert turns == 4 and max(sent) < PIECE_CHARS and desk.set_aside == 0


def test_an_ordinary_message_is_one_commit(make_desk: Callable[[int], Desk]) -> None:
    desk = make_desk(50)
    urls = [desk.link(ticket, f"{ticket.url[-4:]}/next") for ticket in desk.tickets]
    batch = ToDatabase(outcomes=desk.ends(), urls=urls).batch
    assert split_batch(batch) == [batch] and split_batch(batch)[0] is batch
    desk.store(ToDatabase(outcomes=list(batch.outcomes), urls=urls))
    assert desk.commits == 1


def test_a_push_that_is_refused_holds_up_no_other(make_desk: Callable[[int], Desk]) -> None:
    desk = make_desk(1)
    desk.refuse("new.canonical like '%/poison'")
    nothing: Any = None
    thread = RedisThread(nothing, nothing, desk.frontier, nothing, nothing, nothing, nothing)
    rows = [desk.link(desk.tickets[0], f"/pushed/{number}") for number in range(64)]
    rows[40:40] = [desk.link(desk.tickets[0], "/poison")]
    assert thread._add(rows, desk.frontier.now()) == 1
    assert desk.count("url", "canonical like '%/pushed/%'") == 64
    assert desk.commits < 20
