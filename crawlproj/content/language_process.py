"""The crawl's side of the language process, which names the languages of many texts at a time and
is replaced when it hangs, crashes or has read many.

Its model takes 100 MB and half a second to load, and the texts come from anywhere: therefore a
process, behind the same bars as the one that reads documents. It is asked by a plain thread.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from typing import Final

from crawlproj.content.child_process import ChildProcess
from crawlproj.content.language import NOT_JUDGED, Sample, limit_sample
from crawlproj.content.language_main import READY

PER_PROCESS: Final = 50_000
"""Texts that one process reads before it is replaced: libraries leak."""
MEMORY: Final = 400_000_000
"""Address space; the loaded model takes 190 MB of it."""
CPU_S: Final = 600
START_S: Final = 30.0
BATCH_S: Final = 10.0
MAX_FAILURES: Final = 3
FORGET_S: Final = 600.0
"""After so many failures in a row nothing is asked for a while, and then after each further one."""

_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[5:]; from "
    "crawlproj.content.language_main import main; main(*map(int, sys.argv[1:5]))"
)
_ENVIRONMENT: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""One thread is enough, and each has its own memory."""
_LANGUAGE: Final = re.compile(r"(?:[a-z]{2}|und)?")


class LanguageReader:
    """Names languages, for use by one thread at a time; nothing that goes wrong is raised.

    The process ends with the thread that started it, as the kernel has it; one that has ended is
    replaced at the next call.
    """

    def __init__(
        self,
        *,
        batch_s: float = BATCH_S,
        start_s: float = START_S,
        per_process: int = PER_PROCESS,
    ) -> None:
        self._batch_s = batch_s
        self._start_s = start_s
        self._per_process = per_process
        self._process: ChildProcess | None = None
        self._is_ready = False
        self._left = 0
        self._in_a_row = 0
        self._failed = 0.0
        self._closed = False
        self.batches = 0
        self.texts = 0
        self.failures = 0
        self.last_failure = ""
        self.missed = 0
        """Texts that were given, but not judged."""
        self.processes_started = 0

    def start(self) -> None:
        """Start the process if there is none; it loads its model while others go on."""
        if self._closed or self._has_given_up():
            return
        if self._process is not None and self._process.has_ended():
            self._kill_process()
        if self._process is None:
            with suppress(OSError, subprocess.SubprocessError):  # `detect` counts it
                self._process = self._start_process()

    def detect(self, samples: Sequence[Sample]) -> list[str]:
        """The language of each sample: two letters, "und" if nobody can say, "" for all of them if
        something went wrong.
        """
        if not samples:
            return []
        nothing = [NOT_JUDGED] * len(samples)
        if self._closed or self._has_given_up():
            self.missed += len(samples)
            return nothing
        try:
            self.start()
            found = self._ask_process(samples)
        except (OSError, ValueError, RecursionError, subprocess.SubprocessError) as error:
            self._note_failure(error)
            self.missed += len(samples)
            return nothing
        except BaseException:  # half of a reply may be in the pipe
            self._kill_process()
            raise
        self._in_a_row = 0
        self.batches += 1
        self.texts += len(samples)
        self._left -= len(samples)
        if self._left <= 0:
            self._kill_process()
            self.start()
        return found

    def rss_bytes(self) -> int:
        """The memory of the process; 0 if there is none or the system does not say."""
        return self._process.rss_bytes() if self._process is not None else 0

    def close(self) -> None:
        """End the process, and start no other."""
        self._closed = True
        self._kill_process()

    def _has_given_up(self) -> bool:
        return self._in_a_row >= MAX_FAILURES and time.monotonic() - self._failed < FORGET_S

    def _note_failure(self, error: Exception) -> None:
        self._kill_process()
        self.failures += 1
        self.last_failure = repr(error)
        self._in_a_row += 1
        self._failed = time.monotonic()

    def _ask_process(self, samples: Sequence[Sample]) -> list[str]:
        """The process's reply; OSError or ValueError if it has none, or none that can be."""
        process = self._process
        if process is None:
            raise ChildProcessError("not started")
        if not self._is_ready:
            if process.read_frame(len(READY), process.started + self._start_s) != READY:
                raise ValueError("garbage")
            self._is_ready = True
        values = [(limit_sample(sample.text), sample.hint[:100]) for sample in samples]
        body = json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")
        end = time.monotonic() + self._batch_s
        process.write_frame(body, end)
        reply = json.loads(process.read_frame(10 * len(samples) + 2, end))
        return _check_reply(reply, len(samples))

    def _start_process(self) -> ChildProcess:
        self._left = self._per_process
        self._is_ready = False
        self.processes_started += 1
        numbers = (MEMORY, ceil(self._batch_s), CPU_S, os.getpid())
        return ChildProcess(_CODE, numbers, _ENVIRONMENT)

    def _kill_process(self) -> None:
        """Kill the process, if there is one, and wait until it is gone."""
        process = self._process
        self._process = None
        if process is not None:
            process.kill()


def _check_reply(reply: object, count: int) -> list[str]:
    if not isinstance(reply, list) or len(reply) != count:
        raise ValueError("garbage")
    for code in reply:
        if not isinstance(code, str) or not _LANGUAGE.fullmatch(code):
            raise ValueError("garbage")
    return reply
