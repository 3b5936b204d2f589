"""A ticket is good for as long as its lease, and no longer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import ModuleType

import pytest
from scrapy.settings import Settings

from crawlproj.config import read_config
from crawlproj.fetch.resolver import Resolver
from crawlproj.frontier.base import (
    CrawlSpec,
    Lane,
    NewUrl,
    Outcome,
    RobotsRow,
    State,
    Ticket,
)
from crawlproj.frontier.memory.frontier import MemoryFrontier
from crawlproj.politeness.guard import StaticNames
from crawlproj.scheduling.database_thread import DatabaseThread
from crawlproj.scheduling.dispatcher import Dispatcher
from crawlproj.scheduling.messages import FromDatabase, Refill, frontier_time
from crawlproj.scheduling.robots_lifecycle import RobotsLifecycle
from crawlproj.scheduling.sharing import PeerSummary
from crawlproj.scheduling.window import HostWindow
from crawlproj.scheduling.worker_leases import WorkerLeases
from settings import base

SERVERS = 6


def settings(module: ModuleType, **changes: object) -> Settings:
    found = Settings({"GUARD_ALLOW_PRIVATE": True})
    found.setmodule(module)
    found.update(changes)
    return found


class Bench:
    """Dispatcher and keeper on the twin in memory, turn by turn in one thread."""

    def __init__(self, **changes: object) -> None:
        config = read_config(settings(base, **changes), "c")
        self.counts: Counter[str] = Counter()
        self.frontier = MemoryFrontier(CrawlSpec("c"))
        self.frontier.open()
        names = [f"h{n}.test" for n in range(SERVERS)]
        self.frontier.add([NewUrl(n, f"http://{name}/", name) for n, name in enumerate(names, 1)])
        self.frontier.put_addresses({name: f"192.0.2.{n}" for n, name in enumerate(names, 1)})

        def count(name: str, number: int) -> None:
            self.counts[name] += number

        self.leases = WorkerLeases(
            config, 60.0, frontier_time(self.frontier), count, lambda rules: None
        )
        robots = RobotsLifecycle(config, self.leases, count, lambda urls, depth: None)
        self.dispatcher = Dispatcher(config, self.leases, robots, count)
        self.resolver = Resolver(StaticNames({"*": "192.0.2.1"}))
        self.news: list[FromDatabase] = []
        self.refills: list[Refill] = []
        self.keeper = DatabaseThread(
            self.frontier,
            "w",
            self.resolver,
            1.0,
            list,
            self.receive,
            lambda error: None,
            rules=config.rules,
        )
        self.leases.database_thread = self.keeper
        now = self.frontier.now()
        for name in names:
            row = RobotsRow(f"http://{name}", name, 404, "", now, now + timedelta(hours=1))
            robots.cache.add_row(row)
        for _ in range(3):
            self.turn()

    def turn(self, crew: PeerSummary | None = None) -> None:
        self.keeper._leased_at = float("-inf")
        self.keeper._with_retries(self.keeper.run_once)
        news = self.news.pop()
        news.peers = crew
        self.dispatcher.handle_message(news)

    def receive(self, reply: FromDatabase | Refill) -> None:
        if isinstance(reply, Refill):
            self.refills.append(reply)
        else:
            self.news.append(reply)

    def serve_refills(self) -> None:
        """What the thread does at once when it is asked for more."""
        self.keeper._serve_refills()
        for refill in self.refills:
            self.dispatcher.handle_refill(refill)
        self.refills.clear()

    def holds(self) -> set[int]:
        return {
            server.id for server in self.frontier.store.servers.values() if server.worker == "w"
        }


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.resolver.close()


def next_ticket(bench: Bench) -> Ticket:
    ticket = bench.dispatcher.next_ticket()
    assert isinstance(ticket, Ticket)
    return ticket


def test_a_ticket_may_not_be_asked_for_after_the_deadline_of_its_lease(bench: Bench) -> None:
    ticket = next_ticket(bench)
    assert bench.dispatcher.may_ask(ticket)
    bench.dispatcher.window.hosts[ticket.host].server.deadline = time.monotonic() - 0.001
    assert not bench.dispatcher.may_ask(ticket)


def test_a_ticket_of_a_lease_that_was_lost_may_not_be_asked_for_nor_comes_it_back(
    bench: Bench,
) -> None:
    ticket = next_ticket(bench)
    host = bench.dispatcher.window.hosts[ticket.host]
    host.server.epoch += 1
    assert not bench.dispatcher.may_ask(ticket)
    bench.dispatcher.put_back(ticket)
    assert not host.waiting
    bench.dispatcher.put_back(replace(ticket, epoch=ticket.epoch + 1))
    assert host.waiting
    bench.dispatcher.window.drop_servers([host.server.id])
    assert not bench.dispatcher.may_ask(ticket)


def test_nothing_is_handed_out_while_the_database_is_away(bench: Bench) -> None:
    bench.keeper._outage.away = True
    assert bench.dispatcher.next_ticket() is None
    bench.keeper._outage.away = False
    assert bench.dispatcher.next_ticket() is not None


def test_nothing_is_handed_out_while_too_many_items_wait_for_verdicts(bench: Bench) -> None:
    bench.dispatcher.items_waiting = 2_001
    assert bench.dispatcher.held_back
    assert bench.dispatcher.next_ticket() is None
    bench.dispatcher.items_waiting = 2_000
    assert bench.dispatcher.next_ticket() is not None


def push(bench: Bench, ids: range, number: int = 0) -> None:
    name = f"h{number}.test"
    bench.frontier.add([NewUrl(n, f"http://{name}/{n}", name, lane=Lane.URGENT) for n in ids])
    bench.keeper._pushed = True
    for _ in range(2):
        bench.turn()


def fill(bench: Bench, number: int, start: int) -> HostWindow:
    """As much of a host as there is room for."""
    name = f"h{number}.test"
    bench.frontier.add([NewUrl(n, f"http://{name}/{n}", name) for n in range(start, start + 200)])
    bench.keeper._pushed = True
    for _ in range(4):
        bench.turn()
    return bench.dispatcher.window.hosts[name]


def test_what_is_pushed_comes_at_once_and_nothing_else_with_it(bench: Bench) -> None:
    """However often: what is held would grow with each push, and take the longer to be compared
    with what is asked for.
    """
    full = [fill(bench, number, 1000 * number) for number in (1, 2)]
    before = [host.waiting for host in full]
    for number in range(9000, 9030):
        push(bench, range(number, number + 1), 1)
        assert full[0].urgent.popleft().id == number
    assert [host.waiting for host in full] == before


def test_a_page_that_waits_and_is_pushed_goes_first(bench: Bench) -> None:
    host = fill(bench, 1, 1000)
    last = [ticket.id for queue in host.classes.values() for ticket in queue][-1]
    push(bench, range(last, last + 1), 1)
    assert [ticket.id for ticket in host.urgent] == [last]


def test_a_push_is_not_forgotten_while_a_host_is_asked_for_more(bench: Bench) -> None:
    host = fill(bench, 1, 1000)
    (queue,) = (queue for queue in host.classes.values() if queue)
    for _ in range(len(queue) - 2):
        host.held_ids.remove(queue.popleft().id)
    bench.leases.release_and_refill(False)
    last = queue[-1].id
    push(bench, range(last, last + 1), 1)
    assert [ticket.id for ticket in host.urgent] == [last]


def test_many_that_are_pushed_all_go_first(bench: Bench) -> None:
    """More than are asked for at once."""
    host = fill(bench, 1, 1000)
    push(bench, range(9000, 9060), 1)
    seen = []
    while host.urgent:
        seen.append(host.urgent.popleft().id)
        bench.turn()
    assert seen == list(range(9000, 9060))
    assert not host.more_urgent


def test_servers_beyond_the_share_are_given_back_and_not_taken_again_while_another_worker_is_wanting(
    bench: Bench,
) -> None:
    assert len(bench.holds()) == SERVERS
    for _ in range(3):
        bench.turn(PeerSummary(others=1, held=0, wanting=True))
    assert len(bench.holds()) == SERVERS / 2
    bench.frontier.lease("other", 2)
    for _ in range(3):
        bench.turn(PeerSummary(others=1, held=2, wanting=False))
    assert len(bench.holds()) == SERVERS - 2


NO_PAUSES = {
    "POLITENESS_DELAY": 0,
    "POLITENESS_SERVER_DELAY": 0,
    "POLITENESS_SLOWDOWN": 0,
    "POLITENESS_PAUSE_AFTER": 0,
}


@pytest.fixture
def quick_bench() -> Iterator[Bench]:
    bench = Bench(**NO_PAUSES)
    for _ in range(SERVERS):
        read_page(bench)
    yield bench
    bench.resolver.close()


def read_page(bench: Bench) -> Ticket:
    """Hand out a ticket and end its visit."""
    ticket = next_ticket(bench)
    later = bench.frontier.now() + timedelta(days=1)
    outcome = Outcome(
        ticket.id,
        ticket.visit,
        ticket.server,
        ticket.epoch,
        State.WAITING,
        bench.frontier.now(),
        next_visit=later,
    )
    bench.dispatcher.end_ticket(ticket, outcome)
    return ticket


def test_a_quick_host_never_runs_dry_while_the_database_has_more(quick_bench: Bench) -> None:
    """Though no turn comes: what has ended is not stored yet, and must not come again."""
    bench = quick_bench
    host = fill(bench, 1, 1000)
    seen = []
    smallest = host.waiting
    for _ in range(180):
        seen.append(read_page(bench).id)
        bench.serve_refills()
        smallest = min(smallest, host.waiting)
    assert len(set(seen)) == 180
    assert smallest > 0 and bench.counts["scheduler/starved"] == 0
    assert bench.counts["frontier/refills_ahead"] > 0
    assert host.size > 20


def test_a_host_with_pauses_is_refilled_by_turns_only(bench: Bench) -> None:
    host = fill(bench, 1, 1000)
    for number in range(15):
        bench.dispatcher.window.start_request(host, host.pop_ticket(), 2.0 * number)
        bench.dispatcher.window.finish_request(host)
        bench.leases.refill_ahead(host, 2.0 * number)
    assert bench.counts["frontier/refills_ahead"] == 0 and host.size == 20


def test_all_lanes_keep_their_shares_while_a_quick_host_is_refilled(quick_bench: Bench) -> None:
    bench = quick_bench
    bench.frontier.add(
        [NewUrl(n, f"http://h1.test/{n}", "h1.test") for n in range(10_000, 13_000)]
        + [
            NewUrl(n, f"http://h1.test/{n}", "h1.test", lane=Lane.BACKFILL)
            for n in range(20_000, 23_000)
        ]
    )
    bench.keeper._pushed = True
    for _ in range(4):
        bench.turn()
    lanes = []
    for _ in range(1500):
        lanes.append(read_page(bench).lane)
        bench.serve_refills()
    for begin in range(0, 1500, 100):
        part = Counter(lanes[begin : begin + 100])
        assert part[Lane.NEW] >= 28 and part[Lane.BACKFILL] >= 8, (begin, part)
    assert bench.counts["scheduler/starved"] == 0


def test_a_refill_counts_what_is_on_its_way_against_the_quota(quick_bench: Bench) -> None:
    """Else two replies that were made before the first one arrived would both use up the rest."""
    bench = quick_bench
    bench.frontier.spec = replace(bench.frontier.spec, pages=SERVERS + 30)
    host = fill(bench, 1, 1000)
    held = sum(len(other.held_ids) for other in bench.dispatcher.window.hosts.values())
    want = bench.leases._want(host)
    for count in (8, 30, 30):
        bench.keeper.ask_refill(replace(want, count=count), held, bench.leases._tickets_seen)
        bench.keeper._serve_refills()
    came = sum(len(refill.tickets) for refill in bench.refills)
    assert 0 < came <= SERVERS + 30 - held


def test_many_urgent_urls_of_a_quick_host_come_without_a_gap(quick_bench: Bench) -> None:
    """As the start requests of an ordinary spider do."""
    bench = quick_bench
    ids = range(1000, 1300)
    bench.frontier.add([NewUrl(n, f"http://h1.test/{n}", "h1.test", lane=Lane.URGENT) for n in ids])
    bench.keeper._pushed = True
    for _ in range(4):
        bench.turn()
    seen = []
    for _ in range(290):
        seen.append(read_page(bench).id)
        bench.serve_refills()
    assert seen == list(ids)[:290]
    assert bench.counts["scheduler/starved"] == 0
