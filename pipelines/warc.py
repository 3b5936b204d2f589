"""300: every exchange that reached the network goes into the archive, also one whose page is
dropped before it gets here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawlproj.items import Page
from crawlproj.scheduling.scheduler import worker_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class WarcPipeline:
    wants_pages = True

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("WARC_ENABLED"):
            raise NotConfigured
        self._crawler = crawler
        # Connected before RevisitPipeline, so called before it: the end that it makes must know of
        # the record.
        crawler.signals.connect(self.process_item, signal=signals.item_dropped)
        crawler.signals.connect(self.process_item, signal=signals.item_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Page) and item.wire is not None:
            done = worker_of(self._crawler).archive_page(item)
            if done:
                self._crawler.stats.inc_value(f"warc/{done}")
        return item
