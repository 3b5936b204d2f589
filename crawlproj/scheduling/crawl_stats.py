"""What a crawl does over time: a row a minute in the database, by which its history is told.

The event loop says what its stats have gained since the last time; the database thread writes it.
A worker that is killed loses some seconds of its figures, and nothing else.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from crawlproj.articles.delays import count_delays
from crawlproj.database.arrays import array_literal
from crawlproj.frontier.postgres import PostgresFrontier

GAP_S: Final = 10.0
"""How often figures are written."""
DELAYS_GAP_S: Final = 60.0
DELAYS_BACK: Final = timedelta(minutes=2)
"""So far back the delays of articles are counted anew: whoever counts a minute counts it for all
workers, and again when the articles of slow commits are there.
"""
ROLL_GAP_S: Final = 3600.0
DAY_S: Final = 86_400
ROLLS: Final = (
    {"from_s": 60, "to_s": 3600, "unit": "hour", "age_s": 2 * DAY_S},
    {"from_s": 3600, "to_s": DAY_S, "unit": "day", "age_s": 60 * DAY_S},
)
FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "fetches": ("response_received_count",),
    "new": ("pages/first",),
    "changed": ("pages/changed",),
    "unchanged": ("pages/same_bytes", "pages/same_text", "pages/not_modified", "pages/noise"),
    "copies": ("duplicates/exact", "duplicates/text", "duplicates/near", "duplicates/paragraph"),
    "articles": ("articles/new",),
    "article_versions": ("articles/versions",),
    "useful": ("articles/new", "articles/versions"),
    "bytes": ("pages/bytes",),
    "weight": ("revisit/weight",),
    "weight_changed": ("revisit/weight_changed",),
}
"""Columns of `crawl_stat`, and the stats that each is the sum of. Useful is a fetch that brought an
article, or a new version of one.
"""
FAILED: Final = "failed/"


def read_figures(stats: Mapping[str, Any]) -> Counter[str]:
    """The figures of a run so far."""
    figures = Counter(
        {name: sum(stats.get(stat, 0) for stat in sources) for name, sources in FIGURES.items()}
    )
    figures["failed"] = sum(number for name, number in stats.items() if name.startswith(FAILED))
    return figures


class StatsReader:
    """Gives what the stats have gained since it was last asked. On the event loop."""

    def __init__(self) -> None:
        self._before: Counter[str] = Counter()

    def gained(self, stats: Mapping[str, Any]) -> Counter[str]:
        figures = read_figures(stats)
        gained = figures - self._before
        self._before = figures
        return gained


class CrawlStats:
    """Writes figures into the database, in the database thread."""

    def __init__(self, frontier: PostgresFrontier) -> None:
        self._frontier = frontier
        self._waiting: Counter[str] = Counter()
        self._written_at = time.monotonic()
        self._rolled_at: float | None = None
        self._has_articles = False
        """Articles were stored since their delays were counted."""
        self._counted_at = time.monotonic()

    def add(self, figures: Mapping[str, int]) -> None:
        """Take figures that are to be written some time."""
        self._waiting.update(figures)

    def write_if_due(self) -> None:
        """Write what has come, unless that was done just now."""
        if time.monotonic() - self._written_at >= GAP_S:
            self._write_figures()
            if time.monotonic() - self._counted_at >= DELAYS_GAP_S:
                self._write_delays()

    def write(self) -> None:
        """Write what has come, and how soon the articles of the last minutes were fetched."""
        self._write_figures()
        self._write_delays()

    def _write_figures(self) -> None:
        self._written_at = time.monotonic()
        crawl = self._frontier.crawl_id
        if self._waiting:
            figures = {name: self._waiting[name] for name in (*FIGURES, "failed")}
            self._frontier.db.run("add_crawl_stat", crawl=crawl, **figures)
            self._has_articles |= figures["articles"] > 0
            self._waiting.clear()
        if self._rolled_at is None or time.monotonic() - self._rolled_at >= ROLL_GAP_S:
            for roll in ROLLS:
                self._frontier.db.run("roll_crawl_stats", crawl=crawl, **roll)
            self._rolled_at = time.monotonic()

    def _write_delays(self) -> None:
        """Count the delays of the articles of the last minutes."""
        self._counted_at = time.monotonic()
        if not self._has_articles:
            return
        self._has_articles = False
        frontier = self._frontier
        first = frontier.now().replace(second=0, microsecond=0) - DELAYS_BACK
        minutes = count_delays(frontier.db, frontier.crawl_id, first)
        frontier.db.run(
            "put_delays",
            crawl=frontier.crawl_id,
            at=array_literal(list(minutes)),
            delays=array_literal([json.dumps(counts) for counts in minutes.values()]),
        )
