"""The crawl's side of the article process, which takes articles out of pages.

Its libraries take 140 MB and two seconds to load, and 20 ms for a page: therefore a process, behind
the same bars as the one that reads documents. It is started at the first article, replaced when it
hangs, crashes or has grown, and ended when it is idle. It is asked by a plain thread.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import fields
from math import ceil
from typing import Any, Final

from crawlproj.content.article_main import READY
from crawlproj.content.articles import ArticleFields
from crawlproj.content.child_process import ChildProcess

MAX_BODY: Final = 2_000_000
PER_PROCESS: Final = 2_000
"""Pages that one process reads before it is replaced: libraries leak."""
MAX_RSS: Final = 250_000_000
"""Memory after a page with which it is replaced."""
MEMORY: Final = 900_000_000
"""Address space; everything loaded takes 270 MB of it, the worst page of 2 MB some 400 more."""
CPU_S: Final = 1_200
START_S: Final = 60.0
PAGE_CPU_S: Final = 5.0
PAGE_S: Final = 20.0
MAX_FAILURES: Final = 3
FORGET_S: Final = 600.0
"""After so many failed starts in a row none is tried for a while."""
MAX_REPLY: Final = 30_000_000

_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[5:]; from "
    "crawlproj.content.article_main import main; main(*map(int, sys.argv[1:5]))"
)
_ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TZ": "UTC"}
_LISTS: Final = ("authors", "keywords", "alarms")
_NAMES: Final = frozenset(field.name for field in fields(ArticleFields))


class ArticleReadError(Exception):
    """A page of which there is no article. `reason` is "too_big", "timeout" (of CPU), "late" (by
    the clock: try again), "crashed" (try again), "garbage", or "error: " with what went wrong.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ArticleReader:
    """Reads articles, for use by one thread at a time.

    The process ends with the thread that started it, as the kernel has it; one that has ended is
    replaced at the next page.
    """

    def __init__(
        self,
        *,
        page_cpu_s: float = PAGE_CPU_S,
        page_s: float = PAGE_S,
        start_s: float = START_S,
        per_process: int = PER_PROCESS,
        max_rss: int = MAX_RSS,
    ) -> None:
        self._page_cpu_s = page_cpu_s
        self._page_s = page_s
        self._start_s = start_s
        self._per_process = per_process
        self._max_rss = max_rss
        self._process: ChildProcess | None = None
        self._is_ready = False
        self._left = 0
        self._used = 0.0
        self._failed_starts = 0
        self._failed = 0.0
        self._closed = False
        self.pages = 0
        self.failures = 0
        self.processes_started = 0

    def read(
        self, body: bytes, url: str, charset: str, selectors: Mapping[str, str] | None
    ) -> ArticleFields:
        """The article of a page; ArticleReadError if there is none, for which the page, or the
        process alone, may be to blame.
        """
        if len(body) > MAX_BODY:
            raise self._failure("too_big")
        request = {"url": url, "charset": charset, "selectors": dict(selectors or {})}
        frame = json.dumps(request).encode() + b"\n" + body
        try:
            reply = self._ask_process(frame)
        except BaseException:  # half of a reply may be in the pipe
            self._kill_process()
            raise
        self._used = time.monotonic()
        self._left -= 1
        rss = reply.pop("rss", 0)
        if self._left <= 0 or not isinstance(rss, int) or rss > self._max_rss:
            self._kill_process()
        if "error" in reply:
            raise self._failure(f"error: {reply['error']}")
        found = _check_reply(reply)
        if found is None:
            self._kill_process()
            raise self._failure("garbage")
        self.pages += 1
        return found

    def rss_bytes(self) -> int:
        """The memory of the process; 0 if there is none or the system does not say."""
        return self._process.rss_bytes() if self._process is not None else 0

    def close_if_idle(self, idle_s: float) -> bool:
        """End the process if it has read nothing for so long; the next page starts another."""
        if self._process is None or time.monotonic() - self._used < idle_s:
            return False
        self._kill_process()
        return True

    def close(self) -> None:
        """End the process, and start no other."""
        self._closed = True
        self._kill_process()

    def _ask_process(self, frame: bytes) -> dict[str, Any]:
        process = self._ready_process()
        end = time.monotonic() + self._page_s
        try:
            process.write_frame(frame, end)
            reply = json.loads(process.read_frame(MAX_REPLY, end))
        except TimeoutError:
            raise self._failure("late") from None
        except OSError:
            is_timeout = process.exit_signal() in (signal.SIGPROF, signal.SIGXCPU)
            raise self._failure("timeout" if is_timeout else "crashed") from None
        except (ValueError, RecursionError):
            raise self._failure("garbage") from None
        if not isinstance(reply, dict):
            raise self._failure("garbage")
        return reply

    def _ready_process(self) -> ChildProcess:
        """The process, started and ready for a page."""
        if self._closed or self._has_given_up():
            raise self._failure("crashed")
        if self._process is not None and self._process.has_ended():
            self._kill_process()
        if self._process is not None and self._is_ready:
            return self._process
        try:
            process = self._start_process()
            end = process.started + self._start_s
            if process.read_frame(len(READY), end) != READY:
                raise ValueError("garbage")
        except (OSError, ValueError, subprocess.SubprocessError):
            self._failed_starts += 1
            self._failed = time.monotonic()
            raise self._failure("crashed") from None
        self._failed_starts = 0
        self._is_ready = True
        return process

    def _start_process(self) -> ChildProcess:
        self._kill_process()
        self._left = self._per_process
        self._used = time.monotonic()
        self.processes_started += 1
        numbers = (MEMORY, ceil(self._page_cpu_s), CPU_S, os.getpid())
        self._process = ChildProcess(_CODE, numbers, _ENVIRONMENT)
        return self._process

    def _has_given_up(self) -> bool:
        return self._failed_starts >= MAX_FAILURES and time.monotonic() - self._failed < FORGET_S

    def _failure(self, reason: str) -> ArticleReadError:
        self.failures += 1
        return ArticleReadError(reason)

    def _kill_process(self) -> None:
        process = self._process
        self._process = None
        self._is_ready = False
        if process is not None:
            process.kill()


def _check_reply(reply: dict[str, Any]) -> ArticleFields | None:
    """The article of a reply; None if it is none."""
    if not reply.keys() <= _NAMES:
        return None
    values: dict[str, Any] = {}
    for name, value in reply.items():
        if name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
                return None
            values[name] = tuple(value)
        elif name == "origins":
            if not isinstance(value, dict):
                return None
            values[name] = {str(key): str(origin) for key, origin in value.items()}
        elif isinstance(value, str) or (value is None and name != "text"):
            values[name] = value
        else:
            return None
    return ArticleFields(**values)
