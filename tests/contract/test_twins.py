"""The twin in memory and the real frontier are told the same things and must say the same things."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from crawlproj.frontier.base import (
    LANE_OF,
    TIMED,
    Batch,
    Frontier,
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
from tests.contract.worlds import MemoryWorld, PostgresWorld, World, contract_database, page, url_id

CRAWLS, WORKERS, HOSTS, PATHS = ("one", "two"), ("ann", "bob"), ("h0", "h1", "h2", "h3"), range(4)
LIMITED = (Lane.NEW, Lane.BACKFILL)
numbers = itertools.count()

crawls, workers = st.sampled_from(["one", "one", "two"]), st.sampled_from(["ann", "ann", "ann", "bob"])
hosts = st.sampled_from(HOSTS)
orders, max_depths = st.sampled_from(["best", "bfs", "dfs"]), st.sampled_from([0, 2, 3])
places = st.tuples(hosts, st.sampled_from(PATHS))
urls = st.fixed_dictionaries(
    {
        "place": places,
        "depth": st.integers(0, 5),
        "score": st.sampled_from([0.125, 0.25, 0.5, 1.0]),
        "lane": st.sampled_from([Lane.NEW, Lane.NEW, Lane.BACKFILL, Lane.URGENT]),
        "hops": st.sampled_from([0, 0, 0, 2]),
        "parent": st.sampled_from([None, 1, 2]),
    }
)
ends = st.fixed_dictionaries(
    {
        "state": st.sampled_from([*State, State.WAITING, State.RETIRED]),
        "links": st.none() | st.lists(places, min_size=1, max_size=4),
        "changed": st.booleans(),
        "received": st.sampled_from([0, 10, 50]),
        "due_s": st.sampled_from([0.0, 30.5, 1000.0, None]),
        "interval_s": st.sampled_from([None, 60.0]),
        "tries": st.integers(0, 2),
        "spoil": st.sampled_from([None] * 8 + ["visit", "epoch"]),
        "again": st.sampled_from([False] * 4 + [True]),
    }
)
rounds = st.fixed_dictionaries(
    {
        "picks": st.lists(st.tuples(st.integers(0, 100), ends), min_size=1, max_size=4),
        "batch": st.lists(urls, max_size=3),
        "clocks": st.dictionaries(hosts, st.sampled_from([-5, 5, 15, 300]), max_size=1),
    }
)


class Twins(RuleBasedStateMachine):
    """Two worlds with one clock and the same names. Numbers of servers differ, so leases are matched by address."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        tag = f"t{os.getpid()}x{next(numbers)}"
        memory = MemoryWorld(tag)
        self.worlds: tuple[World, World] = (memory, PostgresWorld(dsn, tag, memory.clock))
        self.clock = memory.clock
        self.pairs: dict[tuple[str, str], tuple[Frontier, Frontier]] = {}
        self.leases: dict[tuple[str, str], dict[str, tuple[Lease, Lease]]] = {}
        self.tickets: dict[tuple[str, str], dict[int, tuple[Ticket, Ticket]]] = {}
        self.ended: dict[tuple[str, str], list[tuple[Ticket, Ticket]]] = {}

    def teardown(self) -> None:
        for world in self.worlds:
            world.close()

    @initialize(
        order=orders,
        max_depth=max_depths,
        limits=st.fixed_dictionaries(
            {
                "host_pages": st.sampled_from([0, 2]),
                "host_bytes": st.sampled_from([0, 0, 90]),
                "pages": st.sampled_from([0, 0, 5]),
                "bytes": st.sampled_from([0, 0, 150]),
                "shares": st.sampled_from([{"new": 0.5, "revisit": 0.5}, {"new": 0.25, "revisit": 0.75}]),
            }
        ),
    )
    def begin(self, order: str, max_depth: int, limits: dict[str, Any]) -> None:
        self.limits = {"max_hops": 1, **limits}
        for crawl in CRAWLS:
            self.open(crawl, order, max_depth)
            self.add(crawl, WORKERS[0], [{"place": (host, 0), "depth": 2 * n} for n, host in enumerate(HOSTS)])
        self.resolve(CRAWLS[0], WORKERS[0], {})

    def open(self, crawl: str, order: str, max_depth: int) -> None:
        for worker in WORKERS:
            for frontier in self.pairs.get((crawl, worker), ()):
                frontier.close()
            one, two = (world.frontier(crawl, order=order, max_depth=max_depth, **self.limits) for world in self.worlds)
            self.pairs[crawl, worker] = one, two

    def both(self, crawl: str, worker: str, call: Callable[[Frontier], Any], same: bool = True) -> tuple[Any, Any]:
        one, two = (call(frontier) for frontier in self.pairs[crawl, worker])
        if same:
            assert one == two
        return one, two

    def id(self, crawl: str, place: tuple[str, int]) -> int:
        return url_id(self.pairs[crawl, WORKERS[0]][0], f"http://{self.worlds[0].host(place[0])}/{place[1]}")

    def new(self, crawl: str, fields: Mapping[str, Any]) -> NewUrl:
        place = fields["place"]
        rest = {name: value for name, value in fields.items() if name != "place"}
        host = self.worlds[0].host(place[0])
        return NewUrl(self.id(crawl, place), f"http://{host}/{place[1]}", host, **rest)

    # What happens

    @rule(crawl=crawls, worker=workers, batch=st.lists(urls, max_size=6))
    def add(self, crawl: str, worker: str, batch: list[dict[str, Any]]) -> None:
        self.both(crawl, worker, lambda frontier: frontier.add([self.new(crawl, fields) for fields in batch]))

    @rule(crawl=crawls, worker=workers, hosts=st.dictionaries(hosts, st.sampled_from(["x", "y", "z"]), max_size=2))
    def resolve(self, crawl: str, worker: str, hosts: dict[str, str]) -> None:
        """What is unresolved, and sometimes a host that moves."""
        names, _ = self.both(crawl, worker, lambda frontier: set(frontier.unresolved(100)))
        addresses = {name: self.worlds[0].address("wxyz"[int(name[1])]) for name in names}
        addresses |= {self.worlds[0].host(host): self.worlds[0].address(at) for host, at in hosts.items()}
        self.both(crawl, worker, lambda frontier: frontier.resolved(addresses))

    @rule(crawl=crawls, worker=workers, servers=st.integers(0, 3), count=st.integers(1, 3), holding=st.booleans())
    def take(self, crawl: str, worker: str, servers: int, count: int, holding: bool) -> None:
        """Lease more servers, then ask all that were ever leased, lost ones too."""
        one, two = self.both(crawl, worker, lambda frontier: frontier.lease(worker, servers), same=False)
        ours, theirs = ({lease.address: lease for lease in leases} for leases in (one, two))
        assert {at: plain(lease) for at, lease in ours.items()} == {at: plain(lease) for at, lease in theirs.items()}
        held = self.leases.setdefault((crawl, worker), {})
        held |= {at: (ours[at], theirs[at]) for at in ours}
        self.arrive(crawl, worker, held)
        self.refill(crawl, worker, count, holding)

    def arrive(self, crawl: str, worker: str, held: Mapping[str, tuple[Lease, Lease]]) -> None:
        known = [host.name for pair in held.values() for host in pair[0].hosts][:2]
        found = []
        for side, frontier in enumerate(self.pairs[crawl, worker]):
            leases = frontier.arrivals(worker, [pair[side].server for pair in held.values()], known)
            found.append({lease.address: plain(lease) for lease in leases})
        assert found[0] == found[1]

    def refill(self, crawl: str, worker: str, count: int, holding: bool) -> None:
        held = self.tickets.setdefault((crawl, worker), {})
        keep = frozenset(held) if holding else frozenset()
        if not holding:
            self.ended.setdefault((crawl, worker), []).extend(held.values())
            held.clear()
        where = {host.name: pair for pair in self.leases[crawl, worker].values() for host in pair[0].hosts}
        ours, theirs = (
            frontier.refill([
                Want(host, pair[side].server, pair[side].epoch, count, keep_of(keep, held, host))
                for host, pair in where.items()
            ])
            for side, frontier in enumerate(self.pairs[crawl, worker])
        )  # fmt: skip
        if self.limits["pages"]:  # which host gets the last places is not promised
            assert len(ours) == len(theirs)
            ours, theirs = ([t for t in tickets if t.lane not in LIMITED] for tickets in (ours, theirs))
        assert queues(ours) == queues(theirs)
        others = {ticket.id: ticket for ticket in theirs}
        held |= {ticket.id: (ticket, others[ticket.id]) for ticket in ours}

    @rule(crawl=crawls, worker=workers, rounds=st.lists(rounds, min_size=1, max_size=3))
    def work(self, crawl: str, worker: str, rounds: list[dict[str, Any]]) -> None:
        for round_ in rounds:
            self.take(crawl, worker, 3, 2, False)
            self.commit(crawl, worker, **round_)
            self.clock.advance(10)

    def commit(
        self,
        crawl: str,
        worker: str,
        picks: list[tuple[int, dict[str, Any]]],
        batch: list[dict[str, Any]],
        clocks: dict[str, int],
    ) -> None:
        """Ends of tickets, some of them not for the first time, some spoiled, some by a worker who lost the lease."""
        chosen = [(pair, end) for pick, end in picks if (pair := self.pick(crawl, worker, pick, end["again"]))]
        new = [self.new(crawl, fields) for fields in batch]
        at = {self.worlds[0].host(host): Pause(self.clock.after(seconds), "why", 3, 1) for host, seconds in clocks.items()}
        host = self.worlds[0].host("h0")
        robots = [RobotsRow(f"http://{host}", host, 200, str(len(picks)), self.clock.now, self.clock.now)]
        results = []
        for side, frontier in enumerate(self.pairs[crawl, worker]):
            outcomes = [self.outcome(crawl, pair[side], end) for pair, end in chosen]
            results.append(frontier.commit(Batch(outcomes, new, robots, at), worker))
        assert results[0] == results[1]
        self.both(crawl, worker, lambda frontier: frontier.robots([f"http://{host}"]))

    def pick(self, crawl: str, worker: str, pick: int, again: bool) -> tuple[Ticket, Ticket] | None:
        """One of the tickets that are out, or of those that were ended before."""
        held, ended = self.tickets[crawl, worker], self.ended.setdefault((crawl, worker), [])
        if again or not held:
            return ended[pick % len(ended)] if ended else None
        pair = held.pop(sorted(held)[pick % len(held)])
        ended.append(pair)
        return pair

    def outcome(self, crawl: str, ticket: Ticket, end: Mapping[str, Any]) -> Outcome:
        state, links = end["state"], end["links"]
        timed = LANE_OF.get(state) in TIMED and end["due_s"] is not None
        due = self.clock.after(end["due_s"]) if timed else None
        content = None if links is None else page(*(self.id(crawl, place) for place in links), text=str(links))
        outcome = Outcome(
            ticket.id, ticket.visit, ticket.server, ticket.epoch, state, self.clock.now, 200, "why", due, end["tries"],
            end["interval_s"], end["changed"], None, str(links), None, 0.5, end["received"], content,
        )  # fmt: skip
        spoil = end["spoil"]
        return replace(outcome, **{spoil: getattr(outcome, spoil) + 1}) if spoil else outcome

    @rule(crawl=crawls, worker=workers, keep=st.booleans())
    def renew_or_release(self, crawl: str, worker: str, keep: bool) -> None:
        pairs = self.leases.get((crawl, worker), {})
        renewed = []
        for side, frontier in enumerate(self.pairs[crawl, worker]):
            names = {pair[side].server: at for at, pair in pairs.items()}
            if keep:
                renewed.append({names[id_]: until for id_, until in frontier.renew(worker, list(names)).items()})
            else:
                frontier.release(worker, list(names))
        assert renewed[:1] == renewed[1:]

    @rule(seconds=st.sampled_from([1, 30, 60, 121, 1000]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(crawl=crawls, order=orders, max_depth=max_depths)
    def reopen(self, crawl: str, order: str, max_depth: int) -> None:
        self.open(crawl, order, max_depth)

    # What must be the same after each step

    @invariant()
    def rows_are_the_same(self) -> None:
        for crawl in CRAWLS if self.pairs else ():
            ids = [self.id(crawl, place) for place in itertools.product(HOSTS, PATHS)]
            ours, theirs = (frontier.look(ids) for frontier in self.pairs[crawl, WORKERS[0]])
            assert ours == theirs

    @invariant()
    def outlooks_are_the_same(self) -> None:
        for crawl, worker in self.pairs:
            self.both(crawl, worker, partial(survey, worker))


def survey(worker: str, frontier: Frontier) -> tuple[Outlook, dict[str, int], list[str]]:
    return frontier.outlook(worker), frontier.counts(), frontier.seeds()


def keep_of(keep: frozenset[int], held: Mapping[int, tuple[Ticket, Ticket]], host: str) -> frozenset[int]:
    return frozenset(key for key in keep if held[key][0].host == host)


def plain(lease: Lease) -> tuple[Any, ...]:
    """A lease without numbers of servers and without an order of hosts."""
    hosts = {(host.name, host.pause, host.room, host.prepared) for host in lease.hosts}
    return lease.epoch, lease.until, lease.pause, lease.taken_over, lease.kind, hosts


def queues(tickets: Iterable[Ticket]) -> dict[tuple[str, Lane], list[Ticket]]:
    """Tickets without numbers of servers; only inside a lane of a host there is an order."""
    lanes: dict[tuple[str, Lane], list[Ticket]] = {}
    for ticket in tickets:
        lanes.setdefault((ticket.host, ticket.lane), []).append(replace(ticket, server=0))
    return lanes


def test_twins_agree(servers: Callable[[str], str]) -> None:
    dsn = contract_database(servers("embedded"))
    how = settings(
        max_examples=25,
        stateful_step_count=25,
        deadline=None,
        derandomize=os.environ.get("CI") == "true",
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(partial(Twins, dsn), settings=how)  # type: ignore[arg-type]
