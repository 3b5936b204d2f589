"""Extension that shows how far a run on the archive is, and what came of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals

from crawlproj.cli.screen import MODES, WITHOUT_SCREEN, Screen, format_elapsed, output_stream
from crawlproj.config import SettingsReader, one_of, parse_seconds
from crawlproj.formatting import format_count, format_duration

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlproj.reextract.scheduler import ArchiveScheduler

log = logging.getLogger(__name__)

LEFT_OUT = {
    "reextract/missing": "{} not in the archive, left out",
    "reextract/not_whole": "{} not whole when they came, left out",
    "reextract/unreadable": "{} damaged or without their original, left out (scrapy warc check "
                            "says more)",
    "reextract/no_callback": "{} for which the spider has no method, left out (--callback NAME "
                             "gives them one)",
    "spider_exceptions/count": "{} in the spider, see the log",
}  # fmt: skip
NAMES = {
    "reextract/missing": "request",
    "reextract/no_callback": "page",
    "spider_exceptions/count": "error",
}


class Progress:
    """A line every PANEL_INTERVAL, and at the end what was read and what was left out.

    With PANEL=off or log the lines are in the log only.
    """

    def __init__(self, crawler: Crawler) -> None:
        read = SettingsReader(crawler.settings)
        self._crawler = crawler
        self._interval_s = max(0.1, read("PANEL_INTERVAL", parse_seconds))
        self._screen: Screen | None = None
        if read("PANEL", one_of(*MODES)) not in WITHOUT_SCREEN:
            self._screen = Screen(output_stream(crawler), live=False)
        self._timer: asyncio.TimerHandle | None = None
        self._started = time.monotonic()
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_opened(self) -> None:
        self._started = time.monotonic()
        scheduler: ArchiveScheduler = self._crawler.engine.scheduler  # type: ignore[assignment]
        if files := scheduler.selector.count_unfinished():
            self._say(unfinished_text(files))
        self._schedule_tick()

    def _schedule_tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._tick)

    def _tick(self) -> None:
        self._schedule_tick()
        self._say(
            f"{format_elapsed(time.monotonic() - self._started)}  "
            f"{progress_text(self._crawler.stats.get_stats())}"
        )

    def spider_closed(self) -> None:
        if self._timer:
            self._timer.cancel()
        elapsed_s = time.monotonic() - self._started
        for line in summary_lines(self._crawler.stats.get_stats(), elapsed_s):
            self._say(line)

    def _say(self, text: str) -> None:
        log.info("%s", text)
        if self._screen is not None:
            self._screen.print_line(text)


def unfinished_text(files: int) -> str:
    return (
        f"{format_count(files, 'file')} still being written, or left open by a kill: left out "
        "(a crawl closes its files when it ends, scrapy warc repair those of a kill)"
    )


def progress_text(stats: Mapping[str, Any]) -> str:
    return (
        f"{format_count(stats.get('reextract/captures', 0), 'capture')} read, "
        f"{format_count(stats.get('item_scraped_count', 0), 'item')}"
    )


def summary_lines(stats: Mapping[str, Any], elapsed_s: float) -> list[str]:
    rate = stats.get("reextract/captures", 0) / max(elapsed_s, 0.001)
    lines = [
        f"{progress_text(stats)} in {format_duration(elapsed_s)} ({rate:,.0f} captures a second)"
    ]
    return lines + [
        "  " + text.format(format_count(stats[name], NAMES.get(name, "capture")))
        for name, text in LEFT_OUT.items()
        if stats.get(name)
    ]
