"""The line of documents before their reader: turns by server, and room for all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.documents.reply import DocumentReadError
from crawlproj.content.documents.waiting import WaitingDocuments


class Line:
    """A line, a clock that stands still but while something is read, and what was read when."""

    def __init__(self, max_bytes: int = 1_000) -> None:
        self.now = 0.0
        self.waiting = WaitingDocuments(max_bytes, lambda: self.now)
        self.read: list[str] = []
        self.lost: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.served = asyncio.Semaphore(0)

    async def come(self, name: str, size: int = 1, takes_s: float = 1.0) -> None:
        """A document comes; the first letter of its name is its server."""
        self.tasks.append(asyncio.create_task(self._wait(name, size, takes_s)))
        await asyncio.sleep(0)

    async def _wait(self, name: str, size: int, takes_s: float) -> None:
        try:
            async with self.waiting.turn(ord(name[0]), size):
                self.read.append(name)
                await self.served.acquire()
                self.now += takes_s
        except DocumentReadError as error:
            assert str(error) == "no_room"
            self.lost.append(name)

    async def serve(self, number: int = 1) -> None:
        """So many that are read come to their end."""
        for _ in range(number):
            self.served.release()
            for _ in range(5):
                await asyncio.sleep(0)

    async def end(self) -> None:
        await self.serve(len(self.tasks))
        await asyncio.gather(*self.tasks, return_exceptions=True)
        assert self.waiting.size == 0


def run(do: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(do())  # type: ignore[arg-type]


def test_servers_take_turns_by_the_time_that_they_have_had() -> None:
    async def do() -> None:
        line = Line()
        for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
            await line.come(name, takes_s=20 if name[0] == "a" else 1)
        await line.end()
        assert line.read == ["a1", "b1", "c1", "b2", "a2", "a3", "a4"]

    run(do)


def test_a_small_document_does_not_wait_for_large_ones_of_servers_that_had_as_little() -> None:
    async def do() -> None:
        line = Line(max_bytes=100_000_000)
        for name, size in (("r0", 1), ("a1", 10_000_000), ("b1", 9_000_000), ("z1", 50_000)):
            await line.come(name, size)
        await line.end()
        assert line.read == ["r0", "z1", "b1", "a1"]

    run(do)


def test_a_newcomer_is_neither_ahead_nor_behind_for_what_was_before() -> None:
    """One that has waited for long gets its turn though there are always others that are new."""

    async def do() -> None:
        line = Line()
        await line.come("a1", takes_s=5)
        await line.come("a2")
        for name in "bcdefghijklmnopqrstuvwxyz":
            await line.come(f"{name}1", takes_s=2)
            await line.come(f"{name}2", takes_s=2)
            await line.serve()
        await line.end()
        assert line.read.index("a2") < 20

    run(do)


def test_of_too_many_bytes_the_server_with_the_most_loses_its_last() -> None:
    async def do() -> None:
        line = Line(max_bytes=100)
        await line.come("r0", 5_000)  # it is read at once, and does not wait
        for name in ("a1", "a2", "b1", "b2"):
            await line.come(name, 25)
        assert line.lost == []
        await line.come("c1", 10)
        await line.come("c2", 10)
        assert line.lost == ["b2"]
        await line.come("a3", 30)
        assert line.lost == ["b2", "a3"]
        await line.come("d1", 200)
        assert line.lost == ["b2", "a3", "d1"]
        await line.end()
        assert sorted(line.read) == ["a1", "a2", "b1", "c1", "c2", "r0"]

    run(do)


def test_twelve_servers_with_large_documents_leave_room_for_small_ones() -> None:
    async def do() -> None:
        line = Line(max_bytes=64)
        for letter in "abcdefghijkl":
            await line.come(f"{letter}1", 10, takes_s=20)
        for number in range(30):
            await line.come(f"{'uvwxyz'[number % 6]}{number}", 1)
        await line.end()
        assert len([name for name in line.read if name[0] in "uvwxyz"]) == 30
        assert len(line.lost) == 12 - 1 - 3

    run(do)


def test_who_stops_waiting_holds_nobody_up() -> None:
    async def do() -> None:
        line = Line()
        for name in ("a1", "b1", "c1", "d1"):
            await line.come(name)
        line.tasks[2].cancel()
        await asyncio.sleep(0)
        await line.end()
        assert line.read == ["a1", "b1", "d1"]
        line = Line()
        for name in ("a1", "b1", "c1"):
            await line.come(name)
        line.served.release()
        while line.waiting.size == 2:
            await asyncio.sleep(0)
        line.tasks[1].cancel()  # its turn has just come
        await line.end()
        assert line.read == ["a1", "c1"]

    run(do)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 60), st.booleans()), max_size=30))
def test_each_document_is_read_once_or_has_no_room(
    coming: list[tuple[str, int, bool]],
) -> None:
    async def do() -> None:
        line = Line(max_bytes=100)
        for number, (server, size, slow) in enumerate(coming):
            await line.come(f"{server}{number}", size, takes_s=20 if slow else 0)
            assert line.waiting.size <= 100
        await line.end()
        names = sorted(f"{server}{number}" for number, (server, _, _) in enumerate(coming))
        assert sorted(line.read + line.lost) == names

    run(do)
