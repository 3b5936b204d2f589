"""Documents that wait for the reader process: whose turn is next, and which have no room.

One process reads for all servers, and a document may take it any time up to its timeout. So the
next one is of the server that has had the least of the reader's time, with what its document may
take by its size; of several that have had equally much it is the one that came first. A server
that begins to wait starts from an equal share of the time so far: it neither owes nor is owed
anything, and who waits is not overtaken for ever by servers that are new.

All that wait share one budget of bytes. When it is exceeded, the server with the most bytes loses
its last document, so small ones always have room.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from crawlproj.content.documents.reply import DocumentReadError

BYTES_PER_S = 1_000_000
"""How fast a document is read, roughly: large ones let small ones pass."""
MAX_REMEMBERED = 10_000
"""Servers whose time is remembered."""


@dataclass(eq=False, slots=True)
class _Place:
    """One document that waits. `turn` is done when it is read; it fails if it loses its room."""

    number: int
    size: int
    turn: asyncio.Future[None]


@dataclass(slots=True)
class _WaitingServer:
    """The documents of one server that wait; `used_s`: how much time it has had, or was given for
    a start.
    """

    used_s: float
    places: deque[_Place] = field(default_factory=deque)
    size: int = 0


class WaitingDocuments:
    """The line before the reader. Lives on the event loop."""

    def __init__(self, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._servers: dict[int, _WaitingServer] = {}
        self._used_s: dict[int, float] = {}
        self._share_s = 0.0
        """The time that a server would have had that always waited, if all had had the same."""
        self._is_reading = False
        self._number = 0
        self.size = 0
        """Bytes of all that wait."""

    @asynccontextmanager
    async def turn(self, server: int, size: int) -> AsyncIterator[None]:
        """Wait for the turn of a document, and keep it; DocumentReadError("no_room") if there is
        no room for waiting.
        """
        if self._is_reading:
            await self._wait(server, size)
        else:
            self._is_reading = True
        began_s = self._clock()
        try:
            yield
        finally:
            self._note_time(server, self._clock() - began_s)
            self._start_next()

    async def _wait(self, server: int, size: int) -> None:
        place = self._add(server, size)
        self._make_room()
        try:
            await place.turn
        except asyncio.CancelledError:
            if place.turn.cancelled():
                self._remove(server, place)
            else:
                self._start_next()  # the turn had just come
            raise

    def _add(self, server: int, size: int) -> _Place:
        self._number += 1
        place = _Place(self._number, size, asyncio.get_running_loop().create_future())
        waiting = self._servers.get(server)
        if waiting is None:
            waiting = self._servers[server] = _WaitingServer(self._time_had(server))
        waiting.places.append(place)
        waiting.size += size
        self.size += size
        return place

    def _remove(self, server: int, place: _Place) -> None:
        waiting = self._servers[server]
        waiting.places.remove(place)
        waiting.size -= place.size
        self.size -= place.size
        if not waiting.places:
            del self._servers[server]

    def _make_room(self) -> None:
        """Let the server with the most bytes, or the latest of several, lose its last document."""
        while self.size > self._max_bytes:
            server, waiting = max(
                self._servers.items(), key=lambda item: (item[1].size, item[1].places[-1].number)
            )
            place = waiting.places[-1]
            self._remove(server, place)
            place.turn.set_exception(DocumentReadError("no_room"))

    def _start_next(self) -> None:
        self._is_reading = bool(self._servers)
        if not self._servers:
            return
        server, waiting = min(self._servers.items(), key=_expected_end)
        place = waiting.places[0]
        self._remove(server, place)
        place.turn.set_result(None)

    def _time_had(self, server: int) -> float:
        return max(self._used_s.get(server, 0.0), self._share_s)

    def _note_time(self, server: int, taken_s: float) -> None:
        """A document of this server took the reader so long, while others waited."""
        used_s = self._time_had(server) + taken_s
        waiting = self._servers.get(server)
        if waiting is not None:
            used_s = waiting.used_s = waiting.used_s + taken_s
        self._used_s[server] = used_s
        self._share_s += taken_s / len(self._servers.keys() | {server})
        if len(self._used_s) > MAX_REMEMBERED:
            ahead = {key: used for key, used in self._used_s.items() if used > self._share_s}
            self._used_s = ahead if len(ahead) <= MAX_REMEMBERED else {}


def _expected_end(item: tuple[int, _WaitingServer]) -> tuple[float, int]:
    """How much time a server will have had after its next document; and when that came."""
    waiting = item[1]
    place = waiting.places[0]
    return waiting.used_s + place.size / BYTES_PER_S, place.number
