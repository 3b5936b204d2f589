"""No request passes before its host's clock, whoever made it; and the clock is set from what comes
back.

The scheduler plans the pauses, so nothing should have to be held here: what is held is counted as
`politeness/held`.
"""

from __future__ import annotations

import asyncio
import time
from random import random
from typing import TYPE_CHECKING

from crawlproj.fetch.pages import RefusedError
from crawlproj.http.status import RETRYABLE, parse_retry_after
from crawlproj.politeness.clocks import FetchTiming
from crawlproj.scheduling.scheduler import worker_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class PolitenessMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        ticket = request.meta.get("ticket")
        if ticket is not None:
            worker = worker_of(self._crawler)
            wait_s = worker.wait_s(ticket)
            while wait_s > 0:
                self._crawler.stats.inc_value("politeness/held")
                await asyncio.sleep(wait_s)
                wait_s = worker.wait_s(ticket)
            if not worker.may_ask(ticket):
                self._crawler.stats.inc_value("politeness/too_late")
                raise RefusedError("shutdown")
        request.meta["started"] = time.monotonic()

    def process_response(self, request: Request, response: Response) -> Response:
        failed = response.status in RETRYABLE
        retry_after_s = None
        header = response.headers.get("Retry-After")
        if failed and header:
            now = worker_of(self._crawler).clock.now()
            retry_after_s = parse_retry_after(header.decode("latin-1"), now)
        self._update_clocks(request, failed=failed, retry_after_s=retry_after_s)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if not isinstance(exception, RefusedError):
            self._update_clocks(request, failed=True)

    def _update_clocks(
        self, request: Request, *, failed: bool, retry_after_s: float | None = None
    ) -> None:
        ticket = request.meta.get("ticket")
        started = request.meta.get("started")
        if ticket is not None and started is not None:
            ended = time.monotonic()
            request.meta["ended"] = ended
            timing = FetchTiming(
                started, ended, failed, retry_after_s=retry_after_s, jitter=random()
            )
            worker_of(self._crawler).note_response(ticket, timing)
