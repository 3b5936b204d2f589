"""The archive instead of the frontier: what a spider asks for is answered by captures, each request
once.

First the spider's own start and all that follows from it; then the URLs of the crawl and what
follows from them; then what the frontier noted of requests that nothing leads to any more; then
pages that nobody knows the request of. So what the spider says now goes before what it said when
the page was fetched.
"""

from __future__ import annotations

import logging
from asyncio import TimerHandle, get_running_loop
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.squeues import FifoMemoryQueue, PickleFifoDiskQueue

from crawlproj.archive import Archive, Capture
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.config import read_config
from crawlproj.errors import CrawlprojError
from crawlproj.fetch.requests import TICKET_META, is_plain, load_request
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading
from crawlproj.reextract.callbacks import default_request, spider_wants
from crawlproj.reextract.captures import CaptureSelector, ReextractOptions
from crawlproj.reextract.done_set import NumberSet
from crawlproj.reextract.handler import index_queries, redirect_target, redirected_request
from crawlproj.reextract.known_requests import PAGE, KnownRequests
from crawlproj.urls.canonical import canonical_url, url_key

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

log = logging.getLogger(__name__)

OPTIONS = "REEXTRACT"
AT = "archived_at"
"""Key of `meta`: when the page was captured."""
HOPS = 20
START_S = 0.1
Root = tuple[Request, list[IndexEntry]]


def plain_request(url: str, depth: int) -> Request:
    """For the URL as the frontier has it, also if Scrapy would write it in another way."""
    request = Request(url, meta={"depth": depth})
    return (
        request if request.url == url else Request(url, meta={"depth": depth, "verbatim_url": True})
    )


def extra_identity(request: Request) -> str:
    """What tells apart requests that look the same to a server, if the spider wants both."""
    if not request.dont_filter:
        return ""
    meta = {name: value for name, value in request.meta.items() if name not in TICKET_META}
    return repr([getattr(request.callback, "__name__", None), request.cb_kwargs, meta])


