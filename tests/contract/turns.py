"""Contract: whose turn is next among hosts with new pages."""

from __future__ import annotations

from crawlproj.frontier.base import Batch, Frontier, Pause
from tests.contract.worlds import World

ONLY_NEW = {"new": 1.0, "revisit": 0.0}


def turns(world: World, frontier: Frontier, count: int) -> list[str]:
    """The hosts that get the one place, each for a minute."""
    order = []
    for _ in range(count):
        (lease,) = frontier.lease("w", 1)
        order.append(lease.hosts[0].name.partition(".")[0])
        world.clock.advance(60)
        frontier.release_servers("w", [lease.server])
    return order


class Turns:
    def test_no_host_starves_behind_better_ones(self, world: World) -> None:
        frontier = world.frontier(shares=ONLY_NEW)
        for name, score in (("best", 1.0), ("good", 0.9), ("poor", 0.1)):
            world.give(frontier, *(f"/{n}" for n in range(9)), host=name, score=score)
        order = turns(world, frontier, 100)
        assert order[0] == "best" and {"best", "good", "poor"} == set(order)
        assert order.count("best") >= order.count("good") > order.count("poor") >= 1

    def test_equal_hosts_take_turns(self, world: World) -> None:
        frontier = world.frontier(shares=ONLY_NEW)
        for name in "abc":
            world.give(frontier, "/1", "/2", host=name)
        assert turns(world, frontier, 6) == list("abcabc")

    def test_a_slow_host_comes_back_later_than_a_quick_one(self, world: World) -> None:
        frontier = world.frontier(shares=ONLY_NEW)
        for name in ("quick", "slow"):
            world.give(frontier, "/1", "/2", host=name)
            frontier.commit(
                Batch(
                    clocks={
                        world.host(name): Pause(
                            world.clock.after(0 if name == "quick" else 9), "slowdown"
                        )
                    }
                )
            )
        leases = frontier.lease("w", 2)
        frontier.release_servers("w", [lease.server for lease in leases])
        world.clock.advance(60)
        assert turns(world, frontier, 1) == ["quick"]

    def test_a_host_that_finds_something_new_begins_to_wait_then(self, world: World) -> None:
        frontier = world.frontier(shares=ONLY_NEW)
        world.give(frontier, "/1", host="b")
        world.clock.advance(60)
        world.give(frontier, "/1", host="a")
        assert turns(world, frontier, 1) == ["b"]

    def test_it_is_crowded_while_somebody_waits(self, world: World) -> None:
        frontier = world.frontier(shares=ONLY_NEW)
        assert not frontier.has_free_servers()
        world.give(frontier, "/1", host="a")
        assert frontier.has_free_servers()
        frontier.lease("w", 1)
        assert not frontier.has_free_servers()
