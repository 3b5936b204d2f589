"""Contract: shorter ways to a URL, and how they go on along links."""

from __future__ import annotations

import pytest

from crawlproj.frontier.base import Batch, Committed, Frontier, Lane, State
from tests.contract.worlds import DAY_S, Hand, World, page, whole_rank


class Depths:
    def test_a_shorter_way_corrects_depth_parent_and_score(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/x", depth=5, score=0.25, parent=5)
        assert world.give(frontier, "/x", depth=2, score=0.5, parent=2) == Committed(nearer=1)
        found = world.see(frontier, "/x")
        assert (found.depth, found.score, found.parent, whole_rank(found)) == (2, 0.5, 2, 2)

    def test_a_shorter_way_does_not_lower_the_score(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", depth=5, score=0.5)
        world.give(frontier, "/x", depth=2, score=0.25)
        assert (world.see(frontier, "/x").score, world.see(frontier, "/x").rank) == (0.5, -0.5)

    def test_an_equal_or_longer_way_changes_nothing(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", depth=2, score=0.25, parent=2)
        before = world.see(frontier, "/x")
        assert world.give(frontier, "/x", depth=2, score=0.5, parent=3) == Committed()
        assert world.give(frontier, "/x", depth=3, score=0.5, parent=3) == Committed()
        assert world.see(frontier, "/x") == before

    def test_a_fetched_page_is_corrected_and_keeps_its_place(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/x", depth=5)
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/x"))
        rank = world.see(frontier, "/x").rank
        assert world.give(frontier, "/x", depth=1).nearer == 1
        found = world.see(frontier, "/x")
        assert (found.depth, found.rank, found.lane, found.state) == (
            1,
            rank,
            Lane.REVISIT,
            State.WAITING,
        )

    def test_an_urgent_url_is_corrected_and_keeps_its_place(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/x", depth=5, lane=Lane.URGENT)
        world.give(frontier, "/x", depth=1)
        assert (world.see(frontier, "/x").depth, world.see(frontier, "/x").rank) == (1, 0)

    def test_a_backfill_url_is_corrected_in_its_lane(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/x", depth=5, lane=Lane.BACKFILL)
        world.give(frontier, "/x", depth=1, lane=Lane.BACKFILL)
        found = world.see(frontier, "/x")
        assert (found.lane, whole_rank(found)) == (Lane.BACKFILL, 1)

    def test_corrected_depths_go_down_a_chain(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        link(
            world,
            frontier,
            {"/1": ["/2"], "/2": ["/3"], "/3": ["/4"]},
            {"/1": 6, "/2": 7, "/3": 8, "/4": 9},
        )
        committed = world.give(frontier, "/1", depth=1, score=0.125)
        assert (committed.nearer, committed.revived) == (1, 0)
        assert depths(world, frontier, "/1", "/2", "/3", "/4") == [1, 2, 3, 4]
        last = world.see(frontier, "/4")
        assert (last.parent, whole_rank(last), last.state) == (
            world.id(frontier, "/3"),
            4,
            State.NEW,
        )
        assert last.score == pytest.approx(1 / 5)

    def test_corrected_depths_stop_where_another_way_is_as_short(self, world: World) -> None:
        frontier = world.frontier()
        link(world, frontier, {"/1": ["/2"], "/2": ["/3"]}, {"/1": 6, "/2": 3, "/3": 9})
        world.give(frontier, "/1", depth=2)
        assert depths(world, frontier, "/1", "/2", "/3") == [2, 3, 9]

    def test_corrected_depths_go_round_a_circle_once(self, world: World) -> None:
        frontier = world.frontier()
        circle = {"/1": ["/2", "/1"], "/2": ["/3"], "/3": ["/1", "/2"]}
        link(world, frontier, circle, {"/1": 6, "/2": 7, "/3": 8})
        world.give(frontier, "/3", depth=0)
        assert depths(world, frontier, "/1", "/2", "/3") == [1, 1, 0]
        assert world.see(frontier, "/2").parent == world.id(frontier, "/3")

    def test_of_two_ways_the_shorter_one_counts(self, world: World) -> None:
        frontier = world.frontier()
        diamond = {
            "/top": ["/long", "/short"],
            "/long": ["/longer"],
            "/longer": ["/end"],
            "/short": ["/end"],
        }
        link(
            world,
            frontier,
            diamond,
            {"/top": 9, "/long": 10, "/longer": 11, "/short": 10, "/end": 12},
        )
        world.give(frontier, "/top", depth=0)
        assert depths(world, frontier, "/top", "/long", "/longer", "/short", "/end") == [
            0,
            1,
            2,
            1,
            2,
        ]
        assert world.see(frontier, "/end").parent == world.id(frontier, "/short")

    def test_of_two_equal_ways_one_is_the_parent(self, world: World) -> None:
        frontier = world.frontier()
        diamond = {"/top": ["/l", "/r"], "/l": ["/end"], "/r": ["/end"]}
        link(world, frontier, diamond, {"/top": 5, "/l": 6, "/r": 6, "/end": 7})
        world.give(frontier, "/top", depth=1)
        assert depths(world, frontier, "/end") == [3]
        assert world.see(frontier, "/end").parent in {
            world.id(frontier, "/l"),
            world.id(frontier, "/r"),
        }

    def test_links_to_unknown_urls_are_skipped(self, world: World) -> None:
        frontier = world.frontier()
        link(world, frontier, {"/1": ["/nowhere", "/2"]}, {"/1": 6, "/2": 7})
        world.give(frontier, "/1", depth=1)
        assert depths(world, frontier, "/2") == [2]

    def test_links_of_the_latest_reading_count(self, world: World) -> None:
        frontier = world.frontier()
        link(world, frontier, {"/1": ["/old"]}, {"/1": 6, "/old": 9, "/new": 9})
        world.clock.advance(2 * DAY_S)
        link(world, frontier, {"/1": ["/new"]}, {})
        world.give(frontier, "/1", depth=1)
        assert depths(world, frontier, "/old", "/new") == [9, 2]

    def test_a_reading_without_content_keeps_the_links(self, world: World) -> None:
        frontier = world.frontier()
        link(world, frontier, {"/1": ["/2"]}, {"/1": 6, "/2": 9})
        world.clock.advance(2 * DAY_S)
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/1"))
        world.give(frontier, "/1", depth=1)
        assert depths(world, frontier, "/2") == [2]

    def test_links_of_the_same_commit_count(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/1", "/2", depth=6)
        hand = Hand(world, frontier)
        near = world.url(frontier, "/1", depth=0)
        hand.end(hand.ticket("/1"), urls=[near], content=page(world.id(frontier, "/2")))
        assert depths(world, frontier, "/1", "/2") == [0, 1]

    def test_a_nearer_url_that_was_too_deep_becomes_new(self, world: World) -> None:
        frontier = world.frontier(max_depth=2)
        world.give(frontier, "/x", depth=4, lane=Lane.BACKFILL)
        assert world.give(frontier, "/x", depth=3) == Committed(nearer=1)
        assert world.see(frontier, "/x").state is State.IGNORED
        committed = world.give(frontier, "/x", depth=2)
        assert committed == Committed(nearer=1, revived=1, hosts=frozenset({world.host("a")}))
        found = world.see(frontier, "/x")
        assert (found.state, found.why, found.lane, found.rank) == (State.NEW, "", Lane.NEW, -1)

    def test_a_page_whose_links_were_too_deep_brings_them_within_reach(self, world: World) -> None:
        frontier = world.frontier(max_depth=2)
        world.give(frontier, "/1", depth=2)
        world.give(frontier, "/there", host="b", depth=3)
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/1"), content=page(world.id(frontier, "/there", "b")))
        committed = world.give(frontier, "/1", depth=1)
        assert committed == Committed(nearer=1, revived=1, hosts=frozenset({world.host("b")}))
        found = world.see(frontier, "/there", "b")
        assert (found.state, found.lane, found.depth, found.why) == (State.NEW, Lane.NEW, 2, "")
        assert [ticket.id for ticket in Hand(world, frontier, "other").tickets()] == [found.id]

    def test_a_nearer_url_is_leased_by_its_new_rank(self, world: World) -> None:
        frontier = world.frontier(order="bfs", shares={"new": 1.0, "revisit": 0.0})
        world.give(frontier, "/", host="a", depth=3)
        world.give(frontier, "/", host="b", depth=4)
        world.give(frontier, "/", host="b", depth=1)
        assert [lease.address for lease in frontier.lease("w", 1)] == [world.address("b")]

    def test_a_linked_url_is_leased_by_its_corrected_rank(self, world: World) -> None:
        frontier = world.frontier(order="bfs", shares={"new": 1.0, "revisit": 0.0})
        world.give(frontier, "/", host="a", depth=8)
        world.give(frontier, "/", host="b", depth=9)
        world.give(frontier, "/", host="c", depth=3)
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/", "a"), content=page(world.id(frontier, "/", "b")))
        frontier.release_servers(hand.name, list(hand.leases))
        world.give(frontier, "/", host="a", depth=0)
        assert [lease.address for lease in frontier.lease("w", 1)] == [world.address("b")]

    @pytest.mark.parametrize("order", ["dfs", "bfs", "best"])
    def test_any_order_ends_with_breadth_first_depths(self, world: World, order: str) -> None:
        web = {n: [(n * 3 + 1) % 23, (n * 5 + 2) % 23, (n + 1) % 23] for n in range(23)}
        frontier = world.frontier(order=order)
        world.give(frontier, "/0")
        hand = Hand(world, frontier)
        for _ in web:
            ticket = hand.tickets(1)[0]
            links = [f"/{n}" for n in web[int(ticket.url.rpartition("/")[2])]]
            urls = [
                world.url(frontier, path, depth=ticket.depth + 1, parent=ticket.id)
                for path in links
            ]
            hand.end(ticket, urls=urls, content=page(*(url.id for url in urls)))
        assert hand.tickets(1) == []
        assert depths(world, frontier, *(f"/{n}" for n in web)) == breadth_first(web)

    def test_a_page_that_was_found_nearer_while_it_was_out_brings_its_links_nearer(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", depth=5)
        hand = Hand(world, frontier)
        ticket = hand.ticket("/x")
        world.give(frontier, "/x", depth=1)
        child = world.url(frontier, "/child", depth=6, parent=ticket.id)
        known = world.id(frontier, "/known")
        world.give(frontier, "/known", depth=9)
        end = hand.outcome(ticket, content=page(child.id, known), depth=ticket.depth)
        frontier.commit(Batch(outcomes=[end], urls=[child]), hand.name)
        assert [world.see(frontier, path).depth for path in ("/x", "/child", "/known")] == [1, 2, 2]


def link(
    world: World, frontier: Frontier, links: dict[str, list[str]], found: dict[str, int]
) -> None:
    """Add pages at these depths, then fetch those with links, which are stored."""
    for path, depth in found.items():
        world.give(frontier, path, depth=depth, score=0.125)
    hand = Hand(world, frontier)
    for path, targets in links.items():
        hand.end(
            hand.ticket(path), content=page(*(world.id(frontier, target) for target in targets))
        )
    frontier.release_servers(hand.name, list(hand.leases))


def depths(world: World, frontier: Frontier, *paths: str) -> list[int]:
    return [world.see(frontier, path).depth for path in paths]


def breadth_first(web: dict[int, list[int]]) -> list[int]:
    depth = {0: 0}
    ring = [0]
    while ring:
        ring = [
            n
            for page_ in ring
            for n in web[page_]
            if n not in depth and depth.setdefault(n, depth[page_] + 1)
        ]
    return [depth[n] for n in sorted(web)]
