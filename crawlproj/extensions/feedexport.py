"""Feeds, pipelines and signals of people get what spiders yield, but no Pages.

Pages are stored in the database, and are too long for a line of JSON. Who wants them says so:
`wants_pages = True`.
"""

from __future__ import annotations

import logging
from contextlib import closing, suppress
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydispatch.dispatcher import getAllReceivers, liveReceivers  # type: ignore[import-untyped]
from pydispatch.robustapply import robustApply  # type: ignore[import-untyped]
from scrapy import signals
from scrapy.core.scraper import Scraper
from scrapy.exceptions import DropItem
from scrapy.extensions.feedexport import FeedExporter
from scrapy.pipelines import ItemPipelineManager
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.log import logformatter_adapter
from scrapy.utils.python import global_object_name
from twisted.python.failure import Failure
from w3lib.url import file_uri_to_path

from crawlproj.cli.worker_reports import numbered_feed, worker_place
from crawlproj.errors import CrawlprojError
from crawlproj.formatting import format_count
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.items import Page
from crawlproj.scheduling.crawl_worker import CrawlWorker

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

log = logging.getLogger(__name__)


class ItemFeeds(FeedExporter):
    """Scrapy's feed exports without Pages, with a warning before a file is replaced by less. Each
    of several workers writes feeds of its own, and one that is started again keeps what is in them.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        place = worker_place()
        if place is None:
            return
        self.feeds = {numbered_feed(uri, place.number): feed for uri, feed in self.feeds.items()}
        self.filters = {
            numbered_feed(uri, place.number): chosen for uri, chosen in self.filters.items()
        }
        if place.restarts:
            self.feeds = {uri: {**feed, "overwrite": False} for uri, feed in self.feeds.items()}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        exporter = super().from_crawler(crawler)
        # When the engine starts, the panel shows warnings already, and nothing was asked yet.
        crawler.signals.connect(exporter.warn_of_replacing, signal=signals.engine_started)
        return exporter

    def item_scraped(self, item: Any, spider: Spider) -> None:
        if not isinstance(item, Page):
            super().item_scraped(item, spider)

    def warn_of_replacing(self) -> None:
        """Warn if a feed replaces a file, and pages of the crawl were read before: only new and
        changed ones will be in it.
        """
        replaced = [
            slot.uri
            for slot in self.slots
            if self.feeds[slot.uri_template].get("overwrite") and not slot.uri.startswith("stdout:")
        ]
        worker = getattr(self.crawler.engine.scheduler, "worker", None)
        if not replaced or not isinstance(worker, CrawlWorker):
            return
        pages = 0
        with suppress(CrawlprojError):
            pages = pages_read_before(worker.frontier)
        if not pages:
            return
        for uri in replaced:
            log.warning(
                "Crawl %s has read %s before, so only items of new and changed pages come; they "
                "overwrite (-o would add to) %s",
                worker.config.spec.name,
                format_count(pages, "page"),
                file_words(uri),
            )


def pages_read_before(frontier: PostgresFrontier) -> int:
    """How many pages a crawl has read so far; its connection is the database thread's."""
    with closing(frontier.db.new_connection()) as database:
        crawl = database.fetch_row("crawl_named", name=frontier.spec.name)
        if crawl is None:
            return 0
        totals = database.fetch_row("crawl_totals", crawl=crawl[0])
    if totals is None:
        return 0
    pages: int = totals[0]
    return pages


def file_words(uri: str) -> str:
    """The file of a feed, with its size if it is on this machine."""
    path = Path(uri)
    if uri.startswith("file:"):
        path = Path(file_uri_to_path(uri))
    try:
        return f"{path} ({path.stat().st_size:,} bytes)"
    except (OSError, ValueError):
        return uri


class ItemScraper(Scraper):
    """Scrapy's scraper, for which a Page is no item: it goes to its pipelines, but it is neither
    counted nor logged as scraped, and signals of items are sent only to receivers that want Pages.
    """

    async def start_itemproc_async(self, item: Any, *, response: Response | Failure | None) -> None:
        if not isinstance(item, Page):
            await super().start_itemproc_async(item, response=response)
            return
        spider = self.crawler.spider
        assert self.slot is not None and spider is not None
        self.slot.itemproc_size += 1
        try:
            await self.itemproc.process_item_async(item)
        except DropItem as error:
            line = self.logformatter.dropped(item, error, response, spider)
            self._log_page(line, item)
            await self._send_page(signals.item_dropped, item, response, exception=error)
        except Exception as error:
            line = self.logformatter.item_error(item, error, response, spider)
            self._log_page(line, item, exc_info=True)
            await self._send_page(signals.item_error, item, response, failure=Failure())  # type: ignore[no-untyped-call]
        else:
            await self._send_page(signals.item_scraped, item, response)
        finally:
            self.slot.itemproc_size -= 1

    async def close_spider_async(self) -> None:
        """Close the pipelines when the articles of the last pages have passed them."""
        scheduler = getattr(self.crawler.engine, "scheduler", None)
        worker = getattr(scheduler, "worker", None)
        if isinstance(worker, CrawlWorker):
            await worker.finish_articles(stopped=not self.crawler.crawling)
        await super().close_spider_async()

    def _log_page(self, line: Any, page: Page, exc_info: bool = False) -> None:
        if line is not None:
            log.log(
                *logformatter_adapter(line),
                exc_info=exc_info,
                extra={"spider": self.crawler.spider, "item": page},
            )

    async def _send_page(
        self, signal: object, page: Page, response: Response | Failure | None, **more: Any
    ) -> None:
        """Send a signal to those of its receivers whose object says `wants_pages`."""
        sender = self.signals.sender
        for receiver in list(liveReceivers(getAllReceivers(sender, signal))):
            if not wants_pages(receiver):
                continue
            try:
                result = robustApply(
                    receiver,
                    signal=signal,
                    sender=sender,
                    item=page,
                    response=response,
                    spider=self.crawler.spider,
                    **more,
                )
                if isawaitable(result):
                    await ensure_awaitable(result)
            except Exception:
                log.exception("Error caught on signal handler: %s", receiver)


def wants_pages(method: Any) -> bool:
    """Whether the object of a method asks for Pages."""
    return bool(getattr(getattr(method, "__self__", None), "wants_pages", False))


class SpiderItems(ItemPipelineManager):
    """Pipelines see what spiders yield; Pages only those that ask for them: `wants_pages = True`.

    A pipeline is awaited only if need be: most return the item as it came.
    """

    async def open_spider_async(self) -> None:
        self._page_methods = [
            method for method in self.methods["process_item"] if wants_pages(method)
        ]
        assert self.crawler is not None and self.crawler.engine is not None
        scraper = self.crawler.engine.scraper
        if type(scraper) is Scraper:
            scraper.__class__ = self.scraper_class(scraper)
        await super().open_spider_async()

    def scraper_class(self, scraper: Scraper) -> type[ItemScraper]:
        """What Scrapy's scraper becomes: no setting names it."""
        return ItemScraper

    async def process_item_async(self, item: Any) -> Any:
        methods = self.methods["process_item"]
        if isinstance(item, Page):
            methods = self._page_methods  # type: ignore[assignment]
        for method in methods:
            assert method is not None
            if method in self._mw_methods_requiring_spider:
                result = method(item, self._spider)
            else:
                result = method(item)
            if result is not item:
                item = await ensure_awaitable(result, _warn=global_object_name(method))
        return item
