"""One line of JSON per request or refusal: for people who search, and for the auditor, who checks
them against the rules.

A worker writes a file of its own, `requests-<worker>.jsonl`. The first line of a run, and of each
part when the file grows too big, says the rules in force; each other line is one exchange, or one
URL that was not asked and why. The last line says that this is the end: a file without it was left
by a worker that was killed, and lacks what was under way then.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crawlproj.config import parse_duration, parse_networks
from crawlproj.items import Page, RobotsTicket
from crawlproj.private_files import make_private_folder, open_private
from crawlproj.scheduling.worker import file_name_of
from crawlproj.urls.canonical import origin_of

log = logging.getLogger(__name__)

FLUSH_S = 1.0
"""So long a line waits at most until it is written."""
PARTS = 10
"""So many parts of a run are kept, the oldest goes first; and so many times the size of a part of
all runs together.
"""
AT_ONCE = 1000
"""So many lines are written as soon as may be."""
YOUNG_S = 86_400.0
"""Files that were changed in this time are never deleted."""
RULES = ("POLITENESS_", "ROBOTS_")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def rules_in_force(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings that are rules of politeness; durations in seconds."""
    found: dict[str, Any] = {}
    for name in sorted(name for name in settings if name.startswith(RULES)):
        value = settings.get(name)
        if name == "POLITENESS_SHARED_NETWORKS":
            found[name] = list(parse_networks(value))
            continue
        try:
            found[name] = parse_duration(value).total_seconds()
        except ValueError:
            found[name] = value
            if not isinstance(value, str | bool | None):
                found[name] = list(value)
    return found


def log_line(
    page: Page, worker: str, crawl: str, address: str, delay_s: float, robots_at: datetime | None
) -> dict[str, Any]:
    """The line of a page that ends. `delay_s` is the host's delay in force, `robots_at` when its
    robots.txt was read.
    """
    ticket = page.ticket
    started_s = page.started_s
    ended_s = page.ended_s
    at = page.at
    if started_s is not None:
        at = datetime.fromtimestamp(started_s, UTC)
    line: dict[str, Any] = {
        "time": at.isoformat(timespec="milliseconds"),
        "worker": worker,
        "crawl": crawl,
        "url": page.url,
        "status": page.status,
        "reason": page.reason,
        "ip": page.address or address,
        "host": ticket.host,
        "server": ticket.server,
        "epoch": ticket.epoch,
        "started": _rounded(started_s),
        "ended": _rounded(ended_s),
        "ms": round(page.elapsed_s * 1000, 1),
        "bytes": len(page.body),
        "delay_s": delay_s,
    }
    if page.answered is not None and page.answered != page.status:
        line["answered"] = page.answered
    if page.took_s is not None:
        line["took_s"] = round(page.took_s, 3)
    if page.retry_after_s is not None:
        line["retry_after_s"] = page.retry_after_s
    if isinstance(ticket, RobotsTicket):
        line["kind"] = "robots"
        line["lane"] = "robots"
        line["origin"] = origin_of(ticket.waiting_ticket.url)
        return line
    line["kind"] = "page"
    line["lane"] = ticket.lane.name.lower()
    if robots_at is not None:
        line["robots_at"] = robots_at.timestamp()
    return line


def _rounded(unix_s: float | None) -> float | None:
    if unix_s is None:
        return None
    return round(unix_s, 6)


def log_file_name(worker: str) -> str:
    """The name of a worker's file, made of what file systems take."""
    return f"requests-{file_name_of(worker)}.jsonl"


