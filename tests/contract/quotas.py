"""Contract: pages that were never read are let out only as far as the quotas leave room beside what
is held.
"""

from __future__ import annotations

from typing import Any

import pytest

from crawlproj.frontier.base import Lane, State
from tests.contract.worlds import DAY_S, Hand, World, page


class Quotas:
    def failed(self, world: World, hand: Hand, *paths: str, host: str = "a") -> None:
        """Pages that were asked for once and not read; they are due again."""
        for path in paths:
            world.give(hand.frontier, path, host=host, lane=Lane.URGENT)
            hand.end(hand.ticket(path, host), State.RETRY, next_visit=world.clock.now)

    def test_what_is_held_in_hosts_that_want_nothing_counts_in_all(self, world: World) -> None:
        frontier = world.frontier(pages=5)
        for name in "abc":
            world.give(frontier, *(f"/{n}" for n in range(4)), host=name)
        hand = Hand(world, frontier)
        hand.lease()
        first, second, third = hand.wants(2)
        held = frontier.due_tickets([first], held=0) + frontier.due_tickets([second], held=2)
        assert len(held) == 4
        assert len(frontier.due_tickets([third], held=len(held))) == 1
        assert (
            frontier.due_tickets([third], held=5) == []
            and frontier.due_tickets([third], held=6) == []
        )
        assert len(frontier.due_tickets([third])) == 2

    def test_what_is_held_in_all_replaces_the_sum_of_the_wants(self, world: World) -> None:
        frontier = world.frontier(pages=4)
        world.give(frontier, *(f"/{n}" for n in range(6)))
        hand = Hand(world, frontier)
        held = [ticket.id for ticket in hand.tickets(2)]
        assert len(frontier.due_tickets(hand.wants(9, held))) == 2
        assert len(frontier.due_tickets(hand.wants(9, held), held=3)) == 1

    def test_many_hosts_do_not_overshoot_the_total_quota(self, world: World) -> None:
        frontier = world.frontier(pages=5)
        for n in range(8):
            world.give(frontier, "/1", "/2", "/3", host=f"h{n}")
        hand = Hand(world, frontier)
        hand.lease()
        held = 0
        for _ in range(3):
            for want in hand.wants(1):
                held += len(frontier.due_tickets([want], held))
        assert held == 5

    def test_what_is_held_matters_only_to_the_total_quota(self, world: World) -> None:
        frontier = world.frontier(host_pages=3)
        world.give(frontier, *(f"/{n}" for n in range(6)))
        hand = Hand(world, frontier)
        hand.lease()
        assert len(frontier.due_tickets(hand.wants(9), held=100)) == 3

    @pytest.mark.parametrize("limits", [{"pages": 3}, {"host_pages": 3}])
    def test_retries_of_pages_never_read_take_their_places(
        self, world: World, limits: dict[str, Any]
    ) -> None:
        frontier = world.frontier(**limits)
        hand = Hand(world, frontier)
        self.failed(world, hand, "/1", "/2", "/3", "/4")
        assert [ticket.lane for ticket in hand.tickets(9)] == [Lane.RETRY] * 3
        world.give(frontier, "/new", "/other")
        assert [ticket.lane for ticket in hand.tickets(9)] == [Lane.NEW, Lane.NEW, Lane.RETRY]
        held = [ticket.id for ticket in hand.tickets(9)]
        assert hand.tickets(9, held) == []

    @pytest.mark.parametrize("limits", [{"pages": 2}, {"host_pages": 2}])
    def test_retries_of_pages_read_before_take_none(
        self, world: World, limits: dict[str, Any]
    ) -> None:
        frontier = world.frontier(**limits)
        world.give(frontier, "/", "/new")
        hand = Hand(world, frontier)
        hand.end(hand.ticket("/"), content=page())
        world.clock.advance(DAY_S)
        hand.end(hand.ticket("/"), State.RETRY, next_visit=world.clock.now)
        assert [ticket.lane for ticket in hand.tickets(9)] == [Lane.NEW, Lane.RETRY]
        hand.end(hand.ticket("/new"), content=page())
        assert [ticket.lane for ticket in hand.tickets(9)] == [Lane.RETRY]

    @pytest.mark.parametrize("limits", [{"pages": 1}, {"host_pages": 1}])
    def test_a_worker_never_waits_for_a_retry_that_is_not_let_out(
        self, world: World, limits: dict[str, Any]
    ) -> None:
        """As long as the outlook promises it, someone gets it."""
        frontier = world.frontier(**limits)
        hand = Hand(world, frontier)
        self.failed(world, hand, "/failed")
        world.give(frontier, "/")
        hand.end(hand.ticket("/"), content=page())
        assert bool(hand.tickets(9)) == bool(frontier.outlook(hand.name).ready)
