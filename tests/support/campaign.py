"""One crawl of honest hosts, alone or beside hostile ones, and what it cost: time, gaps, memory, the
loop's lag, rules broken.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.database.migrations import migrate
from crawlproj.demo.log import AccessRecord
from tests.support.crawling import Crawl, run_command, start_crawl
from tests.support.hostile_kinds import KINDS
from tests.support.hostile_web import HONEST_HOSTS, HONEST_PAGES, WebProcess
from tests.support.judge import Law, violations

LAW = Law(
    delay_s=0.15,
    server_delay_s=0.05,
    hosts_per_server=4,
    pause_after=500,
    pause_s=300,
    slowdown=5,
    max_delay_s=3,
)
SETTINGS: dict[str, object] = {
    "POLITENESS_DELAY": LAW.delay_s,
    "POLITENESS_SERVER_DELAY": LAW.server_delay_s,
    "POLITENESS_HOSTS_PER_SERVER": LAW.hosts_per_server,
    "POLITENESS_PAUSE_AFTER": LAW.pause_after,
    "POLITENESS_PAUSE": LAW.pause_s,
    "POLITENESS_SLOWDOWN": LAW.slowdown,
    "POLITENESS_MAX_DELAY": LAW.max_delay_s,
    "DOWNLOAD_TIMEOUT": 8,
    "FRONTIER_RETRY_DELAY": 2,
    "ROBOT_NAME": "campaign",
    "ROBOT_CONTACT": "mailto:robot@campaign.test",
    "EXTENSIONS": {"tests.support.loop_lag.LoopLag": 0},
}
LOOK_S = 0.1
MAX_RSS_MB = 4_000
"""A worker that takes more is killed: others use this machine, too."""


class Memory(threading.Thread):
    """The largest resident size of a process and of its children, in MB, while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.worker_mb = 0
        self.children_mb = 0
        self.killed = False

    def run(self) -> None:
        while self._process.poll() is None:
            pid = self._process.pid
            self.worker_mb = max(self.worker_mb, _peak_mb(pid))
            for child in _children(pid):
                self.children_mb = max(self.children_mb, _peak_mb(child))
            if self.worker_mb > MAX_RSS_MB:
                self.killed = True
                self._process.kill()
            time.sleep(LOOK_S)


def _peak_mb(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return 0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text().split())
    return found


@dataclass(slots=True)
class Figures:
    """What a crawl of honest hosts, perhaps beside hostile ones, cost and kept.

    `honest_s`: from the start of the worker until the last honest page was sent. `cpu_s`: the most
    that the loop did at one go; `lags`: where, and over whose page.
    """

    pages: int = 0
    wanted: int = 0
    honest_s: float = 0.0
    gap_s: float = 0.0
    worker_mb: int = 0
    children_mb: int = 0
    lag_s: float = 0.0
    late_s: float = 0.0
    cpu_s: float = 0.0
    stop_s: float = 0.0
    code: int = 0
    hostile_requests: int = 0
    hostile_hosts: int = 0
    broken: list[str] = field(default_factory=list)
    audit: str = ""
    lags: dict[str, float] = field(default_factory=dict)
    errors: str = ""

    def __str__(self) -> str:
        return (
            f"{self.pages} of {self.wanted} honest pages in {self.honest_s:.1f} s, largest gap "
            f"{self.gap_s:.2f} s; worker {self.worker_mb} MB, children {self.children_mb} MB; loop "
            f"late by up to {self.lag_s:.2f} s ({self.cpu_s:.2f} s of work), {self.late_s:.1f} s in "
            f"all; hostile: "
            f"{self.hostile_requests} requests to {self.hostile_hosts} hosts; {len(self.broken)} "
            f"rules broken by the servers' logs; audit: {self.audit}; exit {self.code}, "
            f"{self.stop_s:.1f} s after its signal"
        )


def _host(url: str) -> str:
    return url.partition("//")[2].partition("/")[0].partition(":")[0]


