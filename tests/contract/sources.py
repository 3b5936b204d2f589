"""Contract: sources, what they list, and the lane of what is old."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawlproj.frontier.base import (
    ArticleClaim,
    ArticleEnd,
    Batch,
    Found,
    Lane,
    NewUrl,
    SourceNote,
    State,
)
from tests.contract.visits import handed_out
from tests.contract.worlds import Hand, World, page

HOT = 1.5


class Sources:
    def test_what_visits_show_of_a_source_adds_up(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        first = world.clock.now
        feed = SourceNote("feed", "a.example", "News", 20, first, new_links=20)
        hand.end(ticket, State.WAITING, next_visit=first, content=page(), source_note=feed)
        times = []
        for new_links in (2, 0, 3):
            world.clock.advance(100)
            times.append(world.clock.now)
            hand.end(
                hand.ticket("/"),
                State.WAITING,
                next_visit=world.clock.now,
                source_note=replace(feed, title="", entries=21, newest=None, new_links=new_links),
            )
        row = world.source(frontier, ticket.id)
        assert (row.kind, row.site, row.title, row.entries) == ("feed", "a.example", "News", 21)
        assert (row.visits, row.new_links, row.newest) == (4, 25, first)
        assert (row.first_visit, row.last_visit, row.last_new) == (first, times[2], times[2])
        assert row.gap_s == pytest.approx(100 + 0.3 * (200 - 100))
        assert (row.silent_since, row.problem) == (None, "")

    def test_a_visit_that_read_nothing_keeps_what_the_source_is(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        now = world.clock.now
        feed = SourceNote("feed", "a.example", "News", 20, new_links=20)
        hand.end(ticket, State.WAITING, next_visit=now, content=page(), source_note=feed)
        failed = SourceNote("", "a.example", problem="status 503")
        hand.end(hand.ticket("/"), State.WAITING, next_visit=now, source_note=failed)
        row = world.source(frontier, ticket.id)
        assert (row.kind, row.title, row.entries, row.visits) == ("feed", "News", 20, 2)
        assert row.problem == "status 503"

    def test_an_end_that_came_too_late_says_nothing_of_a_source(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        note = SourceNote("feed", "a.example", new_links=1)
        for _ in range(2):
            hand.end(ticket, State.WAITING, next_visit=world.clock.now, source_note=note)
        assert world.source(frontier, ticket.id).visits == 1

    def test_what_is_known_of_a_source_comes_with_it_and_who_names_a_feed_elsewhere(
        self, world: World
    ) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        feed = world.url(frontier, "/f", "b", parent=ticket.id, found=Found.NAMED_FEED)
        moved = world.url(frontier, "/m", "c", parent=feed.id, found=Found.NAMED_FEED)
        orphan = world.url(frontier, "/o", "c", parent=77, found=Found.NAMED_FEED)
        now = world.clock.now
        note = SourceNote("hub", "a.example", new_links=1)
        hand.end(ticket, next_visit=now, urls=[feed, moved, orphan], content=page(), source=True,
            source_note=note)  # fmt: skip
        for host in ("b", "c"):
            world.resolve(frontier, host)
        tickets = {each.id: each for each in Hand(world, frontier, "w2").tickets()}
        assert [tickets[each.id].named_by for each in (feed, moved, orphan)] == [
            ticket.host, ticket.host, "",
        ]  # fmt: skip
        world.clock.advance(100)
        again = hand.ticket("/")
        assert (again.source_kind, again.source_last_new, again.source_gap_s) == ("hub", now, None)
        now = world.clock.now
        hand.end(again, next_visit=now, source=True, source_note=note)
        again = hand.ticket("/")
        assert (again.source_last_new, again.source_gap_s) == (now, 100)
        hand.end(again, next_visit=now, source=False, source_note=replace(note, new_links=0))
        assert hand.ticket("/").source_last_new is None

    def test_when_a_url_was_published_comes_with_it(self, world: World) -> None:
        frontier = world.frontier()
        at = world.clock.after(-3600)
        world.give(frontier, "/told", published=at)
        world.give(frontier, "/told", published=world.clock.now)
        world.give(frontier, "/later")
        assert world.see(frontier, "/later").published is None
        world.give(frontier, "/later", published=at)
        hand = Hand(world, frontier)
        assert {ticket.published for ticket in hand.tickets()} == {at}
        ticket = hand.ticket("/told")
        hand.end(ticket, State.WAITING, next_visit=world.clock.now, content=page())
        assert world.see(frontier, "/told").published == at

    def test_of_one_batch_the_first_date_counts(self, world: World) -> None:
        frontier = world.frontier()
        url = world.url(frontier)
        dates = [None, world.clock.after(-50), world.clock.now]
        frontier.add([replace(url, published=at) for at in dates])
        assert world.see(frontier).published == dates[1]


class ArticleClaims:
    """Addresses with one long number: some go through, the others wait, whoever adds them."""

    def test_two_addresses_of_a_number_go_through_in_all_workers(self, world: World) -> None:
        first, second = world.frontier(), world.frontier()
        urls = [
            world.url(first, f"/{n}", claim=ArticleClaim(7, 123, 2), score=0.3) for n in range(5)
        ]
        first.add([urls[0]])
        second.add([urls[1], urls[2], world.url(first, "/other", claim=ArticleClaim(7, 124, 2))])
        first.add(urls)
        world.resolve(first, "a")
        hand = Hand(world, first)
        assert {url.url.rpartition("/")[2] for url in hand.tickets()} == {"0", "1", "other"}
        held = world.see(first, "/2")
        assert (held.state, held.why, held.score) == (State.IGNORED, "same article", 0.3)

        # One of them is no page: the next one goes through, once.
        ends = (ArticleEnd(7, 123),)
        ticket = hand.ticket("/0")
        hand.end(ticket, State.DEAD, article_ends=ends)
        assert {url.url.rpartition("/")[2] for url in hand.tickets()} == {"1", "2", "other"}
        assert world.see(first, "/2").score == 0.3
        # The number says nothing: all go through, also later ones.
        ends = (ArticleEnd(7, 123, is_free=True),)
        hand.end(hand.ticket("/1"), State.GONE, article_ends=ends)
        second.add([world.url(first, "/late", claim=ArticleClaim(7, 123, 2))])
        names = {url.url.rpartition("/")[2] for url in hand.tickets()}
        assert names == {"2", "3", "4", "late", "other"}

    def test_a_shape_that_says_nothing_holds_nothing_back(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        for number in (1, 2):
            paths = [f"/{number}-{n}" for n in range(3)]
            world.give(frontier, *paths, claim=ArticleClaim(7, number, 1))
        world.give(frontier, "/8-1", "/8-2", claim=ArticleClaim(8, 1, 1))
        assert len(hand.tickets()) == 4
        hand.end(ticket, State.DEAD, article_ends=(ArticleEnd(7, None, is_free=True),))
        assert len(hand.tickets()) == 7


class Backfill:
    def test_backfill_is_served_newest_first(self, world: World) -> None:
        frontier = world.frontier()
        for age in (2, 3, 1):
            world.give(frontier, f"/{age}", lane=Lane.BACKFILL, score=0.1 / age)
        tickets = Hand(world, frontier).tickets()
        assert [ticket.url[-1] for ticket in tickets] == ["1", "2", "3"]
        assert {ticket.lane for ticket in tickets} == {Lane.BACKFILL}

    @pytest.mark.parametrize(
        ("again", "lane"),
        [
            ({"depth": 3}, Lane.BACKFILL),
            ({"depth": 3, "score": HOT}, Lane.NEW),
            ({"depth": 1}, Lane.NEW),
            ({"depth": 1, "lane": Lane.BACKFILL, "score": 0.01}, Lane.BACKFILL),
            ({"depth": 3, "lane": Lane.URGENT}, Lane.URGENT),
        ],
    )
    def test_what_is_found_nearer_or_listed_anew_leaves_backfill(
        self, world: World, again: dict[str, object], lane: Lane
    ) -> None:
        frontier = world.frontier()
        old = {"lane": Lane.BACKFILL, "score": 0.05, "depth": 3}
        world.give(frontier, "/together", **old)
        url = world.url(frontier, "/")
        world.give(frontier, "/", **old)
        frontier.add([replace(url, **{"score": 0.25, **again})])  # type: ignore[arg-type]
        assert world.see(frontier).lane is lane
        assert [ticket.lane for ticket in Hand(world, frontier).tickets()].count(lane) >= 1

    def test_a_hot_url_goes_ahead_of_new_ones_though_it_is_known(self, world: World) -> None:
        frontier = world.frontier()
        for path in ("/first", "/second", "/third"):
            world.give(frontier, path, score=0.5)
        world.give(frontier, "/third", score=HOT)
        world.give(frontier, "/second", score=HOT + 0.2)
        tickets = Hand(world, frontier).tickets()
        assert [ticket.url.rpartition("/")[2] for ticket in tickets] == ["second", "third", "first"]

    def test_a_hot_url_that_was_read_stays_where_it_is(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        due = world.clock.after(50)
        hand.end(ticket, State.WAITING, next_visit=due, content=page())
        committed = world.give(frontier, "/", score=HOT, published=world.clock.now)
        assert (committed.hosts, committed.revived) == (frozenset(), 0)
        seen = world.see(frontier)
        assert (seen.lane, seen.next_visit) == (Lane.REVISIT, due)
        assert seen.published == world.clock.now

    def test_two_sightings_in_one_batch_count_together(self, world: World) -> None:
        frontier = world.frontier()
        old = world.url(frontier, lane=Lane.BACKFILL, score=0.05, depth=2)
        for first, second in (
            (old, replace(old, lane=Lane.NEW)),
            (replace(old, lane=Lane.NEW), old),
        ):
            url = replace(first, url=first.url)
            frontier.add([url, second])
            assert world.see(frontier).lane is Lane.NEW

    def test_a_shorter_way_leaves_backfill_in_its_order(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world, "/list")
        far: list[NewUrl] = [
            world.url(frontier, f"/{age}", lane=Lane.BACKFILL, score=0.1 / age, depth=9)
            for age in (2, 1)
        ]
        links = page(*(url.id for url in far))
        hand.end(
            ticket, State.WAITING, urls=far, content=links, depth=8, next_visit=world.clock.after(9)
        )
        frontier.commit(Batch(urls=[replace(far[0], depth=4, score=0.05)]))
        tickets = Hand(world, frontier, hand.name).tickets()
        assert {ticket.lane for ticket in tickets} <= {Lane.BACKFILL}
        seen = [world.see(frontier, path) for path in ("/1", "/2")]
        assert [(url.lane, url.score) for url in seen] == [
            (Lane.BACKFILL, 0.1),
            (Lane.BACKFILL, 0.05),
        ]
        assert seen[0].depth == 1
