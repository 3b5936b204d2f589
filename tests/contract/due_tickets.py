"""Contract: which tickets a lease gives, and what can be read of a crawl."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crawlproj.frontier.base import Batch, Lane, Outlook, Pause, State, Want
from tests.contract.leasing import waiting
from tests.contract.worlds import DAY_S, Hand, World, page


class DueTickets:
    def test_handing_out_writes_nothing(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        hand = Hand(world, frontier)
        before = world.see(frontier)
        assert hand.tickets() == hand.tickets() != []
        assert world.see(frontier) == before

    def test_a_ticket_carries_the_row(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", depth=3, hops=2)
        ticket = Hand(world, frontier).ticket("/x")
        url = world.url(frontier, "/x")
        assert (ticket.id, ticket.url, ticket.host, ticket.visit) == (url.id, url.url, url.host, 0)
        assert (ticket.lane, ticket.state, ticket.depth, ticket.tries, ticket.hops) == (
            Lane.NEW,
            State.NEW,
            3,
            0,
            2,
        )
        assert (ticket.changes, ticket.interval_s, ticket.last_visit, ticket.last_change) == (
            0,
            None,
            None,
            None,
        )

    @pytest.mark.parametrize(("order", "paths"), [("best", "bca"), ("bfs", "acb"), ("dfs", "bca")])
    def test_ranked_lanes_are_served_lowest_rank_first(
        self, world: World, order: str, paths: str
    ) -> None:
        frontier = world.frontier(order=order)
        for lane in (Lane.NEW, Lane.BACKFILL):
            for path, depth, score in (("a", 1, 0.25), ("b", 5, 0.75), ("c", 3, 0.5)):
                world.give(frontier, f"/{lane}{path}", depth=depth, score=score, lane=lane)
        tickets = Hand(world, frontier).tickets(2)
        expected = [
            world.id(frontier, f"/{lane}{path}")
            for lane in (Lane.NEW, Lane.BACKFILL)
            for path in paths[:2]
        ]
        assert [ticket.id for ticket in tickets] == expected

    def test_equal_ranks_are_served_by_id(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, *(f"/{n}" for n in range(9)))
        ids = [ticket.id for ticket in Hand(world, frontier).tickets(5)]
        assert ids == sorted(world.id(frontier, f"/{n}") for n in range(9))[:5]

    def test_timed_lanes_are_served_earliest_first(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/1", "/2", "/3", "/4")
        hand = Hand(world, frontier)
        for path, due_s in (("/1", 30), ("/2", 10), ("/3", 20), ("/4", 99)):
            hand.end(hand.ticket(path), next_visit=world.clock.after(due_s))
        world.clock.advance(50)
        assert [ticket.id for ticket in hand.tickets(2)] == [
            world.id(frontier, "/2"),
            world.id(frontier, "/3"),
        ]
        assert len(hand.tickets()) == 3

    def test_each_lane_gives_up_to_the_count(self, world: World) -> None:
        frontier = world.frontier()
        kinds = (("new", Lane.NEW), ("old", Lane.BACKFILL), ("now", Lane.URGENT))
        world.give(frontier, *(f"/timed{n}" for n in range(6)))
        hand = Hand(world, frontier)
        for n in range(6):
            hand.end(
                hand.ticket(f"/timed{n}"),
                (State.WAITING, State.RETRY)[n % 2],
                next_visit=world.clock.now,
            )
        for name, lane in kinds:
            world.give(frontier, *(f"/{name}{n}" for n in range(3)), lane=lane)
        tickets = hand.tickets(2)
        assert [ticket.lane for ticket in tickets] == [lane for lane in Lane for _ in range(2)]
        assert hand.tickets(0) == []

    def test_only_what_is_urgent_is_given_if_that_is_asked_for(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/new", "/new too")
        world.give(frontier, *(f"/now{n}" for n in range(3)), lane=Lane.URGENT)
        hand = Hand(world, frontier)
        hand.lease()
        wants = [replace(want, urgent=True, count=2) for want in hand.wants()]
        found = frontier.due_tickets(wants)
        assert [ticket.lane for ticket in found] == [Lane.URGENT] * 2
        held = frozenset(ticket.id for ticket in found)
        assert len(frontier.due_tickets([replace(want, holding=held) for want in wants])) == 1

    def test_what_is_held_is_not_handed_out_again(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, *(f"/{n}" for n in range(5)))
        hand = Hand(world, frontier)
        first = {ticket.id for ticket in hand.tickets(2)}
        second = {ticket.id for ticket in hand.tickets(9, first)}
        assert (len(first), len(second), first & second) == (2, 3, set())

    def test_only_the_wanted_hosts_are_served(self, world: World) -> None:
        frontier = world.frontier()
        for name in "ab":
            world.give(frontier, "/1", "/2", host=name)
        hand = Hand(world, frontier)
        hand.lease()
        want = next(want for want in hand.wants() if want.host == world.host("b"))
        assert {ticket.host for ticket in frontier.due_tickets([want])} == {world.host("b")}
        assert {ticket.host for ticket in hand.tickets()} == {world.host("a"), world.host("b")}

    def test_urls_of_another_crawl_are_not_handed_out(self, world: World) -> None:
        one = world.frontier("one")
        two = world.frontier("two")
        world.give(one, "/one")
        world.give(two, "/two")
        assert [ticket.id for ticket in Hand(world, one).tickets()] == [world.id(one, "/one")]

    def test_a_lost_lease_lets_nothing_out(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        hand = Hand(world, frontier, "one")
        other = Hand(world, frontier, "two")
        hand.lease()
        world.clock.advance(121)
        assert len(other.tickets()) == 1
        assert hand.tickets() == []

    def test_nothing_wanted_or_known_is_nothing_given(self, world: World) -> None:
        frontier = world.frontier()
        assert frontier.due_tickets([]) == []
        assert frontier.due_tickets([Want(world.host("a"), 1, 1, 5)]) == []
        world.give(frontier, "/")
        (lease,) = frontier.lease("w", 1)
        assert (
            frontier.due_tickets([Want(world.host("unknown"), lease.server, lease.epoch, 5)]) == []
        )

    def test_new_pages_stay_within_the_hosts_quota(self, world: World) -> None:
        frontier = world.frontier(host_pages=4)
        world.give(frontier, *(f"/{n}" for n in range(6)))
        world.give(frontier, "/old0", "/old1", lane=Lane.BACKFILL, score=0.5)
        hand = Hand(world, frontier)
        ticket = hand.tickets(1)[0]
        hand.end(ticket, content=page(), next_visit=world.clock.now)
        given = hand.tickets(2)
        assert [t.lane for t in given] == [Lane.NEW, Lane.NEW, Lane.REVISIT, Lane.BACKFILL]
        held = [t.id for t in given if t.lane is not Lane.REVISIT]
        assert [t.lane for t in hand.tickets(9, held[:2])] == [Lane.NEW, Lane.REVISIT]
        assert [t.lane for t in hand.tickets(9, held)] == [Lane.REVISIT]

    def test_a_lease_tells_what_the_quota_leaves(self, world: World) -> None:
        frontier = world.frontier(host_pages=2)
        world.give(frontier, "/1", "/2")
        hand = Hand(world, frontier)
        hand.end(hand.tickets(1)[0], content=page())
        frontier.release_servers(hand.name, list(hand.leases))
        assert [host.pages_left for host in frontier.lease("w", 1)[0].hosts] == [1]

    def test_new_pages_stay_within_the_total_quota(self, world: World) -> None:
        frontier = world.frontier(pages=5)
        for name in "ab":
            world.give(frontier, *(f"/{n}" for n in range(4)), host=name)
        hand = Hand(world, frontier)
        assert len(hand.tickets(9)) == 5
        first = hand.tickets(1)
        assert len(first) == 2
        for ticket in first:
            hand.end(ticket, content=page())
        assert len(hand.tickets(9)) == 3
        wants = [
            Want(w.host, w.server, w.epoch, 9, frozenset({n})) for n, w in enumerate(hand.wants())
        ]
        assert len(frontier.due_tickets(wants)) == 1

    @pytest.mark.parametrize("limits", [{"pages": 1}, {"bytes": 10}])
    def test_a_spent_crawl_revisits_but_fetches_nothing_new(
        self, world: World, limits: dict[str, Any]
    ) -> None:
        frontier = world.frontier(**limits)
        world.give(frontier, "/1", "/2", score=2)
        world.give(frontier, "/", host="b")
        hand = Hand(world, frontier)
        hand.lease()
        want = next(want for want in hand.wants(1) if want.host == world.host("a"))
        hand.end(frontier.due_tickets([want])[0], content=page(), received=10)
        assert hand.tickets() == []
        assert frontier.outlook(hand.name) == Outlook(0, None, world.clock.after(DAY_S), 0, True)
        world.clock.advance(DAY_S)
        later = Hand(world, frontier, "later")
        assert [lease.address for lease in later.lease()] == [world.address("a")]
        assert [ticket.lane for ticket in later.tickets()] == [Lane.REVISIT]
        world.give(frontier, "/now", host="b", lane=Lane.URGENT)
        assert [lease.address for lease in later.lease()] == [world.address("b")]
        assert {ticket.lane for ticket in later.tickets()} == {Lane.REVISIT, Lane.URGENT}


class Reading:
    def test_an_empty_crawl_has_no_outlook(self, world: World) -> None:
        assert world.frontier().outlook() == Outlook()

    def test_hosts_with_urls_to_fetch_are_ready_resolved_or_not(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", "/2", host="a")
        frontier.add([world.url(frontier, "/", "b")])
        assert frontier.outlook() == Outlook(2, world.clock.now)

    def test_a_resting_host_is_ready_but_may_be_asked_later(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.commit(Batch(clocks={world.host("a"): Pause(world.clock.after(500))}))
        assert frontier.outlook() == Outlook(1, world.clock.after(500))
        world.clock.advance(600)
        assert frontier.outlook() == Outlook(1, world.clock.now)

    def test_a_retry_is_waited_for(self, world: World) -> None:
        frontier = world.frontier()
        waiting(world, frontier, "a", 300, State.RETRY)
        waiting(world, frontier, "b", 200, State.RETRY)
        assert frontier.outlook() == Outlook(0, world.clock.after(200))
        frontier.commit(Batch(clocks={world.host("b"): Pause(world.clock.after(900))}))
        assert frontier.outlook() == Outlook(0, world.clock.after(300))
        world.clock.advance(300)
        assert frontier.outlook() == Outlook(2, world.clock.now)

    def test_names_without_an_address_are_told_if_nothing_else_is_left(self, world: World) -> None:
        frontier = world.frontier()
        until = world.clock.after(600)
        assert frontier.unresolved_hosts(until) == {}
        waiting(world, frontier, "a", 300, State.RETRY)
        waiting(world, frontier, "b", 200)
        frontier.put_addresses({world.host("a"): f"?{world.host('a')}"})
        assert frontier.unresolved_hosts(until) == {world.host("a"): world.clock.now}
        assert frontier.unresolved_hosts(world.clock.after(200)) == {}, "its retry comes later"
        world.clock.advance(250)
        assert frontier.unresolved_hosts(until) == {}, "another host has something to do"

    def test_a_revisit_is_announced_but_not_waited_for(self, world: World) -> None:
        frontier = world.frontier()
        waiting(world, frontier, "a", 300)
        waiting(world, frontier, "b", 200, State.GONE)
        due = world.clock.after(200)
        assert frontier.outlook() == Outlook(0, None, due)
        world.clock.advance(250)
        assert frontier.outlook() == Outlook(1, world.clock.now, due)

    def test_ones_own_leases_are_still_ready(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        frontier.lease("w", 9)
        assert frontier.outlook("w") == Outlook(1, world.clock.now)

    def test_servers_of_other_workers_are_counted_apart(self, world: World) -> None:
        frontier = world.frontier()
        for name in "ab":
            world.give(frontier, "/", host=name)
        frontier.put_addresses({world.host(name): world.address("x") for name in "ab"})
        world.give(frontier, "/", host="c")
        frontier.lease("other", 9)
        assert frontier.outlook("w") == frontier.outlook() == Outlook(leased_elsewhere=2)
        world.clock.advance(120)
        assert frontier.outlook("w") == Outlook(3, world.clock.now)

    def test_a_lease_elsewhere_counts_for_retries_and_due_revisits_only(self, world: World) -> None:
        frontier = world.frontier(lease=timedelta(seconds=500))
        for name, state in (
            ("a", State.RETRY),
            ("b", State.WAITING),
            ("c", State.WAITING),
            ("d", State.DEAD),
        ):
            world.give(frontier, "/", host=name)
            hand = Hand(world, frontier, "other")
            hand.end(
                hand.ticket("/", name),
                state,
                next_visit=None if state is State.DEAD else world.clock.after(200),
            )
        assert frontier.outlook("w") == Outlook(0, None, world.clock.after(200), 1)
        world.clock.advance(200)
        assert frontier.outlook("w") == Outlook(0, None, world.clock.now, 3)

    def test_another_crawls_lease_is_elsewhere_too(self, world: World) -> None:
        one = world.frontier("one")
        two = world.frontier("two")
        world.give(one, "/")
        world.give(two, "/")
        one.lease("one", 9)
        assert two.outlook("two") == Outlook(leased_elsewhere=1)
        assert one.outlook("one") == Outlook(1, world.clock.now)

    @pytest.mark.parametrize("limits", [{"pages": 2}, {"bytes": 20}])
    def test_the_total_quota_is_spent_when_it_is_reached(
        self, world: World, limits: dict[str, Any]
    ) -> None:
        frontier = world.frontier(**limits)
        world.give(frontier, "/1", "/2", "/3")
        hand = Hand(world, frontier)
        spent = []
        for _ in range(2):
            hand.end(hand.tickets(1)[0], content=page(), received=10)
            spent.append(frontier.outlook().spent)
        assert spent == [False, True]

    def test_seeds_are_the_urls_at_depth_0_oldest_first(self, world: World) -> None:
        frontier = world.frontier()
        assert frontier.seed_urls() == []
        world.give(frontier, "/late", depth=1)
        for path in ("/b", "/a"):
            world.clock.advance(1)
            world.give(frontier, path)
        world.give(frontier, "/deep", depth=1)
        world.give(frontier, "/late")
        world.give(world.frontier("two"), "/other")
        assert frontier.seed_urls() == [
            world.url(frontier, path).url for path in ("/late", "/b", "/a")
        ]

    def test_counts_name_every_state(self, world: World) -> None:
        frontier = world.frontier(max_depth=1)
        world.give(frontier, "/1", "/2")
        world.give(frontier, "/3", depth=2)
        assert frontier.count_urls() == {
            "known": 3,
            **{s.value: 0 for s in State},
            "new": 2,
            "ignored": 1,
        }

    def test_a_host_that_moved_to_another_server_is_not_served_on_the_old_lease(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        hand = Hand(world, frontier)
        hand.lease()
        frontier.put_addresses({world.host("a"): world.address("elsewhere")})
        assert hand.tickets() == []
