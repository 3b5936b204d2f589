"""Contract: servers of hosts that are needed though there may be no work for us."""

from __future__ import annotations

from crawlproj.frontier.base import Batch, Pause
from tests.contract.worlds import World

DECADE_S = 10 * 365 * 86_400


class Clocks:
    def test_a_worker_that_lost_its_lease_sets_no_clock(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", host="b")
        (first,) = frontier.lease("stalled", 9)
        world.clock.advance(121)
        (second,) = frontier.lease("w", 9)
        later = Pause(world.clock.after(5), "delay", asked=9)
        earlier = Pause(world.clock.after(1), "delay", asked=1)
        frontier.commit(
            Batch(clocks={world.host("b"): later}, server_clocks={second.server: later}), "w"
        )
        frontier.commit(
            Batch(clocks={world.host("b"): earlier}, server_clocks={first.server: earlier}),
            "stalled",
        )
        frontier.release_servers("w", [second.server])
        (third,) = frontier.lease("w", 9)
        assert (
            third.hosts[0].pause == later
            and third.pause is not None
            and third.pause.until == later.until
        )

    def test_pauses_and_leases_from_a_time_when_the_clock_was_wrong_are_forgotten(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", host="b")
        world.clock.advance(DECADE_S)
        (lease,) = frontier.lease("w", 9)
        rest = Pause(world.clock.after(5), "delay")
        frontier.commit(
            Batch(clocks={world.host("b"): rest}, server_clocks={lease.server: rest}), "w"
        )
        world.clock.advance(-DECADE_S)
        assert frontier.lease("w", 9) == []
        (again,) = world.frontier().lease("w", 9)
        assert again.pause is None and again.hosts[0].pause is None


class Borrowing(Clocks):
    def test_a_host_without_work_is_borrowed_and_given_back(self, world: World) -> None:
        frontier = world.frontier()
        other = world.frontier("two")
        world.give(other, "/", host="b")
        ((lease,), homeless) = frontier.lease_for_hosts("w", [world.host("b")])
        assert (lease.address, [host.name for host in lease.hosts]) == (
            world.address("b"),
            [world.host("b")],
        )
        assert homeless == [] and not lease.taken_over and other.lease("x", 9) == []
        frontier.release_servers("w", [lease.server])
        assert len(other.lease("x", 9)) == 1

    def test_what_another_worker_holds_is_not_borrowed(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", host="b")
        frontier.lease("other", 9)
        assert frontier.lease_for_hosts("w", [world.host("b")]) == ([], [])

    def test_what_this_worker_holds_comes_with_the_same_epoch(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", host="a")
        (held,) = frontier.lease("w", 9)
        frontier.lease_for_hosts("w", [world.host("b")])
        frontier.put_addresses({world.host("b"): world.address("a")})
        ((lease,), _) = frontier.lease_for_hosts("w", [world.host("b")])
        assert (lease.server, lease.epoch, lease.until) == (held.server, held.epoch, held.until)
        assert [host.name for host in lease.hosts] == [world.host("b")]

    def test_a_name_that_nobody_knows_has_to_be_resolved_first(self, world: World) -> None:
        frontier = world.frontier()
        assert frontier.lease_for_hosts("w", [world.host("b")]) == ([], [world.host("b")])
        world.resolve(frontier, "b")
        ((lease,), homeless) = frontier.lease_for_hosts("w", [world.host("b"), world.host("b")])
        assert (lease.address, homeless) == (world.address("b"), [])

    def test_a_host_or_server_that_rests_is_left_alone(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", host="b")
        frontier.commit(Batch(clocks={world.host("b"): Pause(world.clock.after(60), "delay")}))
        assert frontier.lease_for_hosts("w", [world.host("b")]) == ([], [])
        world.clock.advance(55)
        ((lease,), _) = frontier.lease_for_hosts("w", [world.host("b")])
        frontier.commit(
            Batch(server_clocks={lease.server: Pause(world.clock.after(60), "general pause")})
        )
        assert frontier.lease_for_hosts("w", [world.host("b")]) == ([], [])

    def test_a_dead_workers_server_is_taken_over_with_what_it_may_have_asked(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", host="b")
        frontier.commit(
            Batch(clocks={world.host("b"): Pause(world.clock.after(1), "delay", asked=3)})
        )
        (first,) = frontier.lease("dead", 9)
        world.clock.advance(121)
        ((lease,), _) = frontier.lease_for_hosts("w", [world.host("b")], unseen=5)
        assert lease.taken_over and lease.epoch == first.epoch + 1
        assert lease.hosts[0].pause is not None and lease.hosts[0].pause.asked == 8
