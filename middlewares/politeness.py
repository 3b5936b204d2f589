"""No request passes before its host's clock, whoever made it.

The download handler sets the clock from what comes back (`crawlproj/fetch/handler.py`). The
scheduler plans the pauses, so nothing of it should have to be held here: what is held is counted as
`politeness/held`. Requests that go past the scheduler wait here for their turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from crawlproj.fetch.pages import RefusedError
from crawlproj.scheduling.scheduler import worker_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler


class PolitenessMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        ticket = request.meta.get("ticket")
        if ticket is None:
            await self._wait_for_turn(request)
            return
        worker = worker_of(self._crawler)
        wait_s = worker.wait_s(ticket)
        while wait_s > 0:
            self._crawler.stats.inc_value("politeness/held")
            await asyncio.sleep(wait_s)
            wait_s = worker.wait_s(ticket)
        if not worker.may_ask(ticket):
            self._crawler.stats.inc_value("politeness/too_late")
            raise RefusedError("shutdown")

    async def _wait_for_turn(self, request: Request) -> None:
        """Hold a request that did not come from the scheduler, such as a media pipeline's, until
        its host may be asked.
        """
        worker = worker_of(self._crawler)
        wait_s = worker.take_turn(request.url)
        while wait_s:
            await asyncio.sleep(wait_s)
            wait_s = worker.take_turn(request.url)
        if wait_s is None:
            self._crawler.stats.inc_value("refused/not_leased")
            raise RefusedError("not leased")
