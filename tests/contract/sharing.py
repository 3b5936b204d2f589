"""Contract: workers know of each other, leases of dead ones end, and clocks of a lease that has moved
on do no harm.
"""

from __future__ import annotations

from datetime import timedelta

from crawlproj.frontier.base import Batch, Frontier, Pause, Peer
from tests.contract.worlds import Hand, World

REST = timedelta(seconds=20)


def name(world: World, worker: str) -> str:
    """Worlds on one database share the table of workers."""
    return f"{worker}.{world.tag}"


def peers(world: World, frontier: Frontier, worker: str, wanting: bool = False) -> list[Peer]:
    return [
        peer
        for peer in frontier.heartbeat(name(world, worker), wanting)
        if peer.name.endswith(world.tag)
    ]


class Sharing:
    def test_workers_of_all_crawls_know_of_each_other_while_they_live(self, world: World) -> None:
        one = world.frontier("one")
        two = world.frontier("two")
        world.give(one, "/")
        assert len(one.lease(name(world, "a"), 9)) == 1
        assert peers(world, one, "a") == []
        assert peers(world, one, "b", wanting=True) == [Peer(name(world, "a"), True, False, 1)]
        there = [Peer(name(world, "a"), False, False, 1), Peer(name(world, "b"), False, True, 0)]
        assert peers(world, two, "c") == there
        world.clock.advance(119)
        assert peers(world, one, "b") == [
            Peer(name(world, "a"), True, False, 1),
            Peer(name(world, "c"), False, False, 0),
        ]
        world.clock.advance(1)
        assert peers(world, two, "c") == [Peer(name(world, "b"), False, False, 0)]
        one.remove_worker(name(world, "b"))
        assert peers(world, two, "c") == []

    def test_workers_tell_each_other_their_rules_of_politeness(self, world: World) -> None:
        one = world.frontier("one")
        two = world.frontier("two")
        one.heartbeat(name(world, "a"), False, {"POLITENESS_DELAY": 2.0})
        assert [peer.rules for peer in peers(world, two, "b")] == [{"POLITENESS_DELAY": 2.0}]
        one.heartbeat(name(world, "a"), False, {"POLITENESS_DELAY": 0.5})
        assert [peer.rules for peer in peers(world, two, "b")] == [{"POLITENESS_DELAY": 0.5}]
        assert [peer.rules for peer in peers(world, one, "a")] == [{}]

    def test_servers_of_the_dead_rest_and_are_free_then(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        (first,) = frontier.lease(name(world, "dead"), 9)
        assert frontier.end_dead_workers([name(world, "dead")], REST) == 1
        assert (
            frontier.end_dead_workers([name(world, "dead")], REST)
            == frontier.end_dead_workers([], REST)
            == 0
        )
        world.clock.advance(9)
        assert frontier.lease("w", 9) == []
        world.clock.advance(1)
        (lease,) = frontier.lease("w", 9)
        assert (lease.server, lease.epoch, lease.taken_over) == (
            first.server,
            first.epoch + 1,
            True,
        )
        assert lease.pause == Pause(world.clock.after(10), "taken over")

    def test_the_servers_of_the_dead_do_not_rest_for_longer_than_their_leases(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.lease(name(world, "dead"), 9)
        world.clock.advance(115)
        frontier.end_dead_workers([name(world, "dead")], REST)
        (lease,) = frontier.lease("w", 9)
        assert lease.pause == Pause(world.clock.after(5), "taken over")

    def test_a_longer_rest_outlives_the_dead(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        (first,) = frontier.lease(name(world, "dead"), 9)
        frontier.commit(
            Batch(server_clocks={first.server: Pause(world.clock.after(60), "general pause")}),
            name(world, "dead"),
        )
        frontier.end_dead_workers([name(world, "dead")], REST)
        world.clock.advance(49)
        assert frontier.lease("w", 9) == []
        world.clock.advance(1)
        assert len(frontier.lease("w", 9)) == 1

    def test_ends_of_the_buried_count_until_somebody_else_has_the_server(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        world.give(frontier, "/1", "/2")
        hand = Hand(world, frontier, name(world, "not dead"))
        one, two = hand.tickets()
        frontier.end_dead_workers([hand.name], REST)
        assert hand.end(one).late == 0
        world.clock.advance(30)
        frontier.lease("w", 9)
        assert hand.end(two).late == 1

    def test_clocks_of_a_lease_that_has_moved_on_only_make_a_rest_longer(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        (lease,) = frontier.lease("slow", 9)
        world.clock.advance(120)
        frontier.lease("next", 9)

        def store(worker: str, seconds: float) -> None:
            pause = Pause(world.clock.after(seconds), worker)
            frontier.commit(
                Batch(clocks={world.host("a"): pause}, server_clocks={lease.server: pause}), worker
            )

        def stored() -> tuple[str, str]:
            (found,) = frontier.new_hosts_on_leases("next", [lease.server], [])
            assert found.pause and found.hosts[0].pause
            return found.pause.reason, found.hosts[0].pause.reason

        store("next", 5)
        store("slow", 3)
        assert stored() == ("next", "next")
        store("slow", 8)
        assert stored() == ("slow", "slow")
        store("next", 2)
        assert stored() == ("next", "next")
