"""Contract: ends of visits."""

from __future__ import annotations

import pytest

from crawlproj.frontier.base import (
    LANE_OF,
    Batch,
    Committed,
    Content,
    Frontier,
    Lane,
    Links,
    State,
    Ticket,
)
from tests.contract.worlds import DAY_S, Hand, World, page


def handed_out(
    world: World, *paths: str, crawl: str = "one"
) -> tuple[Frontier, Hand, list[Ticket]]:
    """A frontier with these URLs, a worker, and a ticket for each."""
    frontier = world.frontier(crawl)
    world.give(frontier, *(paths or ("/",)))
    hand = Hand(world, frontier)
    return frontier, hand, [hand.ticket(path) for path in paths or ("/",)]


class Ends:
    def test_what_is_forgotten_is_not_revived_by_a_push(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.FORBIDDEN, why="forgotten")
        assert frontier.add([world.url(frontier, lane=Lane.URGENT)]).revived == 0
        assert (world.see(frontier).state, world.see(frontier).lane) == (State.FORBIDDEN, None)

    @pytest.mark.parametrize("state", list(State))
    def test_an_end_leads_to_its_state(self, world: World, state: State) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        world.clock.advance(3)
        there = "http://b.example/"
        committed = hand.end(
            ticket, state, status=418, why="tea", tries=2, moved_to=there, interval_s=9.5
        )
        assert committed == Committed(done=frozenset({ticket.id}))
        found = world.see(frontier)
        assert (found.state, found.status, found.why, found.tries) == (state, 418, "tea", 2)
        assert (found.visit, found.last_visit, found.moved_to, found.interval_s) == (
            1,
            world.clock.now,
            there,
            9.5,
        )
        assert found.lane == LANE_OF.get(state)
        assert (found.rank is None) == (found.lane is None)
        assert frontier.count_urls() == {"known": 1, **{s.value: int(s is state) for s in State}}

    @pytest.mark.parametrize("state", [State.WAITING, State.RETRY, State.GONE])
    def test_a_timed_url_comes_back_when_its_time_has_come(
        self, world: World, state: State
    ) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        due = world.clock.after(100.25)
        hand.end(ticket, state, next_visit=due, tries=1)
        found = world.see(frontier)
        assert found.next_visit == due and found.rank == pytest.approx(due.timestamp(), abs=1e-5)
        world.clock.advance(100)
        assert hand.tickets() == []
        world.clock.advance(0.25)
        again = hand.ticket("/")
        assert (again.state, again.lane, again.visit, again.tries) == (state, LANE_OF[state], 1, 1)

    @pytest.mark.parametrize("state", [s for s in State if s not in LANE_OF])
    def test_an_unqueued_url_never_comes_back(self, world: World, state: State) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, state)
        world.clock.advance(1000 * DAY_S)
        assert hand.tickets() == []
        assert Hand(world, frontier, "other").lease() == []
        assert world.see(frontier).next_visit is None

    @pytest.mark.parametrize("state", [State.WAITING, State.GONE])
    def test_a_page_without_a_next_visit_is_kept_but_not_queued(
        self, world: World, state: State
    ) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, state, next_visit=None, content=page())
        found = world.see(frontier)
        assert (found.state, found.lane, found.rank, found.next_visit) == (state, None, None, None)
        world.clock.advance(1000 * DAY_S)
        assert hand.tickets() == []
        assert world.give(frontier, "/") == Committed()
        assert world.give(frontier, "/", lane=Lane.URGENT).revived == 1
        assert [(again.state, again.lane) for again in hand.tickets()] == [(state, Lane.URGENT)]

    def test_a_url_given_back_as_new_keeps_its_place(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.NEW)
        found = world.see(frontier)
        assert (found.lane, found.rank, found.visit) == (Lane.NEW, -1, 1)
        assert hand.ticket("/").visit == 1

    def test_a_life_with_every_turn(self, world: World) -> None:
        frontier, hand, _ = handed_out(world)
        turns = [
            State.RETRY,
            State.WAITING,
            State.GONE,
            State.WAITING,
            State.RETRY,
            State.GONE,
            State.RETIRED,
        ]
        for state in turns:
            hand.end(hand.ticket("/"), state)
            assert world.see(frontier).state is state
            world.clock.advance(DAY_S)
        world.give(frontier, "/")
        hand.end(hand.ticket("/"), State.RETRY)
        world.clock.advance(DAY_S)
        hand.end(hand.ticket("/"), State.DEAD)
        assert (world.see(frontier).state, world.see(frontier).visit) == (
            State.DEAD,
            len(turns) + 2,
        )

    def test_no_new_interval_keeps_the_old_one(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, interval_s=50.0)
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert again.interval_s == 50.0
        hand.end(again, interval_s=None, moved_to=None)
        assert world.see(frontier).interval_s == 50.0

    def test_an_end_clears_what_the_last_one_said(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(
            ticket, State.RETRY, why="timeout", tries=1, status=500, moved_to="http://b.example/"
        )
        world.clock.advance(DAY_S)
        hand.end(hand.ticket("/"), State.FORBIDDEN)
        found = world.see(frontier)
        assert (found.why, found.tries, found.status, found.moved_to, found.next_visit) == (
            "",
            0,
            0,
            None,
            None,
        )

    def test_content_and_validators_come_with_the_next_ticket(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        assert (ticket.etag, ticket.modified, ticket.body_digest, ticket.block_digest) == (
            None,
        ) * 4
        content = page(text="one")
        at = world.clock.now
        hand.end(ticket, content=content, etag='"e1"', modified="Sun, 01 Mar 2026 12:00:00 GMT")
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert (again.etag, again.modified) == ('"e1"', "Sun, 01 Mar 2026 12:00:00 GMT")
        assert (again.body_digest, again.block_digest) == (
            content.body_digest,
            content.block_digest,
        )
        assert isinstance(again.body_digest, bytes) and isinstance(again.block_digest, bytes)
        assert (again.last_visit, again.last_change, again.changes) == (at, at, 0)

    def test_an_end_without_content_keeps_what_is_stored(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        content = page(text="one")
        hand.end(ticket, content=content, etag="e1", modified="m1")
        world.clock.advance(2 * DAY_S)
        hand.end(hand.ticket("/"), status=503, etag="e2", modified="m2")
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert (again.etag, again.modified, again.body_digest) == ("e1", "m1", content.body_digest)
        hand.end(again, status=304, etag="e3")
        world.clock.advance(2 * DAY_S)
        last = hand.ticket("/")
        assert (last.etag, last.modified, last.body_digest) == ("e3", "m1", content.body_digest)

    def test_new_content_replaces_all_of_the_old(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        hand.end(ticket, content=page(text="one"), etag="e1", modified="m1")
        world.clock.advance(2 * DAY_S)
        content = page(text="two")
        hand.end(hand.ticket("/"), content=content)
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert (again.etag, again.modified, again.block_digest) == (
            None,
            None,
            content.block_digest,
        )

    def test_changes_are_counted_from_the_second_reading_on(self, world: World) -> None:
        frontier, hand, _ = handed_out(world)
        id_ = world.id(frontier, "/")
        times = []
        for changed in (False, False, True, False, True):
            times.append(world.clock.now)
            hand.end(hand.ticket("/"), content=page(text=str(len(times))), changed=changed)
            world.clock.advance(2 * DAY_S)
        found = world.see(frontier)
        assert (found.changes, found.last_change, found.last_visit) == (2, times[4], times[4])
        assert world.versions(frontier, id_) == [times[0], times[2], times[4]]

    def test_a_failure_before_the_first_reading_is_no_change(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.RETRY)
        assert world.see(frontier).last_change is None
        world.clock.advance(DAY_S)
        at = world.clock.now
        hand.end(hand.ticket("/"), content=page())
        assert (world.see(frontier).last_change, world.see(frontier).changes) == (at, 0)
        assert world.versions(frontier, world.id(frontier, "/")) == [at]

    def test_ends_links_and_new_urls_are_one_commit(self, world: World) -> None:
        frontier, hand, (one, two) = handed_out(world, "/1", "/2")
        outcomes = [hand.outcome(one, content=page()), hand.outcome(two, State.GONE)]
        new = [
            world.url(frontier, "/3", depth=1),
            world.url(frontier, "/b", "b", depth=1),
            world.url(frontier, "/1"),
        ]
        committed = frontier.commit(Batch(outcomes, new), hand.name)
        hosts = frozenset({world.host("a"), world.host("b")})
        assert committed == Committed(done=frozenset({one.id, two.id}), added=2, hosts=hosts)

    def test_ends_come_before_urls_in_a_commit(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        assert hand.end(ticket, State.RETIRED, urls=[world.url(frontier)]).revived == 1
        assert world.see(frontier).state is State.NEW

    def test_content_of_odd_texts_is_stored(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        odd = 'a\0b\\"{},\n\ud800é\U0001f310%s'
        links = Links(
            (1, 2), ("a", odd), (odd, ""), (odd, "http://x.example/"), ("img", ""), ("", odd)
        )
        content = Content(b"\0\\", b"", odd, odd, odd, odd, 5, links=links)
        hand.end(ticket, content=content, etag=odd, modified=odd)
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert (
            again.etag is not None
            and again.etag.startswith('ab\\"{},\n')
            and again.etag.endswith("é\U0001f310%s")
        )
        assert (again.body_digest, again.block_digest) == (b"\0\\", b"")

    def test_an_explanation_with_nul_is_stored_without(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.DEAD, why="bad\0 header", moved_to="http://b.example/\0")
        found = world.see(frontier)
        assert (found.why, found.moved_to) == ("bad header", "http://b.example/")
