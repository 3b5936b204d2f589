"""Scrapy's own scheduler, in memory; where a crawl has its worker it has the hosts' clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.core.scheduler import Scheduler

from crawlproj.oneoff.polite_hosts import PoliteHosts, polite_hosts_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred


class OneOffScheduler(Scheduler):
    """Scrapy's queue of requests, lost when the command ends."""

    worker: PoliteHosts
    """Whom the download handler asks (`crawlproj.fetch.handler.LeasedHosts`)."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        scheduler = super().from_crawler(crawler)
        scheduler.worker = polite_hosts_of(crawler)
        return scheduler

    def open(self, spider: Spider) -> Deferred[None] | None:
        if hasattr(spider, "redis_key") and hasattr(spider, "spider_idle"):
            from crawlproj.scheduling.redis.push_format import stop_spider_polling

            # What is pushed is for a crawl, and waiting for more of it would never end.
            stop_spider_polling(spider)
            spider.crawler.signals.disconnect(spider.spider_idle, signal=signals.spider_idle)
        return super().open(spider)
