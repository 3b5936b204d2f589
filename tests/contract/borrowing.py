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
        later = Pause(world.clock.after(5), "delay")
        earlier = Pause(world.clock.after(1), "delay")
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
        """Of any of its hosts, whether it is known to have been asked or not."""
        frontier = world.frontier()
        frontier.add([world.url(frontier, "/", host) for host in "bcd"])
        frontier.put_addresses({world.host(host): world.address("b") for host in "bcd"})
        (first,) = frontier.lease("dead", 9)
        asked = Pause(
            world.clock.after(1), "delay", asked={world.host("b"): 3}, busy_at=world.clock.now
        )
        frontier.commit(Batch(server_clocks={first.server: asked}), "dead")
        world.clock.advance(121)
        ((lease,), _) = frontier.lease_for_hosts("w", [world.host("b")], unseen=5)
        assert lease.taken_over and lease.epoch == first.epoch + 1
        assert lease.pause == Pause(
            asked.until,
            "delay",
            asked={world.host("b"): 8, world.host("c"): 5, world.host("d"): 5},
            busy_at=world.clock.now,
        )

    def test_a_server_that_no_clock_was_stored_of_counts_as_asked_as_well(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.lease("dead", 9)
        world.clock.advance(121)
        (lease,) = frontier.lease("w", 9, unseen=5)
        assert lease.pause is not None
        assert (lease.pause.until, lease.pause.asked) == (world.clock.now, {world.host("a"): 5})

    def test_what_was_asked_since_the_last_general_pause_goes_with_the_server(
        self, world: World
    ) -> None:
        """Into other crawls too; one whose lease has moved on does not know it."""
        one = world.frontier("one")
        two = world.frontier("two")
        world.give(one, "/")
        world.give(two, "/")
        (lease,) = one.lease("w", 9)
        asked = Pause(
            world.clock.after(1),
            "server delay",
            asked={world.host("a"): 2, world.host("gone"): 7},
            busy_at=world.clock.now,
        )
        one.commit(Batch(server_clocks={lease.server: asked}), "w")
        one.release_servers("w", [lease.server])
        (lease,) = two.lease("v", 9, unseen=5)
        assert lease.pause == asked
        late = Pause(world.clock.after(9), "late", asked={world.host("a"): 1})
        one.commit(Batch(server_clocks={lease.server: late}), "w")
        (lease,) = two.new_hosts_on_leases("v", [lease.server], [])
        assert lease.pause == Pause(late.until, "late", asked=asked.asked, busy_at=asked.busy_at)
