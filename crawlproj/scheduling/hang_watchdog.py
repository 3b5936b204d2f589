"""Ends a worker whose event loop stands still, and keeps the page that it hung on from the next.

Some code holds the GIL for as long as it runs, a regular expression of a spider for instance: no
signal handler, no timeout and no thread in Python runs meanwhile. `faulthandler` waits in C and
ends the process, after writing the stack of each thread to a file. A timer of the loop puts that
off again and again.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from types import FrameType, coroutine
from typing import IO, Any, TypeVar

from crawlproj.scheduling.reading_file import (
    NOTHING,
    PageNote,
    ReadingFile,
    take_left_files,
    trace_path,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

TOO_SLOW = "unread: too slow"
LONGEST_GAP_S = 5.0
"""The timer of the loop runs at least this often."""
GAPS_PER_TIMEOUT = 6


class HangWatchdog:
    """Lives on the event loop. It is armed when the first page is read, and at most `timeout_s`
    after the loop has stopped turning the process ends with exit code 1.
    """

    def __init__(
        self, crawl_dir: Path, log_dir: Path, worker: str, *, crawl: str, timeout_s: float
    ) -> None:
        self._timeout_s = timeout_s
        self._gap_s = min(LONGEST_GAP_S, timeout_s / GAPS_PER_TIMEOUT)
        self._trace_path = trace_path(log_dir, worker)
        self._file = ReadingFile(crawl_dir, worker, crawl)
        self._trace: IO[bytes] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._catches_stops = False
        self._noted = NOTHING
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
            self._trace = os.fdopen(_open_private(self._trace_path), "wb")
        except BaseException:
            self._file.close()
            raise

    @coroutine
    def note_steps(self, reading: Coroutine[Any, Any, T], note: bytes) -> Generator[Any, Any, T]:
        """Await what reads a page. The page is noted while it runs, and only then: not while it
        waits and others run. `note` is made by `make_note`.
        """
        if self._timer is None:
            self._arm()
        write_note = self._file.write_note
        value: Any = None
        error: BaseException | None = None
        while True:
            noted_before = self._noted
            self._noted = note
            write_note(note)
            try:
                if error is None:
                    waits_for = reading.send(value)
                else:
                    waits_for = reading.throw(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self._noted = noted_before
                write_note(noted_before)
            error = None
            try:
                value = yield waits_for
            except GeneratorExit:
                reading.close()
                raise
            except BaseException as thrown:
                error = thrown

    def close(self) -> None:
        """From now on the loop may stand still: closing takes its time."""
        self._disarm()
        if self._catches_stops:
            self._catches_stops = False
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        if self._trace is not None:
            self._trace.close()
            self._trace = None
            self._trace_path.unlink(missing_ok=True)
            self._file.close()

    def _arm(self) -> None:
        """Let the process end in `timeout_s`, unless this is called again before."""
        if self._trace is None:
            return
        if self._timer is None and threading.current_thread() is threading.main_thread():
            self._catch_stops()
        faulthandler.dump_traceback_later(self._timeout_s, exit=True, file=self._trace)
        self._timer = asyncio.get_running_loop().call_later(self._gap_s, self._arm)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            faulthandler.cancel_dump_traceback_later()

    def _catch_stops(self) -> None:
        """Time passes while the process is stopped: Ctrl-Z must not end it when it goes on."""
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            self._catches_stops = True
            signal.signal(signal.SIGTSTP, self._stop_process)

    def _stop_process(self, number: int, frame: FrameType | None) -> None:
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        # It goes on here. The timer is overdue by now, and arms again.
        if self._catches_stops:
            signal.signal(signal.SIGTSTP, self._stop_process)


def _open_private(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)


def set_hung_pages_aside(
    crawl_dir: Path,
    log_dir: Path,
    crawl: str,
    *,
    set_aside: Callable[[PageNote], bool],
) -> int:
    """Set the pages aside that workers of this crawl hung on; returns how many.

    `set_aside` says whether the page was still to be read.
    """
    number = 0
    for left in take_left_files(crawl_dir, crawl):
        trace = trace_path(log_dir, left.worker)
        if not trace.exists() or not trace.stat().st_size:
            trace.unlink(missing_ok=True)  # it was killed, it did not hang
        elif left.note is None:
            log.warning(
                "Worker %s hung and was ended, while it read no page: see %s", left.worker, trace
            )
        elif left.note.id and set_aside(left.note):
            number += 1
            log.warning(
                "Set aside (%s), since worker %s hung on it and was ended (see %s); push it to try "
                "again: %s",
                TOO_SLOW,
                left.worker,
                trace,
                left.note.url,
            )
        else:
            log.warning(
                "Worker %s hung and was ended (see %s) while it read %s",
                left.worker,
                trace,
                left.note.url,
            )
    return number
