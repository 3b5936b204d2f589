"""Whether a crawl gets slower as it grows.

    python -m benchmarks.growth [--small 1e4 --big 1e6] [--bloat ENDS] [--dir FOLDER]

Two databases, filled with crawls of both sizes, are worked on in turn, round by round in one run,
so that whatever else the machine does hits both. Printed are CPU per page (this process and its
Postgres backend) of the cycle of leases, refills and commits, the CPU and the least time of a lease
of 100 hosts and of a worker's other queries, and the memory of a worker that has seen as many URLs.
Databases in FOLDER are kept and used again: the small one is soon used up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from benchmarks.bloat import bloat
from benchmarks.fill import fill
from benchmarks.rounds import Round
from crawlproj.content.document import Link
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.frontier.base import CrawlSpec, Lane, State, Ticket
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.frontier.seen import SeenUrls
from settings.base import FRONTIER_KNOWN_URLS

T = TypeVar("T")
GOALS = {"cpu_ratio": 1.1, "lease_cpu_ms": 10.0, "memory_mb": 10.0}
URLS_PER_HOST = 10
HELD = 50
"""Servers held at a time: few enough for the small crawl, so that the rounds of both are alike."""
LEASED = 40
"""Servers that come with about a hundred hosts."""
WARM_UP = 3
"""Rounds that don't count."""
INDEXES = (
    "url order by id",
    "url where lane is not null order by crawl, host, lane, rank, id",
    "page order by url",
    "page_version order by url, at",
    "page_links order by url",
)
"""Read once before the first round: in a crawl of this size they are in memory, if they fit."""


@dataclass(slots=True)
class Bench:
    """One database and what was measured on it."""

    urls: int
    dsn: str
    own_us: list[float] = field(default_factory=list)
    backend_us: list[float] = field(default_factory=list)
    cpu_ms: dict[str, list[float]] = field(default_factory=dict)
    wall_ms: dict[str, list[float]] = field(default_factory=dict)
    hosts: list[int] = field(default_factory=list)
    frontier: PostgresFrontier = field(init=False)
    backend: int = 0

    def __post_init__(self) -> None:
        self.frontier = PostgresFrontier(Database(self.dsn), CrawlSpec("growth"))
        self.frontier.open()
        ((self.backend,),) = self.frontier.db.run_script("select pg_backend_pid()")
        for order in INDEXES:
            self.frontier.db.run_script(
                f"set enable_seqscan = off; select count(*) from (select 1 from {order} offset 0) n"
            )
        self.frontier.db.run_script("reset enable_seqscan")

    def cycle(self, pages: int, seed: int) -> None:
        """Lease, refill, commit, release.

        The clocks of the hosts are reset afterwards, so that rounds are alike.
        """
        work = Round(self.frontier, seed=seed)
        own = time.process_time()
        backend = self._backend_s()
        work.lease(HELD)
        while work.pages < pages and (work.tickets or work.refill(4)):
            work.turn(100, self.frontier.now())
        work.release()
        self.own_us.append((time.process_time() - own) / work.pages * 1e6)
        self.backend_us.append((self._backend_s() - backend) / work.pages * 1e6)
        self.frontier.db.run_script(
            "update host set next_allowed = null where next_allowed is not null"
        )

    def ask(self) -> None:
        """Time each query of a worker by itself."""
        frontier = self.frontier
        work = Round(self.frontier, "asking")
        leases = self._timed("lease of 100 hosts", lambda: work.lease(LEASED, 4))
        self._timed("their first URLs", lambda: work.refill(1))
        held = [lease.server for lease in leases]
        self.hosts.append(sum(len(lease.hosts) for lease in leases))
        self._timed("arrivals", lambda: frontier.new_hosts_on_leases("asking", held, ()))
        self._timed("contested", lambda: frontier.contested_servers(held))
        self._timed("renew", lambda: frontier.renew_leases("asking", held))
        self._timed("unresolved", lambda: frontier.take_unresolved(64))
        self._timed("outdated", lambda: frontier.take_outdated(64))
        self._timed("outlook", lambda: frontier.outlook("asking"))
        self._timed("counts", frontier.count_urls)
        work.release()

    def _timed(self, name: str, work: Callable[[], T]) -> T:
        started = time.perf_counter()
        own = time.process_time()
        backend = self._backend_s()
        result = work()
        wall = time.perf_counter() - started
        self.wall_ms.setdefault(name, []).append(wall * 1e3)
        self.cpu_ms.setdefault(name, []).append(
            (time.process_time() - own + self._backend_s() - backend) * 1e3
        )
        return result

    def _backend_s(self) -> float:
        return int(Path(f"/proc/{self.backend}/schedstat").read_text().split()[0]) / 1e9

    def least_us(self) -> float:
        """CPU per page of the best quarter of the rounds: a busy machine only makes it slower."""
        return statistics.quantiles(map(sum, zip(self.own_us, self.backend_us, strict=True)), n=4)[
            0
        ]

    def least_lease_ms(self) -> float:
        both = (self.cpu_ms["lease of 100 hosts"], self.cpu_ms["their first URLs"])
        return statistics.quantiles(map(sum, zip(*both, strict=True)), n=4)[0]

    def figures(self) -> dict[str, object]:
        own = statistics.median(self.own_us)
        backend = statistics.median(self.backend_us)
        queries = {
            name: [round(statistics.median(ms), 1), round(min(self.wall_ms[name]), 1)]
            for name, ms in self.cpu_ms.items()
        }
        return {
            "urls": self.urls,
            "own_us": round(own),
            "backend_us": round(backend),
            "hosts": statistics.median(self.hosts),
            "cpu_and_least_wall_ms": queries,
        }


