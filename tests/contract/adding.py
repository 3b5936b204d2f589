"""Contract: URLs on their way in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from crawlproj.frontier.base import Committed, Frontier, Lane, State
from tests.contract.worlds import DAY_S, Hand, World, page, request_json

QUEUED = (State.NEW, State.WAITING, State.RETRY, State.GONE)
UNQUEUED = (State.DEAD, State.MOVED, State.FORBIDDEN, State.IGNORED)


def visited(world: World, frontier: Frontier, state: State, path: str = "/") -> None:
    """A URL that was fetched once and came to that state."""
    world.give(frontier, path)
    hand = Hand(world, frontier)
    assert hand.end(hand.ticket(path), state, why="reason", tries=3).done
    frontier.release(hand.name, list(hand.leases))


class Sieve:
    def test_an_unknown_url_is_new_and_queued(self, world: World) -> None:
        frontier = world.frontier()
        url = world.url(frontier, "/x", depth=2, score=0.5, parent=7, hops=1)
        assert frontier.add([url]) == Committed(added=1, hosts=frozenset({url.host}))
        found = world.see(frontier, "/x")
        assert (found.url, found.host, found.state, found.lane) == (url.url, url.host, State.NEW, Lane.NEW)
        assert (found.depth, found.score, found.parent, found.visit, found.tries) == (2, 0.5, 7, 0, 0)
        assert (found.rank, found.status, found.why, found.changes) == (-0.5, 0, "", 0)
        assert found.first_seen == world.clock.now
        assert (found.last_visit, found.last_change, found.next_visit, found.moved_to) == (None,) * 4

    def test_a_url_enters_once_however_often_it_is_added(self, world: World) -> None:
        frontier = world.frontier()
        urls = [world.url(frontier, f"/{n}") for n in range(5)]
        assert frontier.add(urls).added == 5
        world.clock.advance(5)
        before = frontier.look([url.id for url in urls])
        assert frontier.add([*urls, *urls]) == Committed()
        assert frontier.look([url.id for url in urls]) == before
        assert frontier.counts()["known"] == 5

    def test_twice_in_one_batch_is_one_url_at_the_shortest_depth(self, world: World) -> None:
        frontier = world.frontier()
        deep, near, middle = (world.url(frontier, depth=depth, parent=depth) for depth in (5, 1, 3))
        assert frontier.add([deep, near, middle]) == Committed(added=1, hosts=frozenset({deep.host}))
        assert (world.see(frontier).depth, world.see(frontier).parent) == (1, 1)

    def test_twice_in_one_batch_urgent_wins(self, world: World) -> None:
        frontier = world.frontier()
        plain = world.url(frontier)
        frontier.add([plain, replace(plain, lane=Lane.URGENT), plain])
        assert world.see(frontier).lane is Lane.URGENT

    def test_twice_in_one_batch_counts_once_for_a_known_url(self, world: World) -> None:
        frontier = world.frontier()
        far = world.url(frontier, depth=9)
        frontier.add([far])
        committed = frontier.add([replace(far, depth=5), replace(far, depth=3, lane=Lane.URGENT), replace(far, depth=4)])
        assert (committed.added, committed.nearer, committed.revived) == (0, 1, 1)
        assert (world.see(frontier).depth, world.see(frontier).lane) == (3, Lane.URGENT)

    def test_another_url_with_a_known_id_changes_nothing(self, world: World) -> None:
        frontier = world.frontier()
        url = world.url(frontier, depth=5)
        frontier.add([url])
        other = replace(url, url=url.url + "other", depth=0, lane=Lane.URGENT)
        assert frontier.add([other]) == Committed()
        assert (world.see(frontier).url, world.see(frontier).depth) == (url.url, 5)

    def test_of_two_urls_with_one_id_in_a_batch_the_first_is_added_as_it_is(self, world: World) -> None:
        frontier = world.frontier()
        url = world.url(frontier, depth=5, score=0.25)
        frontier.add([url, replace(url, url=url.url + "other", depth=0, score=1.0, lane=Lane.URGENT)])
        found = world.see(frontier)
        assert (found.url, found.depth, found.score, found.lane) == (url.url, 5, 0.25, Lane.NEW)

    def test_the_same_host_in_two_crawls_has_separate_urls(self, world: World) -> None:
        one, two = world.frontier("one"), world.frontier("two")
        assert world.give(one, "/x").added == world.give(two, "/x").added == 1
        assert one.counts()["known"] == two.counts()["known"] == 1
        assert one.look([world.id(two, "/x")]) == {}

    def test_text_is_cleaned_of_what_postgres_cannot_store(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add([replace(world.url(frontier, "/x"), url=f"http://{world.host('a')}/\0x\ud800")])
        assert world.see(frontier, "/x").url == f"http://{world.host('a')}/x?"

    def test_odd_text_is_kept_as_it_is(self, world: World) -> None:
        frontier = world.frontier()
        odd = f"http://{world.host('a')}/" + "".join(['"', "'", "\\", "{", "}", ",", "%s", "\n", "é", "\U0001f310", "NULL"])
        frontier.add([replace(world.url(frontier, "/x"), url=odd)])
        assert world.see(frontier, "/x").url == odd

    def test_a_request_comes_back_as_a_dict(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", request=request_json(body='a=1&b="\\', headers={"X": ["é"]}))
        request = Hand(world, frontier).ticket("/x").request
        assert request == {"url": "http://a.example/", "method": "POST", "body": 'a=1&b="\\', "headers": {"X": ["é"]}}

    def test_a_request_may_hold_an_escaped_nul(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", request=request_json(body="a\0b"))
        request = Hand(world, frontier).ticket("/x").request
        assert request is not None and request["method"] == "POST"

    def test_a_plain_get_has_no_request(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x")
        assert Hand(world, frontier).ticket("/x").request is None

    def test_nothing_in_nothing_out(self, world: World) -> None:
        frontier = world.frontier()
        assert frontier.add([]) == Committed()
        assert frontier.look([]) == {} and frontier.look([1]) == {}
        assert set(frontier.counts().values()) == {0}

    def test_ids_use_all_64_bits(self, world: World) -> None:
        frontier = world.frontier()
        low, high = -(2**63), 2**63 - 1
        bits = int(world.tag, 16)
        urls = [replace(world.url(frontier, f"/{n}"), id=n) for n in (low + bits, high - bits)]
        frontier.add(urls)
        assert set(frontier.look([low + bits, high - bits])) == {low + bits, high - bits}


class Limits:
    def test_too_deep_is_ignored(self, world: World) -> None:
        frontier = world.frontier(max_depth=2)
        assert world.give(frontier, "/2", depth=2).hosts
        assert world.give(frontier, "/3", depth=3) == Committed(added=1)
        found = world.see(frontier, "/3")
        assert (found.state, found.why, found.lane, found.rank) == (State.IGNORED, "depth", None, None)
        assert world.see(frontier, "/2").state is State.NEW

    def test_too_many_redirects_are_ignored(self, world: World) -> None:
        frontier = world.frontier(max_hops=3)
        world.give(frontier, "/3", hops=3)
        world.give(frontier, "/4", hops=4)
        assert world.see(frontier, "/3").state is State.NEW
        assert (world.see(frontier, "/4").state, world.see(frontier, "/4").why) == (State.IGNORED, "redirects")

    def test_depth_is_judged_before_redirects_and_these_before_quotas(self, world: World) -> None:
        frontier = world.frontier(max_depth=1, max_hops=1, host_pages=1)
        world.give(frontier, "/")
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/"), content=page())
        world.give(frontier, "/all", depth=2, hops=2)
        world.give(frontier, "/hops", hops=2)
        world.give(frontier, "/full")
        assert [world.see(frontier, path).why for path in ("/all", "/hops", "/full")] == ["depth", "redirects", "quota"]

    @pytest.mark.parametrize("limits", [{"host_pages": 2}, {"host_bytes": 250}])
    def test_a_host_over_its_quota_gets_no_more_new_pages(self, world: World, limits: dict[str, int]) -> None:
        frontier = world.frontier(**limits)
        world.give(frontier, "/1", "/2", score=2)
        world.give(frontier, "/3")
        world.give(frontier, "/old", lane=Lane.BACKFILL)
        world.give(frontier, "/b", host="b")
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/1"), content=page(), received=200)
        assert world.see(frontier, "/3").state is State.NEW
        hand.end(hand.ticket("/2"), content=page(), received=50)
        world.give(frontier, "/4")
        world.give(frontier, "/5", lane=Lane.BACKFILL)
        for path in ("/3", "/old", "/4", "/5"):
            found = world.see(frontier, path)
            assert (found.state, found.why, found.lane, found.rank) == (State.IGNORED, "quota", None, None), path
        assert world.see(frontier, "/b", "b").state is State.NEW
        assert world.see(frontier, "/1").state is State.WAITING

    def test_urgent_urls_are_outside_the_quota(self, world: World) -> None:
        frontier = world.frontier(host_pages=1)
        world.give(frontier, "/1", score=2)
        world.give(frontier, "/2")
        world.give(frontier, "/before", lane=Lane.URGENT)
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/1"), content=page())
        world.give(frontier, "/after", "/2", lane=Lane.URGENT)
        assert {world.see(frontier, path).lane for path in ("/before", "/after", "/2")} == {Lane.URGENT}
        assert {ticket.lane for ticket in hand.tickets()} == {Lane.URGENT}

    def test_an_end_without_content_counts_bytes_but_no_page(self, world: World) -> None:
        frontier = world.frontier(host_pages=1, host_bytes=100)
        world.give(frontier, "/1", "/2", "/3")
        hand = Hand(world, frontier)
        hand.end(hand.tickets(1)[0], State.DEAD, received=99)
        assert frontier.counts()["new"] == 2
        hand.end(hand.tickets(1)[0], State.DEAD, received=1)
        assert (frontier.counts()["new"], frontier.counts()["ignored"]) == (0, 1)

    def test_what_was_revived_on_a_full_host_is_ignored_at_the_hosts_next_end(self, world: World) -> None:
        frontier = world.frontier(host_bytes=10)
        world.give(frontier, "/old", "/seen", "/last")
        hand = Hand(world, frontier)
        last = hand.ticket("/last")
        hand.end(hand.ticket("/old"), State.RETIRED)
        hand.end(hand.ticket("/seen"), content=page(), received=10)
        world.give(frontier, "/old")
        assert world.see(frontier, "/old").state is State.NEW
        hand.end(last, State.DEAD)
        assert (world.see(frontier, "/old").state, world.see(frontier, "/old").why) == (State.IGNORED, "quota")

    def test_quotas_of_two_crawls_are_counted_apart(self, world: World) -> None:
        one, two = world.frontier("one", host_pages=1), world.frontier("two", host_pages=1)
        world.give(one, "/1", "/2")
        world.give(two, "/1", "/2")
        hand = Hand(world, one)
        hand.end(hand.tickets(1)[0], content=page())
        assert one.counts()["ignored"] == 1
        assert two.counts()["ignored"] == 0


class Depths:
    def test_a_shorter_way_corrects_depth_parent_and_score(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/x", depth=5, score=0.25, parent=5)
        assert world.give(frontier, "/x", depth=2, score=0.5, parent=2) == Committed(nearer=1)
        found = world.see(frontier, "/x")
        assert (found.depth, found.score, found.parent, found.rank) == (2, 0.5, 2, 2)

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
        assert (found.depth, found.rank, found.lane, found.state) == (1, rank, Lane.REVISIT, State.WAITING)

    def test_an_urgent_url_is_corrected_and_keeps_its_place(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/x", depth=5, lane=Lane.URGENT)
        world.give(frontier, "/x", depth=1)
        assert (world.see(frontier, "/x").depth, world.see(frontier, "/x").rank) == (1, 0)

    def test_a_backfill_url_is_corrected_in_its_lane(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        world.give(frontier, "/x", depth=5, lane=Lane.BACKFILL)
        world.give(frontier, "/x", depth=1)
        assert (world.see(frontier, "/x").lane, world.see(frontier, "/x").rank) == (Lane.BACKFILL, 1)

    def test_corrected_depths_go_down_a_chain(self, world: World) -> None:
        frontier = world.frontier(order="bfs")
        link(world, frontier, {"/1": ["/2"], "/2": ["/3"], "/3": ["/4"]}, {"/1": 6, "/2": 7, "/3": 8, "/4": 9})
        committed = world.give(frontier, "/1", depth=1, score=0.125)
        assert (committed.nearer, committed.revived) == (1, 0)
        assert depths(world, frontier, "/1", "/2", "/3", "/4") == [1, 2, 3, 4]
        last = world.see(frontier, "/4")
        assert (last.parent, last.rank, last.state) == (world.id(frontier, "/3"), 4, State.NEW)
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
        diamond = {"/top": ["/long", "/short"], "/long": ["/longer"], "/longer": ["/end"], "/short": ["/end"]}
        link(world, frontier, diamond, {"/top": 9, "/long": 10, "/longer": 11, "/short": 10, "/end": 12})
        world.give(frontier, "/top", depth=0)
        assert depths(world, frontier, "/top", "/long", "/longer", "/short", "/end") == [0, 1, 2, 1, 2]
        assert world.see(frontier, "/end").parent == world.id(frontier, "/short")

    def test_of_two_equal_ways_one_is_the_parent(self, world: World) -> None:
        frontier = world.frontier()
        link(world, frontier, {"/top": ["/l", "/r"], "/l": ["/end"], "/r": ["/end"]}, {"/top": 5, "/l": 6, "/r": 6, "/end": 7})
        world.give(frontier, "/top", depth=1)
        assert depths(world, frontier, "/end") == [3]
        assert world.see(frontier, "/end").parent in {world.id(frontier, "/l"), world.id(frontier, "/r")}

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
        frontier.release(hand.name, list(hand.leases))
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
            urls = [world.url(frontier, path, depth=ticket.depth + 1, parent=ticket.id) for path in links]
            hand.end(ticket, urls=urls, content=page(*(url.id for url in urls)))
        assert hand.tickets(1) == []
        assert depths(world, frontier, *(f"/{n}" for n in web)) == breadth_first(web)


class Revival:
    def test_a_retired_url_that_is_added_again_is_new(self, world: World) -> None:
        frontier = world.frontier()
        visited(world, frontier, State.RETIRED)
        committed = world.give(frontier, "/", lane=Lane.BACKFILL)
        assert committed == Committed(revived=1, hosts=frozenset({world.host("a")}))
        found = world.see(frontier)
        assert (found.state, found.lane, found.rank, found.tries, found.why) == (State.NEW, Lane.NEW, -1, 0, "")
        assert found.visit == 1

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
        assert [(t.state, t.lane, t.tries) for t in Hand(world, frontier).tickets()] == [(state, Lane.URGENT, 3)]

    @pytest.mark.parametrize("state", [*UNQUEUED, State.RETIRED])
    def test_pushed_urgently_any_other_url_is_new(self, world: World, state: State) -> None:
        frontier = world.frontier()
        visited(world, frontier, state)
        committed = world.give(frontier, "/", lane=Lane.URGENT)
        assert committed == Committed(revived=1, hosts=frozenset({world.host("a")}))
        found = world.see(frontier)
        assert (found.state, found.lane, found.rank, found.tries, found.why) == (State.NEW, Lane.URGENT, 0, 0, "")

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
            assert [world.see(again, path).rank for path in ("/x", "/old", "/now", "/seen")] == [place, place, 0, rank]

    def test_another_order_changes_who_is_leased_first(self, world: World) -> None:
        frontier = world.frontier(order="bfs", shares={"new": 1.0, "revisit": 0.0})
        world.give(frontier, "/", host="a", depth=1)
        world.give(frontier, "/", host="b", depth=4)
        again = world.frontier(order="dfs", shares={"new": 1.0, "revisit": 0.0})
        assert [lease.address for lease in again.lease("w", 1)] == [world.address("b")]

    def test_a_tighter_depth_limit_shuts_out_and_a_wider_one_lets_in(self, world: World) -> None:
        frontier = world.frontier()
        for depth in (1, 2, 3):
            world.give(frontier, f"/{depth}", depth=depth, lane=Lane.BACKFILL if depth == 3 else Lane.NEW)
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


def link(world: World, frontier: Frontier, links: dict[str, list[str]], found: dict[str, int]) -> None:
    """Add pages at these depths, then fetch those with links, which are stored."""
    for path, depth in found.items():
        world.give(frontier, path, depth=depth, score=0.125)
    hand = Hand(world, frontier)
    for path, targets in links.items():
        hand.end(hand.ticket(path), content=page(*(world.id(frontier, target) for target in targets)))
    frontier.release(hand.name, list(hand.leases))


def depths(world: World, frontier: Frontier, *paths: str) -> list[int]:
    return [world.see(frontier, path).depth for path in paths]


def breadth_first(web: dict[int, list[int]]) -> list[int]:
    depth, ring = {0: 0}, [0]
    while ring:
        ring = [n for page_ in ring for n in web[page_] if n not in depth and depth.setdefault(n, depth[page_] + 1)]
    return [depth[n] for n in sorted(web)]