class RequestLog:
    """Lines are gathered by the event loop and written at least each second; `later(seconds, call)`
    is its `call_later`, and `clock` tells the frontier's time in unix seconds. The database thread
    has them on disk (`flush_to_disk`) before what they tell of counts as done.

    A disk that is full never stops a crawl: it is said once, the lines are lost, and their number
    is written when there is room.
    """

    def __init__(
        self,
        path: Path,
        header: Mapping[str, Any],
        max_bytes: int,
        later: Callable[[float, Callable[[], None]], object],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._header = header
        self._max_bytes = max_bytes
        self._later = later
        self._clock = clock
        self._lines: list[str] = []
        self._lines_lock = threading.RLock()
        """For `_lines`; never held while a file is written."""
        self._file_lock = threading.Lock()
        """For all that is below; never taken while the other one is held."""
        self._part_began_s = clock()
        self._file: int | None = None
        self._size = 0
        self._part = 0
        self._lost = 0
        self._unsynced = False
        self._full: list[int] = []
        """Parts that were set aside and are not on disk yet."""
        self._warned = False
        self._waiting = False

    def before_commit(self) -> AbstractContextManager[object]:
        """A block in which something is ended and its line written, in any order: whoever commits
        the end has to wait for the line.
        """
        return self._lines_lock

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line within a second."""
        text = _encode(line)
        with self._lines_lock:
            self._lines.append(text)
            number = len(self._lines)
        if number == AT_ONCE:
            self._later(0.0, self.flush)
        elif not self._waiting:
            self._waiting = True
            self._later(FLUSH_S, self.flush)

    def change_rules(self, rules: Mapping[str, Any]) -> None:
        """Other rules are in force for requests that start from now on: a line like the first one
        says so.
        """
        self.flush()
        self._header = {**self._header, "rules": rules}
        if self._file is not None:
            self.write({**self._full_header(), "since": round(self._clock(), 6)})

    def _full_header(self) -> dict[str, Any]:
        return {**self._header, "started": round(self._part_began_s, 6), "part": self._part}

    def flush(self) -> None:
        """Write what waits: a kill of this process loses nothing of it then."""
        self._waiting = False
        with self._file_lock:
            self._write_lines()

    def flush_to_disk(self) -> None:
        """Write what waits, and return when a loss of power loses nothing of it either."""
        with self._file_lock:
            self._write_lines()
            files = self._full
            self._full = []
            if self._unsynced and self._file is not None:
                files.append(os.dup(self._file))
                self._unsynced = False
        for file in files:
            # The event loop may write meanwhile.
            try:
                os.fsync(file)
            except OSError as error:
                self._warn(error)
            finally:
                os.close(file)

    def close(self) -> None:
        """Write what waits and that this is the end, and close the file."""
        self.flush_to_disk()
        with self._file_lock:
            if self._file is None:
                return
            try:
                self._append([self._end_line()])
            except OSError as error:
                self._warn(error)
            os.close(self._file)
            self._file = None

    def _write_lines(self) -> None:
        with self._lines_lock:
            lines = self._lines
            self._lines = []
        if not lines:
            return
        try:
            if self._file is None:
                self._open()
            gap = []
            if self._lost:
                gap = [_encode({"lost": self._lost, "worker": self._header.get("worker")})]
            self._append(gap + lines)
            self._lost = 0
            lines = []
            if self._size >= self._max_bytes:
                self._rotate()
        except OSError as error:
            self._lost += len(lines)
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            log.warning(
                "The log of requests can't be written, the crawl goes on without: %s: %s",
                self._path,
                error,
            )
            self._warned = True

    def _end_line(self, **more: object) -> str:
        end = round(self._clock(), 6)
        return _encode({"end": end, "worker": self._header.get("worker"), **more})

    def _open(self) -> None:
        make_private_folder(self._path.parent)
        self._file = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._size = os.fstat(self._file).st_size
        self._append([_encode(self._full_header())])
        self._delete_oldest()

    def _append(self, lines: list[str]) -> None:
        """Write all lines or none: half a line would spoil the next one too."""
        assert self._file is not None
        data = memoryview(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
        try:
            done = 0
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)
        self._unsynced = True

    def _rotate(self) -> None:
        """Set a full file aside as the next part: its number grows, so that a part never changes
        its name.
        """
        assert self._file is not None
        self._append([self._end_line(next_part=self._part + 1)])
        self._full.append(self._file)
        self._file = None
        self._unsynced = False
        self._part += 1
        self._part_began_s = self._clock()
        self._path.replace(self._part_path(self._part))
        self._part_path(self._part - PARTS).unlink(missing_ok=True)

    def _part_path(self, part: int) -> Path:
        return self._path.with_suffix(f".{part}.jsonl")

    def _delete_oldest(self) -> None:
        """Delete the oldest files of earlier runs when all together are too big, but none of the
        last day.
        """
        files = sorted(
            (file.stat().st_mtime, file.stat().st_size, file)
            for file in self._path.parent.glob("requests-*.jsonl")
        )
        total = sum(size for _, size, _ in files)
        for changed, size, file in files:
            if total <= self._max_bytes * PARTS or changed > time.time() - YOUNG_S:
                return
            file.unlink(missing_ok=True)
            total -= size
