"""Contract: URLs that are queued again, and crawls that are opened again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from crawlproj.frontier.base import Batch, Committed, Found, Frontier, Lane, State
from crawlproj.items import Page
from crawlproj.revisit.base import Bounds
from crawlproj.revisit.uniform import UniformPolicy
from crawlproj.scheduling.outcomes import OutcomeRules
from tests.contract.worlds import DAY_S, Hand, World, whole_rank

DAY = timedelta(days=1)

QUEUED = (State.NEW, State.WAITING, State.RETRY, State.GONE)
UNQUEUED = (State.DEAD, State.MOVED, State.FORBIDDEN, State.IGNORED)


def visited(world: World, frontier: Frontier, state: State, path: str = "/") -> None:
    """A URL that was fetched once and came to that state."""
    world.give(frontier, path)
    hand = Hand(world, frontier)
    assert hand.end(hand.ticket(path), state, why="reason", tries=3).done
    frontier.release_servers(hand.name, list(hand.leases))


class Revival:
    def test_a_retired_url_that_is_added_again_is_new(self, world: World) -> None:
        frontier = world.frontier()
        visited(world, frontier, State.RETIRED)
        committed = world.give(frontier, "/", lane=Lane.BACKFILL)
        assert committed == Committed(revived=1, hosts=frozenset({world.host("a")}))
        found = world.see(frontier)
        assert (found.state, found.lane, found.rank, found.tries, found.why) == (
            State.NEW,
            Lane.NEW,
            -1,
            3,
            "",
        )
        assert found.visit == 1

    def test_a_link_that_was_always_there_brings_a_gone_page_back_ever_more_seldom(
        self, world: World
    ) -> None:
        """A year of sightings each day; a new link, or a list with a later date, does so at once."""
        frontier = world.frontier()
        world.give(frontier, "/page", depth=1)
        rules = OutcomeRules(
            UniformPolicy(Bounds()), 3, DAY / 24, gone_limit=3, gone_interval=5 * DAY
        )
        asked = []
        for day in range(365):
            hand = Hand(world, frontier)
            for ticket in hand.tickets():
                asked.append(day)
                page = Page(ticket, ticket.url, 404, world.clock.now)
                assert frontier.commit(Batch([rules.decide_outcome(page, ticket)]), hand.name).done
            frontier.release_servers(hand.name, list(hand.leases))
            world.clock.advance(DAY_S)
            world.give(frontier, "/page", depth=1)
        assert asked == [0, 5, 15, 55, 135, 295]
        assert world.see(frontier, "/page").state is State.RETIRED
        hot = {"score": 1.5, "found": Found.FEED}
        then = world.clock.after(-99 * DAY_S)
        assert not world.give(frontier, "/page", depth=1, published=then, **hot).revived
        assert world.give(frontier, "/page", depth=1, published=world.clock.now, **hot).revived
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/page"), State.RETIRED, next_visit=world.clock.after(DAY_S), tries=6)
        assert world.give(frontier, "/page", depth=1, score=1.5, found=Found.LINK).revived

    @pytest.mark.parametrize("state", [*QUEUED, *UNQUEUED])
    def test_no_other_state_is_revived_by_adding(self, world: World, state: State) -> None:
        frontier = world.frontier()
        visited(world, frontier, state)
        before = world.see(frontier)
        assert world.give(frontier, "/") == Committed()
        assert world.see(frontier) == before

    @pytest.mark.parametrize("state", QUEUED)
    def test_pushed_urgently_a_queued_url_keeps_its_state(self, world: World, state: State) -> None:
        frontier = world.frontier()
        visited(world, frontier, state)
        before = world.see(frontier)
        committed = world.give(frontier, "/", lane=Lane.URGENT)
        assert committed == Committed(revived=1, hosts=frozenset({world.host("a")}))
        assert world.see(frontier) == replace(before, lane=Lane.URGENT, rank=0)
        assert [(t.state, t.lane, t.tries) for t in Hand(world, frontier).tickets()] == [
            (state, Lane.URGENT, 3)
        ]

    @pytest.mark.parametrize("state", [*QUEUED, *UNQUEUED, State.RETIRED])
    def test_what_was_visited_since_is_not_queued_again(self, world: World, state: State) -> None:
        frontier = world.frontier()
        visited(world, frontier, state)
        before = world.see(frontier)
        at = world.see(frontier).last_visit
        assert at is not None
        pushes = [
            world.url(frontier, "/", lane=Lane.URGENT),
            world.url(frontier, "/new", lane=Lane.URGENT),
        ]
        assert frontier.commit(Batch(urls=pushes, since=at)).revived == 0
        assert world.see(frontier) == before
        assert world.see(frontier, "/new").lane is Lane.URGENT, "it was never visited"
        assert frontier.commit(Batch(urls=pushes, since=at + timedelta(seconds=1))).revived == 1
        assert world.see(frontier).lane is Lane.URGENT

    @pytest.mark.parametrize("state", [*UNQUEUED, State.RETIRED])
    def test_pushed_urgently_any_other_url_is_new(self, world: World, state: State) -> None:
        frontier = world.frontier()
        visited(world, frontier, state)
        committed = world.give(frontier, "/", lane=Lane.URGENT)
        assert committed == Committed(revived=1, hosts=frozenset({world.host("a")}))
        found = world.see(frontier)
        assert (found.state, found.lane, found.rank, found.tries, found.why) == (
            State.NEW,
            Lane.URGENT,
            0,
            0,
            "",
        )

    def test_pushed_twice_counts_once(self, world: World) -> None:
        frontier = world.frontier()
        assert world.give(frontier, "/", lane=Lane.URGENT).added == 1
        assert world.give(frontier, "/", lane=Lane.URGENT) == Committed()

    def test_pushed_urgently_a_too_deep_url_is_fetched(self, world: World) -> None:
        frontier = world.frontier(max_depth=1)
        world.give(frontier, "/", depth=5)
        assert world.give(frontier, "/", depth=5, lane=Lane.URGENT).revived == 1
        assert [ticket.depth for ticket in Hand(world, frontier).tickets()] == [5]

    def test_after_its_end_an_urgent_url_waits_like_others(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/", lane=Lane.URGENT)
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/"))
        assert world.see(frontier).lane is Lane.REVISIT


class Reopening:
    def test_opening_again_changes_nothing(self, world: World) -> None:
        frontier = world.frontier(order="bfs", max_depth=3)
        world.give(frontier, "/2", depth=2)
        world.give(frontier, "/4", depth=4)
        before = world.see(frontier, "/2"), world.see(frontier, "/4")
        again = world.frontier(order="bfs", max_depth=3)
        assert (world.see(again, "/2"), world.see(again, "/4")) == before

    def test_another_order_ranks_new_urls_again(self, world: World) -> None:
        frontier = world.frontier(order="best")
        world.give(frontier, "/x", depth=4, score=0.5)
        world.give(frontier, "/old", depth=4, score=0.5, lane=Lane.BACKFILL)
        world.give(frontier, "/now", depth=4, lane=Lane.URGENT)
        world.give(frontier, "/seen", depth=4)
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/seen"))
        rank = world.see(frontier, "/seen").rank
        for order, place in (("bfs", 4), ("dfs", -4), ("best", -0.5)):
            again = world.frontier(order=order)
            ranks = [world.see(again, path).rank for path in ("/x", "/old", "/now", "/seen")]
            assert ranks[2:] == [0, rank]
            if order == "bfs":
                ranks = [whole_rank(world.see(again, path)) for path in ("/x", "/old")]
            assert ranks[:2] == [place, place]

    def test_another_order_changes_who_is_leased_first(self, world: World) -> None:
        frontier = world.frontier(order="bfs", shares={"new": 1.0, "revisit": 0.0})
        world.give(frontier, "/", host="a", depth=1)
        world.give(frontier, "/", host="b", depth=4)
        again = world.frontier(order="dfs", shares={"new": 1.0, "revisit": 0.0})
        assert [lease.address for lease in again.lease("w", 1)] == [world.address("b")]

    def test_a_tighter_depth_limit_shuts_out_and_a_wider_one_lets_in(self, world: World) -> None:
        frontier = world.frontier()
        for depth in (1, 2, 3):
            world.give(
                frontier, f"/{depth}", depth=depth, lane=Lane.BACKFILL if depth == 3 else Lane.NEW
            )
        steps: list[tuple[int, Sequence[State]]] = [
            (1, (State.NEW, State.IGNORED, State.IGNORED)),
            (2, (State.NEW, State.NEW, State.IGNORED)),
            (0, (State.NEW, State.NEW, State.NEW)),
        ]
        for limit, states in steps:
            again = world.frontier(max_depth=limit)
            assert tuple(world.see(again, f"/{depth}").state for depth in (1, 2, 3)) == states
            assert len(Hand(world, again).tickets()) == states.count(State.NEW)
            world.clock.advance(1000)
        assert (world.see(again, "/3").lane, world.see(again, "/3").why) == (Lane.NEW, "")

    def test_a_tighter_depth_limit_spares_what_is_urgent_or_was_visited(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/now", depth=5, lane=Lane.URGENT)
        world.give(frontier, "/seen", "/back", depth=5)
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/seen"))
        hand.end(hand.ticket("/back"), State.NEW)
        again = world.frontier(max_depth=1)
        states = [world.see(again, path).state for path in ("/now", "/seen", "/back")]
        assert states == [State.NEW, State.WAITING, State.NEW]

    def test_a_wider_depth_limit_leaves_other_ignored_urls_alone(self, world: World) -> None:
        frontier = world.frontier(max_depth=1, max_hops=1)
        world.give(frontier, "/hops", hops=2)
        again = world.frontier(max_depth=5, max_hops=9)
        assert world.see(again, "/hops").why == "redirects"
