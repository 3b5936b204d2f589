"""Twins: the frontier in memory and the one on Postgres get the same calls and must return the
same.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from crawlproj.frontier.base import (
    LANE_OF,
    TIMED_LANES,
    Batch,
    Frontier,
    Lane,
    Lease,
    NewUrl,
    Outcome,
    Outlook,
    Pause,
    RobotsRow,
    Ticket,
    Want,
)
from tests.contract.events import (
    CRAWLS,
    HOSTS,
    PATHS,
    WORKERS,
    crawls,
    hosts,
    leases,
    limits,
    max_depths,
    orders,
    rounds,
    urls,
    workers,
)
from tests.contract.worlds import MemoryWorld, PostgresWorld, World, contract_database, page, url_id

numbers = itertools.count()


class Twins(RuleBasedStateMachine):
    """Two worlds with one clock and the same names. Numbers of servers differ, so leases are
    matched by address.
    """

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
        try:
            for crawl in CRAWLS if self.pairs else ():
                pair = self.pairs[crawl, WORKERS[0]]
                ids = [self.id(crawl, place) for place in itertools.product(HOSTS, PATHS)]
                ours, theirs = (
                    [set(w.versions(f, key)) for key in ids]
                    for w, f in zip(self.worlds, pair, strict=True)
                )
                assert ours == theirs
        finally:
            for world in self.worlds:
                world.close()

    @initialize(order=orders, max_depth=max_depths, limits=limits)
    def begin(self, order: str, max_depth: int, limits: dict[str, Any]) -> None:
        self.limits = {"max_hops": 1, **limits}
        for crawl in CRAWLS:
            self.open(crawl, order, max_depth)
            self.add(
                crawl,
                WORKERS[0],
                [{"place": (host, 0), "depth": 2 * n} for n, host in enumerate(HOSTS)],
            )
        self.resolve(CRAWLS[0], WORKERS[0], {})

    def open(self, crawl: str, order: str, max_depth: int) -> None:
        for worker in WORKERS:
            for frontier in self.pairs.get((crawl, worker), ()):
                frontier.close()
            one, two = (
                world.frontier(crawl, order=order, max_depth=max_depth, **self.limits)
                for world in self.worlds
            )
            self.pairs[crawl, worker] = one, two

    def both(
        self, crawl: str, worker: str, call: Callable[[Frontier], Any], same: bool = True
    ) -> tuple[Any, Any]:
        one, two = (call(frontier) for frontier in self.pairs[crawl, worker])
        if same:
            assert one == two
        return one, two

    def id(self, crawl: str, place: tuple[str, int]) -> int:
        return url_id(
            self.pairs[crawl, WORKERS[0]][0], f"http://{self.worlds[0].host(place[0])}/{place[1]}"
        )

    def new(self, crawl: str, fields: Mapping[str, Any]) -> NewUrl:
        place = fields["place"]
        rest = {name: value for name, value in fields.items() if name != "place"}
        host = self.worlds[0].host(place[0])
        return NewUrl(self.id(crawl, place), f"http://{host}/{place[1]}", host, **rest)

    # What happens

    @rule(crawl=crawls, worker=workers, batch=st.lists(urls, max_size=6))
    def add(self, crawl: str, worker: str, batch: list[dict[str, Any]]) -> None:
        self.both(
            crawl,
            worker,
            lambda frontier: frontier.add([self.new(crawl, fields) for fields in batch]),
        )

    @rule(
        crawl=crawls,
        worker=workers,
        hosts=st.dictionaries(hosts, st.sampled_from(["x", "y", "z"]), max_size=2),
    )
    def resolve(self, crawl: str, worker: str, hosts: dict[str, str]) -> None:
        """What is unresolved, and sometimes a host that moves."""
        names, _ = self.both(
            crawl,
            worker,
            lambda frontier: {*frontier.take_unresolved(100), *frontier.take_outdated(100)},
        )
        addresses = {name: self.worlds[0].address("wxyz"[int(name[1])]) for name in names}
        addresses |= {
            self.worlds[0].host(host): self.worlds[0].address(at) for host, at in hosts.items()
        }
        self.both(crawl, worker, lambda frontier: frontier.put_addresses(addresses))

    @rule(
        crawl=crawls,
        worker=workers,
        servers=st.integers(0, 3),
        count=st.integers(1, 3),
        holding=st.booleans(),
        how=leases,
    )
    def take(
        self, crawl: str, worker: str, servers: int, count: int, holding: bool, how: dict[str, Any]
    ) -> None:
        """Lease more servers, then ask all that were ever leased, lost ones too."""
        one, two = self.both(
            crawl, worker, lambda frontier: frontier.lease(worker, servers, **how), same=False
        )
        ours, theirs = ({lease.address: lease for lease in leases} for leases in (one, two))
        assert {at: plain(lease) for at, lease in ours.items()} == {
            at: plain(lease) for at, lease in theirs.items()
        }
        held = self.leases.setdefault((crawl, worker), {})
        held |= {at: (ours[at], theirs[at]) for at in ours}
        self.arrive(crawl, worker, held)
        self.refill(crawl, worker, count, holding)

    def arrive(self, crawl: str, worker: str, held: Mapping[str, tuple[Lease, Lease]]) -> None:
        known = [host.name for pair in held.values() for host in pair[0].hosts][:2]
        found = []
        for side, frontier in enumerate(self.pairs[crawl, worker]):
            leases = frontier.new_hosts_on_leases(
                worker, [pair[side].server for pair in held.values()], known
            )
            found.append({lease.address: plain(lease) for lease in leases})
        assert found[0] == found[1]

    def refill(self, crawl: str, worker: str, count: int, holding: bool) -> None:
        held = self.tickets.setdefault((crawl, worker), {})
        keep = frozenset(held) if holding else frozenset()
        if not holding:
            self.ended.setdefault((crawl, worker), []).extend(held.values())
            held.clear()
        where = {
            host.name: pair
            for pair in self.leases[crawl, worker].values()
            for host in pair[0].hosts
        }
        ours, theirs = (
            frontier.due_tickets([
                Want(host, pair[side].server, pair[side].epoch, count, keep_of(keep, held, host))
                for host, pair in where.items()
            ], len(held) if count > 1 else None)
            for side, frontier in enumerate(self.pairs[crawl, worker])
        )  # fmt: skip
        if self.limits["pages"]:  # which host gets the last places is not promised
            assert len(ours) == len(theirs)
            common = {ticket.id for ticket in ours} & {ticket.id for ticket in theirs}
            ours, theirs = (
                [t for t in tickets if t.id in common or not limited(t)]
                for tickets in (ours, theirs)
            )
        assert queues(ours) == queues(theirs)
        others = {ticket.id: ticket for ticket in theirs}
        held |= {ticket.id: (ticket, others[ticket.id]) for ticket in ours}

    @rule(crawl=crawls, worker=workers, rounds=st.lists(rounds, min_size=1, max_size=3), how=leases)
    def work(
        self, crawl: str, worker: str, rounds: list[dict[str, Any]], how: dict[str, Any]
    ) -> None:
        for round_ in rounds:
            self.take(crawl, worker, 3, 2, False, how)
            self.commit(crawl, worker, round_)
            self.clock.advance(10)

    def commit(self, crawl: str, worker: str, round_: Mapping[str, Any]) -> None:
        """Ends of tickets, some of them not for the first time, some spoiled, some by a worker who
        lost the lease.
        """
        chosen = [
            (pair, end)
            for pick, end in round_["picks"]
            if (pair := self.pick(crawl, worker, pick, end["again"]))
        ]
        new = [self.new(crawl, fields) for fields in round_["batch"]]
        clocks = {
            self.worlds[0].host(host): self.pause(pause) for host, pause in round_["clocks"].items()
        }
        robots = [self.robots(host, status) for host, status in round_["robots"].items()]
        servers = list(self.leases[crawl, worker].values())[:1]
        results = []
        for side, frontier in enumerate(self.pairs[crawl, worker]):
            outcomes = [self.outcome(crawl, pair[side], end) for pair, end in chosen]
            rests = {
                pair[side].server: self.pause(rest) for rest in round_["rests"] for pair in servers
            }
            results.append(frontier.commit(Batch(outcomes, new, robots, clocks, rests), worker))
        assert results[0] == replace(results[1], hosts=results[0].hosts)
        # Postgres may name hosts whose quota was used up by this commit.
        assert results[0].hosts <= results[1].hosts
        self.both(
            crawl, worker, lambda frontier: frontier.get_robots([row.origin for row in robots])
        )

    def pause(self, fields: tuple[int, str, int, int]) -> Pause:
        seconds, reason, asked, failures = fields
        return Pause(
            self.clock.after(seconds),
            reason,
            failures,
            asked={self.worlds[0].host("a"): asked},
            busy_at=self.clock.now,
        )

    def robots(self, name: str, status: int) -> RobotsRow:
        host = self.worlds[0].host(name)
        return RobotsRow(
            f"http://{host}", host, status, str(self.clock.now), self.clock.now, self.clock.now
        )

    def pick(self, crawl: str, worker: str, pick: int, again: bool) -> tuple[Ticket, Ticket] | None:
        """One of the tickets that are out, or of those that were ended before."""
        held = self.tickets[crawl, worker]
        ended = self.ended.setdefault((crawl, worker), [])
        if again or not held:
            return ended[pick % len(ended)] if ended else None
        pair = held.pop(sorted(held)[pick % len(held)])
        ended.append(pair)
        return pair

    def outcome(self, crawl: str, ticket: Ticket, end: Mapping[str, Any]) -> Outcome:
        state = end["state"]
        links = end["links"]
        timed = LANE_OF.get(state) in TIMED_LANES and end["due_s"] is not None
        due = self.clock.after(end["due_s"]) if timed else None
        content = (
            None
            if links is None
            else page(*(self.id(crawl, place) for place in links), text=str(links))
        )
        fields = {name: end[name] for name in ("tries", "interval_s", "changed", "received")}
        outcome = Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            ticket.epoch,
            state,
            self.clock.now,
            status=200,
            why="why",
            next_visit=due,
            etag=str(links),
            elapsed_s=0.5,
            depth=ticket.depth,
            content=content,
            expires=due,
            **fields,
        )
        spoil = end["spoil"]
        return replace(outcome, **{spoil: getattr(outcome, spoil) + 1}) if spoil else outcome

    @rule(crawl=crawls, worker=workers, keep=st.booleans(), yielding=st.booleans())
    def renew_or_release(self, crawl: str, worker: str, keep: bool, yielding: bool) -> None:
        pairs = self.leases.get((crawl, worker), {})
        said = []
        for side, frontier in enumerate(self.pairs[crawl, worker]):
            names = {pair[side].server: at for at, pair in pairs.items()}
            contested = {names[id_] for id_ in frontier.contested_servers(list(names))}
            renewed = (
                {
                    names[id_]: until
                    for id_, until in frontier.renew_leases(worker, list(names)).items()
                }
                if keep
                else {}
            )
            if not keep:
                frontier.release_servers(worker, list(names), yielding)
            said.append((contested, renewed))
        assert said[0] == said[1]

    @rule(crawl=crawls, worker=workers, dead=workers, rest_s=st.sampled_from([0, 5, 30, 500]))
    def die(self, crawl: str, worker: str, dead: str, rest_s: int) -> None:
        self.both(
            crawl,
            worker,
            lambda frontier: frontier.end_dead_workers([dead], timedelta(seconds=rest_s)),
            same=False,
        )

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
            ours, theirs = (frontier.get_urls(ids) for frontier in self.pairs[crawl, WORKERS[0]])
            assert ours == theirs

    @invariant()
    def outlooks_are_the_same(self) -> None:
        for crawl, worker in self.pairs:
            self.both(crawl, worker, partial(survey, worker))


def survey(worker: str, frontier: Frontier) -> tuple[Outlook, dict[str, int], list[str]]:
    return frontier.outlook(worker), frontier.count_urls(), frontier.seed_urls()


def limited(ticket: Ticket) -> bool:
    return ticket.lane in (Lane.NEW, Lane.BACKFILL) or (
        ticket.lane is Lane.RETRY and ticket.block_digest is None
    )


def keep_of(
    keep: frozenset[int], held: Mapping[int, tuple[Ticket, Ticket]], host: str
) -> frozenset[int]:
    return frozenset(key for key in keep if held[key][0].host == host)


def plain(lease: Lease) -> tuple[Any, ...]:
    """A lease without numbers of servers and without an order of hosts."""
    hosts = {(host.name, host.pause, host.pages_left, host.prepared) for host in lease.hosts}
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
