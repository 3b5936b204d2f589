"""Contract: which servers are leased, and for how long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from crawlproj.frontier.base import Batch, Frontier, Host, Lane, Lease, Pause, State
from tests.contract.worlds import Hand, World

NEW_FIRST = {"new": 1.0, "revisit": 0.0}


def addresses(leases: Iterable[Lease]) -> set[str]:
    return {lease.address for lease in leases}


def waiting(
    world: World, frontier: Frontier, host: str, due_s: float, state: State = State.WAITING
) -> None:
    """A host with one URL that is due at that distance from now."""
    world.give(frontier, "/timed", host=host, lane=Lane.URGENT)
    hand = Hand(world, frontier, "before")
    hand.end(hand.ticket("/timed", host), state, next_visit=world.clock.after(due_s))
    frontier.release_servers(hand.name, list(hand.leases))


class Leasing:
    def test_a_lease_names_server_time_and_hosts(self, world: World) -> None:
        frontier = world.frontier(lease=timedelta(seconds=30), host_pages=7)
        world.give(frontier, "/")
        (lease,) = frontier.lease("w", 1)
        assert (lease.address, lease.until) == (world.address("a"), world.clock.after(30))
        assert lease.hosts == (Host(world.host("a"), lease.server, None, 7),)

    def test_a_lease_is_exclusive_until_it_expires(self, world: World) -> None:
        one = world.frontier()
        two = world.frontier()
        world.give(one, "/")
        (first,) = one.lease("one", 9)
        assert two.lease("two", 9) == [] and one.lease("one", 9) == []
        world.clock.advance(119)
        assert two.lease("two", 9) == []
        world.clock.advance(1)
        (second,) = two.lease("two", 9)
        assert (second.server, second.epoch) == (first.server, first.epoch + 1)

    def test_a_lease_holds_in_all_crawls(self, world: World) -> None:
        one = world.frontier("one")
        two = world.frontier("two")
        world.give(one, "/")
        world.give(two, "/")
        (lease,) = one.lease("one", 9)
        assert two.lease("two", 9) == []
        one.release_servers("one", [lease.server])
        assert addresses(two.lease("two", 9)) == {lease.address}

    def test_no_more_servers_than_asked_for(self, world: World) -> None:
        frontier = world.frontier()
        for name in "abcde":
            world.give(frontier, "/", host=name)
        assert len(frontier.lease("w", 3)) == 3
        assert len(frontier.lease("w", 3)) == 2
        assert frontier.lease("w", 3) == [] and frontier.lease("other", 0) == []

    def test_best_servers_are_leased_first(self, world: World) -> None:
        frontier = world.frontier(shares=NEW_FIRST)
        for name, score in (("a", 0.25), ("b", 0.75), ("c", 0.5)):
            world.give(frontier, "/", host=name, score=score)
        assert [addresses(frontier.lease("w", 1)) for _ in range(3)] == [
            {world.address(name)} for name in "bca"
        ]

    def test_of_equal_servers_the_first_by_name_is_leased(self, world: World) -> None:
        frontier = world.frontier(shares=NEW_FIRST)
        for name in "cab":
            world.give(frontier, "/", host=name)
        assert [addresses(frontier.lease("w", 1)) for _ in range(3)] == [
            {world.address(name)} for name in "abc"
        ]

    @pytest.mark.parametrize(("order", "names"), [("best", "bca"), ("bfs", "acb"), ("dfs", "bca")])
    def test_the_order_decides_between_servers(self, world: World, order: str, names: str) -> None:
        frontier = world.frontier(shares=NEW_FIRST, order=order)
        for name, depth, score in (("a", 1, 0.25), ("b", 5, 0.75), ("c", 3, 0.5)):
            world.give(frontier, "/", host=name, depth=depth, score=score)
        assert [addresses(frontier.lease("w", 1)) for _ in names] == [
            {world.address(name)} for name in names
        ]

    def test_backfill_counts_as_ranked_work(self, world: World) -> None:
        frontier = world.frontier(shares=NEW_FIRST)
        world.give(frontier, "/", host="a", score=0.25)
        world.give(frontier, "/", host="b", score=0.5, lane=Lane.BACKFILL)
        assert addresses(frontier.lease("w", 1)) == {world.address("b")}

    def test_urgent_servers_are_leased_before_all_others(self, world: World) -> None:
        frontier = world.frontier(shares=NEW_FIRST, order="dfs")
        world.give(frontier, "/", host="a", depth=9)
        world.give(frontier, "/", host="b", lane=Lane.URGENT)
        assert addresses(frontier.lease("w", 1)) == {world.address("b")}

    def test_earliest_servers_are_leased_first(self, world: World) -> None:
        frontier = world.frontier(shares={"new": 0.0, "revisit": 1.0})
        for name, due_s, state in (
            ("a", 30, State.WAITING),
            ("b", 10, State.RETRY),
            ("c", 20, State.GONE),
        ):
            waiting(world, frontier, name, due_s, state)
        world.clock.advance(60)
        assert [addresses(frontier.lease("w", 1)) for _ in range(3)] == [
            {world.address(name)} for name in "bca"
        ]

    def test_what_is_not_due_is_not_leased(self, world: World) -> None:
        frontier = world.frontier()
        waiting(world, frontier, "a", 100)
        waiting(world, frontier, "b", 100, State.RETRY)
        world.clock.advance(99)
        assert frontier.lease("w", 9) == []
        world.clock.advance(1)
        assert len(frontier.lease("w", 9)) == 2

    @pytest.mark.parametrize(
        ("count", "new", "ranked"),
        [(4, 0.5, 2), (3, 0.5, 2), (4, 0.25, 1), (1, 0.25, 1), (2, 0, 0), (3, 1, 3)],
    )
    def test_places_are_shared_between_new_and_due(
        self, world: World, count: int, new: float, ranked: int
    ) -> None:
        frontier = world.frontier(shares={"new": new, "revisit": 1 - new})
        for n in range(4):
            world.give(frontier, "/", host=f"new{n}")
            waiting(world, frontier, f"due{n}", -n)
        leased = addresses(frontier.lease("w", count))
        assert len(leased) == count
        assert len(leased & {world.address(f"new{n}") for n in range(4)}) == ranked

    def test_places_that_one_class_cannot_fill_go_to_the_other(self, world: World) -> None:
        frontier = world.frontier(shares={"new": 0.5, "revisit": 0.5})
        world.give(frontier, "/", host="new")
        for n in range(4):
            waiting(world, frontier, f"due{n}", 0)
        assert len(frontier.lease("w", 4)) == 4
        other = world.frontier("two", shares={"new": 0.5, "revisit": 0.5})
        for n in range(4):
            world.give(other, "/", host=f"fresh{n}")
        assert len(other.lease("w", 4)) == 4

    def test_a_server_with_both_kinds_of_work_takes_one_place(self, world: World) -> None:
        frontier = world.frontier(shares={"new": 0.5, "revisit": 0.5})
        for name in "ab":
            waiting(world, frontier, name, 0)
            world.give(frontier, "/", host=name)
        assert addresses(frontier.lease("w", 2)) == {world.address("a"), world.address("b")}

    def test_without_shares_new_urls_come_first(self, world: World) -> None:
        frontier = world.frontier(shares={})
        waiting(world, frontier, "due", -100)
        world.give(frontier, "/", host="new")
        assert addresses(frontier.lease("w", 1)) == {world.address("new")}

    def test_a_resting_host_is_leased_shortly_before_its_time(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.commit(Batch(clocks={world.host("a"): Pause(world.clock.after(60))}))
        world.clock.advance(49)
        assert frontier.lease("w", 9) == []
        world.clock.advance(1)
        (lease,) = frontier.lease("w", 9)
        assert lease.hosts[0].pause.until == world.clock.after(10)

    def test_a_clock_is_set_forwards_and_backwards_by_who_holds_the_lease(
        self, world: World
    ) -> None:
        one = world.frontier("one")
        two = world.frontier("two")
        world.give(one, "/")
        (held,) = one.lease("holder", 1)
        for seconds in (500, 5):
            clocks = {
                world.host("a"): Pause(world.clock.after(seconds)),
                world.host("unknown"): Pause(world.clock.now),
            }
            one.commit(Batch(clocks=clocks), "holder")
        one.release_servers("holder", [held.server])
        world.give(two, "/")
        assert two.lease("w", 1)[0].hosts[0].pause.until == world.clock.after(5)

    def test_a_lease_brings_all_hosts_with_work_also_resting_ones(self, world: World) -> None:
        frontier = world.frontier()
        other = world.frontier("two")
        names = ("ready", "resting", "due", "later", "done")
        waiting(world, frontier, "due", 10)
        waiting(world, frontier, "later", 1000, State.RETRY)
        waiting(world, frontier, "done", 0, State.DEAD)
        for name in ("ready", "resting"):
            world.give(frontier, "/", host=name)
        world.give(other, "/", host="elsewhere")
        frontier.put_addresses(
            {world.host(name): world.address("x") for name in (*names, "elsewhere")}
        )
        frontier.commit(Batch(clocks={world.host("resting"): Pause(world.clock.after(1000))}))
        world.clock.advance(10)
        (lease,) = frontier.lease("w", 9)
        assert {host.name for host in lease.hosts} == {
            world.host(name) for name in ("ready", "resting", "due")
        }

    def test_renewing_moves_the_end(self, world: World) -> None:
        one = world.frontier()
        two = world.frontier()
        world.give(one, "/")
        (lease,) = one.lease("one", 9)
        world.clock.advance(100)
        assert one.renew_leases("one", [lease.server]) == {lease.server: world.clock.after(120)}
        world.clock.advance(100)
        assert two.lease("two", 9) == []
        world.clock.advance(20)
        assert len(two.lease("two", 9)) == 1

    def test_an_expired_lease_that_nobody_took_can_be_renewed(self, world: World) -> None:
        one = world.frontier()
        two = world.frontier()
        world.give(one, "/")
        (lease,) = one.lease("one", 9)
        world.clock.advance(500)
        assert one.renew_leases("one", [lease.server]) == {lease.server: world.clock.after(120)}
        assert two.lease("two", 9) == []

    def test_a_lost_lease_is_missing_from_what_was_renewed(self, world: World) -> None:
        one = world.frontier()
        two = world.frontier()
        for name in "ab":
            world.give(one, "/", host=name)
        mine = {lease.address: lease.server for lease in one.lease("one", 9)}
        a = mine[world.address("a")]
        b = mine[world.address("b")]
        world.clock.advance(121)
        one.renew_leases("one", [b])
        assert [lease.server for lease in two.lease("two", 9)] == [a]
        assert set(one.renew_leases("one", [a, b, 2**31 - 1])) == {b}
        assert one.renew_leases("one", []) == {}

    def test_a_released_server_is_free_at_once_under_a_new_epoch(self, world: World) -> None:
        one = world.frontier()
        two = world.frontier()
        world.give(one, "/")
        (lease,) = one.lease("one", 9)
        one.release_servers("one", [lease.server])
        assert one.renew_leases("one", [lease.server]) == {}
        (again,) = two.lease("two", 9)
        assert (again.server, again.epoch) == (lease.server, lease.epoch + 1)

    def test_only_ones_own_servers_are_released(self, world: World) -> None:
        one = world.frontier()
        two = world.frontier()
        world.give(one, "/")
        (lease,) = one.lease("one", 9)
        two.release_servers("two", [lease.server])
        two.release_servers("two", [])
        assert two.lease("two", 9) == []
        assert set(one.renew_leases("one", [lease.server])) == {lease.server}


class NewHostsOnLeases:
    def held(self, world: World) -> tuple[Frontier, Lease]:
        """A worker's lease of a server with one host, beside which others can come up."""
        frontier = world.frontier(host_pages=5)
        world.give(frontier, "/", host="a")
        (lease,) = frontier.lease("w", 1)
        return frontier, lease

    def test_a_host_that_comes_up_on_a_held_server_arrives(self, world: World) -> None:
        frontier, lease = self.held(world)
        world.give(frontier, "/", host="b")
        frontier.put_addresses({world.host("b"): lease.address})
        host = Host(world.host("b"), lease.server, None, 5)
        assert frontier.new_hosts_on_leases("w", [lease.server], [world.host("a")]) == [
            replace(lease, hosts=(host,))
        ]
        assert (
            frontier.new_hosts_on_leases("w", [lease.server], [world.host("a"), world.host("b")])
            == []
        )

    def test_a_host_arrives_when_its_time_has_come(self, world: World) -> None:
        frontier = world.frontier()
        waiting(world, frontier, "b", 50)
        world.give(frontier, "/", host="a")
        frontier.put_addresses({world.host("b"): world.address("a")})
        (lease,) = frontier.lease("w", 1)
        assert frontier.new_hosts_on_leases("w", [lease.server], [world.host("a")]) == []
        world.clock.advance(50)
        (arrived,) = frontier.new_hosts_on_leases("w", [lease.server], [world.host("a")])
        assert [host.name for host in arrived.hosts] == [world.host("b")]

    def test_a_resting_host_arrives_shortly_before_its_time(self, world: World) -> None:
        frontier, lease = self.held(world)
        frontier.commit(Batch(clocks={world.host("a"): Pause(world.clock.after(60))}))
        world.clock.advance(49)
        assert frontier.new_hosts_on_leases("w", [lease.server], []) == []
        world.clock.advance(1)
        (arrived,) = frontier.new_hosts_on_leases("w", [lease.server], [])
        assert arrived.hosts[0].pause.until == world.clock.after(10)

    def test_nothing_arrives_on_servers_that_others_hold(self, world: World) -> None:
        frontier, lease = self.held(world)
        assert frontier.new_hosts_on_leases("other", [lease.server], []) == []
        assert (
            frontier.new_hosts_on_leases("w", [], []) == []
            and frontier.new_hosts_on_leases("w", [2**31 - 1], []) == []
        )
        frontier.release_servers("w", [lease.server])
        assert frontier.new_hosts_on_leases("w", [lease.server], []) == []
