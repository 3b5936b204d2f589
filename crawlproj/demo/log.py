"""What the demo web has seen: a record per request, in memory and, if wanted, as JSON lines."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

PENDING_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """One request, seen from the server.

    `started`: the last byte of its head had arrived; `ended`: the last byte of the response was
    given to the kernel, or the connection was gone. Both on this machine's monotonic clock,
    `started_at` and `ended_at` in unix time. `status` 0: no valid status line was sent.
    `retry_after_s` is the Retry-After of the response.
    """

    started: float
    ended: float
    started_at: float
    ended_at: float
    connection: int
    peer: str
    local: str
    host: str
    method: str
    path: str
    status: int
    bytes_sent: int
    user_agent: str = ""
    if_none_match: str = ""
    if_modified_since: str = ""
    accept_encoding: str = ""
    cookie: str = ""
    retry_after_s: float = 0.0
    fault: str = ""


class AccessLog:
    """An append-only log, safe to use from several threads.

    With a path, each record is in the file when `add` returns. A client has a response before the
    server has logged it. So the server calls `begin_response` before it sends, and `records` waits
    for what has begun: whoever has read a response finds it in the log.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._records: list[AccessRecord] = []
        self._lock = threading.Condition()
        self.pending = 0
        self._file: TextIO | None = None
        if path:
            self._file = path.open("a", encoding="utf-8", buffering=1)

    def begin_response(self) -> None:
        """Count a response that is about to be sent; `add(..., begun=True)` follows."""
        with self._lock:
            self.pending += 1

    def add(self, record: AccessRecord, *, begun: bool = False) -> None:
        line = ""
        if self._file:
            line = json.dumps(asdict(record)) + "\n"
        with self._lock:
            self._records.append(record)
            if self._file:
                self._file.write(line)
            if begun:
                self.pending -= 1
            self._lock.notify_all()

    def records(self) -> tuple[AccessRecord, ...]:
        """All records so far, in the order in which the responses ended; it waits a little for
        pending ones.
        """
        with self._lock:
            self._lock.wait_for(lambda: not self.pending, PENDING_TIMEOUT_S)
            return tuple(self._records)

    def clear(self) -> None:
        """Forget what is in memory; the file stays."""
        with self._lock:
            self._records.clear()

    def close(self) -> None:
        with self._lock:
            if self._file:
                self._file.close()
                self._file = None

    def __enter__(self) -> AccessLog:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_access_log(path: Path) -> Iterator[AccessRecord]:
    """The records of a log file; a last line that is still being written is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        yield from (AccessRecord(**json.loads(line)) for line in lines if line.endswith("\n"))