def read_lags(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        with suppress(ValueError):
            yield json.loads(line)


def largest_gap_s(records: Iterable[AccessRecord]) -> float:
    """The longest time between two requests, whatever the host."""
    times = sorted(record.started for record in records)
    return max((after - before for before, after in pairwise(times)), default=0.0)


def broken_rules(records: Sequence[AccessRecord]) -> list[str]:
    """What the servers saw: delays and robots.txt, by the judge; and who asked."""
    names = {record.host.partition(":")[0] for record in records}
    lawless = {kind.host for kind in KINDS.values() if not kind.forbids}
    forbidden = dict.fromkeys(names - lawless, ("/private/",))
    found = violations(records, replace(LAW, disallow=forbidden))
    for record in records:
        if not record.user_agent.startswith("campaign") or "robot@" not in record.user_agent:
            found.append(f"{record.host}: {record.path} was asked by {record.user_agent!r}")
        if record.cookie:
            found.append(f"{record.host}: {record.path} was asked with a cookie")
    return found


@dataclass(slots=True)
class Webs:
    """The webs of one crawl, and what is to be seen of them before it is stopped."""

    honest: WebProcess
    hostile: WebProcess | None
    pages: int

    def seeds(self) -> list[str]:
        """Honest ones evenly among the hostile ones."""
        if self.hostile is None:
            return self.honest.seeds
        mixed = list(self.hostile.seeds)
        step = len(mixed) // len(self.honest.seeds) + 1
        for number, seed in enumerate(self.honest.seeds):
            mixed.insert(number * step, seed)
        return mixed

    def honest_pages(self) -> list[AccessRecord]:
        """The first visit of each page."""
        first = {}
        for record in self.honest.records():
            if record.path != "/robots.txt":
                first.setdefault((record.host, record.path), record)
        return [record for record in first.values() if not record.path.startswith("/private")]

    def hostile_records(self) -> list[AccessRecord]:
        return self.hostile.records() if self.hostile else []


def run_campaign(
    kinds: Sequence[str],
    database_url: str,
    folder: Path,
    *,
    honest: int = HONEST_HOSTS,
    patience_s: float = 90.0,
    until_attacked: bool = False,
    **more: object,
) -> Figures:
    """Crawl until all honest pages are there (or, `until_attacked`, all hostile ones were asked),
    or until patience ends; then stop the worker, and say what it was like.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        honest_web = stack.enter_context(WebProcess(folder / "honest.jsonl", honest=honest))
        hostile_web = None
        names = honest_web.dns_hosts
        if kinds:
            hostile_web = stack.enter_context(WebProcess(folder / "hostile.jsonl", kinds=kinds))
            names = names | hostile_web.dns_hosts
        webs = Webs(honest_web, hostile_web, honest * HONEST_PAGES)
        (folder / "seeds").write_text("\n".join(webs.seeds()))
        (folder / "lags").touch()
        settings = {
            "DATABASE_URL": database_url,
            "DNS_HOSTS": names,
            "LAG_FILE": folder / "lags",
            **SETTINGS,
            **more,
        }
        args = ["site", "-a", f"seeds_file={folder / 'seeds'}"]
        begun = time.monotonic()
        crawl = stack.enter_context(start_crawl(args, settings, folder / "crawl"))
        memory = Memory(crawl.process)
        memory.start()
        _wait(webs, crawl, begun + patience_s, until_attacked=until_attacked)
        stopped = time.monotonic()
        figures = _stop(crawl)
        figures.stop_s = time.monotonic() - stopped
        memory.join()
        figures.worker_mb = memory.worker_mb
        if memory.killed:
            figures.errors += f"killed: it took {memory.worker_mb} MB"
        figures.children_mb = memory.children_mb
        time.sleep(0.3)  # what the end cut off is logged
        _judge(figures, webs, begun, folder)
    return figures


def _wait(webs: Webs, crawl: Crawl, deadline: float, *, until_attacked: bool) -> None:
    attacked_at = 0.0
    while time.monotonic() < deadline and crawl.process.poll() is None:
        time.sleep(0.25)
        if len(webs.honest_pages()) >= webs.pages:
            return
        if until_attacked and not attacked_at and _all_attacked(webs):
            attacked_at = time.monotonic()
        if attacked_at and time.monotonic() > attacked_at + 2:
            return


def _all_attacked(webs: Webs) -> bool:
    asked = {(record.host.partition(":")[0], record.path) for record in webs.hostile_records()}
    kinds = [kind for kind in KINDS.values() if webs.hostile and kind.host in webs.hostile.hosts]
    return all(
        (kind.host, f"/a{number}") in asked for kind in kinds for number in range(1, kind.pages + 1)
    )


def _stop(crawl: Crawl) -> Figures:
    """With a signal; a worker that does not end is killed."""
    with suppress(OSError):
        crawl.stop(signal.SIGTERM)
    try:
        result = crawl.wait(30)
        errors = [line for line in result.log.splitlines() if "ERROR" in line or "CRIT" in line]
        return Figures(code=result.code, errors="\n".join(errors[:20]) + result.stderr[-2_000:])
    except subprocess.TimeoutExpired:
        crawl.process.kill()
        return Figures(code=-9, errors="it did not end 30 s after its signal")


def _judge(figures: Figures, webs: Webs, begun: float, folder: Path) -> None:
    pages = webs.honest_pages()
    hostile = webs.hostile_records()
    figures.wanted = webs.pages
    figures.pages = len(pages)
    figures.honest_s = max((record.ended for record in pages), default=begun) - begun
    figures.gap_s = largest_gap_s(webs.honest.records())
    figures.hostile_requests = len(hostile)
    figures.hostile_hosts = len({record.host for record in hostile})
    lags: dict[str, float] = defaultdict(float)
    for lag in read_lags(folder / "lags"):
        figures.lag_s = max(figures.lag_s, lag["late_s"])
        figures.late_s += lag["late_s"]
        figures.cpu_s = max(figures.cpu_s, lag["cpu_s"])
        where = f"{_host(lag['url']) or '?'} {lag['where']}"
        lags[where] = max(lags[where], lag["cpu_s"])
    figures.lags = dict(sorted(lags.items(), key=lambda pair: -pair[1]))
    figures.broken = broken_rules([*webs.honest.records(), *hostile])
    logs = [str(path) for path in folder.glob("crawl/log/requests-*.jsonl")]
    audited = run_command(["politeness", "audit", *logs], folder)
    figures.audit = (audited.stdout + audited.stderr).strip() or f"exit {audited.code}"


@contextmanager
def own_databases() -> Iterator[Callable[[], str]]:
    """A Postgres of its own, for runs by hand: what is given makes a new database on it."""
    numbers = count()
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        fast = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        server = EmbeddedPostgres(Path(folder), None, fast)
        main_url = server.start()
        admin = Database(main_url)

        def make() -> str:
            name = f"campaign{next(numbers)}"
            admin.run_script(f"create database {name}")
            url = main_url.replace("postgresql:///postgres?", f"postgresql:///{name}?")
            database = Database(url)
            migrate(database)
            database.close()
            return url

        yield make
        admin.close()
        server.close()


def run_by_hand(names: Sequence[str], *, each: int, honest: int) -> None:
    """Print the figures of one crawl of all these kinds, or of one for each so many of them."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with own_databases() as new_database:
        step = each or len(names)
        for at in range(0, len(names), step):
            chosen = names[at : at + step]
            with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
                figures = run_campaign(
                    chosen,
                    new_database(),
                    Path(folder),
                    honest=honest,
                    until_attacked=bool(each),
                    patience_s=40.0 if each else 120.0,
                )
            print(f"{','.join(chosen)[:40]:24} {figures}", flush=True)
            for host, lag_s in list(figures.lags.items())[:60]:
                print(f"    {lag_s:7.3f} s {host}", flush=True)
            for text in figures.broken[:20]:
                print("    broken:", text, flush=True)
            if figures.errors.strip():
                print("    errors:", figures.errors[-1500:].replace("\n", "\n        "), flush=True)
