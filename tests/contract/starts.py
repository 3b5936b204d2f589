"""Contract: start requests are asked again, the way in is kept, and breadth-first in the order of
finding.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from crawlproj.frontier.base import Batch, Committed, Found, Frontier, Lane, State
from tests.contract.worlds import Hand, World, page, request_json

REST = timedelta(minutes=5)
ENDS = [
    State.WAITING,
    State.GONE,
    State.RETIRED,
    State.DEAD,
    State.MOVED,
    State.FORBIDDEN,
    State.IGNORED,
]


def start(world: World, frontier: Frontier, *paths: str) -> Committed:
    """What a run that starts with these does."""
    committed = frontier.add(
        [world.url(frontier, path, found=Found.SEED, again=REST) for path in paths]
    )
    world.resolve(frontier, "a")
    return committed


def visit(world: World, frontier: Frontier, path: str, state: State, status: int = 200) -> None:
    hand = Hand(world, frontier)
    content = page(text=path) if state is State.WAITING else None
    hand.end(hand.ticket(path), state, status=status, content=content)
    frontier.release_servers(hand.name, list(hand.leases))


class Starts:
    @pytest.mark.parametrize("state", ENDS)
    def test_a_start_request_is_asked_again_unless_it_was_visited_just_now(
        self, world: World, state: State
    ) -> None:
        frontier = world.frontier()
        assert start(world, frontier, "/").added == 1
        assert world.see(frontier).lane is Lane.NEW
        visit(world, frontier, "/", state)
        before = world.see(frontier)
        world.clock.advance(299)
        assert start(world, frontier, "/") == Committed()
        assert world.see(frontier) == before, "another worker, or a run right after a kill"
        world.clock.advance(2)
        assert start(world, frontier, "/").revived == 1
        found = world.see(frontier)
        expected = State.NEW
        if state in (State.WAITING, State.GONE):
            expected = state
        assert (found.lane, found.state) == (Lane.URGENT, expected)
        assert start(world, frontier, "/") == Committed(), "another worker with the same seeds"
        (ticket,) = Hand(world, frontier).tickets()
        assert (ticket.lane, ticket.pushed, ticket.found) == (Lane.URGENT, False, Found.SEED)
        assert (ticket.block_digest is not None) == (state is State.WAITING), "a conditional GET"

    def test_a_start_request_without_a_response_is_asked_again_at_once(self, world: World) -> None:
        frontier = world.frontier()
        start(world, frontier, "/")
        visit(world, frontier, "/", State.RETRY, status=0)
        assert start(world, frontier, "/").revived == 1
        assert world.see(frontier).lane is Lane.URGENT

    def test_a_start_request_that_waits_for_its_first_visit_stays_where_it_is(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        start(world, frontier, "/")
        before = world.see(frontier)
        world.clock.advance(3600)
        assert start(world, frontier, "/") == Committed()
        assert world.see(frontier) == before

    def test_a_start_request_that_was_left_out_is_new_where_quotas_hold(self, world: World) -> None:
        frontier = world.frontier(max_depth=1)
        world.give(frontier, "/deep", depth=5)
        assert world.see(frontier, "/deep").state is State.IGNORED
        assert start(world, frontier, "/deep").revived == 1
        found = world.see(frontier, "/deep")
        assert (found.lane, found.depth, found.state) == (Lane.NEW, 0, State.NEW)
        full = world.frontier("full", max_depth=1, host_pages=1)
        start(world, full, "/")
        visit(world, full, "/", State.WAITING)
        world.give(full, "/deep", depth=5)
        world.clock.advance(3600)
        start(world, full, "/deep", "/")
        assert world.see(full, "/deep").why == "quota", "the host has given all that is wanted"
        assert world.see(full).lane is Lane.URGENT, "what is known is still asked again"

    def test_what_is_pushed_is_always_asked(self, world: World) -> None:
        frontier = world.frontier()
        start(world, frontier, "/")
        visit(world, frontier, "/", State.WAITING)
        assert world.give(frontier, "/", lane=Lane.URGENT).revived == 1
        (ticket,) = Hand(world, frontier).tickets()
        assert ticket.pushed

    def test_pushes_come_before_starts_and_starts_in_their_order(self, world: World) -> None:
        frontier = world.frontier()
        paths = [f"/{n}" for n in (5, 3, 9, 1, 7)]
        start(world, frontier, *paths)
        for path in paths:
            visit(world, frontier, path, State.WAITING)
        world.clock.advance(3600)
        assert start(world, frontier, *paths).revived == 5
        world.give(frontier, "/pushed", depth=1, lane=Lane.URGENT)
        assert world.give(frontier, "/9", lane=Lane.URGENT).revived == 1, "it goes before the rest"
        tickets = Hand(world, frontier).tickets()
        asked = [ticket.url.rpartition("/")[2] for ticket in tickets]
        assert set(asked[:2]) == {"9", "pushed"}
        assert asked[2:] == ["5", "3", "1", "7"]

    @pytest.mark.parametrize("source", [True, False])
    def test_of_what_callbacks_request_only_sources_are_asked_again(
        self, world: World, source: bool
    ) -> None:
        frontier = world.frontier()
        request = world.url(frontier, "/map", depth=1, found=Found.REQUEST, again=REST)
        frontier.add([request])
        world.resolve(frontier, "a")
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/map"), status=200, content=page(), source=source)
        world.clock.advance(3600)
        assert frontier.add([request]).revived == source

    def test_a_start_request_is_stored_anew(self, world: World) -> None:
        frontier = world.frontier()
        first = world.url(frontier, "/", again=REST, request=request_json(body="one"))
        frontier.add([first])
        world.resolve(frontier, "a")
        visit(world, frontier, "/", State.WAITING)
        world.clock.advance(3600)
        frontier.add([replace(first, request=request_json(body="two"))])
        (ticket,) = Hand(world, frontier).tickets()
        assert ticket.request is not None
        assert ticket.request["body"] == "two"


class WaysIn:
    def test_the_way_in_goes_with_the_parent(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", depth=3, parent=3, found=Found.FEED)
        world.give(frontier, "/x", depth=3, parent=4, found=Found.LINK)
        found = world.see(frontier, "/x")
        assert (found.found, found.parent) == (Found.FEED, 3), "the first way in is kept"
        world.give(frontier, "/x", depth=2, parent=2, found=Found.SITEMAP)
        found = world.see(frontier, "/x")
        assert (found.found, found.parent) == (Found.SITEMAP, 2)
        assert Hand(world, frontier).ticket("/x").found is Found.SITEMAP

    def test_what_is_given_as_a_seed_becomes_one(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/link", depth=3, parent=3, found=Found.LINK)
        world.give(frontier, "/to", depth=0, parent=3, found=Found.REDIRECT)
        start(world, frontier, "/link", "/to")
        world.give(frontier, "/link", depth=1, parent=3, found=Found.LINK)
        for path in ("/link", "/to"):
            found = world.see(frontier, path)
            assert (found.found, found.depth) == (Found.SEED, 0)

    def test_in_one_batch_the_nearest_way_counts_and_a_seed_is_a_seed(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add(
            [
                world.url(frontier, "/a", depth=2, parent=1, found=Found.LINK),
                world.url(frontier, "/a", depth=1, parent=2, found=Found.FEED),
                world.url(frontier, "/b", depth=0, parent=1, found=Found.REDIRECT),
                world.url(frontier, "/b", depth=0, found=Found.SEED),
            ]
        )
        assert world.see(frontier, "/a").found is Found.FEED
        assert world.see(frontier, "/b").found is Found.SEED

    def test_whether_it_is_a_source_is_written_with_each_end(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/")
        assert not world.see(frontier).source
        hand = Hand(world, frontier)
        hand.end(hand.ticket(), status=200, source=True)
        assert world.see(frontier).source
        world.clock.advance(2 * 86_400)
        ticket = hand.ticket()
        assert ticket.source
        hand.end(ticket, status=200, source=False)
        assert not world.see(frontier).source


class FindingOrder:
    def test_breadth_first_in_the_order_of_finding(self, world: World) -> None:
        """Links of a page in the order of the page, pages in the order in which they came, and
        nearer pages first.
        """
        frontier = world.frontier(order="bfs")
        start(world, frontier, "/")
        hand = Hand(world, frontier)
        names = [f"/{n}" for n in (8, 3, 5, 1, 9, 2)]
        links = [world.url(frontier, name, depth=1, found=Found.LINK) for name in names]
        hand.end(hand.ticket("/"), State.WAITING, urls=links, content=page())
        world.clock.advance(1)
        deeper = [world.url(frontier, f"/8/{n}", depth=2) for n in (2, 1)]
        hand.end(hand.tickets()[0], State.WAITING, urls=deeper, content=page())
        late = [world.url(frontier, f"/late/{n}", depth=1) for n in (4, 2)]
        world.clock.advance(1)
        frontier.commit(Batch(urls=[*late, *links]))
        asked = [ticket.url.partition("example")[2] for ticket in hand.tickets(20)]
        assert asked == [*names[1:], "/late/4", "/late/2", "/8/2", "/8/1"]

    def test_a_shorter_way_keeps_the_time_of_finding(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/old", depth=3)
        world.clock.advance(1)
        world.give(frontier, "/new", "/newer", depth=1)
        world.give(frontier, "/old", depth=1)
        asked = [ticket.url.rpartition("/")[2] for ticket in Hand(world, frontier).tickets()]
        assert asked == ["old", "new", "newer"]

    def test_an_order_that_was_changed_ranks_by_finding_too(self, world: World) -> None:
        frontier = world.frontier(order="best")
        names = [f"/{n}" for n in (8, 3, 5, 1, 9, 2)]
        world.give(frontier, *names, depth=1)
        again = world.frontier(order="bfs")
        asked = [ticket.url.partition("example")[2] for ticket in Hand(world, again).tickets()]
        assert asked == names
