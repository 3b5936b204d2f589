"""What one of several workers tells the command that started it: warnings, and what it counted."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawlproj.cli.worker_reports import ReportPipe, worker_place
from crawlproj.config import config_of
from crawlproj.extensions.log_rotation import LogRotation
from crawlproj.extensions.panel import Panel, TerminalLog

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

INTERVAL_S = 2.0


class WorkerReport(Panel):
    """The Scrapy extension that stands in for the panel; off but in workers of `scrapy workers`."""

    def __init__(self, crawler: Crawler) -> None:
        place = worker_place()
        if place is None:
            raise NotConfigured
        try:
            self._pipe = ReportPipe(place.pipe)
        except OSError:
            raise NotConfigured from None
        self._crawler = crawler
        self._config = config_of(crawler)
        self._started = time.monotonic()
        self._handler = TerminalLog(self._pipe)
        self._rotation = LogRotation(crawler.settings.get("LOG_FILE"), self._config.log_dir)
        self._timer: asyncio.TimerHandle | None = None
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)

    def spider_opened(self, spider: Spider) -> None:
        self._started = time.monotonic()
        logging.root.addHandler(self._handler)
        self._tick()

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._tick)
        self._rotation.rotate_if_due()
        self._pipe.send({"stats": self._counts()})

    def _counts(self) -> dict[str, object]:
        stats = self._crawler.stats.get_stats()
        return {name: value for name, value in stats.items() if isinstance(value, int | float)}

    def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._timer:
            self._timer.cancel()
        summary = self._summary(reason)
        end = {
            "reason": reason,
            "examples": dict(summary.examples),
            "locations": dict(summary.locations),
            "commands": dict(summary.commands),
            "notices": list(summary.notices),
            "freshness": summary.freshness,
            "age_s": summary.age_s,
        }
        self._pipe.send({"stats": self._counts(), "end": end}, last=True)
        logging.root.removeHandler(self._handler)
