"""A Scrapy extension that measures CPU of this process, its children and Postgres during a crawl.

It counts from the first response to the end of the crawl.
"""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import signals

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

TICK = os.sysconf("SC_CLK_TCK")


def postgres_cpu_s(data_dir: Path) -> float:
    """CPU of a postmaster, its children, and those that have ended, in seconds."""
    try:
        root = int((data_dir / "postmaster.pid").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    # A child that ends while its time is read would be counted nowhere, or twice: read all again.
    for _ in range(100):
        ended = _ended(root)
        ticks = [sum(map(int, fields[11:13])) for fields in _family(root)]
        if ended == _ended(root):
            return (sum(ticks) + ended) / TICK if ticks else 0.0
        time.sleep(0.01)
    raise RuntimeError("Postgres starts and ends processes all the time")


def _fields(stat: Path) -> list[str]:
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _family(root: int) -> list[list[str]]:
    found = {int(stat.parent.name): _fields(stat) for stat in Path("/proc").glob("[0-9]*/stat")}
    return [
        fields
        for pid, fields in found.items()
        if fields and (pid == root or int(fields[1]) == root)
    ]


def children_cpu_s() -> float:
    """CPU of the processes that this one has started (readers of documents and of languages), also
    of those that have ended.
    """
    parent = os.getpid()
    ticks = [sum(map(int, fields[11:13])) for fields in _family(parent) if int(fields[1]) == parent]
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(ticks) / TICK + ended.ru_utime + ended.ru_stime


def children_rss_mb() -> int:
    """The memory of the biggest of those that have ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024


def _ended(root: int) -> int:
    return sum(map(int, _fields(Path(f"/proc/{root}/stat"))[13:15]))


class Meter:
    """Writes one JSON object to METER_FILE when the crawl has ended."""

    def __init__(self, crawler: Crawler) -> None:
        self._out = Path(crawler.settings["METER_FILE"])
        self._data = Path(crawler.settings["METER_PG_DATA"])
        self._stats = crawler.stats
        self._pages = 0
        self._first: tuple[float, float, float, float] | None = None
        self._reader_mb = 0
        crawler.signals.connect(self.page, signal=signals.response_received)
        crawler.signals.connect(self.closed, signal=signals.engine_stopped)
        crawler.signals.connect(self.before_close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _now(self) -> tuple[float, float, float, float]:
        return (
            time.perf_counter(),
            time.process_time(),
            postgres_cpu_s(self._data),
            children_cpu_s(),
        )

    def page(self, **_: Any) -> None:
        self._pages += 1
        if self._first is None:
            self._first = self._now()

    def before_close(self, **_: Any) -> None:
        self._last = self._now()
        self._reader_mb = children_rss_mb()

    def closed(self, **_: Any) -> None:
        assert self._first is not None
        wall, own, postgres, readers = (
            last - first for last, first in zip(self._last, self._first, strict=True)
        )
        self._out.write_text(
            json.dumps(
                {
                    "kind": "crawlproj",
                    "pages": self._pages,
                    "cpu_us_per_page": round((own + postgres + readers) / self._pages * 1e6),
                    "own_us": round(own / self._pages * 1e6),
                    "postgres_us": round(postgres / self._pages * 1e6),
                    "readers_us": round(readers / self._pages * 1e6),
                    "reader_rss_mb": self._reader_mb,
                    "pages_per_s": round(self._pages / wall, 1),
                    "starved": self._stats.get_value("scheduler/starved", 0),
                    "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                }
            )
        )
