"""What waits to be written, and who waits for it: a queue between an event loop, which must never
wait, and a thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

from crawlproj.archive.exchange import Exchange, Original, RecordLocation
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

    record_location: RecordLocation | None = None
    error: Exception | None = None
    rotation: int = -1
    """For who put it: before which closing of a file."""


@dataclass(slots=True, eq=False)
class WriteJob:
    exchange: Exchange
    original: Original | None
    receipt: Receipt


class RotationFuture(Future[None]):
    """A flush that closes the file, too."""


QueueItem = WriteJob | Future[None]


class WriteQueue:
    """Jobs and flushes in the order in which they came. It is bounded by those who ask if it is
    `full` before they fetch.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._wake_bytes = min(WAKE_BYTES, max_bytes // 2)
        self._unheard = 0
        self._items: deque[QueueItem] = deque()
        self._rooms: list[Future[None]] = []
        self._changed = threading.Condition()
        self._asked = False
        self.closed = False

    @property
    def is_full(self) -> bool:
        return self._bytes >= self._max_bytes

    def put(self, job: WriteJob) -> None:
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
        future: Future[None] = RotationFuture() if close else Future()
        with self._changed:
            if not self.closed:
                self._items.append(future)
                self._asked = True
                self._changed.notify()
                return future
        settle_future(future, ArchiveError("The archive is closed"))
        return future

    def wait_for_room(self) -> Future[None]:
        future: Future[None] = Future()
        with self._changed:
            if self.is_full and not self.closed:
                self._rooms.append(future)
                return future
        settle_future(future)
        return future

    def close(self) -> None:
        """No more is taken; what is there is still given out."""
        with self._changed:
            self.closed = True
            self._changed.notify()

    # for the thread that empties it

    def take_all(self, timeout_s: float | None) -> deque[QueueItem]:
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

    def put_back(self, items: Iterable[QueueItem]) -> None:
        """What could not be done comes first again, in its order."""
        with self._changed:
            self._items.extendleft(reversed(list(items)))

    def mark_done(self, jobs: Iterable[WriteJob]) -> None:
        with self._changed:
            self._bytes -= sum(job.exchange.size for job in jobs)
            rooms, self._rooms = ([], self._rooms) if self.is_full else (self._rooms, [])
        for future in rooms:
            settle_future(future)

    def fail_flushes(self, text: str) -> None:
        """All who wait for a flush hear why there is none."""
        with self._changed:
            futures = [item for item in self._items if isinstance(item, Future)]
            self._items = deque(item for item in self._items if not isinstance(item, Future))
            if self.closed:
                futures = futures + self._rooms
                self._rooms = []
            self._asked = False
        for future in futures:
            settle_future(future, ArchiveError(text))

    def wait_for_flush(self, seconds: float) -> None:
        """Until somebody asks for a flush, or it is closed, or the time has passed."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self.closed, seconds)


def settle_future(future: Future[None], error: Exception | None = None) -> None:
    """Unless it is settled, or who asked has given up."""
    if future.done() or not future.set_running_or_notify_cancel():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
