"""The queue between those who put exchanges (an event loop, which must never wait) and the thread
that writes them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

from crawlproj.archive.exchange import Exchange, LaterNote, Original, RecordLocation
from crawlproj.errors import ArchiveError

WAKE_BYTES = 1_000_000
WAKE_S = 1.0
"""The thread is woken for so many bytes, after so long, or for a flush: two threads that switch at
every page cost more than the writing does.
"""


@dataclass(slots=True, eq=False)
class Receipt:
    """What became of an exchange: `record_location` is set when its records are on disk, `error` if
    they can't be written at all.
    """

    record_location: RecordLocation | None = None
    error: Exception | None = None
    rotation: int = -1
    """For the caller's use: how many files had been closed when it was put."""


@dataclass(slots=True, eq=False)
class WriteJob:
    exchange: Exchange | LaterNote
    original: Original | None
    receipt: Receipt


class RotationFuture(Future[None]):
    """The future of a flush that closes the file, too."""


QueueItem = WriteJob | Future[None]


class WriteQueue:
    """Jobs and flushes in the order in which they came. It takes all that is put; callers keep it
    bounded by asking `is_full` before they fetch.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._wake_bytes = min(WAKE_BYTES, max_bytes // 2)
        self._silent_bytes = 0
        """Bytes that were put since the thread was last notified."""
        self._items: deque[QueueItem] = deque()
        self._room_futures: list[Future[None]] = []
        self._changed = threading.Condition()
        self._has_flush = False
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
            self._silent_bytes += job.exchange.size
            if self._silent_bytes >= self._wake_bytes:
                self._silent_bytes = 0
                self._changed.notify()

    def flush(self, close: bool = False) -> Future[None]:
        """A future that is done when all that was put before is on disk."""
        future: Future[None] = RotationFuture() if close else Future()
        with self._changed:
            if not self.closed:
                self._items.append(future)
                self._has_flush = True
                self._changed.notify()
                return future
        settle_future(future, ArchiveError("The archive is closed"))
        return future

    def wait_for_room(self) -> Future[None]:
        """A future that is done when the queue is not full."""
        future: Future[None] = Future()
        with self._changed:
            if self.is_full and not self.closed:
                self._room_futures.append(future)
                return future
        settle_future(future)
        return future

    def close(self) -> None:
        """Refuse new jobs; those in the queue can still be taken."""
        with self._changed:
            self.closed = True
            self._changed.notify()

    # for the thread that empties it

    def take_all(self, timeout_s: float | None) -> deque[QueueItem]:
        """All items, as soon as there are any or the queue is closed.

        Nothing after `timeout_s`, or after WAKE_S at the latest.
        """
        if timeout_s is None:
            timeout_s = WAKE_S
        with self._changed:
            self._changed.wait_for(lambda: self._items or self.closed, min(timeout_s, WAKE_S))
            taken = self._items
            self._items = deque()
            return taken

    def put_back(self, items: Iterable[QueueItem]) -> None:
        """Put items that could not be done in front again, in their order."""
        with self._changed:
            self._items.extendleft(reversed(list(items)))

    def mark_done(self, jobs: Iterable[WriteJob]) -> None:
        """Make room for others, when jobs are written or failed."""
        futures = list[Future[None]]()
        with self._changed:
            self._bytes -= sum(job.exchange.size for job in jobs)
            if not self.is_full:
                futures = self._room_futures
                self._room_futures = []
        for future in futures:
            settle_future(future)

    def fail_flushes(self, text: str) -> None:
        """Fail all flushes in the queue; if it is closed, those who wait for room, too."""
        with self._changed:
            futures = [item for item in self._items if isinstance(item, Future)]
            self._items = deque(item for item in self._items if not isinstance(item, Future))
            if self.closed:
                futures = futures + self._room_futures
                self._room_futures = []
            self._has_flush = False
        for future in futures:
            settle_future(future, ArchiveError(text))

    def wait_for_flush(self, seconds: float) -> None:
        """Wait until there is a flush, or the queue is closed, or the time has passed."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_flush or self.closed, seconds)


def settle_future(future: Future[None], error: Exception | None = None) -> None:
    """Give a future its result or error, unless it has one or was cancelled."""
    if future.done() or not future.set_running_or_notify_cancel():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
