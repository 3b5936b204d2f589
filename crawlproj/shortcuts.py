"""Parts of Scrapy without the steps that an ordinary page does not need; what comes out is the same. See docs/cost.md."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from pydispatch.dispatcher import Any as Anything  # type: ignore[import-untyped]
from pydispatch.dispatcher import connections, getAllReceivers, liveReceivers
from pydispatch.robustapply import robustApply  # type: ignore[import-untyped]
from scrapy import signals
from scrapy.core.downloader import Downloader, Slot
from scrapy.core.scraper import Scraper
from scrapy.pipelines import ItemPipelineManager
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import aiter_errback, deferred_from_coro, ensure_awaitable, iter_errback
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

log = logging.getLogger(__name__)


class Counts(MemoryStatsCollector):
    """Scrapy looks at each use whether somebody gives a spider, which is out of date. That takes longer than to count."""

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


class Signals(SignalManager):
    """Looks first whether anybody listens; and makes tasks only for listeners that wait for something."""

    def send_catch_log(self, signal: Any, **named: Any) -> list[tuple[Any, Any]]:
        return super().send_catch_log(signal, **named) if _heard(named.get("sender", self.sender), signal) else []

    async def send_catch_log_async(self, signal: Any, **named: Any) -> list[tuple[Any, Any]]:
        sender = named.setdefault("sender", self.sender)
        if "dont_log" in named:
            return await super().send_catch_log_async(signal, **named)
        results: list[tuple[Any, Any]] = []
        waiting: list[tuple[int, Awaitable[Any]]] = []
        for receiver in list(liveReceivers(getAllReceivers(sender, signal))):
            try:
                result = robustApply(receiver, signal=signal, **named)
            except Exception as error:
                result = _caught(receiver, error, named)
            if isawaitable(result):
                waiting.append((len(results), result))
            results.append((receiver, result))
        if waiting:
            ends = await asyncio.gather(*[_future(result) for _, result in waiting], return_exceptions=True)
            for (place, _), end in zip(waiting, ends, strict=True):
                receiver = results[place][0]
                results[place] = (receiver, _caught(receiver, end, named) if isinstance(end, Exception) else end)
        return results


def _future(result: Awaitable[Any]) -> Awaitable[Any]:
    return result.asFuture(asyncio.get_running_loop()) if isinstance(result, Deferred) else result


def _caught(receiver: Any, error: Exception, named: dict[str, Any]) -> Exception:
    words, more = "Error caught on signal handler: %(receiver)s", {"spider": named.get("spider")}
    log.error(words, {"receiver": receiver}, exc_info=error, extra=more)
    return error


def _heard(sender: Any, signal: Any) -> bool:
    for place in (id(sender), id(Anything)):
        listened = connections.get(place)
        if listened and (signal in listened or Anything in listened):
            return True
    return False


class DirectDownloader(Downloader):
    """A request whose slot is free and has no delay, as the scheduler hands them out, is not queued and needs no second task."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if type(crawler.signals) is SignalManager:
            crawler.signals.__class__ = Signals

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        self.active.add(request)
        return deferred_from_coro(self._fetch(request))

    async def _fetch(self, request: Request) -> Response | Request:
        try:
            return await self.middleware.download_async(self._enqueue_request, request)
        finally:
            self.active.remove(request)

    async def _enqueue_request(self, request: Request) -> Response:
        key, slot = self._get_slot(request)
        if _busy(slot):
            return await super()._enqueue_request(request)
        request.meta[self.DOWNLOAD_SLOT] = key
        slot.active.add(request)
        try:
            self.signals.send_catch_log(signals.request_reached_downloader, request=request, spider=self.crawler.spider)
            slot.lastseen = time.monotonic()
            return await self._download(slot, request)
        finally:
            slot.active.remove(request)


def _busy(slot: Slot) -> bool:
    return bool(slot.delay or slot.latercall or slot.queue or slot.free_transfer_slots() <= 0)


class DirectItems(ItemPipelineManager):
    """Waits for those pipelines only that make it wait; the others just return what goes to the next one."""

    async def open_spider_async(self) -> None:
        assert self.crawler is not None and self.crawler.engine is not None
        scraper = self.crawler.engine.scraper
        if type(scraper) is Scraper and scraper.concurrent_items == 1:
            scraper.__class__ = DirectScraper  # no setting names it
        await super().open_spider_async()

    async def process_item_async(self, item: Any) -> Any:
        for method in self.methods["process_item"]:
            assert method is not None
            result = method(item, self._spider) if method in self._mw_methods_requiring_spider else method(item)
            item = result if result is item else await ensure_awaitable(result, _warn=global_object_name(method))
        return item


class DirectScraper(Scraper):
    """What a callback yields is worked off here and now; a queue and two tasks per response are for several items at a time."""

    async def handle_spider_output_async(self, result: Any, request: Request, response: Response | Failure) -> None:
        if isinstance(result, AsyncIterator):
            async for output in aiter_errback(result, self.handle_spider_error, request, response):
                await self._process_spidermw_output_async(output, response)
            return
        for output in iter_errback(result, self.handle_spider_error, request, response):
            await self._process_spidermw_output_async(output, response)
