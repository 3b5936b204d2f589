"""Room for big bodies: only a few are in memory at a time, whoever sends them; small ones never
wait.

A body takes its place when it has grown big, on the wire or when it is decompressed, or when very
many links were found in it, and keeps it until its visit has ended, and these are stored. As long
as there is no place no more of it is read, so that its server waits, and nobody else. The next
place goes to the server whose pages have taken the least time to read.
"""

from __future__ import annotations

import asyncio
from typing import Final

from crawlproj.fetch.pages import RefusedError
from crawlproj.frontier.base import Ticket

PLACES: Final = 3
"""Each may hold DOWNLOAD_MAXSIZE bytes, and as many decompressed."""
WAIT_S: Final = 30.0
"""A body that has found no place for so long is fetched another time."""
MANY_LINKS: Final = 2_000
"""A page with more needs a place, however short it is."""
MAX_REMEMBERED: Final = 10_000
"""Servers whose time is remembered."""


class BigBodies:
    """Lives on the event loop."""

    def __init__(self, places: int = PLACES, wait_s: float = WAIT_S) -> None:
        self._free = places
        self._wait_s = wait_s
        self._holders: set[int] = set()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._used_s: dict[int, float] = {}
        self.stopped = False
        self.left = 0
        """How many have left since this was last set to 0."""

    async def enter(self, ticket: Ticket) -> None:
        """Wait for a place, unless this ticket has one; RefusedError if there is none in time, or
        if the crawl ends.
        """
        if ticket.id in self._holders:
            return
        if self.stopped:
            raise RefusedError("shutdown")
        if self._free:
            self._free -= 1
        else:
            await self._wait(ticket.server)
        self._holders.add(ticket.id)

    async def _wait(self, server: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((server, turn))
        try:
            await asyncio.wait_for(asyncio.shield(turn), self._wait_s)
        except TimeoutError:
            self._give_up(turn)
            raise RefusedError("no room: too many big pages wait") from None
        except asyncio.CancelledError:
            self._give_up(turn)
            raise

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self._free += 1  # the turn had just come
            self._start_next()
        self._waiting = [place for place in self._waiting if place[1] is not turn]

    def leave(self, *ids: int) -> None:
        """Give the places of these tickets back, if they have any."""
        for id_ in self._holders.intersection(ids):
            self._holders.discard(id_)
            self._free += 1
            self.left += 1
            self._start_next()

    def _start_next(self) -> None:
        if not self._free or not self._waiting:
            return
        place = min(self._waiting, key=lambda waiting: self._used_s.get(waiting[0], 0.0))
        self._waiting.remove(place)
        self._free -= 1
        place[1].set_result(None)

    def note_time(self, server: int, seconds: float) -> None:
        """A big page of this server took so long to read."""
        if server not in self._used_s and len(self._used_s) >= MAX_REMEMBERED:
            self._used_s.clear()
        self._used_s[server] = self._used_s.get(server, 0.0) + seconds

    def stop(self) -> None:
        """Let nobody wait any more: the crawl ends."""
        self.stopped = True
        waiting = self._waiting
        self._waiting = []
        for _, turn in waiting:
            turn.set_exception(RefusedError("shutdown"))