class ArchiveScheduler(BaseScheduler):
    """`handed`: the captures of requests that are on their way through Scrapy."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.spider is not None
        self.crawler = crawler
        self.spider = crawler.spider
        self.config = read_config(crawler.settings, crawler.spider.name)
        self.options: ReextractOptions = crawler.settings.get(OPTIONS) or ReextractOptions()
        self.selector = CaptureSelector(
            Archive(self.config.warc_dir),
            self.config.spec.name,
            self.options,
            count=crawler.stats.inc_value,
        )
        self.handed: WeakKeyDictionary[Request, Capture] = WeakKeyDictionary()
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
        """A queue on disk, as Scrapy's with a JOBDIR: what is to be followed may be more than fits
        into memory. First in, first out, as in a crawl: of two ways to a page the shorter one
        counts.
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
        self._sources = iter([self._known(), self._made(), self._unknown()])
        self._roots: Iterator[Root] = iter(())
        if hasattr(spider, "redis_key") and hasattr(spider, "spider_idle"):
            from crawlproj.scheduling.redis.push_format import stop_spider_polling

            stop_spider_polling(spider)  # what is pushed is for a crawl
            self.crawler.signals.disconnect(
                spider.spider_idle, signal=signals.spider_idle
            )  # it would wait for more for ever

    def _open_known_requests(self, stack: ExitStack) -> KnownRequests | None:
        ledger = None
        name = self.config.spec.name
        with suppress(NoCrawlYet):
            ledger = KnownRequests.for_crawl(
                stack.enter_context(open_for_reading(self.config)), name
            )
        if ledger is None:
            log.warning(
                "No database knows the crawl %s: pages go to the callback that the spider has for "
                "them by default",
                name,
            )
        elif learn := getattr(self.spider, "learn_seeds", None):
            learn(ledger.seed_urls())
        return ledger

    def close(self, reason: str) -> None:
        self._stack.close()

    def has_pending_requests(self) -> bool:
        return not self.broken and (not self._exhausted or bool(len(self._queue)))

    def enqueue_request(self, request: Request) -> bool:
        """False if it was there already: also one that is not to be filtered, or what repeats
        itself would do so for ever.
        """
        request.meta.pop(AT, None)
        self._starting = bool(request.meta.get("is_start_request"))
        try:
            if not request.url.startswith(("http://", "https://")) or not self._is_new(request):
                return False
            self._done.add(self._mark("followed", self._name(request)))
            return self._queue.enqueue_request(request)
        except Exception as error:
            return self._break(error)

    def next_request(self) -> Request | None:
        if self._starting and self.crawler.engine._start is not None:
            self._wait_for_the_start()
            return None
        try:
            return None if self._exhausted and not len(self._queue) else self._next()
        except Exception as error:
            self._break(error)
            return None

    def _wait_for_the_start(self) -> None:
        """Answers come at once here, but in a crawl all that a spider starts with is asked for
        before any answer is there. So the next of it comes first, unless it takes a while.
        """
        self._starting = False
        slot = self.crawler.engine._slot
        if self._timer is not None:
            self._timer.cancel()
        if slot is not None:
            self._timer = get_running_loop().call_later(START_S, slot.nextcall.schedule)

    def _break(self, error: Exception) -> bool:
        """Never hang: say it and end."""
        if not self.broken:
            self.broken = True
            self._count("scheduler/errors")
            known = isinstance(error, CrawlprojError)
            log.critical(
                "The archive can't be read on: %s", error, exc_info=None if known else error
            )
            get_running_loop().create_task(
                self.crawler.engine.close_spider_async(reason="scheduler_error")
            )
        return False

    def _next(self) -> Request | None:
        while True:
            if (request := next(self._versions, None)) is not None:
                return request
            if (wanted := self._queue.next_request()) is not None:
                self._versions = self._replayed_requests(
                    wanted, self.selector.find_entries(wanted.url, index_queries(wanted))
                )
            elif (root := next(self._roots, None)) is not None:
                self._versions = self._replayed_requests(*root)
            elif self._busy():
                return None
            elif (source := next(self._sources, None)) is not None:
                self._roots = source
            else:
                self._exhausted = True
                return None

    def look_up(self, request: Request) -> tuple[Capture | None, str]:
        """The last answer to a request, through redirects, and the URL that it is of."""
        for _ in range(HOPS):
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

    def _busy(self) -> bool:
        """Is there anything under way that may lead to more?"""
        engine = self.crawler.engine
        return engine._start is not None or engine._slot is None or bool(engine._slot.inprogress)

    def _replayed_requests(self, request: Request, entries: list[IndexEntry]) -> Iterator[Request]:
        """A request per capture that answers it; a redirect that the archive can follow is
        followed.
        """
        found = False
        for capture in self.selector.matching_captures(entries, request.method, request.body):
            found = True
            target = redirect_target(capture, request, self.spider)
            onward = (
                redirected_request(request, target, capture.status) if target is not None else None
            )
            if onward is not None and self.selector.find_entries(onward.url, index_queries(onward)):
                self._count("reextract/redirects")
                self.enqueue_request(onward)
                continue
            asked = request.copy()
            asked.meta[AT] = capture.at
            asked.meta.setdefault("depth", 0)
            self.handed[asked] = capture
            self._count("reextract/captures")
            yield asked
        if not found:
            self._count("reextract/missing")

    def _known(self) -> Iterator[Root]:
        """URLs of the crawl that are asked for as they are."""
        pages = self.selector.captured_pages() if self._known_requests is not None else iter(())
        while self._known_requests is not None and (batch := list(islice(pages, PAGE))):
            depths = self._known_requests.known_depths([url for url, _ in batch])
            for url, entries in batch:
                if url in depths and self._is_new(request := plain_request(url, depths[url])):
                    yield request, entries

    def _unknown(self) -> Iterator[Root]:
        """Pages that nothing has led to, if it is not the database that decides what belongs to the
        crawl, or if they were imported.
        """
        everything = self._known_requests is None
        for url, entries in (
            self.selector.captured_pages() if everything or self.selector.any_imported() else ()
        ):
            if self._mark("answered", url) in self._done or url.endswith("/robots.txt"):
                continue
            imported = self.selector.any_imported(entries)
            if spider_wants(self.spider, url) if imported else everything:
                request = default_request(self.spider, url, self.options.callback)
                if request is None:
                    self._count("reextract/no_callback")
                elif self._is_new(request):
                    yield request, entries

    def _made(self) -> Iterator[Root]:
        """The spider's own requests, as the frontier noted them."""
        for fields, depth in self._known_requests.spider_requests() if self._known_requests else ():
            request: Request | None
            try:
                request = load_request(fields, self.spider)
            except (ValueError, AttributeError, TypeError):  # the method that it names is gone
                self._count("reextract/no_callback")
                request = (
                    default_request(self.spider, fields["url"], self.options.callback)
                    if self.options.callback
                    else None
                )
            if (
                request is not None
                and self._mark("followed", self._name(request)) not in self._done
                and self._is_new(request)
            ):
                request.meta["depth"] = depth
                yield request, self.selector.find_entries(request.url, index_queries(request))

    def _is_new(self, request: Request) -> bool:
        """By what the frontier knows requests by: a plain one by its URL, any other by its
        fingerprint; one that is not to be filtered by all that it says.
        """
        url = canonical_url(request.url) or request.url
        kind = "url"
        name = url
        if not is_plain(request):
            kind = "request"
            name = self._name(request) + extra_identity(request)
        self._done.add(self._mark("answered", url))
        return self._done.add(self._mark(kind, name))

    def _name(self, request: Request) -> str:
        return self.crawler.request_fingerprinter.fingerprint(request).hex()

    def _mark(self, kind: str, name: str) -> int:
        return url_key(kind, name)

    def _count(self, name: str) -> None:
        self.crawler.stats.inc_value(name)
