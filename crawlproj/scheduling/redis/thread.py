"""The thread between Redis and the frontier: pushes come in, items go out.

Whatever Redis does, neither the event loop nor the database thread waits for it.
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
from crawlproj.formatting import printable
from crawlproj.frontier.base import Batch, Frontier, NewUrl
from crawlproj.frontier.batches import blames_content, halve_batch, refuse_giants, split_batch
from crawlproj.scheduling.redis.connection import RedisConnection
from crawlproj.scheduling.redis.push_queue import PushBatch, PushQueue

log = logging.getLogger(__name__)

POLL_S = 0.2
RETRY_S = 1.0
SWEEP_S = 10.0
BATCH = 200
ITEMS = 10_000
"""How many items wait for a Redis that does not answer; more are lost."""
SNAPSHOT = timedelta(hours=1)
"""How old a snapshot may be that Redis starts from; by default it saves at least that often."""
STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class PushResult:
    """What became of a batch of pushes.

    `seen`: those that were visited after they had been pushed, and need not be again.
    """

    taken: int = 0
    bad: int = 0
    seen: int = 0


class RedisThread(threading.Thread):
    """The thread. `busy`: there is, or may be, something in Redis that the frontier has not yet.

    `read` parses pushes into rows, and says how many make no sense; `came` counts what became of
    them. Both are called by `on_loop`, which runs a call on the event loop and waits for it. `tell`
    notifies all workers that something was pushed.
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
        self._count_pushes = came
        self._notify_workers = tell
        self._on_loop = on_loop
        self._items: deque[tuple[str, str | bytes]] = deque()
        self._stopping = threading.Event()
        self._swept_at = -SWEEP_S
        self._in_hand: PushBatch | None = None
        """Taken, but not stored yet: the database did not answer."""
        self.busy = True
        self.sent = 0
        self.lost = 0

    def send_item(self, key: str, data: str | bytes) -> None:
        """Send an item soon. If too many wait for Redis, it is lost, and counted."""
        if len(self._items) < ITEMS:
            self._items.append((key, data))
            return
        if not self.lost:
            log.warning(
                "%d items wait for Redis at %s: those that follow are not sent",
                ITEMS,
                self._connection.location,
            )
        self.lost += 1

    def flush_and_stop(self) -> None:
        """Send what waits and end. What can't be sent in a few seconds is lost, and counted."""
        self._stopping.set()
        self.join(STOP_TIMEOUT_S)
        if self._items:
            self.lost += len(self._items)
            log.warning(
                "%d items were not sent to Redis at %s", len(self._items), self._connection.location
            )

    def run(self) -> None:
        while not self._stopping.is_set():
            pause_s = self._safely(self._turn)
            self._stopping.wait(pause_s)
        self._safely(self._send_all)

    def _safely(self, work: Callable[[], bool]) -> float:
        """Work, and give the seconds until the next turn. No error here ends the crawl."""
        try:
            more = work()
            self._connection.note_success()
            if more:
                return 0.0
            return POLL_S
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
        """Send items, store abandoned batches and a new one; whether there may be more."""
        self._send_all()
        if time.monotonic() - self._swept_at > SWEEP_S:
            for batch in self._push_queue.abandoned_batches():
                self._store(batch)
            self._swept_at = time.monotonic()
        self.busy = True
        if self._in_hand is None:
            self._in_hand = self._push_queue.take_batch(BATCH)
        if self._in_hand is None:
            self.busy = self._push_queue.under_way
            return False
        self._store(self._in_hand)
        self._in_hand = None
        return True

    def _send_all(self) -> bool:
        """Send all items; False, since none is left."""
        while True:
            batch = list(islice(self._items, BATCH))
            if not batch:
                return False
            pipe = self._connection.client.pipeline(transaction=False)
            for key, data in batch:
                pipe.rpush(key, data)
            pipe.execute()
            for _ in batch:
                self._items.popleft()
            self.sent += len(batch)

    def _add(self, rows: Sequence[NewUrl], since: datetime) -> int:
        """Commit rows to the frontier, and give how many could not be stored.

        One that the database refuses for what is in it must not hold up the others for ever. A
        visit may end at this very moment: the frontier looks at `since` again when it has locked
        the rows.
        """
        refused = 0
        pieces = split_batch(Batch(urls=rows, since=since))
        while pieces:
            piece = pieces.pop(0)
            try:
                refuse_giants(piece)
                self._frontier.commit(piece)
            except Exception as error:
                if not blames_content(error):
                    raise
                if len(piece.urls) > 1:
                    pieces[:0] = halve_batch(piece)
                    continue
                self._frontier.try_to_write()
                url = piece.urls[0].url[:200]
                why = printable(str(error))
                log.warning("This push can't be stored, left out: %s: %s", url, why)
                refused += 1
        return refused

    def _rows(self, batch: PushBatch) -> tuple[list[NewUrl], int]:
        """Rows of a batch, and how many pushes make no sense."""
        parsed: tuple[list[NewUrl], int] = self._on_loop(lambda: self._read(batch.payloads))
        return parsed

    def _store(self, batch: PushBatch) -> None:
        """Commit a batch to the frontier, then remove it from Redis.

        If we die in between, another worker finds it, and knows by the visits since then what need
        not be fetched again; what waits is not added twice anyway.
        """
        rows, bad = self._rows(batch)
        known = self._frontier.get_urls([row.id for row in rows])
        now = self._frontier.now()
        age = SNAPSHOT
        if not batch.doubtful:
            age = timedelta(seconds=time.monotonic() - batch.at)
        since = now - age
        unvisited = []
        for row in rows:
            url = known.get(row.id)
            if url is None:
                unvisited.append(row)
            elif url.last_visit is None or url.last_visit < since:
                unvisited.append(replace(row, depth=url.depth))
        if unvisited:
            bad += self._add(unvisited, since)
            self._notify_workers()
        seen = len(rows) - len(unvisited)
        result = PushResult(len(batch.payloads), bad, seen)
        self._on_loop(lambda: self._count_pushes(result))
        self._push_queue.delete_batch(batch)
