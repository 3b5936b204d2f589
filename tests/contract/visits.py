"""Contract: ends of visits, and what a commit promises."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from crawlproj.frontier.base import (
    LANE_OF,
    Batch,
    Committed,
    Content,
    Frontier,
    Lane,
    Links,
    Outcome,
    RobotsRow,
    State,
    Ticket,
)
from tests.contract.worlds import DAY_S, Hand, World, page


def handed_out(world: World, *paths: str) -> tuple[Frontier, Hand, list[Ticket]]:
    """A frontier with these URLs, a worker, and a ticket for each."""
    frontier = world.frontier()
    world.give(frontier, *(paths or ("/",)))
    hand = Hand(world, frontier)
    return frontier, hand, [hand.ticket(path) for path in paths or ("/",)]


class Ends:
    @pytest.mark.parametrize("state", list(State))
    def test_an_end_leads_to_its_state(self, world: World, state: State) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        world.clock.advance(3)
        committed = hand.end(ticket, state, status=418, why="tea", tries=2, moved_to="http://b.example/", interval_s=9.5)
        assert committed == Committed(done=frozenset({ticket.id}))
        found = world.see(frontier)
        assert (found.state, found.status, found.why, found.tries) == (state, 418, "tea", 2)
        assert (found.visit, found.last_visit, found.moved_to, found.interval_s) == (1, world.clock.now, "http://b.example/", 9.5)
        assert found.lane == LANE_OF.get(state)
        assert (found.rank is None) == (found.lane is None)
        assert frontier.counts() == {"known": 1, **{s.value: int(s is state) for s in State}}

    @pytest.mark.parametrize("state", [State.WAITING, State.RETRY, State.GONE])
    def test_a_timed_url_comes_back_when_its_time_has_come(self, world: World, state: State) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        due = world.clock.after(100.25)
        hand.end(ticket, state, next_visit=due, tries=1)
        found = world.see(frontier)
        assert (found.next_visit, found.rank) == (due, pytest.approx(due.timestamp(), abs=1e-5))
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

    def test_a_url_given_back_as_new_keeps_its_place(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.NEW)
        found = world.see(frontier)
        assert (found.lane, found.rank, found.visit) == (Lane.NEW, -1, 1)
        assert hand.ticket("/").visit == 1

    def test_a_life_with_every_turn(self, world: World) -> None:
        frontier, hand, _ = handed_out(world)
        turns = [State.RETRY, State.WAITING, State.GONE, State.WAITING, State.RETRY, State.GONE, State.RETIRED]
        for state in turns:
            hand.end(hand.ticket("/"), state)
            assert world.see(frontier).state is state
            world.clock.advance(DAY_S)
        world.give(frontier, "/")
        hand.end(hand.ticket("/"), State.RETRY)
        world.clock.advance(DAY_S)
        hand.end(hand.ticket("/"), State.DEAD)
        assert (world.see(frontier).state, world.see(frontier).visit) == (State.DEAD, len(turns) + 2)

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
        hand.end(ticket, State.RETRY, why="timeout", tries=1, status=500, moved_to="http://b.example/")
        world.clock.advance(DAY_S)
        hand.end(hand.ticket("/"), State.FORBIDDEN)
        found = world.see(frontier)
        assert (found.why, found.tries, found.status, found.moved_to, found.next_visit) == ("", 0, 0, None, None)

    def test_content_and_validators_come_with_the_next_ticket(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        assert (ticket.etag, ticket.modified, ticket.body_digest, ticket.block_digest) == (None,) * 4
        content, at = page(text="one"), world.clock.now
        hand.end(ticket, content=content, etag='"e1"', modified="Sun, 01 Mar 2026 12:00:00 GMT")
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert (again.etag, again.modified) == ('"e1"', "Sun, 01 Mar 2026 12:00:00 GMT")
        assert (again.body_digest, again.block_digest) == (content.body_digest, content.block_digest)
        assert isinstance(again.body_digest, bytes) and isinstance(again.block_digest, bytes)
        assert (again.last_visit, again.last_change, again.changes) == (at, at, 0)

    def test_an_end_without_content_keeps_what_is_stored(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        content = page(text="one")
        hand.end(ticket, content=content, etag="e1", modified="m1")
        world.clock.advance(2 * DAY_S)
        hand.end(hand.ticket("/"), status=304, etag="e2", modified="m2")
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert (again.etag, again.modified, again.body_digest) == ("e1", "m1", content.body_digest)

    def test_new_content_replaces_all_of_the_old(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        hand.end(ticket, content=page(text="one"), etag="e1", modified="m1")
        world.clock.advance(2 * DAY_S)
        content = page(text="two")
        hand.end(hand.ticket("/"), content=content)
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert (again.etag, again.modified, again.block_digest) == (None, None, content.block_digest)

    def test_changes_are_counted_from_the_second_reading_on(self, world: World) -> None:
        frontier, hand, _ = handed_out(world)
        id_, times = world.id(frontier, "/"), []
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
        new = [world.url(frontier, "/3", depth=1), world.url(frontier, "/b", "b", depth=1), world.url(frontier, "/1")]
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
        links = Links((1, 2), ("a", odd), (odd, ""), (odd, "http://x.example/"), ("img", ""), ("", odd))
        content = Content(b"\0\\", b"", odd, odd, odd, odd, 5, links=links)
        hand.end(ticket, content=content, etag=odd, modified=odd)
        world.clock.advance(2 * DAY_S)
        again = hand.ticket("/")
        assert again.etag is not None and again.etag.startswith('ab\\"{},\n') and again.etag.endswith("é\U0001f310%s")
        assert (again.body_digest, again.block_digest) == (b"\0\\", b"")

    def test_an_explanation_with_nul_is_stored_without(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.DEAD, why="bad\0 header", moved_to="http://b.example/\0")
        found = world.see(frontier)
        assert (found.why, found.moved_to) == ("bad header", "http://b.example/")


class LateEnds:
    def late(self, world: World, frontier: Frontier, outcome: Outcome, worker: str) -> None:
        """Such an end is counted as late, and changes nothing."""
        before = frontier.look([outcome.id])
        assert frontier.commit(Batch([outcome]), worker) == Committed(late=1)
        assert frontier.look([outcome.id]) == before

    def test_the_same_end_twice_counts_once(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, content=page(), changed=True)
        self.late(world, frontier, hand.outcome(ticket, content=page(), changed=True), hand.name)
        assert world.see(frontier).changes == 1

    def test_the_same_batch_twice_changes_nothing(self, world: World) -> None:
        frontier, hand, tickets = handed_out(world, "/1", "/2", "/3")
        urls = [world.url(frontier, "/4", depth=1)]
        batch = Batch([hand.outcome(t, content=page(), received=10) for t in tickets], urls)
        assert frontier.commit(batch, hand.name).done == {ticket.id for ticket in tickets}
        ids = [url.id for url in urls] + [ticket.id for ticket in tickets]
        before = frontier.look(ids)
        assert frontier.commit(batch, hand.name) == Committed(late=3)
        assert frontier.look(ids) == before

    def test_of_two_ends_in_one_batch_the_first_counts(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        ends = [hand.outcome(ticket, State.DEAD, why="first"), hand.outcome(ticket, State.GONE, why="second")]
        assert frontier.commit(Batch(ends), hand.name) == Committed(done=frozenset({ticket.id}), late=1)
        assert world.see(frontier).why == "first"

    def test_a_late_end_does_not_hide_the_current_one_behind_it(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.NEW)
        ends = [hand.outcome(ticket, State.GONE, why="old"), hand.outcome(hand.ticket("/"), State.DEAD, why="current")]
        assert frontier.commit(Batch(ends), hand.name) == Committed(done=frozenset({ticket.id}), late=1)
        assert world.see(frontier).why == "current"

    def test_an_end_of_another_visit_is_late(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        for visit in (-1, 1, 2):
            self.late(world, frontier, replace(hand.outcome(ticket), visit=visit), hand.name)

    def test_an_end_of_another_epoch_is_late(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        for epoch in (ticket.epoch - 1, ticket.epoch + 1):
            self.late(world, frontier, replace(hand.outcome(ticket), epoch=epoch), hand.name)

    def test_an_end_by_another_worker_is_late(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        self.late(world, frontier, hand.outcome(ticket), "stranger")
        self.late(world, frontier, hand.outcome(ticket), "")

    def test_an_end_on_an_unknown_server_or_url_is_late(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        self.late(world, frontier, replace(hand.outcome(ticket), server=2**31 - 1), hand.name)
        self.late(world, frontier, replace(hand.outcome(ticket), id=ticket.id ^ 1), hand.name)

    def test_an_end_after_release_is_late(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        frontier.release(hand.name, [ticket.server])
        self.late(world, frontier, hand.outcome(ticket), hand.name)

    def test_an_end_after_takeover_is_late_and_the_new_holders_counts(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        world.clock.advance(121)
        other = Hand(world, world.frontier(), "other")
        again = other.ticket("/")
        assert (again.visit, again.epoch) == (ticket.visit, ticket.epoch + 1)
        self.late(world, frontier, hand.outcome(ticket), hand.name)
        assert other.end(again).done == {ticket.id}

    def test_an_end_after_ones_own_second_lease_is_late(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        world.clock.advance(121)
        assert hand.lease()
        self.late(world, frontier, hand.outcome(ticket), hand.name)

    def test_an_end_on_an_expired_lease_that_nobody_took_counts(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        world.clock.advance(1000)
        assert hand.end(ticket).done == {ticket.id}

    def test_a_late_end_does_not_hold_back_the_rest_of_its_batch(self, world: World) -> None:
        frontier, hand, (one, two) = handed_out(world, "/1", "/2")
        hand.end(one)
        urls = [world.url(frontier, "/3")]
        committed = frontier.commit(Batch([hand.outcome(one), hand.outcome(two)], urls), hand.name)
        assert (committed.done, committed.late, committed.added) == ({two.id}, 1, 1)

    def test_late_content_is_not_stored(self, world: World) -> None:
        frontier = world.frontier(host_pages=2, pages=2)
        world.give(frontier, "/1", score=2)
        world.give(frontier, "/2")
        hand = Hand(world, frontier)
        ticket = hand.ticket("/1")
        hand.end(ticket, content=page(text="one"))
        hand.end(ticket, content=page(world.id(frontier, "/2"), text="late"), received=9)
        assert not frontier.outlook().spent
        assert len(world.versions(frontier, ticket.id)) == 1
        assert hand.ticket("/2")
        world.clock.advance(2 * DAY_S)
        assert hand.ticket("/1").body_digest == page(text="one").body_digest


class AllOrNothing:
    def test_a_commit_that_fails_leaves_nothing(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        robots = RobotsRow(f"http://{world.host('a')}", world.host("a"), 200, "", world.clock.now, world.clock.now)
        urls = [world.url(frontier, "/new"), world.url(frontier, "/", "new")]
        end = hand.outcome(ticket, content=page(world.id(frontier, "/new")), received=5)
        clocks = {world.host("a"): world.clock.after(99)}
        bad = [replace(world.url(frontier, "/bad"), id=2**64), world.url(frontier, "/bad", request="{")]
        before = frontier.look([ticket.id]), frontier.counts(), frontier.outlook(), hand.tickets()
        for url in bad:
            with pytest.raises(Exception, match=r"."):
                frontier.commit(Batch([end], [*urls, url], [robots], clocks), hand.name)
            assert (frontier.look([ticket.id]), frontier.counts(), frontier.outlook(), hand.tickets()) == before
            assert frontier.robots([robots.origin]) == {}
            assert world.versions(frontier, ticket.id) == []
        committed = frontier.commit(Batch([end], urls, [robots], clocks), hand.name)
        hosts = frozenset({world.host("a"), world.host("new")})
        assert committed == Committed(done=frozenset({ticket.id}), added=2, hosts=hosts)
        assert frontier.unresolved(9) == [world.host("new")]

    @pytest.mark.parametrize("state", [State.WAITING, State.RETRY, State.GONE])
    def test_a_timed_state_without_a_time_fails_as_a_whole(self, world: World, state: State) -> None:
        frontier, hand, (one, two) = handed_out(world, "/1", "/2")
        before = frontier.look([one.id, two.id])
        ends = [hand.outcome(one), hand.outcome(two, state, next_visit=None)]
        with pytest.raises(Exception, match=r"."):
            frontier.commit(Batch(ends), hand.name)
        assert frontier.look([one.id, two.id]) == before

    def test_an_empty_commit_does_nothing(self, world: World) -> None:
        frontier = world.frontier()
        assert frontier.commit(Batch()) == Committed()
        assert frontier.commit(Batch(), "worker") == Committed()


class Robots:
    def row(self, world: World, host: str = "a", status: int = 200, body: str = "", failures: int = 0) -> RobotsRow:
        now = world.clock.now
        return RobotsRow(f"http://{world.host(host)}", world.host(host), status, body, now, now + timedelta(days=1), failures)

    def test_robots_rows_come_back_as_they_were(self, world: World) -> None:
        frontier = world.frontier()
        one, two = self.row(world, "a", 200, 'User-agent: *\nDisallow: /"\\é'), self.row(world, "b", 0, "", 3)
        frontier.commit(Batch(robots=[one, two]))
        assert frontier.robots([one.origin, two.origin, "http://unknown.example"]) == {one.origin: one, two.origin: two}
        assert frontier.robots([]) == {}

    def test_a_newer_row_replaces_the_older_one(self, world: World) -> None:
        frontier = world.frontier()
        old, new = self.row(world), self.row(world, status=404, failures=2)
        frontier.commit(Batch(robots=[old]))
        world.clock.advance(60)
        frontier.commit(Batch(robots=[new]))
        assert frontier.robots([old.origin]) == {old.origin: new}

    def test_of_two_rows_in_one_batch_the_last_stays(self, world: World) -> None:
        frontier = world.frontier()
        old, new = self.row(world, body="old"), self.row(world, body="new")
        frontier.commit(Batch(robots=[old, new]))
        assert frontier.robots([old.origin])[old.origin].body == "new"

    def test_rows_are_shared_by_crawls_and_kept_when_expired(self, world: World) -> None:
        row = self.row(world)
        world.frontier("one").commit(Batch(robots=[row]))
        world.clock.advance(10 * DAY_S)
        assert world.frontier("two").robots([row.origin]) == {row.origin: row}

    def test_a_body_is_cleaned_of_nul(self, world: World) -> None:
        frontier = world.frontier()
        row = self.row(world, body="Disallow: /\0x")
        frontier.commit(Batch(robots=[row]))
        assert frontier.robots([row.origin])[row.origin].body == "Disallow: /x"


class RealTime:
    def test_without_a_clock_of_ours_time_goes_on(self, world: World) -> None:
        frontier = world.frontier(real_clock=True)
        start: datetime = frontier.now()
        world.clock.now = start
        world.give(frontier, "/")
        assert world.see(frontier).first_seen >= start
        hand = Hand(world, frontier)
        ticket = hand.ticket("/")
        assert hand.leases[ticket.server].until > start + timedelta(seconds=119)
        assert hand.end(ticket, State.RETRY, next_visit=start, urls=[world.url(frontier, "/2")]).done == {ticket.id}
        assert {t.id for t in hand.tickets()} == {ticket.id, world.id(frontier, "/2")}
        assert frontier.renew(hand.name, [ticket.server])
        assert frontier.outlook(hand.name).ready == 1
        frontier.release(hand.name, [ticket.server])
        assert start <= frontier.now() < start + timedelta(hours=1)
