"""What waits to be written, and who waits for it: a queue between an event loop, which must never
wait, and a thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

from crawlproj.archive.exchange import Exchange, Original, Place
from crawlproj.errors import ArchiveError

WAKE_BYTES = 1_000_000
WAKE_S = 1.0
"""The thread is woken for so much, after so long, or for a flush: two threads that take turns at
every page cost more than the writing does.
"""


@dataclass(slots=True, eq=False)
class Receipt:
    """`place` is there when the record is on disk; `error` if this exchange can't be written at
    all.
    """

    place: Place | None = None
    error: Exception | None = None
    turn: int = -1
    """For who put it: before which closing of a file."""


@dataclass(slots=True, eq=False)
class Job:
    exchange: Exchange
    original: Original | None
    receipt: Receipt


class Turn(Future[None]):
    """A flush that closes the file, too."""


Item = Job | Future[None]


class Inbox:
    """Jobs and flushes in the order in which they came. It is bounded by those who ask if it is
    `full` before they fetch.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._wake_bytes = min(WAKE_BYTES, max_bytes // 2)
        self._unheard = 0
        self._items: deque[Item] = deque()
        self._rooms: list[Future[None]] = []
        self._changed = threading.Condition()
        self._asked = False
        self.closed = False

    @property
    def full(self) -> bool:
        return self._bytes >= self._max_bytes

    def put(self, job: Job) -> None:
        with self._changed:
            if self.closed:
                raise ArchiveError("The archive is closed")
            self._items.append(job)
            self._bytes += job.exchange.size
            self._unheard += job.exchange.size
            if self._unheard >= self._wake_bytes:
                self._unheard = 0
                self._changed.notify()

    def flush(self, close: bool = False) -> Future[None]:
        future: Future[None] = Turn() if close else Future()
        with self._changed:
            if not self.closed:
                self._items.append(future)
                self._asked = True
                self._changed.notify()
                return future
        settle(future, ArchiveError("The archive is closed"))
        return future

    def room(self) -> Future[None]:
        future: Future[None] = Future()
        with self._changed:
            if self.full and not self.closed:
                self._rooms.append(future)
                return future
        settle(future)
        return future

    def close(self) -> None:
        """No more is taken; what is there is still given out."""
        with self._changed:
            self.closed = True
            self._changed.notify()

    # for the thread that empties it

    def take(self, timeout_s: float | None) -> deque[Item]:
        """All that has come; nothing if that takes longer (than a second at most), or if it is
        closed and empty.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._items or self.closed,
                WAKE_S if timeout_s is None else min(timeout_s, WAKE_S),
            )
            taken = self._items
            self._items = deque()
            return taken

    def back(self, items: Iterable[Item]) -> None:
        """What could not be done comes first again, in its order."""
        with self._changed:
            self._items.extendleft(reversed(list(items)))

    def done(self, jobs: Iterable[Job]) -> None:
        with self._changed:
            self._bytes -= sum(job.exchange.size for job in jobs)
            rooms, self._rooms = ([], self._rooms) if self.full else (self._rooms, [])
        for future in rooms:
            settle(future)

    def refuse(self, text: str) -> None:
        """All who wait for a flush hear why there is none."""
        with self._changed:
            futures = [item for item in self._items if isinstance(item, Future)]
            self._items = deque(item for item in self._items if not isinstance(item, Future))
            if self.closed:
                futures = futures + self._rooms
                self._rooms = []
            self._asked = False
        for future in futures:
            settle(future, ArchiveError(text))

    def rest(self, seconds: float) -> None:
        """Until somebody asks for a flush, or it is closed, or the time has passed."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self.closed, seconds)


def settle(future: Future[None], error: Exception | None = None) -> None:
    """Unless it is settled, or who asked has given up."""
    if future.done() or not future.set_running_or_notify_cancel():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
