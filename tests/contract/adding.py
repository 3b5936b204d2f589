"""Contract: URLs on their way in, and what keeps them out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crawlproj.frontier.base import Committed, Lane, State
from tests.contract.worlds import Hand, World, page, request_json


class Adding:
    def test_an_unknown_url_is_new_and_queued(self, world: World) -> None:
        frontier = world.frontier()
        url = world.url(frontier, "/x", depth=2, score=0.5, parent=7, hops=1)
        assert frontier.add([url]) == Committed(added=1, hosts=frozenset({url.host}))
        found = world.see(frontier, "/x")
        assert (found.url, found.host, found.state, found.lane) == (
            url.url,
            url.host,
            State.NEW,
            Lane.NEW,
        )
        assert (found.depth, found.score, found.parent, found.visit, found.tries) == (
            2,
            0.5,
            7,
            0,
            0,
        )
        assert (found.rank, found.status, found.why, found.changes) == (-0.5, 0, "", 0)
        assert found.first_seen == world.clock.now
        assert (found.last_visit, found.last_change, found.next_visit, found.moved_to) == (
            None,
        ) * 4

    def test_a_url_enters_once_however_often_it_is_added(self, world: World) -> None:
        frontier = world.frontier()
        urls = [world.url(frontier, f"/{n}") for n in range(5)]
        assert frontier.add(urls).added == 5
        world.clock.advance(5)
        before = frontier.get_urls([url.id for url in urls])
        assert frontier.add([*urls, *urls]) == Committed()
        assert frontier.get_urls([url.id for url in urls]) == before
        assert frontier.count_urls()["known"] == 5

    def test_twice_in_one_batch_is_one_url_at_the_shortest_depth(self, world: World) -> None:
        frontier = world.frontier()
        deep, near, middle = (world.url(frontier, depth=depth, parent=depth) for depth in (5, 1, 3))
        assert frontier.add([deep, near, middle]) == Committed(
            added=1, hosts=frozenset({deep.host})
        )
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
        near = replace(far, depth=3, lane=Lane.URGENT)
        committed = frontier.add([replace(far, depth=5), near, replace(far, depth=4)])
        assert (committed.added, committed.nearer, committed.revived) == (0, 1, 1)
        assert (world.see(frontier).depth, world.see(frontier).lane) == (3, Lane.URGENT)

    def test_another_url_with_a_known_id_changes_nothing(self, world: World) -> None:
        frontier = world.frontier()
        url = world.url(frontier, depth=5)
        frontier.add([url])
        other = replace(url, url=url.url + "other", depth=0, lane=Lane.URGENT)
        assert frontier.add([other]) == Committed()
        assert (world.see(frontier).url, world.see(frontier).depth) == (url.url, 5)

    def test_of_two_urls_with_one_id_in_a_batch_the_first_is_added_as_it_is(
        self, world: World
    ) -> None:
        frontier = world.frontier()
        url = world.url(frontier, depth=5, score=0.25)
        frontier.add(
            [url, replace(url, url=url.url + "other", depth=0, score=1.0, lane=Lane.URGENT)]
        )
        found = world.see(frontier)
        assert (found.url, found.depth, found.score, found.lane) == (url.url, 5, 0.25, Lane.NEW)

    def test_the_same_host_in_two_crawls_has_separate_urls(self, world: World) -> None:
        one = world.frontier("one")
        two = world.frontier("two")
        assert world.give(one, "/x").added == world.give(two, "/x").added == 1
        assert one.count_urls()["known"] == two.count_urls()["known"] == 1
        assert one.get_urls([world.id(two, "/x")]) == {}

    def test_text_is_cleaned_of_what_postgres_cannot_store(self, world: World) -> None:
        frontier = world.frontier()
        frontier.add(
            [replace(world.url(frontier, "/x"), url=f"http://{world.host('a')}/\0x\ud800")]
        )
        assert world.see(frontier, "/x").url == f"http://{world.host('a')}/x?"

    def test_odd_text_is_kept_as_it_is(self, world: World) -> None:
        frontier = world.frontier()
        odd = f"http://{world.host('a')}/" + "\"'\\{},%s\n é\U0001f310NULL"
        frontier.add([replace(world.url(frontier, "/x"), url=odd)])
        assert world.see(frontier, "/x").url == odd

    def test_a_request_comes_back_as_a_dict(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/x", request=request_json(body='a=1&b="\\', headers={"X": ["é"]}))
        request = Hand(world, frontier).ticket("/x").request
        assert request == {
            "url": "http://a.example/",
            "method": "POST",
            "body": 'a=1&b="\\',
            "headers": {"X": ["é"]},
        }

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
        assert frontier.get_urls([]) == {} and frontier.get_urls([1]) == {}
        assert set(frontier.count_urls().values()) == {0}

    def test_ids_use_all_64_bits(self, world: World) -> None:
        frontier = world.frontier()
        low = -(2**63)
        high = 2**63 - 1
        bits = int(world.tag, 16)
        urls = [replace(world.url(frontier, f"/{n}"), id=n) for n in (low + bits, high - bits)]
        frontier.add(urls)
        assert set(frontier.get_urls([low + bits, high - bits])) == {low + bits, high - bits}


class Limits:
    def test_too_deep_is_ignored(self, world: World) -> None:
        frontier = world.frontier(max_depth=2)
        assert world.give(frontier, "/2", depth=2).hosts
        assert world.give(frontier, "/3", depth=3) == Committed(added=1)
        found = world.see(frontier, "/3")
        assert (found.state, found.why, found.lane, found.rank) == (
            State.IGNORED,
            "depth",
            None,
            None,
        )
        assert world.see(frontier, "/2").state is State.NEW

    def test_too_many_redirects_are_ignored(self, world: World) -> None:
        frontier = world.frontier(max_hops=3)
        world.give(frontier, "/3", hops=3)
        world.give(frontier, "/4", hops=4)
        assert world.see(frontier, "/3").state is State.NEW
        assert (world.see(frontier, "/4").state, world.see(frontier, "/4").why) == (
            State.IGNORED,
            "redirects",
        )

    def test_depth_is_judged_before_redirects_and_these_before_quotas(self, world: World) -> None:
        frontier = world.frontier(max_depth=1, max_hops=1, host_pages=1)
        world.give(frontier, "/")
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/"), content=page())
        world.give(frontier, "/all", depth=2, hops=2)
        world.give(frontier, "/hops", hops=2)
        world.give(frontier, "/full")
        assert [world.see(frontier, path).why for path in ("/all", "/hops", "/full")] == [
            "depth",
            "redirects",
            "quota",
        ]

    @pytest.mark.parametrize("limits", [{"host_pages": 2}, {"host_bytes": 250}])
    def test_a_host_over_its_quota_gets_no_more_new_pages(
        self, world: World, limits: dict[str, Any]
    ) -> None:
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
            assert (found.state, found.why, found.lane, found.rank) == (
                State.IGNORED,
                "quota",
                None,
                None,
            ), path
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
        assert {world.see(frontier, path).lane for path in ("/before", "/after", "/2")} == {
            Lane.URGENT
        }
        assert {ticket.lane for ticket in hand.tickets()} == {Lane.URGENT}

    def test_an_end_without_content_counts_bytes_but_no_page(self, world: World) -> None:
        frontier = world.frontier(host_pages=1, host_bytes=100)
        world.give(frontier, "/1", "/2", "/3")
        hand = Hand(world, frontier)
        hand.end(hand.tickets(1)[0], State.DEAD, received=99)
        assert frontier.count_urls()["new"] == 2
        hand.end(hand.tickets(1)[0], State.DEAD, received=1)
        assert (frontier.count_urls()["new"], frontier.count_urls()["ignored"]) == (0, 1)

    def test_nothing_is_revived_on_a_full_host(self, world: World) -> None:
        frontier = world.frontier(host_bytes=10)
        world.give(frontier, "/old", "/seen")
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/old"), State.RETIRED)
        hand.end(hand.ticket("/seen"), content=page(), received=10)
        world.give(frontier, "/old")
        assert (world.see(frontier, "/old").state, world.see(frontier, "/old").why) == (
            State.IGNORED,
            "quota",
        )

    def test_quotas_of_two_crawls_are_counted_apart(self, world: World) -> None:
        one = world.frontier("one", host_pages=1)
        two = world.frontier("two", host_pages=1)
        world.give(one, "/1", "/2")
        world.give(two, "/1", "/2")
        hand = Hand(world, one)
        hand.end(hand.tickets(1)[0], content=page())
        assert one.count_urls()["ignored"] == 1
        assert two.count_urls()["ignored"] == 0
