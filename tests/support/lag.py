"""An extension that measures how late the event loop is."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from scrapy import signals

STEP_S = 0.005


class LoopLag:
    """The stats `lag/largest_s` and `lag/p99_s`: how late timers were."""

    def __init__(self, crawler: Any) -> None:
        self._crawler = crawler
        self._lags: list[float] = []
        crawler.signals.connect(self.start, signal=signals.spider_opened)
        crawler.signals.connect(self.stop, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Any) -> LoopLag:
        return cls(crawler)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._measure())

    def stop(self) -> None:
        self._task.cancel()
        lags = sorted(self._lags)
        if lags:
            self._crawler.stats.set_value("lag/p99_s", lags[len(lags) * 99 // 100])

    async def _measure(self) -> None:
        largest_s = 0.0
        while True:
            started = time.monotonic()
            await asyncio.sleep(STEP_S)
            late_s = time.monotonic() - started - STEP_S
            self._lags.append(late_s)
            if late_s > largest_s:
                largest_s = late_s
                self._crawler.stats.set_value("lag/largest_s", largest_s)
