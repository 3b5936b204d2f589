"""Several worker processes of one crawl on this machine: started, watched, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from crawlproj.cli.worker_reports import VARIABLE, ReportReader, WorkerPlace

CHECK_INTERVAL_S = 0.1
"""How often the processes are looked at."""
MAX_RESTARTS = 5
RESTART_WINDOW_S = 60.0
"""At most so many restarts, within so many seconds."""
COULD_NOT_RUN = 1
STOPPED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""They stop the workers; but a SIGHUP that was ignored at the start (nohup) stays ignored."""


@dataclass(slots=True)
class WorkerProcess:
    """A worker and its process; `code` is set when it has ended for good."""

    number: int
    command: Sequence[str]
    process: subprocess.Popen[bytes]
    reader: ReportReader
    code: int | None = None
    restarts: int = 0

    @classmethod
    def start(cls, number: int, command: Sequence[str]) -> WorkerProcess:
        return cls(number, command, *_start(command, number, restarts=0))

    def start_again(self) -> None:
        self.reader.close()
        self.restarts += 1
        self.process, self.reader = _start(self.command, self.number, self.restarts)

    @property
    def name(self) -> str:
        return f"worker {self.number} (process {self.process.pid})"


@dataclass(slots=True)
class WorkerGroup:
    """The workers of one crawl; one that is killed from outside, or by its watchdog, is restarted,
    a few times a minute.

    `has_hung` says whether the watchdog of a process has ended it. `say` gets a line for everything
    that happens, `take_report` the number and process of a worker with each report of it. `stops`
    counts the signals to stop: the first asks the workers to end, the second
    kills them.
    """

    commands: Mapping[int, Sequence[str]]
    say: Callable[[str], None]
    has_hung: Callable[[int], bool] = lambda process: False
    take_report: Callable[[int, int, Mapping[str, Any]], None] = lambda *_: None
    workers: list[WorkerProcess] = field(default_factory=list)
    stop_signals: int = 0
    _passed_on: int = 0
    _restarted: deque[float] = field(default_factory=deque)

    def run(self, tick: Callable[[int], None]) -> int:
        """Run the workers until all have ended; returns the worst of their exit codes.

        `tick` is called now and then with the number of those that run.
        """
        with self._signals():
            try:
                for number, command in self.commands.items():
                    if self.stop_signals:
                        break
                    self.workers.append(WorkerProcess.start(number, command))
                    self.say(f"{self.workers[-1].name} started")
                while running := self._check_workers():
                    tick(running)
                    time.sleep(CHECK_INTERVAL_S)
            finally:
                self._kill()
        return max((worker.code or 0 for worker in self.workers), default=STOPPED)

    def _check_workers(self) -> int:
        """Pass signals on, take note of workers that have ended; returns how many run."""
        if self.stop_signals > self._passed_on:
            self._passed_on = self.stop_signals
            self._send_signal(signal.SIGTERM if self.stop_signals == 1 else signal.SIGKILL)
        running = 0
        for worker in self.workers:
            if worker.code is None:
                code = worker.process.poll()
                self._take_reports(worker)
                if code is not None:
                    self._handle_end(worker, code)
            running += worker.code is None
        return running

    def _take_reports(self, worker: WorkerProcess) -> None:
        """Take what it has reported; after its end, all that is left."""
        for report in worker.reader.take_reports():
            self.take_report(worker.number, worker.process.pid, report)

    def _handle_end(self, worker: WorkerProcess, code: int) -> None:
        end = f"was killed by signal {-code}"
        if code == COULD_NOT_RUN and self.has_hung(worker.process.pid):
            end = "hung and was ended by its watchdog"
        elif code >= 0:
            worker.code = code
            self.say(f"{worker.name} ended with exit code {code}")
            return
        if self.stop_signals:
            worker.code = STOPPED
            self.say(f"{worker.name} was killed")
        elif self._may_restart():
            before = worker.name
            worker.start_again()
            self.say(f"{before} {end}: started again as process {worker.process.pid}")
        else:
            worker.code = COULD_NOT_RUN
            self.say(f"{worker.name} {end}: given up after {MAX_RESTARTS} new starts in a minute")

    def _may_restart(self) -> bool:
        now = time.monotonic()
        while self._restarted and now - self._restarted[0] > RESTART_WINDOW_S:
            self._restarted.popleft()
        if len(self._restarted) >= MAX_RESTARTS:
            return False
        self._restarted.append(now)
        return True

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """A block in which Ctrl-C and the like are counted, and passed on by `_check_workers`.

        They reach this process only, since the workers have sessions of their own.
        """
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        before = {
            number: signal.signal(number, self._stop)
            for number in SIGNALS
            if not (ignored and number is signal.SIGHUP)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stop_signals += 1

    def _send_signal(self, number: signal.Signals) -> None:
        for worker in self.workers:
            if worker.code is None and worker.process.poll() is None:
                worker.process.send_signal(number)

    def _kill(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()
            worker.reader.close()


def _start(
    command: Sequence[str], number: int, restarts: int
) -> tuple[subprocess.Popen[bytes], ReportReader]:
    """Start a worker that knows its place, and what it reports through."""
    read_end, write_end = os.pipe()
    place = WorkerPlace(number, restarts, write_end)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[write_end],
            env={**os.environ, VARIABLE: place.as_variable()},
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    return process, ReportReader(read_end)
