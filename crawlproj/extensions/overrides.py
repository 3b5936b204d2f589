"""Parts of Scrapy's engine without the steps that an ordinary page does not need.

Their results are the same; docs/cost.md says what each saves. Settings name the downloader, the
item processor and the stats; the others have no setting, so these put them in.
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
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils import signal as scrapy_signals
from scrapy.utils.defer import aiter_errback, deferred_from_coro, ensure_awaitable, iter_errback
from scrapy.utils.misc import warn_on_generator_with_return_value
from scrapy.utils.python import global_object_name
from twisted.internet.defer import Deferred

from crawlproj.extensions.feedexport import ItemScraper, SpiderItems

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

log = logging.getLogger(__name__)


class DirectStats(MemoryStatsCollector):
    """Stats without Scrapy's check, at each use, for a deprecated `spider` argument.

    The check takes longer than the counting.
    """

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


class DirectSignals(SignalManager):
    """Signals are sent only if somebody listens; tasks are made only for receivers that wait."""

    def send_catch_log(self, signal: Any, **named: Any) -> list[tuple[Any, Any]]:
        if not _has_receivers(named.get("sender", self.sender), signal):
            return []
        return super().send_catch_log(signal, **named)

    async def send_catch_log_async(self, signal: Any, **named: Any) -> list[tuple[Any, Any]]:
        sender = named.setdefault("sender", self.sender)
        if "dont_log" in named:
            return await super().send_catch_log_async(signal, **named)
        results: list[tuple[Any, Any]] = []
        pending: list[tuple[int, Awaitable[Any]]] = []
        for receiver in list(liveReceivers(getAllReceivers(sender, signal))):
            try:
                result = call_receiver(receiver, signal=signal, **named)
            except Exception as error:
                _log_error(receiver, error, named)
                result = error
            if isawaitable(result):
                pending.append((len(results), result))
            results.append((receiver, result))
        if pending:
            awaited = await asyncio.gather(
                *[_as_future(result) for _, result in pending], return_exceptions=True
            )
            for (index, _), result in zip(pending, awaited, strict=True):
                receiver, _ = results[index]
                if isinstance(result, Exception):
                    _log_error(receiver, result, named)
                results[index] = (receiver, result)
        return results


@lru_cache(256)
def _parameter_names(function: FunctionType) -> tuple[str, ...] | None:
    """The parameters of a method without `self`; None: it takes any by name."""
    code = function.__code__
    if code.co_flags & CO_VARKEYWORDS:
        return None
    return code.co_varnames[1 : code.co_argcount]


def call_receiver(receiver: Any, *arguments: Any, **named: Any) -> Any:
    """Call a receiver with the arguments that it takes, found out once per method.

    pydispatch's `robustApply`, whose place it takes, finds them out at each call.
    """
    if (
        arguments
        or not isinstance(receiver, MethodType)
        or not isinstance(receiver.__func__, FunctionType)
    ):
        return robustApply(receiver, *arguments, **named)
    names = _parameter_names(receiver.__func__)
    if names is None:
        return receiver(**named)
    return receiver(**{name: named[name] for name in names if name in named})


def _as_future(result: Awaitable[Any]) -> Awaitable[Any]:
    if isinstance(result, Deferred):
        return result.asFuture(asyncio.get_running_loop())
    return result


def _log_error(receiver: Any, error: Exception, named: dict[str, Any]) -> None:
    """The line that Scrapy logs."""
    log.error(
        "Error caught on signal handler: %(receiver)s",
        {"receiver": receiver},
        exc_info=error,
        extra={"spider": named.get("spider")},
    )


def _has_receivers(sender: Any, signal: Any) -> bool:
    """Whether somebody listens to the signal, from this sender or from any."""
    for sender_id in (id(sender), id(Anything)):
        receivers = connections.get(sender_id)
        if receivers and (signal in receivers or Anything in receivers):
            return True
    return False


class DirectDownloader(Downloader):
    """A downloader without queue and second task for a request whose slot is free, without delay.

    The scheduler hands out no others.
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
        if _must_queue(slot):
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


def _must_queue(slot: Slot) -> bool:
    return bool(slot.delay or slot.latercall or slot.queue or slot.free_transfer_slots() <= 0)


class DirectHandlers(DownloadHandlers):
    """Handlers found by the text before the colon: the whole URL need not be parsed for it."""

    async def download_request_async(self, request: Request) -> Response:
        scheme = request.url.partition(":")[0]
        handler = self._handlers.get(scheme)
        if handler is None or scheme in self._old_style_handlers:
            return await super().download_request_async(request)
        return await handler.download_request(request)


class DirectMiddlewares(DownloaderMiddlewareManager):
    """Middlewares, awaited only if need be: most return None, or the response as it came."""

    async def _process_request(
        self, request: Request, download_func: Callable[[Request], Coroutine[Any, Any, Response]]
    ) -> Response | Request:
        for method in self.methods["process_request"]:
            assert method is not None
            result = self._handle_mw_method(method, request=request)
            if result is None:
                continue
            result = await _awaitable(result, method)
            if result is not None:
                return _checked(result, method)
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
                response = _checked(await _awaitable(result, method), method)
                if isinstance(response, Request):
                    break
        return response


def _awaitable(result: Any, method: Callable[..., Any]) -> Awaitable[Any]:
    return ensure_awaitable(result, _warn=global_object_name(method))


def _checked(result: Any, method: Callable[..., Any]) -> Response | Request:
    if isinstance(result, Response | Request):
        return result
    name = getattr(method, "__qualname__", method)
    raise _InvalidOutput(f"Middleware {name} must return Response or Request, got {type(result)}")


class DirectItems(SpiderItems):
    """Pipelines as the add-on has them, which also put the direct scraper in."""

    async def open_spider_async(self) -> None:
        scrapers.warn_on_generator_with_return_value = warn_once  # type: ignore[attr-defined]
        await super().open_spider_async()

    def scraper_class(self, scraper: Scraper) -> type[ItemScraper]:
        if scraper.concurrent_items == 1:
            return DirectScraper
        return ItemScraper


_checked_callbacks: set[FunctionType] = set()
MAX_CHECKED = 1_000


def warn_once(spider: Spider, callable: Callable[..., Any]) -> None:  # Scrapy names it so
    """Scrapy's warning about generators that return a value, looked for once per callback.

    Scrapy looks into the code of a callback each time it is called: what it notes of a method is
    lost with the bound method, which is another object each time.
    """
    if not isinstance(callable, MethodType):
        warn_on_generator_with_return_value(spider, callable)
        return
    function = callable.__func__
    if function in _checked_callbacks:
        return
    warn_on_generator_with_return_value(spider, callable)
    if isinstance(function, FunctionType) and len(_checked_callbacks) < MAX_CHECKED:
        _checked_callbacks.add(function)


class DirectScraper(ItemScraper):
    """A scraper that processes what a callback yields at once, one after the other.

    Scrapy's queue and two tasks per response are for several items at a time.
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
