"""Room for big bodies: bounded, fair, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crawlproj.fetch.big_bodies import UNIT, BigBodies
from crawlproj.fetch.pages import RefusedError
from crawlproj.frontier.base import Lane, State, Ticket


def ticket(number: int, server: int = 0) -> Ticket:
    return Ticket(number, "http://a.test/", "a.test", server or number, 1, 1, Lane.NEW, State.NEW)


def run(test: Any) -> None:
    asyncio.run(asyncio.wait_for(test(), 10))


def waits(bodies: BigBodies, one: Ticket, units: int) -> asyncio.Task[None]:
    return asyncio.ensure_future(bodies.enter(one, units * UNIT))


def test_only_so_much_is_in_memory_and_all_get_their_turn() -> None:
    async def test() -> None:
        bodies = BigBodies(room=4)
        tasks = [waits(bodies, ticket(number), 2) for number in range(1, 6)]
        served: list[int] = []
        while len(served) < 5:
            await asyncio.sleep(0)
            done = [n for n, task in enumerate(tasks, 1) if task.done() and n not in served]
            assert 1 <= len(done) <= 2
            served.append(done[0])
            bodies.leave(done[0])
            await asyncio.sleep(0)

    run(test)


def test_bodies_that_all_grow_do_not_wait_for_each_other() -> None:
    async def test() -> None:
        bodies = BigBodies(room=2)
        await bodies.enter(ticket(1), UNIT)
        await bodies.enter(ticket(2), UNIT)
        first = waits(bodies, ticket(1), 10)
        second = waits(bodies, ticket(2), 10)
        await asyncio.sleep(0.01)
        assert (first.done(), second.done()) == (True, False)
        bodies.leave(1)
        await second

    run(test)


def test_the_server_whose_pages_took_the_least_time_comes_first() -> None:
    async def test() -> None:
        bodies = BigBodies(room=1)
        bodies.note_time(7, 5.0)
        await bodies.enter(ticket(1), UNIT)
        slow = waits(bodies, ticket(2, server=7), 1)
        await asyncio.sleep(0)
        quick = waits(bodies, ticket(3, server=8), 1)
        await asyncio.sleep(0)
        bodies.leave(1)
        await quick
        assert not slow.done()
        bodies.leave(3)
        await slow

    run(test)


def test_who_waits_too_long_or_at_the_end_of_a_crawl_is_told() -> None:
    async def test() -> None:
        bodies = BigBodies(room=1, wait_s=0.01)
        await bodies.enter(ticket(1), UNIT)
        await bodies.enter(ticket(1), UNIT)
        with pytest.raises(RefusedError, match="no room"):
            await bodies.enter(ticket(2), UNIT)
        bodies = BigBodies(room=1)
        await bodies.enter(ticket(1), UNIT)
        waiting = waits(bodies, ticket(2), 1)
        await asyncio.sleep(0)
        bodies.stop()
        for refused in (waiting, bodies.enter(ticket(3), UNIT)):
            with pytest.raises(RefusedError, match="shutdown"):
                await refused
        bodies.leave(1, 2, 3)
        assert bodies.left == 1

    run(test)
