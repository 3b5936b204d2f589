"""Scrapy's scheduler for a run on the archive: captures are the responses to a spider's requests.

Each request is answered once, in this order: first the spider's own start and all that follows from
it; then the pages of the crawl and what follows from them; then the spider's own requests that the
frontier has noted and nothing leads to any more; then pages whose request is not known. So what the
spider requests now goes before what it requested when the page was fetched.
"""

from __future__ import annotations

import logging
from asyncio import TimerHandle, get_running_loop
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.squeues import FifoMemoryQueue, PickleFifoDiskQueue

from crawlproj.archive import Archive, Capture
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.config import config_of
from crawlproj.errors import CrawlprojError
from crawlproj.fetch.requests import TICKET_META, is_plain, load_request
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading
from crawlproj.reextract.callbacks import default_request, spider_wants
from crawlproj.reextract.captures import CaptureSelector, ReextractOptions
from crawlproj.reextract.done_set import NumberSet
from crawlproj.reextract.handler import index_queries, redirect_target, redirected_request
from crawlproj.reextract.known_requests import BATCH_ROWS, KnownRequests
from crawlproj.scheduling.spider import LearnsSeeds
from crawlproj.urls.canonical import canonical_url, url_key

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

log = logging.getLogger(__name__)

OPTIONS_SETTING = "REEXTRACT"
ARCHIVED_AT = "archived_at"
"""Key of `meta`: when the page was captured."""
MAX_REDIRECTS = 20
START_WAIT_S = 0.1
CapturedRequest = tuple[Request, list[IndexEntry]]
"""A request, and the entries of the index for its URL."""


def plain_request(url: str, depth: int) -> Request:
    """A request for the URL as the frontier spells it, also if Scrapy would spell it otherwise."""
    request = Request(url, meta={"depth": depth})
    if request.url == url:
        return request
    return Request(url, meta={"depth": depth, "verbatim_url": True})


def extra_identity(request: Request) -> str:
    """What tells apart requests that look the same to a server, if the spider wants both."""
    if not request.dont_filter:
        return ""
    meta = {name: value for name, value in request.meta.items() if name not in TICKET_META}
    return repr([getattr(request.callback, "__name__", None), request.cb_kwargs, meta])


