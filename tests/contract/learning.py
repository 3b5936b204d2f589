"""Contract: what is learned of pages and hosts, for their next visits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from crawlproj.frontier.base import Batch, HostText, ServerHints, State
from crawlproj.items import ChangeVerdict, Page
from crawlproj.revisit.base import RevisitSettings
from crawlproj.revisit.policies import RevisitPlanner
from crawlproj.scheduling.outcomes import OutcomeRules
from tests.contract.visits import handed_out
from tests.contract.worlds import DAY_S, World, page

HOUR = timedelta(hours=1)
NUMBERS = {"rate_a": 0.75, "rate_b": 3600.5, "own_a": 2.0, "own_b": -1.5}


class Learning:
    def test_what_was_learned_comes_with_the_next_visit(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        due = world.clock.after(10)
        hand.end(
            ticket,
            State.WAITING,
            next_visit=due,
            content=page(),
            page_state=b"\1state",
            hints=ServerHints(world.clock.now, due),
            hints_met=(("etag", True), ("modified", False)),
            **NUMBERS,
        )
        world.clock.advance(10)
        again = hand.ticket("/")
        assert {name: getattr(again, name) for name in NUMBERS} == NUMBERS
        assert (again.page_state, again.next_visit, again.importance) == (b"\1state", due, None)
        hand.end(again, State.WAITING, next_visit=world.clock.after(10))
        world.clock.advance(10)
        third = hand.ticket("/")
        assert {name: getattr(third, name) for name in NUMBERS} == NUMBERS
        assert third.page_state == b"\1state"

    @pytest.mark.parametrize("status", [503, 200])
    def test_visits_that_have_not_seen_the_page_teach_nothing(
        self, world: World, status: int
    ) -> None:
        """A failure, or a wall, a minute before each visit leaves what is learned as it was."""
        learned = []
        for crawl in ("calm", "disturbed"):
            frontier, hand, (ticket,) = handed_out(world, crawl=crawl)
            rules = OutcomeRules(
                RevisitPlanner(RevisitSettings()), 9, HOUR, gone_limit=3, gone_interval=HOUR
            )
            for number in range(12):
                if number and crawl == "disturbed":
                    vain = Page(ticket, ticket.url, status, world.clock.now, kind="html")
                    vain.verdict = ChangeVerdict(False, "wall", set_aside="wall")
                    soon = replace(
                        rules.decide_outcome(vain, ticket), next_visit=world.clock.after(60)
                    )
                    assert frontier.commit(Batch([soon]), hand.name).done
                    world.clock.advance(60)
                    ticket = hand.ticket()
                read = Page(ticket, ticket.url, 200, world.clock.now, kind="html")
                read.content = page() if number == 0 else None
                read.changed = number % 4 == 3
                end = rules.decide_outcome(read, ticket)
                pause_s = DAY_S - 60 * (crawl == "disturbed")
                later = replace(end, next_visit=world.clock.after(pause_s))
                assert frontier.commit(Batch([later]), hand.name).done
                world.clock.advance(pause_s)
                ticket = hand.ticket()
            assert (ticket.reads, ticket.changes) == (12, 3)
            assert world.see(frontier).last_read == ticket.last_read
            learned.append((end.rate_a, end.rate_b, end.interval_s))
        assert learned[0] == pytest.approx(learned[1])

    def test_a_page_that_was_never_read_has_no_state(self, world: World) -> None:
        _, hand, (ticket,) = handed_out(world)
        hand.end(ticket, State.RETRY, next_visit=world.clock.now, tries=1, page_state=b"odd")
        assert hand.ticket("/").page_state is None

    def test_texts_of_hosts_are_kept_piece_by_piece(self, world: World) -> None:
        frontier, _, _ = handed_out(world)
        name = world.see(frontier).host
        assert frontier.get_host_texts([name]) == {}
        frontier.commit(Batch(texts={name: HostText(noise=b"noise")}))
        frontier.commit(
            Batch(texts={name: HostText(probe=b"probe"), "unknown.example": HostText(b"x")})
        )
        wanted = {name: HostText(b"noise", b"probe")}
        assert frontier.get_host_texts([name, "unknown.example"]) == wanted

    def test_a_sitemap_says_when_a_visited_page_was_changed(self, world: World) -> None:
        frontier, hand, (first, second) = handed_out(world, "/first", "/second")
        listed = {first.id: world.clock.now, second.id: world.clock.now, 77: world.clock.now}
        hand.end(first, State.WAITING, next_visit=world.clock.now, content=page())
        frontier.commit(Batch(listed=listed))
        hand.end(second, State.WAITING, next_visit=world.clock.now, content=page())
        times = {ticket.id: ticket.listed_at for ticket in hand.tickets()}
        assert times == {first.id: world.clock.now, second.id: None}

    def test_what_was_learned_moves_with_a_page(self, world: World) -> None:
        frontier, hand, (ticket,) = handed_out(world, "/old")
        hand.end(ticket, State.WAITING, next_visit=world.clock.now, content=page(), **NUMBERS)
        again = hand.ticket("/old")
        target = replace(world.url(frontier, "/new"), heir_of=again.id)
        hand.end(again, State.MOVED, moved_to=target.url)
        frontier.add([target])
        heir = hand.ticket("/new")
        assert {name: getattr(heir, name) for name in NUMBERS} == NUMBERS
        assert heir.block_digest is None

    @pytest.mark.parametrize("visited", [True, False])
    def test_a_visited_page_keeps_what_it_has(self, world: World, visited: bool) -> None:
        frontier, hand, (old, new) = handed_out(world, "/old", "/new")
        now = world.clock.now
        hand.end(old, State.WAITING, next_visit=now, content=page(), **NUMBERS)
        if visited:
            hand.end(new, State.WAITING, next_visit=now, content=page(), rate_a=9.0, rate_b=9.0)
        frontier.add([replace(world.url(frontier, "/new"), heir_of=old.id)])
        wanted = 9.0 if visited else NUMBERS["rate_a"]
        assert hand.ticket("/new").rate_a == wanted