def known_mb(urls: int) -> float:
    """Peak memory of a process that has seen so many URLs."""
    command = [sys.executable, "-m", "benchmarks.growth", "--met", str(urls)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def meet(urls: int) -> float:
    seen = SeenUrls("growth", lambda _: True, FRONTIER_KNOWN_URLS)
    ticket = Ticket(1, "", "", server=1, epoch=1, visit=0, lane=Lane.NEW, state=State.NEW)
    for start in range(0, urls, 50):
        paths = [
            f"https://www.paper{start % 999}.example/an-article-of-some-length-{start + n}"
            for n in range(50)
        ]
        seen.classify_links(ticket, [Link(path, "a") for path in paths])
    # Not getrusage: its peak is that of the process that started this one, if that was bigger.
    (peak,) = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return int(peak.split()[1]) / 1024


def compare(folder: Path, sizes: list[int], rounds: int, pages: int) -> list[Bench]:
    with ExitStack() as stack:
        benches = []
        for urls in sizes:
            database_dir = folder / f"{urls}"
            fresh = not (database_dir / "pg").exists()
            dsn = stack.enter_context(EmbeddedPostgres(database_dir)).start()
            if fresh:
                fill(dsn, "growth", urls, hosts=urls // URLS_PER_HOST)
            benches.append(Bench(urls, dsn))
        for number in range(-WARM_UP, rounds):
            for bench in benches:
                bench.cycle(pages, number)
                for _ in range(3):
                    bench.ask()
                if number < 0:
                    bench.own_us = []
                    bench.backend_us = []
                    bench.cpu_ms = {}
                    bench.wall_ms = {}
        for bench in benches:
            bench.frontier.close()
        return benches


def report(benches: list[Bench]) -> bool:
    small, big = benches
    for bench in benches:
        print(json.dumps(bench.figures()), flush=True)
    cost, lease = (
        {bench.urls: pick(bench) for bench in benches}
        for pick in (Bench.least_us, Bench.least_lease_ms)
    )
    figures = {
        "cpu_ratio": round(cost[big.urls] / cost[small.urls], 3),
        "lease_cpu_ms": round(lease[big.urls], 1),
        "memory_mb": round(known_mb(big.urls) - known_mb(small.urls), 1),
    }
    missed = {name: goal for name, goal in GOALS.items() if figures[name] > goal}
    print(json.dumps(figures), f"NOT REACHED: {missed}" if missed else "", flush=True)
    return not missed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", type=float, default=1e4)
    parser.add_argument("--big", type=float, default=1e6)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--dir", type=Path)
    parser.add_argument(
        "--bloat", type=float, default=0, help="only this: what so many ends of visits leave behind"
    )
    parser.add_argument("--met", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.met:
        print(meet(given.met))
        return 0
    if given.bloat:
        for row in bloat(int(given.bloat)):
            print(json.dumps(row), flush=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="growth-") as folder:
        return (
            0
            if report(
                compare(
                    given.dir or Path(folder),
                    [int(given.small), int(given.big)],
                    given.rounds,
                    pages=given.pages,
                )
            )
            else 1
        )


if __name__ == "__main__":
    sys.exit(main())