class ArchiveScheduler(BaseScheduler):
    """Hands out a request per capture.

    `pending_captures` are the captures of requests that are on their way through Scrapy, and
    `last_capture` is for requests that go around the scheduler.
    """

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.spider is not None
        self.crawler = crawler
        self.spider = crawler.spider
        self.config = config_of(crawler)
        self.options: ReextractOptions = crawler.settings.get(OPTIONS_SETTING) or ReextractOptions()
        self.selector = CaptureSelector(
            Archive(self.config.warc_dir),
            self.config.spec.name,
            self.options,
            count=crawler.stats.inc_value,
        )
        self.pending_captures: WeakKeyDictionary[Request, Capture] = WeakKeyDictionary()
        self._done = NumberSet()
        self._exhausted = False
        self._starting = False
        self.broken = False
        self._timer: TimerHandle | None = None
        self._versions: Iterator[Request] = iter(())

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Open the queue and the database.

        The queue is on disk, as Scrapy's with a JOBDIR: what is to be followed may be more than
        fits into memory. It is first in, first out, as in a crawl: of two ways to a page the
        shorter one counts.
        """
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="reextract-"))
            self._queue = Scheduler(
                BaseDupeFilter(),
                folder,
                PickleFifoDiskQueue,
                FifoMemoryQueue,
                stats=self.crawler.stats,
                pqclass=ScrapyPriorityQueue,
                crawler=self.crawler,
            )
            self._queue.open(spider)
            self._known_requests = self._open_known_requests(stack)
            self._stack = stack.pop_all()
        self._sources = iter([self._known_pages(), self._noted_requests(), self._other_pages()])
        self._roots: Iterator[CapturedRequest] = iter(())
        if hasattr(spider, "redis_key") and hasattr(spider, "spider_idle"):
            from crawlproj.scheduling.redis.push_format import stop_spider_polling

            # What is pushed is for a crawl, and waiting for more of it would never end.
            stop_spider_polling(spider)
            self.crawler.signals.disconnect(spider.spider_idle, signal=signals.spider_idle)

    def _open_known_requests(self, stack: ExitStack) -> KnownRequests | None:
        name = self.config.spec.name
        known = None
        with suppress(NoCrawlYet):
            database = stack.enter_context(open_for_reading(self.config))
            known = KnownRequests.for_crawl(database, name)
        if known is None:
            log.warning(
                "No database knows the crawl %s: pages go to the callback that the spider has for "
                "them by default",
                name,
            )
            return None
        if isinstance(self.spider, LearnsSeeds):
            self.spider.learn_seeds(known.seed_urls())
        return known

    def close(self, reason: str) -> None:
        self._stack.close()

    def has_pending_requests(self) -> bool:
        return not self.broken and (not self._exhausted or bool(len(self._queue)))

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request; False if it was there already.

        That goes also for one that is not to be filtered: a page that requests itself would be read
        for ever.
        """
        request.meta.pop(ARCHIVED_AT, None)
        self._starting = bool(request.meta.get("is_start_request"))
        try:
            if not request.url.startswith(("http://", "https://")) or not self._is_new(request):
                return False
            self._done.add(self._mark("followed", self._fingerprint(request)))
            return self._queue.enqueue_request(request)
        except Exception as error:
            return self._break(error)

    def next_request(self) -> Request | None:
        if self._starting and self.crawler.engine._start is not None:
            self._wait_for_the_start()
            return None
        try:
            if self._exhausted and not len(self._queue):
                return None
            return self._next()
        except Exception as error:
            self._break(error)
            return None

    def _wait_for_the_start(self) -> None:
        """Let the spider's next start request come first, unless it takes a while.

        Responses come at once here, but in a crawl all that a spider starts with is requested
        before any response is there.
        """
        self._starting = False
        slot = self.crawler.engine._slot
        if self._timer is not None:
            self._timer.cancel()
        if slot is not None:
            self._timer = get_running_loop().call_later(START_WAIT_S, slot.nextcall.schedule)

    def _break(self, error: Exception) -> bool:
        """Log the error and close the spider, so that the run never hangs."""
        if not self.broken:
            self.broken = True
            self._count("scheduler/errors")
            traceback = None
            if not isinstance(error, CrawlprojError):
                traceback = error
            log.critical("The archive can't be read on: %s", error, exc_info=traceback)
            get_running_loop().create_task(
                self.crawler.engine.close_spider_async(reason="scheduler_error")
            )
        return False

    def _next(self) -> Request | None:
        """The next request: of the same captures, else of the queue, else of the next source."""
        while True:
            request = next(self._versions, None)
            if request is not None:
                return request
            queued = self._queue.next_request()
            if queued is not None:
                entries = self.selector.find_entries(queued.url, index_queries(queued))
                self._versions = self._replayed_requests(queued, entries)
                continue
            root = next(self._roots, None)
            if root is not None:
                self._versions = self._replayed_requests(*root)
                continue
            if self._is_busy():
                return None
            source = next(self._sources, None)
            if source is None:
                self._exhausted = True
                return None
            self._roots = source

    def last_capture(self, request: Request) -> tuple[Capture | None, str]:
        """The last response to a request, through redirects, and the URL that it is of."""
        for _ in range(MAX_REDIRECTS):
            entries = self.selector.find_entries(request.url, index_queries(request))
            captures = list(self.selector.matching_captures(entries, request.method, request.body))
            if not captures:
                break
            target = redirect_target(captures[-1], request, self.spider)
            if target is None:
                return captures[-1], request.url
            request = redirected_request(request, target, captures[-1].status)
        self._count("reextract/missing")
        return None, request.url

    def _is_busy(self) -> bool:
        """Whether anything is under way that may lead to more requests."""
        engine = self.crawler.engine
        return engine._start is not None or engine._slot is None or bool(engine._slot.inprogress)

    def _replayed_requests(self, request: Request, entries: list[IndexEntry]) -> Iterator[Request]:
        """A request per matching capture, except for redirects that the archive can follow."""
        found = False
        for capture in self.selector.matching_captures(entries, request.method, request.body):
            found = True
            if self._follow_redirect(request, capture):
                continue
            replayed = request.copy()
            replayed.meta[ARCHIVED_AT] = capture.at
            replayed.meta.setdefault("depth", 0)
            self.pending_captures[replayed] = capture
            self._count("reextract/captures")
            yield replayed
        if not found:
            self._count("reextract/missing")

    def _follow_redirect(self, request: Request, capture: Capture) -> bool:
        """Queue the request that a redirect leads to; False if there is none with captures."""
        target = redirect_target(capture, request, self.spider)
        if target is None:
            return False
        redirected = redirected_request(request, target, capture.status)
        if not self.selector.find_entries(redirected.url, index_queries(redirected)):
            return False
        self._count("reextract/redirects")
        self.enqueue_request(redirected)
        return True

    def _known_pages(self) -> Iterator[CapturedRequest]:
        """Pages of the crawl that it requested by nothing but their URL."""
        if self._known_requests is None:
            return
        pages = self.selector.captured_pages()
        while batch := list(islice(pages, BATCH_ROWS)):
            depths = self._known_requests.known_depths([url for url, _ in batch])
            for url, entries in batch:
                if url not in depths:
                    continue
                request = plain_request(url, depths[url])
                if self._is_new(request):
                    yield request, entries

    def _other_pages(self) -> Iterator[CapturedRequest]:
        """Captured pages that nothing has led to: imported ones, and all if there is no database.

        With a database, it decides what else belongs to the crawl.
        """
        everything = self._known_requests is None
        if not everything and not self.selector.any_imported():
            return
        for url, entries in self.selector.captured_pages():
            if self._mark("answered", url) in self._done or url.endswith("/robots.txt"):
                continue
            wanted = everything
            if self.selector.any_imported(entries):
                wanted = spider_wants(self.spider, url)
            if not wanted:
                continue
            request = default_request(self.spider, url, self.options.callback)
            if request is None:
                self._count("reextract/no_callback")
            elif self._is_new(request):
                yield request, entries

    def _noted_requests(self) -> Iterator[CapturedRequest]:
        """The spider's own requests, as the frontier noted them."""
        if self._known_requests is None:
            return
        for fields, depth in self._known_requests.spider_requests():
            request = self._load_request(fields)
            if request is None:
                continue
            if self._mark("followed", self._fingerprint(request)) in self._done:
                continue
            if self._is_new(request):
                request.meta["depth"] = depth
                yield request, self.selector.find_entries(request.url, index_queries(request))

    def _load_request(self, fields: dict[str, Any]) -> Request | None:
        """The request; if the method that it names is gone, one for the callback of the options."""
        try:
            return load_request(fields, self.spider)
        except (ValueError, AttributeError, TypeError):
            self._count("reextract/no_callback")
        if self.options.callback:
            return default_request(self.spider, fields["url"], self.options.callback)
        return None

    def _is_new(self, request: Request) -> bool:
        """Mark a request as done; True if it was not.

        It counts by what the frontier knows requests by: a plain one by its URL, any other by its
        fingerprint, one that is not to be filtered by all its fields.
        """
        url = canonical_url(request.url) or request.url
        kind = "url"
        name = url
        if not is_plain(request):
            kind = "request"
            name = self._fingerprint(request) + extra_identity(request)
        self._done.add(self._mark("answered", url))
        return self._done.add(self._mark(kind, name))

    def _fingerprint(self, request: Request) -> str:
        return self.crawler.request_fingerprinter.fingerprint(request).hex()

    def _mark(self, kind: str, name: str) -> int:
        return url_key(kind, name)

    def _count(self, name: str) -> None:
        self.crawler.stats.inc_value(name)
