"""The crawl's side of the language process, which names the languages of many texts at a time and
is replaced when it hangs, crashes or has read many.

Its model takes 100 MB and half a second to load, and the texts come from anywhere: therefore a
process, behind the same bars as the one that reads documents. It is asked by a plain thread.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Final

from crawlproj.content.language import NOT_JUDGED, Sample, limit_sample
from crawlproj.content.language_main import HEAD, READY

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
_KEPT: Final = ("LD_LIBRARY_PATH", "TMPDIR")
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
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._is_ready = False
        self._left = 0
        self._in_a_row = 0
        self._failed = 0.0
        self._closed = False
        self.batches = 0
        self.texts = 0
        self.failures = 0
        self.processes_started = 0

    def start(self) -> None:
        """Start the process if there is none; it loads its model while others go on."""
        if self._closed or self._has_given_up():
            return
        if self._process is not None and self._process.poll() is not None:
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
            return nothing
        try:
            self.start()
            found = self._ask_process(samples)
        except (OSError, ValueError, RecursionError, subprocess.SubprocessError):
            self._note_failure()
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
        if self._process is None:
            return 0
        try:
            fields = Path(f"/proc/{self._process.pid}/statm").read_text().split()
            return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0

    def close(self) -> None:
        """End the process, and start no other."""
        self._closed = True
        self._kill_process()

    def _has_given_up(self) -> bool:
        return self._in_a_row >= MAX_FAILURES and time.monotonic() - self._failed < FORGET_S

    def _note_failure(self) -> None:
        self._kill_process()
        self.failures += 1
        self._in_a_row += 1
        self._failed = time.monotonic()

    def _ask_process(self, samples: Sequence[Sample]) -> list[str]:
        """The process's reply; OSError or ValueError if it has none, or none that can be."""
        process = self._process
        if process is None:
            raise ChildProcessError("not started")
        if not self._is_ready:
            if _read_frame(process, len(READY), self._started + self._start_s) != READY:
                raise ValueError("garbage")
            self._is_ready = True
        values = [(limit_sample(sample.text), sample.hint[:100]) for sample in samples]
        body = json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")
        end = time.monotonic() + self._batch_s
        _write_frame(process, body, end)
        reply = json.loads(_read_frame(process, 10 * len(samples) + 2, end))
        return _check_reply(reply, len(samples))

    def _start_process(self) -> subprocess.Popen[bytes]:
        self._left = self._per_process
        self._is_ready = False
        self._started = time.monotonic()
        self.processes_started += 1
        numbers = (MEMORY, ceil(self._batch_s), CPU_S, os.getpid())
        # Nothing of the environment, except where libraries and room for files are.
        environment = dict(_ENVIRONMENT)
        for name in _KEPT:
            if name in os.environ:
                environment[name] = os.environ[name]
        process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-c",
                _CODE,
                *map(str, numbers),
                *(str(Path(name).absolute()) for name in sys.path),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        return process

    def _kill_process(self) -> None:
        """Kill the process, if there is one, and wait until it is gone."""
        process = self._process
        self._process = None
        if process is None:
            return
        with suppress(OSError):
            process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(OSError, subprocess.SubprocessError):
            process.wait(5)  # a killed process is gone at once, unless the system is in trouble


def _write_frame(process: subprocess.Popen[bytes], body: bytes, end: float) -> None:
    assert process.stdin is not None
    pipe = process.stdin.fileno()
    left = memoryview(HEAD.pack(len(body)) + body)
    while left:
        _wait_for(pipe, select.POLLOUT, end)
        with suppress(BlockingIOError):
            left = left[os.write(pipe, left) :]


def _read_frame(process: subprocess.Popen[bytes], limit: int, end: float) -> bytes:
    (size,) = HEAD.unpack(_read_bytes(process, HEAD.size, end))
    if size > limit:
        raise ValueError("garbage")
    return _read_bytes(process, size, end)


def _read_bytes(process: subprocess.Popen[bytes], size: int, end: float) -> bytes:
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    body = bytearray()
    while len(body) < size:
        _wait_for(pipe, select.POLLIN, end)
        with suppress(BlockingIOError):
            piece = os.read(pipe, size - len(body))
            if not piece:
                raise BrokenPipeError("ended")
            body += piece
    return bytes(body)


def _wait_for(pipe: int, event: int, end: float) -> None:
    """Wait until a pipe can be used, or has ended; TimeoutError if that takes too long."""
    poll = select.poll()  # `select.select` fails for numbers above 1024
    poll.register(pipe, event)
    if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
        raise TimeoutError


def _check_reply(reply: object, count: int) -> list[str]:
    if not isinstance(reply, list) or len(reply) != count:
        raise ValueError("garbage")
    for code in reply:
        if not isinstance(code, str) or not _LANGUAGE.fullmatch(code):
            raise ValueError("garbage")
    return reply
