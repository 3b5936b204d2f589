"""Room for big bodies: only so much of them is in memory at a time, whoever sends them; small ones
never wait.

A body takes room when it has grown big, on the wire or when it is decompressed, or when very many
links were found in it, and keeps it until its visit has ended, and these are stored. As long as
there is no room no more of it is read, so that its server waits, and nobody else. Who waits for
room gets it in the order of the time that the pages of its server have taken to read.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from crawlproj.fetch.pages import RefusedError
from crawlproj.frontier.base import Ticket

UNIT: Final = 1_000_000
"""Room is counted in so many bytes."""
ROOM: Final = 22
"""Units for all; a body may take DOWNLOAD_MAXSIZE bytes, and as many decompressed. A long
sitemap takes more than there is, as the favoured one.
"""
WAIT_S: Final = 30.0
"""A body that has found no room for so long is fetched another time."""
MANY_LINKS: Final = 2_000
"""A page with more needs room, however short it is."""
LINKS_BYTES: Final = 10_000_000
"""The room of such a page."""
MAX_REMEMBERED: Final = 10_000
"""Servers whose time is remembered."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """One that waits for more units; `turn` is done when it has them."""

    id: int
    server: int
    units: int
    turn: asyncio.Future[None]


class BigBodies:
    """Lives on the event loop.

    One of those that have room already may always take more (`_favoured`), so that not all of them
    wait for each other.
    """

    def __init__(self, room: int = ROOM, wait_s: float = WAIT_S) -> None:
        self._room = room
        self._wait_s = wait_s
        self._units: dict[int, int] = {}
        self._used = 0
        self._favoured: int | None = None
        self._waiting: list[_Waiting] = []
        self._used_s: dict[int, float] = {}
        self.stopped = False
        self.left = 0
        """How many have left since this was last set to 0."""

    async def enter(self, ticket: Ticket, size: int) -> None:
        """Wait until a ticket has room for so many bytes; RefusedError if there is none in time, or
        if the crawl ends.
        """
        units = -(-size // UNIT) - self._units.get(ticket.id, 0)
        if units <= 0:
            return
        if self.stopped:
            raise RefusedError("shutdown")
        may_pass = not self._waiting or ticket.id in self._units
        if may_pass and self._fits(ticket.id, units):
            self._take(ticket.id, units)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(ticket.id, ticket.server, units, turn)
        self._waiting.append(waiting)
        try:
            await asyncio.wait_for(asyncio.shield(turn), self._wait_s)
        except TimeoutError:
            self._give_up(waiting)
            raise RefusedError("no room: too many big pages wait") from None
        except asyncio.CancelledError:
            self._give_up(waiting)
            raise

    def _fits(self, id_: int, units: int) -> bool:
        if self._used + units <= self._room or self._used == 0 or self._favoured == id_:
            return True
        if self._favoured is None and id_ in self._units:
            self._favoured = id_
            return True
        return False

    def _take(self, id_: int, units: int) -> None:
        self._units[id_] = self._units.get(id_, 0) + units
        self._used += units

    def _give_up(self, waiting: _Waiting) -> None:
        """Its visit ends soon, and then it leaves."""
        if waiting in self._waiting:
            self._waiting.remove(waiting)

    def leave(self, *ids: int) -> None:
        """Give the room of these tickets back, if they have any."""
        for id_ in self._units.keys() & ids:
            self._used -= self._units.pop(id_)
            self.left += 1
            if self._favoured == id_:
                self._favoured = None
            self._start_next()

    def _start_next(self) -> None:
        by_time = sorted(self._waiting, key=lambda one: self._used_s.get(one.server, 0.0))
        for waiting in by_time:
            if self._fits(waiting.id, waiting.units):
                self._waiting.remove(waiting)
                self._take(waiting.id, waiting.units)
                waiting.turn.set_result(None)

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
        for one in waiting:
            one.turn.set_exception(RefusedError("shutdown"))
