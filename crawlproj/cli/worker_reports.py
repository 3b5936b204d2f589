"""What the workers of `scrapy workers` tell the process that started them: lines for the screen,
and what they have counted.

Each has a pipe of its own, with a JSON object in each line: `{"line": ...}` for the screen,
`{"stats": ...}` again and again, and once at the end `{"end": ...}`. What a worker counted before
it was killed stays known as far as it was told.
"""

from __future__ import annotations

import json
import os
import re
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from crawlproj.formatting import format_count

VARIABLE = "CRAWLPROJ_WORKER"
"""Of the environment of a worker: its number, how often it was started again, its pipe."""
LAST_WAIT_S = 5.0
"""So long the last report waits for a reader."""
MAX_UNSENT = 1_000_000
READ_BYTES = 65_536
LINES_A_MINUTE = 20
"""So many lines of all workers together are shown."""
SUFFIX = re.compile(r"(\.\w{1,10}(?:\.(?:gz|bz2|xz|lz4))?)?$")
ENDS_BY_WEIGHT = ("scheduler_error", "database_lost", "archive_lost", "shutdown", "finished")
"""Of the reasons why workers ended, the first of these is that of the crawl."""


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """The place of a process among the workers of one command."""

    number: int
    restarts: int
    pipe: int

    def as_variable(self) -> str:
        return f"{self.number}:{self.restarts}:{self.pipe}"


def worker_place() -> WorkerPlace | None:
    """The place of this process; None if it is not one of several workers."""
    try:
        number, restarts, pipe = os.environ[VARIABLE].split(":")
        return WorkerPlace(int(number), int(restarts), int(pipe))
    except (KeyError, ValueError):
        return None


def numbered_feed(uri: str, number: int | str) -> str:
    """The feed of one worker: items.jsonl becomes items-2.jsonl. Standard output stays."""
    if uri in ("-", "stdout:"):
        return uri
    folder, slash, name = uri.rpartition("/")
    return folder + slash + SUFFIX.sub(lambda suffix: f"-{number}{suffix[0]}", name, count=1)


class ReportPipe:
    """A worker's end of the pipe. It never waits, but for the last report; a reader that is gone is
    no reason to stop.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._unsent = b""
        os.set_blocking(pipe, False)

    def print_line(self, text: str) -> None:
        """Have a line shown on the screen."""
        self.send({"line": text})

    def send(self, report: Mapping[str, object], last: bool = False) -> None:
        self._unsent += json.dumps(report, default=str).encode() + b"\n"
        deadline = time.monotonic() + (LAST_WAIT_S if last else 0)
        while self._unsent:
            try:
                written = os.write(self._pipe, self._unsent)
                self._unsent = self._unsent[written:]
            except BlockingIOError:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                select.select([], [self._pipe], [], left_s)
            except OSError:
                self._unsent = b""
        if len(self._unsent) > MAX_UNSENT:
            # Whole lines go; the first may have been sent in part.
            first, _, _ = self._unsent.partition(b"\n")
            self._unsent = first + b"\n"


class ReportReader:
    """The other end, which never waits either."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._rest = b""
        os.set_blocking(pipe, False)

    def take_reports(self) -> Iterator[dict[str, Any]]:
        """What has come since the last time."""
        with suppress(BlockingIOError):
            while data := os.read(self._pipe, READ_BYTES):
                self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            with suppress(ValueError):
                report = json.loads(line)
                if isinstance(report, dict):
                    yield report

    def close(self) -> None:
        os.close(self._pipe)


@dataclass(slots=True)
class CommonReport:
    """What all workers together have told; `say` shows a line."""

    say: Callable[[str], None]
    ends: list[dict[str, Any]] = field(default_factory=list)
    _stats: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The last of each process."""
    _minute: int = 0
    _shown: int = 0
    _left_out: int = 0

    def take(self, number: int, process: int, report: Mapping[str, Any]) -> None:
        """Take in a report of worker `number`."""
        if "line" in report:
            self._show(f"worker {number}: {report['line']}")
        if "stats" in report:
            self._stats[process] = report["stats"]
        if "end" in report:
            self.ends.append(report["end"])

    def _show(self, line: str) -> None:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self.say_left_out()
            self._minute = minute
            self._shown = 0
        self._shown += 1
        if self._shown > LINES_A_MINUTE:
            self._left_out += 1
        else:
            self.say(line)

    def say_left_out(self) -> None:
        """Say how many lines were not shown."""
        if self._left_out:
            self.say(f"{format_count(self._left_out, 'more warning')} in the logs of the workers")
        self._left_out = 0

    @property
    def stats(self) -> dict[str, Any]:
        """What was counted, added up over all processes, also those that were killed."""
        total: dict[str, Any] = {}
        for stats in self._stats.values():
            for name, value in stats.items():
                if isinstance(value, int | float):
                    total[name] = total.get(name, 0) + value
        return total

    @property
    def reason(self) -> str:
        """Why the crawl has ended."""
        reasons = [str(end.get("reason")) for end in self.ends]
        for reason in ENDS_BY_WEIGHT:
            if reason in reasons:
                return reason
        return next(iter(reasons), "shutdown")

    @property
    def examples(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for end in self.ends:
            for name, url in end.get("examples", {}).items():
                found.setdefault(name, url)
        return found

    @property
    def notices(self) -> list[str]:
        """What is different in this run; the first worker of all has seen it."""
        return list(dict.fromkeys(notice for end in self.ends for notice in end.get("notices", ())))
