"""The thread between Redis and the frontier: pushes in, items out. Whatever Redis does, neither
event loop nor keeper waits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from redis.exceptions import RedisError

from crawlproj.errors import DatabaseError
from crawlproj.frontier.base import Batch, Frontier, NewUrl
from crawlproj.scheduling.redis.connection import RedisConnection
from crawlproj.scheduling.redis.push_queue import PushBatch, PushQueue

log = logging.getLogger(__name__)

POLL_S = 0.2
RETRY_S = 1.0
SWEEP_S = 10.0
BATCH = 200
ITEMS = 10_000
"""So many items wait for a Redis that is away."""
SNAPSHOT = timedelta(hours=1)
"""How old a snapshot may be that Redis starts from; by default it saves at least that often."""
STOP_TIMEOUT_S = 5.0
NONSENSE = ("22", "23", "54")
"""Classes of SQLSTATE: bad data, broken constraint, too big."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """What came of a batch of pushes. `seen`: those that were visited after they had been pushed,
    so not again.
    """

    taken: int = 0
    bad: int = 0
    seen: int = 0


class RedisThread(threading.Thread):
    """`read` and `came` are called by `on_loop`, which runs a call on the event loop and waits for
    it; `tell` says to all workers that something was pushed. `busy`: there is, or may be, something
    in Redis that the frontier does not have yet.
    """

    def __init__(
        self,
        connection: RedisConnection,
        push_queue: PushQueue,
        frontier: Frontier,
        read: Callable[[Sequence[bytes | str]], tuple[list[NewUrl], int]],
        came: Callable[[PushResult], None],
        tell: Callable[[], None],
        on_loop: Callable[[Callable[[], object]], Any],
    ) -> None:
        super().__init__(name="bus", daemon=True)
        self._connection = connection
        self._push_queue = push_queue
        self._frontier = frontier
        self._read = read
        self._came = came
        self._tell = tell
        self._on_loop = on_loop
        self._items: deque[tuple[str, str | bytes]] = deque()
        self._end = threading.Event()
        self._swept_at = -SWEEP_S
        self._in_hand: PushBatch | None = None
        self.busy = True
        self.sent = self.lost = 0

    def send_item(self, key: str, data: str | bytes) -> None:
        """Send an item, soon. Too many that Redis does not take are lost, and counted."""
        if len(self._items) >= ITEMS:
            if not self.lost:
                log.warning(
                    "%d items wait for Redis at %s: those that follow are not sent",
                    ITEMS,
                    self._connection.location,
                )
            self.lost += 1
        else:
            self._items.append((key, data))

    def flush_and_stop(self) -> None:
        """Send what is there, end. What can't be sent in a few seconds is lost, and counted."""
        self._end.set()
        self.join(STOP_TIMEOUT_S)
        if self._items:
            self.lost += len(self._items)
            log.warning(
                "%d items were not sent to Redis at %s", len(self._items), self._connection.location
            )

    def run(self) -> None:
        while not self._end.is_set():
            self._end.wait(self._safely(self._turn))
        self._safely(self._send_all)

    def _safely(self, work: Callable[[], bool]) -> float:
        """Seconds until the next turn. Nothing that goes wrong here ends the crawl."""
        try:
            more = work()
            self._connection.note_success()
            return 0.0 if more else POLL_S
        except (RedisError, OSError) as error:
            self._connection.note_failure(error)
        except DatabaseError as error:
            log.warning("Pushes wait in Redis, the database does not answer: %s", error)
        except Exception:
            log.exception("The bus failed; it goes on")
            self._in_hand = None
        self.busy = False
        return RETRY_S

    def _turn(self) -> bool:
        self._send_all()
        if time.monotonic() - self._swept_at > SWEEP_S:
            for taken in self._push_queue.abandoned_batches():
                self._store(taken)
            self._swept_at = time.monotonic()
        self.busy = True
        self._in_hand = self._in_hand or self._push_queue.take_batch(BATCH)
        found = self._in_hand is not None
        if self._in_hand is not None:
            self._store(self._in_hand)
            self._in_hand = None
        self.busy = found or self._push_queue.under_way
        return found

    def _send_all(self) -> bool:
        while some := list(islice(self._items, BATCH)):
            pipe = self._connection.client.pipeline(transaction=False)
            for key, data in some:
                pipe.rpush(key, data)
            pipe.execute()
            for _ in some:
                self._items.popleft()
            self.sent += len(some)
        return False

    def _add(self, rows: Sequence[NewUrl], since: datetime) -> int:
        """How many could not be stored. One that the database refuses for what is in it must not
        hold up the others for ever. A visit may end at this very moment: the frontier looks at
        `since` again when it holds the rows.
        """
        try:
            self._frontier.commit(Batch(urls=rows, since=since))
        except DatabaseError as error:
            if not (error.sqlstate or "").startswith(NONSENSE):
                raise
            if len(rows) > 1:
                return sum(self._add([row], since) for row in rows)
            log.warning("This push can't be stored, left out: %s: %s", rows[0].url[:200], error)
            return 1
        return 0

    def _rows(self, taken: PushBatch) -> tuple[list[NewUrl], int]:
        found: tuple[list[NewUrl], int] = self._on_loop(lambda: self._read(taken.payloads))
        return found

    def _store(self, taken: PushBatch) -> None:
        """Into the frontier, then out of Redis. If we die in between, another worker finds it, and
        knows by the visits since then what need not be fetched again; what waits is not added twice
        anyway.
        """
        rows, bad = self._rows(taken)
        known = self._frontier.get_urls([row.id for row in rows])
        since = self._frontier.now() - (
            SNAPSHOT if taken.doubtful else timedelta(seconds=time.monotonic() - taken.at)
        )
        seen = {
            key
            for key, found in known.items()
            if found.last_visit is not None and found.last_visit >= since
        }
        fresh = [
            replace(row, depth=known[row.id].depth) if row.id in known else row
            for row in rows
            if row.id not in seen
        ]
        if fresh:
            bad += self._add(fresh, since)
            self._tell()
        self._on_loop(
            lambda: self._came(PushResult(len(taken.payloads), bad, len(rows) - len(fresh)))
        )
        self._push_queue.delete_batch(taken)
