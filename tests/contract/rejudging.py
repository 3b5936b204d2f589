"""Contract: what a changed robots.txt brings back, and pages that say when they end."""

from __future__ import annotations

from typing import Any

import pytest

from crawlproj.frontier.base import Batch, Frontier, Lane, Outcome, State
from tests.contract.worlds import DAY_S, Hand, World, page, whole_rank


def forbidden(
    world: World,
    frontier: Frontier,
    *paths: str,
    host: str = "a",
    why: str = "robots",
    **fields: Any,
) -> None:
    """URLs that were refused."""
    world.give(frontier, *paths, host=host, **fields)
    hand = Hand(world, frontier, f"of {frontier.spec.name}")
    ends = [
        hand.outcome(ticket, State.FORBIDDEN, why=why, tries=2)
        for ticket in hand.tickets(100)
        if not ticket.visit
    ]
    assert len(frontier.commit(Batch(ends), hand.name).done) == len(paths)
    frontier.release_servers(hand.name, list(hand.leases))


def everything(url: str) -> bool:
    return True


class SettingAside:
    def test_a_url_that_its_worker_died_of_is_given_up(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/a", "/b")
        dead = Hand(world, frontier, "dead")
        ticket = dead.ticket("/a")
        for wrong in ((ticket.id, ticket.visit + 1), (ticket.id + 1, ticket.visit)):
            assert not frontier.set_aside(*wrong, status=200, why="unread: too slow")
        assert not world.frontier("other").set_aside(ticket.id, 0, status=200, why="")
        assert frontier.set_aside(ticket.id, ticket.visit, status=200, why="unread: too slow")
        assert not frontier.set_aside(ticket.id, ticket.visit, status=200, why="again")
        found = world.see(frontier, "/a")
        assert (found.state, found.lane, found.rank, found.status, found.why, found.visit) == (
            State.DEAD,
            None,
            None,
            200,
            "unread: too slow",
            1,
        )
        assert (found.last_visit, found.next_visit) == (frontier.now(), None)
        assert dead.end(ticket, content=page()).late == 1
        assert [ticket.url for ticket in dead.tickets()] == [f"http://{world.host('a')}/b"]

    def test_a_host_whose_last_url_was_given_up_is_not_leased(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/a")
        dead = Hand(world, frontier, "dead")
        ticket = dead.ticket("/a")
        frontier.release_servers(dead.name, list(dead.leases))
        assert frontier.set_aside(ticket.id, ticket.visit, status=200, why="unread: too slow")
        assert not frontier.has_free_servers()
        world.give(frontier, "/a", lane=Lane.URGENT)
        assert [ticket.url for ticket in Hand(world, frontier).tickets()] == [ticket.url]


class Rejudging:
    def test_what_is_allowed_now_is_new_again(self, world: World) -> None:
        frontier = world.frontier()
        forbidden(world, frontier, "/a", "/b", score=0.5)
        asked: list[str] = []

        def allows(url: str) -> bool:
            asked.append(url)
            return url.endswith("/a")

        assert frontier.rejudge_forbidden(f"http://{world.host('a')}", allows) == 1
        found = world.see(frontier, "/a")
        assert (found.state, found.lane, found.rank, found.why, found.tries) == (
            State.NEW,
            Lane.NEW,
            -0.5,
            "",
            0,
        )
        assert world.see(frontier, "/b").state is State.FORBIDDEN
        assert sorted(asked) == [f"http://{world.host('a')}{path}" for path in ("/a", "/b")]
        assert [ticket.url for ticket in Hand(world, frontier).tickets()] == [
            f"http://{world.host('a')}/a"
        ]

    def test_judging_twice_brings_back_once(self, world: World) -> None:
        frontier = world.frontier()
        forbidden(world, frontier, "/a")
        assert [
            frontier.rejudge_forbidden(f"http://{world.host('a')}", everything) for _ in range(2)
        ] == [
            1,
            0,
        ]

    @pytest.mark.parametrize("why", ["status 403", "guard: private address", ""])
    def test_what_others_forbade_stays_forbidden(self, world: World, why: str) -> None:
        frontier = world.frontier()
        forbidden(world, frontier, "/a", why=why)
        assert frontier.rejudge_forbidden(f"http://{world.host('a')}", everything) == 0
        assert world.see(frontier, "/a").state is State.FORBIDDEN

    def test_a_reason_with_more_words_counts(self, world: World) -> None:
        frontier = world.frontier()
        forbidden(world, frontier, "/a", why="robots: Disallow /")
        assert frontier.rejudge_forbidden(f"http://{world.host('a')}", everything) == 1

    def test_other_origins_are_left_alone(self, world: World) -> None:
        frontier = world.frontier()
        forbidden(world, frontier, "/a")
        forbidden(world, frontier, "/b", host="b")
        for origin in (
            f"https://{world.host('a')}",
            f"http://{world.host('a')}:81",
            "http://unknown.example",
        ):
            assert frontier.rejudge_forbidden(origin, everything) == 0
        assert frontier.rejudge_forbidden(f"http://{world.host('b')}", everything) == 1
        assert world.see(frontier, "/a").state is State.FORBIDDEN

    def test_other_states_are_left_alone(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/dead", "/new")
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/dead"), State.DEAD, why="robots")
        before = world.see(frontier, "/dead"), world.see(frontier, "/new")
        assert frontier.rejudge_forbidden(f"http://{world.host('a')}", everything) == 0
        assert (world.see(frontier, "/dead"), world.see(frontier, "/new")) == before

    def test_other_crawls_follow_but_are_not_counted(self, world: World) -> None:
        one = world.frontier("one", order="bfs")
        two = world.frontier("two", order="dfs")
        forbidden(world, one, "/a", depth=3)
        forbidden(world, two, "/a", "/b", depth=3)
        assert one.rejudge_forbidden(f"http://{world.host('a')}", everything) == 1
        assert (whole_rank(world.see(one, "/a")), world.see(two, "/a").rank) == (3, -3)
        assert len(Hand(world, two).tickets()) == 2

    def test_what_is_too_deep_by_now_stays_away(self, world: World) -> None:
        forbidden(world, world.frontier(), "/deep", depth=4)
        frontier = world.frontier(max_depth=2)
        assert frontier.rejudge_forbidden(f"http://{world.host('a')}", everything) == 0
        assert world.see(frontier, "/deep").state is State.FORBIDDEN

    def test_a_full_host_takes_nothing_back(self, world: World) -> None:
        frontier = world.frontier(host_pages=1)
        forbidden(world, frontier, "/a")
        world.give(frontier, "/page")
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/page"), content=page())
        frontier.rejudge_forbidden(f"http://{world.host('a')}", everything)
        assert (world.see(frontier, "/a").state, world.see(frontier, "/a").why) == (
            State.IGNORED,
            "quota",
        )

    def test_a_forbidden_url_with_a_next_visit_is_tried_again_then(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/a", "/b")
        hand = Hand(world, frontier)
        hand.end(
            hand.ticket("/a"), State.FORBIDDEN, why="robots", next_visit=world.clock.after(DAY_S)
        )
        hand.end(hand.ticket("/b"), State.FORBIDDEN, why="robots")
        assert hand.tickets() == []
        world.clock.advance(DAY_S)
        (ticket,) = hand.tickets()
        assert (ticket.id, ticket.state, ticket.lane) == (
            world.id(frontier, "/a"),
            State.FORBIDDEN,
            Lane.REVISIT,
        )
        assert frontier.rejudge_forbidden(f"http://{world.host('a')}", everything) == 2
        assert world.see(frontier, "/a").lane is Lane.NEW

    def test_the_end_that_a_page_names_is_kept_until_it_is_read_again(self, world: World) -> None:
        frontier = world.frontier()
        world.give(frontier, "/a")
        hand = Hand(world, frontier)
        end = world.clock.after(99 * DAY_S)
        outcomes: list[dict[str, Any]] = [
            {"content": page(), "expires": end},
            {"status": 304},
            {"status": 304, "expires": world.clock.after(50 * DAY_S)},
            {"content": page(text="other"), "changed": True},
        ]
        seen = [hand.ticket("/a").expires]
        for fields in outcomes:
            ended: Outcome = hand.outcome(hand.ticket("/a"), **fields)
            frontier.commit(Batch([ended]), hand.name)
            world.clock.advance(2 * DAY_S)
            hand.leases.clear()
            seen.append(hand.ticket("/a").expires)
        assert seen == [None, end, end, outcomes[2]["expires"], None]
