"""Parts of Scrapy without the steps that an ordinary page does not need; what comes out is the
same. See docs/cost.md.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from functools import lru_cache
from inspect import CO_VARKEYWORDS, isawaitable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from pydispatch.dispatcher import Any as Anything  # type: ignore[import-untyped]
from pydispatch.dispatcher import connections, getAllReceivers, liveReceivers
from pydispatch.robustapply import robustApply  # type: ignore[import-untyped]
from scrapy import Request, signals
from scrapy.core import scraper as scrapers
from scrapy.core.downloader import Downloader, Slot
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.scraper import Scraper
from scrapy.exceptions import _InvalidOutput
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils import signal as scrapy_signals
from scrapy.utils.defer import aiter_errback, deferred_from_coro, ensure_awaitable, iter_errback
from scrapy.utils.misc import warn_on_generator_with_return_value
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

log = logging.getLogger(__name__)


class DirectStats(MemoryStatsCollector):
    """Scrapy looks at each use whether somebody gives a spider, which is out of date. That takes
    longer than to count.
    """

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


class DirectSignals(SignalManager):
    """Looks first whether anybody listens; and makes tasks only for listeners that wait for
    something.
    """

    def send_catch_log(self, signal: Any, **named: Any) -> list[tuple[Any, Any]]:
        return (
            super().send_catch_log(signal, **named)
            if _has_receivers(named.get("sender", self.sender), signal)
            else []
        )

    async def send_catch_log_async(self, signal: Any, **named: Any) -> list[tuple[Any, Any]]:
        sender = named.setdefault("sender", self.sender)
        if "dont_log" in named:
            return await super().send_catch_log_async(signal, **named)
        results: list[tuple[Any, Any]] = []
        waiting: list[tuple[int, Awaitable[Any]]] = []
        for receiver in list(liveReceivers(getAllReceivers(sender, signal))):
            try:
                result = call_receiver(receiver, signal=signal, **named)
            except Exception as error:
                result = _caught(receiver, error, named)
            if isawaitable(result):
                waiting.append((len(results), result))
            results.append((receiver, result))
        if waiting:
            ends = await asyncio.gather(
                *[_future(result) for _, result in waiting], return_exceptions=True
            )
            for (place, _), end in zip(waiting, ends, strict=True):
                receiver = results[place][0]
                results[place] = (
                    receiver,
                    _caught(receiver, end, named) if isinstance(end, Exception) else end,
                )
        return results


@lru_cache(256)
def _wanted(function: FunctionType) -> tuple[str, ...] | None:
    """The arguments that a method takes; None: all."""
    code = function.__code__
    return None if code.co_flags & CO_VARKEYWORDS else code.co_varnames[1 : code.co_argcount]


def call_receiver(receiver: Any, *arguments: Any, **named: Any) -> Any:
    """Calls who listens with what he wants to hear. pydispatch finds that out anew each time."""
    if (
        arguments
        or not isinstance(receiver, MethodType)
        or not isinstance(receiver.__func__, FunctionType)
    ):
        return robustApply(receiver, *arguments, **named)
    wanted = _wanted(receiver.__func__)
    return (
        receiver(**named)
        if wanted is None
        else receiver(**{name: named[name] for name in wanted if name in named})
    )


def _future(result: Awaitable[Any]) -> Awaitable[Any]:
    return result.asFuture(asyncio.get_running_loop()) if isinstance(result, Deferred) else result


def _caught(receiver: Any, error: Exception, named: dict[str, Any]) -> Exception:
    words = "Error caught on signal handler: %(receiver)s"
    more = {"spider": named.get("spider")}
    log.error(words, {"receiver": receiver}, exc_info=error, extra=more)
    return error


def _has_receivers(sender: Any, signal: Any) -> bool:
    for place in (id(sender), id(Anything)):
        listened = connections.get(place)
        if listened and (signal in listened or Anything in listened):
            return True
    return False


class DirectDownloader(Downloader):
    """A request whose slot is free and has no delay, as the scheduler hands them out, is not queued
    and needs no second task.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if type(crawler.signals) is SignalManager:
            crawler.signals.__class__ = DirectSignals
            scrapy_signals.robustApply = call_receiver  # type: ignore[attr-defined]
        if type(self.middleware) is DownloaderMiddlewareManager:
            self.middleware.__class__ = DirectMiddlewares
        if type(self.handlers) is DownloadHandlers:
            self.handlers.__class__ = DirectHandlers

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
            self.signals.send_catch_log(
                signals.request_reached_downloader, request=request, spider=self.crawler.spider
            )
            slot.lastseen = time.monotonic()
            return await self._download(slot, request)
        finally:
            slot.active.remove(request)


