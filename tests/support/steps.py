"""Removals from the archive that are killed at a chosen step: `python -m tests.support.steps`, told
by lines of JSON what to do.

A step is the beginning or the end of a change: a file that is written, renamed or removed, a
statement in a transaction.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from crawlproj.archive import index_merge, recovery, removal
from crawlproj.config import Config, read_config
from crawlproj.database.connection import Database, Transaction
from crawlproj.upkeep import clean, takedown
from crawlproj.upkeep.retention import Retention
from tests.support.crawling import ROOT
from tests.support.power import Recorder

RETENTION = Retention(older=timedelta(days=365), keep=frozenset({"last"}), per="year")


class Steps:
    """A child of its own, which forks for each run: that is quick."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.steps"]
        self._child = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, what: str, folder: Path, dsn: str, kill_at: int, disk: Path | None = None) -> int:
        """How many steps it made; -1 if it was killed, as it was told."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(
            json.dumps([what, str(folder), dsn, kill_at, str(disk or "")]) + "\n"
        )
        self._child.stdin.flush()
        return int(self._child.stdout.readline())

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate()


class Counter:
    def __init__(self, kill_at: int) -> None:
        self.made = 0
        self._kill_at = kill_at

    def step(self) -> None:
        self.made += 1
        if self.made == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*args: Any, **more: Any) -> Any:
            self.step()
            found = work(*args, **more)
            self.step()
            return found

        return done


def work(what: str, folder: Path, dsn: str) -> None:
    db = Database(dsn)
    config = config_of(folder, dsn)
    if what == "clean":
        clean.clean_storage(db, config, RETENTION, print)
    else:
        takedown.store_rules(db, [what], "a test", True)
        takedown.carry_out(db, config, print)


def config_of(folder: Path, dsn: str) -> Config:
    settings = Settings()
    settings.setmodule("settings.local", priority="project")
    settings.setdict(
        {"CRAWL_DIR": str(folder), "DATABASE_URL": dsn, "GUARD_ALLOW_PRIVATE": True},
        priority="cmdline",
    )
    return read_config(settings, "site")


def forked(what: str, folder: str, dsn: str, kill_at: int, disk: str) -> int:
    """Steps made, by way of the exit code's pipe; -1 after a kill."""
    out, into = os.pipe()
    if pid := os.fork():
        os.close(into)
        with os.fdopen(out) as pipe:
            made = pipe.read()
        status = os.waitpid(pid, 0)[1]
        return -1 if os.WIFSIGNALED(status) else int(made or -2)
    try:
        counter = Counter(kill_at)
        if disk:
            Recorder(Path(disk))
        Path.unlink, Path.replace = counter.around(Path.unlink), counter.around(Path.replace)  # type: ignore[method-assign]
        writing = counter.around(index_merge.write_file)
        index_merge.write_file = removal.write_file = recovery.write_file = writing  # type: ignore[attr-defined]
        Transaction._send = counter.around(Transaction._send)  # type: ignore[method-assign]
        work(what, Path(folder), dsn)
        os.write(into, str(counter.made).encode())
    finally:
        os._exit(0)


def long_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


if __name__ == "__main__":
    for line in sys.stdin:
        print(forked(*json.loads(line)), flush=True)
