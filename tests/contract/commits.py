"""Contract: late ends, and what a commit promises."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from crawlproj.frontier.base import Batch, Committed, Frontier, Outcome, Pause, RobotsRow, State
from crawlproj.frontier.batches import HARMLESS_HOST, PIECE_CHARS, split_batch, sum_commits
from tests.contract.visits import handed_out
from tests.contract.worlds import DAY_S, Hand, World, page


class LateEnds:
    def late(self, world: World, frontier: Frontier, outcome: Outcome, worker: str) -> None:
        """Such an end is counted as late, and changes nothing."""
        before = frontier.get_urls([outcome.id])
        assert frontier.commit(Batch([outcome]), worker) == Committed(late=1)
        assert frontier.get_urls([outcome.id]) == before

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
        before = frontier.get_urls(ids)
        assert frontier.commit(batch, hand.name) == Committed(late=3)
        assert frontier.get_urls(ids) == before

    def test_of_two_ends_in_one_batch_the_first_counts(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        ends = [
            hand.outcome(ticket, State.DEAD, why="first"),
            hand.outcome(ticket, State.GONE, why="second"),
        ]
        assert frontier.commit(Batch(ends), hand.name) == Committed(
            done=frozenset({ticket.id}), late=1
        )
        assert world.see(frontier).why == "first"

    def test_a_late_end_does_not_hide_the_current_one_behind_it(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.NEW)
        ends = [
            hand.outcome(ticket, State.GONE, why="old"),
            hand.outcome(hand.ticket("/"), State.DEAD, why="current"),
        ]
        assert frontier.commit(Batch(ends), hand.name) == Committed(
            done=frozenset({ticket.id}), late=1
        )
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
        frontier.release_servers(hand.name, [ticket.server])
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
        assert (committed.done, committed.late, committed.added) == (frozenset({two.id}), 1, 1)

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
        robots = RobotsRow(
            f"http://{world.host('a')}", world.host("a"), 200, "", world.clock.now, world.clock.now
        )
        urls = [world.url(frontier, "/new"), world.url(frontier, "/", "new")]
        end = hand.outcome(ticket, content=page(world.id(frontier, "/new")), received=5)
        clocks = {world.host("a"): Pause(world.clock.after(99))}
        bad = [
            replace(world.url(frontier, "/bad"), id=2**64),
            world.url(frontier, "/bad", request="{"),
        ]
        before = (
            frontier.get_urls([ticket.id]),
            frontier.count_urls(),
            frontier.outlook(),
            hand.tickets(),
        )
        for url in bad:
            with pytest.raises(Exception, match=r"."):
                frontier.commit(Batch([end], [*urls, url], [robots], clocks), hand.name)
            assert (
                frontier.get_urls([ticket.id]),
                frontier.count_urls(),
                frontier.outlook(),
                hand.tickets(),
            ) == before
            assert frontier.get_robots([robots.origin]) == {}
            assert world.versions(frontier, ticket.id) == []
        committed = frontier.commit(Batch([end], urls, [robots], clocks), hand.name)
        hosts = frozenset({world.host("a"), world.host("new")})
        assert committed == Committed(done=frozenset({ticket.id}), added=2, hosts=hosts)
        assert frontier.take_unresolved(9) == [world.host("new")]

    def test_an_empty_commit_does_nothing(self, world: World) -> None:
        frontier = world.frontier()
        assert frontier.commit(Batch()) == Committed()
        assert frontier.commit(Batch(), "worker") == Committed()


class Robots:
    def row(
        self, world: World, host: str = "a", status: int = 200, body: str = "", failures: int = 0
    ) -> RobotsRow:
        name = world.host(host)
        now = world.clock.now
        return RobotsRow(
            f"http://{name}", name, status, body, now, now + timedelta(days=1), failures
        )

    def test_robots_rows_come_back_as_they_were(self, world: World) -> None:
        frontier = world.frontier()
        one = self.row(world, "a", 200, 'User-agent: *\nDisallow: /"\\é')
        two = self.row(world, "b", 0, "", 3)
        frontier.commit(Batch(robots=[one, two]))
        assert frontier.get_robots([one.origin, two.origin, "http://unknown.example"]) == {
            one.origin: one,
            two.origin: two,
        }
        assert frontier.get_robots([]) == {}

    def test_validators_come_back_too(self, world: World) -> None:
        frontier = world.frontier()
        row = replace(self.row(world), etag='W/"é"', modified="Thu, 01 Jan 2026 00:00:00 GMT")
        frontier.commit(Batch(robots=[row]))
        assert frontier.get_robots([row.origin]) == {row.origin: row}

    def test_a_newer_row_replaces_the_older_one(self, world: World) -> None:
        frontier = world.frontier()
        old = self.row(world)
        new = self.row(world, status=404, failures=2)
        frontier.commit(Batch(robots=[old]))
        world.clock.advance(60)
        frontier.commit(Batch(robots=[new]))
        assert frontier.get_robots([old.origin]) == {old.origin: new}

    def test_of_two_rows_in_one_batch_the_last_stays(self, world: World) -> None:
        frontier = world.frontier()
        old = self.row(world, body="old")
        new = self.row(world, body="new")
        frontier.commit(Batch(robots=[old, new]))
        assert frontier.get_robots([old.origin])[old.origin].body == "new"

    def test_rows_are_shared_by_crawls_and_kept_when_expired(self, world: World) -> None:
        row = self.row(world)
        world.frontier("one").commit(Batch(robots=[row]))
        world.clock.advance(10 * DAY_S)
        assert world.frontier("two").get_robots([row.origin]) == {row.origin: row}

    def test_a_body_is_cleaned_of_nul(self, world: World) -> None:
        frontier = world.frontier()
        row = self.row(world, body="Disallow: /\0x")
        frontier.commit(Batch(robots=[row]))
        assert frontier.get_robots([row.origin])[row.origin].body == "Disallow: /x"


class Pieces:
    """What is too much for one commit is cut into several."""

    def ended(self, world: World, crawl: str, most_chars: int) -> list[tuple[object, ...]]:
        """All URLs of a crawl after one batch, which was stored in pieces of that size."""
        frontier, hand, tickets = handed_out(world, "/1", "/2", "/3", "/4", crawl=crawl)
        first, second, third, fourth = tickets
        links = [world.url(frontier, f"/{n}", depth=4, parent=first.id) for n in range(5, 15)]
        again = world.url(frontier, "/1", depth=3, parent=second.id)
        nearer = world.url(frontier, "/7", depth=2, parent=second.id)
        ids = [url.id for url in links]
        outcomes = [
            hand.outcome(first, State.RETIRED, content=page(*ids), depth=9),
            hand.outcome(second, content=page(again.id, nearer.id)),
            hand.outcome(third, content=page()),
            hand.outcome(fourth, State.DEAD, why="status 400"),
        ]
        clocks = {world.host("a"): Pause(world.clock.now, "delay")}
        batch = Batch(outcomes, [*links, again, nearer], clocks=clocks)
        pieces = split_batch(batch, most_chars)
        assert len(pieces) == (1 if most_chars > 1 else 17)
        done = [frontier.commit(piece, hand.name) for piece in pieces]
        assert sum_commits(done).done == {ticket.id for ticket in tickets}
        frontier.release_servers(hand.name, [first.server])
        stored = frontier.get_urls([*ids, *(ticket.id for ticket in tickets)])
        return sorted(
            (url.url, url.state, url.lane, url.rank, url.depth, url.visit, url.why)
            for url in stored.values()
        )

    def test_a_batch_in_pieces_does_the_same(self, world: World) -> None:
        whole = self.ended(world, "whole", PIECE_CHARS)
        assert self.ended(world, "pieces", 1) == whole
        retired = next(row for row in whole if str(row[0]).endswith("/1"))
        assert retired[1] is State.NEW, "the link to it was found after it had retired"

    def test_the_end_of_a_page_comes_after_its_links_and_after_smaller_pages(
        self, world: World
    ) -> None:
        frontier, hand, (big, small) = handed_out(world, "/big", "/small")
        links = [world.url(frontier, f"/{n}", depth=1, parent=big.id) for n in range(9)]
        links.append(world.url(frontier, "/x", depth=1, parent=small.id))
        pieces = split_batch(Batch([hand.outcome(big), hand.outcome(small)], links), 1)
        order = [item.id for piece in pieces for item in (*piece.urls, *piece.outcomes)]
        assert order == [links[-1].id, small.id, *(link.id for link in links[:-1]), big.id]

    def test_a_write_that_is_only_tried_leaves_nothing(self, world: World) -> None:
        frontier, _, _ = handed_out(world)
        before = frontier.count_urls()
        frontier.try_to_write()
        assert frontier.count_urls() == before
        assert frontier.get_robots([f"http://{HARMLESS_HOST}"]) == {}
        world.give(frontier, "/after", host=HARMLESS_HOST)
        assert frontier.count_urls()["known"] == before["known"] + 1


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
        assert hand.end(
            ticket, State.RETRY, next_visit=start, urls=[world.url(frontier, "/2")]
        ).done == {ticket.id}
        assert {t.id for t in hand.tickets()} == {ticket.id, world.id(frontier, "/2")}
        assert frontier.renew_leases(hand.name, [ticket.server])
        assert frontier.outlook(hand.name).ready == 1
        frontier.release_servers(hand.name, [ticket.server])
        assert start <= frontier.now() < start + timedelta(hours=1)
