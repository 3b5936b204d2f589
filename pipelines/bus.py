"""950: the live bus through Redis. Items of spiders go out when all other pipelines are done with
them; pushed URLs come in.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import DontCloseSpider, NotConfigured

from crawlproj.config import config_of
from crawlproj.fetch.requests import TICKET_META
from crawlproj.formatting import printable
from crawlproj.frontier.base import NewUrl
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.scheduling.notifications import PUSHES
from crawlproj.scheduling.scheduler import scheduler_of, worker_of
from crawlproj.scheduling.spider import LearnsSeeds
from crawlproj.urls.canonical import MAX_URL

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlproj.scheduling.redis.thread import PushResult

log = logging.getLogger(__name__)

PATIENCE_S = 30.0
"""So long the Redis thread waits for the event loop."""


class BusPipeline:
    """Off, and nothing of Redis is imported, unless REDIS_URL or REDIS_HOST is set or the spider is
    one of scrapy-redis's.
    """

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        if not (
            settings.get("REDIS_URL")
            or settings.get("REDIS_HOST")
            or hasattr(crawler.spidercls, "redis_key")
        ):
            raise NotConfigured
        self._crawler = crawler
        self._items = config_of(crawler).redis_items
        crawler.signals.connect(self.spider_idle, signal=signals.spider_idle)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def open_spider(self) -> None:
        from scrapy_redis.pipelines import RedisPipeline  # type: ignore[import-untyped]

        from crawlproj.scheduling.redis.connection import RedisConnection, connect_redis
        from crawlproj.scheduling.redis.push_format import (
            requests_from_push,
            start_key,
            stop_spider_polling,
        )
        from crawlproj.scheduling.redis.push_queue import PushQueue
        from crawlproj.scheduling.redis.thread import RedisThread

        settings = self._crawler.settings
        spider = self._crawler.spider
        frontier = worker_of(self._crawler).frontier
        assert spider is not None
        stop_spider_polling(spider)
        # A spider that learns its seeds decides by them where to go: a push is none of them.
        self._depth = 0
        if isinstance(spider, LearnsSeeds):
            self._depth = 1
        self._loop = asyncio.get_running_loop()
        self._requests_of = requests_from_push
        self._out = RedisPipeline.from_settings(settings)
        connection = RedisConnection(connect_redis(settings))
        self._frontier = PostgresFrontier(frontier.db.new_connection(), frontier.spec)
        pushes = PushQueue(connection.client, start_key(settings, spider))
        self._redis_thread = RedisThread(
            connection,
            pushes,
            self._frontier,
            read=self._parse_pushes,
            came=self._count_pushes,
            tell=self._notify_workers,
            on_loop=self._on_loop,
        )
        self._frontier.open()
        self._redis_thread.start()
        log.info(
            "URLs pushed to %s of Redis at %s are fetched first", pushes.key, connection.location
        )

    async def close_spider(self) -> None:
        await asyncio.to_thread(self._redis_thread.flush_and_stop)
        self._frontier.close()
        if self._redis_thread.sent:
            self._crawler.stats.set_value("bus/items", self._redis_thread.sent)
        if self._redis_thread.lost:
            self._crawler.stats.set_value("bus/items_lost", self._redis_thread.lost)

    def spider_idle(self) -> None:
        if self._redis_thread.busy:
            raise DontCloseSpider

    def process_item(self, item: Any) -> Any:
        if self._items:
            self._redis_thread.send_item(
                self._out.item_key(item, self._crawler.spider), self._out.serialize(item)
            )
        return item

    def _parse_pushes(self, payloads: Sequence[bytes | str]) -> tuple[list[NewUrl], int]:
        """Rows for the frontier, and the number of pushes that made no sense."""
        spider = self._crawler.spider
        rows = []
        bad = 0
        assert spider is not None
        for payload in payloads:
            try:
                found = [self._row(request) for request in self._requests_of(payload, spider)]
                rows += [row for row in found if row is not None]
                if None in found:
                    bad += 1
            except Exception as error:
                why = printable(str(error))[:200]
                log.warning("This push is left out: %r: %s", payload[:200], why)
                bad += 1
        return rows, bad

    def _row(self, request: Request) -> NewUrl | None:
        """The row of a pushed request, without what is ours in its `meta`."""
        if len(request.url) > MAX_URL:
            raise ValueError("the URL is too long")
        for name in TICKET_META:
            request.meta.pop(name, None)
        request.dont_filter = True
        request.meta["depth"] = self._depth
        return scheduler_of(self._crawler).row_of(request, pushed=True)

    def _count_pushes(self, arrived: PushResult) -> None:
        count = self._crawler.stats.inc_value
        spider = self._crawler.spider
        count("bus/taken", arrived.taken)
        if arrived.bad:
            count("bus/bad", arrived.bad)
        if arrived.seen:
            count("bus/seen", arrived.seen)
        if spider is not None and hasattr(spider, "spider_idle_start_time"):
            spider.spider_idle_start_time = int(time.time())
        worker_of(self._crawler).note_pushed()

    def _notify_workers(self) -> None:
        self._frontier.db.notify(PUSHES, self._frontier.spec.name)

    def _on_loop(self, call: Callable[[], object]) -> object:
        """Make a call on the event loop, from another thread, and wait for its result."""
        result: Future[object] = Future()
        self._loop.call_soon_threadsafe(_set_result, result, call)
        return result.result(PATIENCE_S)


def _set_result(result: Future[object], call: Callable[[], object]) -> None:
    try:
        result.set_result(call())
    except BaseException as error:
        result.set_exception(error)
