"""Real crawls for tests: each a process of its own, as a user would start it. What it counted comes
back with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapy.statscollectors import MemoryStatsCollector

from settings import base

ROOT = Path(__file__).resolve().parents[2]
QUICK: Mapping[str, object] = {
    "GUARD_ALLOW_PRIVATE": True,
    "POLITENESS_DELAY": 0,
    "POLITENESS_SLOWDOWN": 0,
    "POLITENESS_SERVER_DELAY": 0,
    "POLITENESS_HOSTS_PER_SERVER": 100,
    "POLITENESS_PAUSE_AFTER": 0,
    "LANGUAGE_ENABLED": False,
}
"""Settings of every test crawl, unless it says otherwise. To load the model of languages takes half
a second of CPU.
"""


class StatsFile(MemoryStatsCollector):
    """Scrapy's own, which also writes all stats to the setting STATS_FILE as JSON when the crawl
    has ended.
    """

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self._path = Path(crawler.settings["STATS_FILE"])

    def _persist_stats(self, stats: dict[str, Any]) -> None:
        super()._persist_stats(stats)
        self._path.write_text(json.dumps(stats, default=str))


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind; `stats` is empty if no crawl came to its end."""

    code: int
    stdout: str
    stderr: str
    stats: dict[str, Any] = field(default_factory=dict)
    log: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


class Crawl:
    """A command that runs. Use it as a context manager: whatever happens, the process is gone at
    the end.
    """

    def __init__(
        self, words: Sequence[str], crawl_dir: Path, settings: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None, cwd: Path = ROOT,
    ) -> None:  # fmt: skip
        handle, name = tempfile.mkstemp(prefix="stats-", suffix=".json")
        os.close(handle)
        self._stats = Path(name)
        self.crawl_dir = crawl_dir
        ours = (
            {"STATS_CLASS": "tests.support.crawling.StatsFile", "STATS_FILE": name}
            if words[0] in ("crawl", "demo", "reextract")
            else {}
        )
        command = [sys.executable, "-m", "scrapy", *words]
        for key, value in {"CRAWL_DIR": crawl_dir, **QUICK, **ours, **(settings or {})}.items():
            command += [
                "-s",
                f"{key}={json.dumps(value) if isinstance(value, dict | list) else value}",
            ]
        self._log = crawl_dir / "log"
        clean = {key: value for key, value in os.environ.items() if key not in base.OURS}
        self.process = subprocess.Popen(
            command, cwd=cwd, env={**clean, **(env or {})}, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self, timeout_s: float = 60) -> Result:
        stdout, stderr = self.process.communicate(timeout=timeout_s)
        text = self._stats.read_text()
        logs = sorted(self._log.glob("*.log")) if self._log.is_dir() else []
        log = "\n".join(path.read_text(errors="replace") for path in logs)
        return Result(
            self.process.returncode, stdout, stderr, json.loads(text) if text else {}, log
        )

    def __enter__(self) -> Crawl:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._stats.unlink(missing_ok=True)


def run_command(
    words: Sequence[str],
    crawl_dir: Path,
    settings: Mapping[str, object] | None = None,
    timeout_s: float = 60,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
) -> Result:
    """`scrapy WORDS...`, to its end."""
    with Crawl(words, crawl_dir, settings, env, cwd) as running:
        return running.wait(timeout_s)


def start_crawl(
    args: Sequence[str],
    settings: Mapping[str, object],
    crawl_dir: Path,
    env: Mapping[str, str] | None = None,
) -> Crawl:
    """`scrapy crawl ARGS...`, left running: `with start_crawl(...) as crawl: ... crawl.stop();
    crawl.wait()`.
    """
    return Crawl(["crawl", *args], crawl_dir, settings, env)


def run_crawl(
    args: Sequence[str], settings: Mapping[str, object], crawl_dir: Path, timeout_s: float = 60,
    env: Mapping[str, str] | None = None,
) -> Result:  # fmt: skip
    """`scrapy crawl ARGS...`, to its end: run_crawl(["site", "-a", "seeds=..."], {"DATABASE_URL":
    url}, tmp_path).
    """
    with start_crawl(args, settings, crawl_dir, env) as crawl:
        return crawl.wait(timeout_s)
