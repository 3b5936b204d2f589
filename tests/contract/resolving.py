"""Contract: hosts get their servers."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.leasing import addresses
from tests.contract.worlds import World


class Resolving:
    def test_a_host_with_queued_urls_is_to_be_resolved_by_one_worker(self, world: World) -> None:
        one = world.frontier()
        two = world.frontier()
        one.add([world.url(one, "/", "a"), world.url(one, "/", "b")])
        assert set(one.take_unresolved(9)) == {world.host("a"), world.host("b")}
        assert two.take_unresolved(9) == []
        world.clock.advance(59)
        assert two.take_unresolved(9) == []
        world.clock.advance(1)
        assert set(two.take_unresolved(9)) == {world.host("a"), world.host("b")}

    def test_no_more_hosts_than_asked_for(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/", str(n)) for n in range(5)])
        first = frontier.take_unresolved(3)
        second = frontier.take_unresolved(3)
        assert (len(first), len(second)) == (3, 2)
        assert not set(first) & set(second)
        assert frontier.take_unresolved(3) == []

    def test_best_hosts_are_resolved_first(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add(
            [world.url(frontier, "/", "a", score=0.25), world.url(frontier, "/", "b", score=0.5)]
        )
        assert frontier.take_unresolved(1) == [world.host("b")]

    def test_a_resolved_host_is_not_asked_for_again(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        world.clock.advance(1000)
        assert frontier.take_unresolved(9) == []

    def test_an_address_is_good_for_a_day_and_then_looked_up_by_one_worker(
        self, world: World
    ) -> None:
        one = world.frontier()
        two = world.frontier()
        world.give(one, "/")
        world.clock.advance(86_400)
        assert one.take_outdated(9) == []
        world.clock.advance(1)
        assert one.take_unresolved(9) == []
        assert one.take_outdated(9) == [world.host("a")]
        assert two.take_outdated(9) == one.take_outdated(9) == []
        one.put_addresses({world.host("a"): world.address("a")})
        world.clock.advance(61)
        assert two.take_outdated(9) == []

    def test_while_its_server_is_held_a_host_is_not_looked_up_again(self, world: World) -> None:
        frontier = world.frontier(lease=timedelta(minutes=2))
        world.give(frontier, "/")
        world.clock.advance(86_401)
        (lease,) = frontier.lease("w", 9)
        assert frontier.take_outdated(9) == []
        frontier.release_servers("w", [lease.server])
        assert frontier.take_outdated(9) == [world.host("a")]

    def test_hosts_without_an_address_are_not_outdated(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/")])
        world.clock.advance(86_401)
        assert frontier.take_outdated(9) == []

    def test_hosts_without_queued_urls_need_no_address(self, world: World) -> None:
        frontier = world.frontier(max_depth=1)
        frontier.add([world.url(frontier, "/", depth=2)])
        assert frontier.take_unresolved(9) == []

    def test_hosts_of_other_crawls_are_theirs_until_added_here(self, world: World) -> None:
        one = world.frontier("one")
        two = world.frontier("two")
        one.add([world.url(one)])
        assert two.take_unresolved(9) == []
        two.add([world.url(two)])
        assert two.take_unresolved(9) == [world.host("a")]
        assert one.take_unresolved(9) == []
        world.resolve(one, "a")
        assert addresses(two.lease("w", 9)) == {world.address("a")}

    def test_an_unresolved_host_is_not_leased(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier)])
        assert frontier.lease("w", 9) == []

    def test_hosts_of_one_address_are_one_server(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/", host) for host in "abc"])
        frontier.put_addresses(
            {world.host("a"): world.address("x"), world.host("b"): world.address("x")}
        )
        frontier.put_addresses({world.host("c"): world.address("x")})
        (lease,) = frontier.lease("w", 9)
        assert {host.name for host in lease.hosts} == {world.host(name) for name in "abc"}
        assert {host.server for host in lease.hosts} == {lease.server}

    def test_resolved_again_a_host_moves(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.put_addresses({world.host("a"): world.address("new")})
        assert addresses(frontier.lease("w", 9)) == {world.address("new")}

    def test_any_text_is_an_address(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/", host) for host in "ab"])
        own = {world.host(name): f"unknown:{world.host(name)}" for name in "ab"}
        frontier.put_addresses(own)
        assert addresses(frontier.lease("w", 9)) == set(own.values())

    def test_no_addresses_and_unknown_hosts_are_nothing(self, world: World) -> None:
        frontier = world.frontier()
        frontier.put_addresses({})
        frontier.put_addresses({world.host("unknown"): world.address("x")})
        assert frontier.take_unresolved(9) == [] and frontier.lease("w", 9) == []
