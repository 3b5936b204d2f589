"""An extension that measures how late the event loop is."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from scrapy import signals

STEP_S = 0.005


class LoopLag:
    """The stat `lag/largest_s`: the longest that a timer was late."""

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler
        crawler.signals.connect(self.start, signal=signals.spider_opened)
        crawler.signals.connect(self.stop, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Any) -> LoopLag:
        return cls(crawler)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._measure())

    def stop(self) -> None:
        self._task.cancel()

    async def _measure(self) -> None:
        largest_s = 0.0
        while True:
            started = time.monotonic()
            await asyncio.sleep(STEP_S)
            late_s = time.monotonic() - started - STEP_S
            if late_s > largest_s:
                largest_s = late_s
                self._crawler.stats.set_value("lag/largest_s", largest_s)