def _busy(slot: Slot) -> bool:
    return bool(slot.delay or slot.latercall or slot.queue or slot.free_transfer_slots() <= 0)


class DirectHandlers(DownloadHandlers):
    """To know that a URL begins with http, all of it need not be parsed."""

    async def download_request_async(self, request: Request) -> Response:
        handler = self._handlers.get(scheme := request.url.partition(":")[0])
        if handler is None or scheme in self._old_style_handlers:
            return await super().download_request_async(request)
        return await handler.download_request(request)


class DirectMiddlewares(DownloaderMiddlewareManager):
    """Waits for those methods only that make it wait: most return nothing, or the answer as it
    came.
    """

    async def _process_request(
        self, request: Request, download_func: Callable[[Request], Coroutine[Any, Any, Response]]
    ) -> Response | Request:  # fmt: skip
        for method in self.methods["process_request"]:
            assert method is not None
            result = self._handle_mw_method(method, request=request)
            if result is not None and (answer := await _awaited(result, method)) is not None:
                return _sound(answer, method)
        return await download_func(request)

    async def _process_response(
        self, response: Response | Request, request: Request
    ) -> Response | Request:
        if not isinstance(response, Response):
            return await super()._process_response(response, request)
        for method in self.methods["process_response"]:
            assert method is not None
            result = self._handle_mw_method(method, request=request, response=response)
            if result is not response:
                response = _sound(await _awaited(result, method), method)
                if isinstance(response, Request):
                    break
        return response


def _awaited(result: Any, method: Callable[..., Any]) -> Awaitable[Any]:
    return ensure_awaitable(result, _warn=global_object_name(method))


def _sound(result: Any, method: Callable[..., Any]) -> Response | Request:
    if isinstance(result, Response | Request):
        return result
    name = getattr(method, "__qualname__", method)
    raise _InvalidOutput(f"Middleware {name} must return Response or Request, got {type(result)}")


class DirectItems(ItemPipelineManager):
    """Waits for those pipelines only that make it wait; the others just return what goes to the
    next one.
    """

    async def open_spider_async(self) -> None:
        assert self.crawler is not None and self.crawler.engine is not None
        scraper = self.crawler.engine.scraper
        if type(scraper) is Scraper and scraper.concurrent_items == 1:
            scraper.__class__ = DirectScraper  # no setting names it
        scrapers.warn_on_generator_with_return_value = warn_once  # type: ignore[attr-defined]
        await super().open_spider_async()

    async def process_item_async(self, item: Any) -> Any:
        for method in self.methods["process_item"]:
            assert method is not None
            result = (
                method(item, self._spider)
                if method in self._mw_methods_requiring_spider
                else method(item)
            )
            item = result if result is item else await _awaited(result, method)
        return item


_judged: set[FunctionType] = set()
MOST_JUDGED = 1_000


def warn_once(spider: Spider, callable: Callable[..., Any]) -> None:  # Scrapy names it so
    """Scrapy looks into the code of each callback, each time it is called, for a value that a
    generator returns: what it notes of a method is lost with the bound method, which is another one
    each time.
    """
    function = callable.__func__ if isinstance(callable, MethodType) else None
    if function not in _judged:
        warn_on_generator_with_return_value(spider, callable)
        if isinstance(function, FunctionType) and len(_judged) < MOST_JUDGED:
            _judged.add(function)


class DirectScraper(Scraper):
    """What a callback yields is worked off here and now; a queue and two tasks per response are for
    several items at a time.
    """

    async def handle_spider_output_async(
        self, result: Any, request: Request, response: Response | Failure
    ) -> None:
        if isinstance(result, AsyncIterator):
            async for output in aiter_errback(result, self.handle_spider_error, request, response):
                await self._process_spidermw_output_async(output, response)
            return
        for output in iter_errback(result, self.handle_spider_error, request, response):
            await self._process_spidermw_output_async(output, response)
