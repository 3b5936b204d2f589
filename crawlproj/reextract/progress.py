"""How far a run on the archive is, and what came of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals

from crawlproj.cli.screen import MODES, Screen, stopwatch, stream_of
from crawlproj.config import Reader, one_of, seconds
from crawlproj.formatting import count, span

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
    """A line every PANEL_INTERVAL, and at the end what was read and what was left out. With
    PANEL=off it is in the log only.
    """

    def __init__(self, crawler: Crawler) -> None:
        read = Reader(crawler.settings)
        self._crawler = crawler
        self._interval_s = max(0.1, read("PANEL_INTERVAL", seconds))
        self._screen = (
            Screen(stream_of(crawler), live=False)
            if read("PANEL", one_of(*MODES)) != "off"
            else None
        )
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
        if files := scheduler.choice.unfinished():
            self._say(unfinished(files))
        self._plan()

    def _plan(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._tick)

    def _tick(self) -> None:
        self._plan()
        self._say(
            f"{stopwatch(time.monotonic() - self._started)}  "
            f"{done(self._crawler.stats.get_stats())}"
        )

    def spider_closed(self) -> None:
        if self._timer:
            self._timer.cancel()
        elapsed_s = time.monotonic() - self._started
        for line in summary(self._crawler.stats.get_stats(), elapsed_s):
            self._say(line)

    def _say(self, text: str) -> None:
        log.info("%s", text)
        if self._screen is not None:
            self._screen.line(text)


def unfinished(files: int) -> str:
    return (
        f"{count(files, 'file')} still being written, or left open by a kill: left out (a crawl "
        "closes its files when it ends,"
        " scrapy warc repair those of a kill)"
    )


def done(stats: Mapping[str, Any]) -> str:
    return (
        f"{count(stats.get('reextract/captures', 0), 'capture')} read, "
        f"{count(stats.get('item_scraped_count', 0), 'item')}"
    )


def summary(stats: Mapping[str, Any], elapsed_s: float) -> list[str]:
    rate = stats.get("reextract/captures", 0) / max(elapsed_s, 0.001)
    lines = [f"{done(stats)} in {span(elapsed_s)} ({rate:,.0f} captures a second)"]
    return lines + [
        "  " + text.format(count(stats[name], NAMES.get(name, "capture")))
        for name, text in LEFT_OUT.items()
        if stats.get(name)
    ]
