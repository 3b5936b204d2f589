"""The scheduler that Scrapy's engine calls, between it and the frontier.

`next_request` is synchronous and never waits or queries: it gives the request of the host that may
be asked first. A thread talks to the database. Whatever goes wrong in here closes the crawl with a
reason; nothing hangs, nothing is lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import CloseSpider
from scrapy.http import Request, Response
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from crawlproj.components import check_components
from crawlproj.config import config_of
from crawlproj.fetch.handler import ABORT
from crawlproj.fetch.pages import page_of_failure, page_of_response
from crawlproj.fetch.requests import (
    dump_request,
    is_followed_redirect,
    is_plain,
    is_unchanged,
    request_of,
    robots_request,
)
from crawlproj.frontier.base import Found, Lane, NewUrl, Outcome, State, Ticket
from crawlproj.frontier.seen import depth_score
from crawlproj.items import Page, RobotsTicket
from crawlproj.scheduling import memory_tuning
from crawlproj.scheduling.crawl_stats import StatsReader
from crawlproj.scheduling.crawl_worker import CrawlWorker
from crawlproj.scheduling.dispatcher import NOT_THE_SERVERS
from crawlproj.scheduling.hang_watchdog import HangWatchdog
from crawlproj.scheduling.messages import FromDatabase, Refill
from crawlproj.scheduling.reading_file import make_note
from crawlproj.scheduling.stopping import stop_if_missed
from crawlproj.scheduling.time_use import TimeUseSampler, Use
from crawlproj.urls.canonical import canonical_url, host_of, url_key

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

log = logging.getLogger(__name__)

T = TypeVar("T")

FIGURES_GAP_S = 5.0
"""How often the figures of a crawl go to the database thread."""
MAX_ASKED_AGAIN = 1_000
"""So many start requests of a run are asked again; of more only those that are due."""


def scheduler_of(crawler: Crawler) -> CrawlScheduler:
    """The scheduler that a crawler runs."""
    scheduler = crawler.engine.scheduler
    assert isinstance(scheduler, CrawlScheduler)
    return scheduler


def worker_of(crawler: Crawler) -> CrawlWorker:
    """The worker that a crawler runs: what middlewares, pipelines and extensions ask."""
    return scheduler_of(crawler).worker


def _noted(watchdog: HangWatchdog, read: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, with the page noted while it runs."""

    def read_noted(result: object, request: Request) -> Any:
        status = getattr(result, "status", 0)
        ticket = request.meta.get("ticket")
        if isinstance(ticket, Ticket):
            note = make_note(ticket.id, ticket.visit, status, ticket.url)
        else:
            note = make_note(0, 0, status, request.url)
        return watchdog.note_steps(read(result, request), note)

    return read_noted


class CrawlScheduler(BaseScheduler):
    """What Scrapy's engine calls. Everything that is not Scrapy's is the `worker`'s."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.spider is not None
        check_components(crawler.settings)
        self.crawler = crawler
        self.spider = crawler.spider
        self.config = config_of(crawler)
        self.worker = CrawlWorker(
            self.config,
            crawler.spider,
            crawler.settings,
            count=self._count,
            is_onsite=self._is_onsite,
            wake_engine=self.wake_engine,
            send_item=self._send_item,
        )
        self._timer: asyncio.TimerHandle | None = None
        self._aborting = False
        self._starts = 0
        self._figures = StatsReader()
        self._figures_at = time.monotonic()
        self._sampler: TimeUseSampler | None = None
        self.time_use: dict[Use, float] = {}
        """Seconds that the crawl has used for this and that, when it has ended."""
        self.broken: str = ""
        """Why the crawl had to end, if it had to."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        self._loop = asyncio.get_running_loop()
        memory_tuning.give_big_blocks_back()
        self.worker.open(
            self.crawler.settings.getfloat("DOWNLOAD_TIMEOUT"),
            on_message=self._on_loop(self._handle_message),
            on_failure=self._on_loop(self._thread_failed),
        )
        self._note_pages()
        self._take_over_delay()
        self.crawler.signals.connect(self._say_why, signal=signals.spider_idle)
        self._sampler = TimeUseSampler(self.worker.dispatcher.waiting_for)
        memory_tuning.freeze_startup_objects()

    def _say_why(self) -> None:
        """Give the end of a crawl that could ask nobody a reason of its own."""
        why = self.worker.unresolved
        if why and self.worker.exhausted:
            self.crawler.stats.set_value("dns/unresolved", why)
            log.info("The crawl ends: %s", why)
            raise CloseSpider("unresolved")

    def _note_pages(self) -> None:
        """Let the watchdog know which page is read. All reading is done in two places of Scrapy:
        where downloader middlewares get the response, and where callback, spider middlewares and
        pipelines are called.
        """
        watchdog = self.worker.watchdog
        if watchdog is None:
            return
        engine = self.crawler.engine
        places = (
            (engine.scraper, "_scrape"),
            (getattr(engine.downloader, "middleware", None), "_process_response"),
        )
        for owner, name in places:
            read = getattr(owner, name, None)
            if read is not None:
                setattr(owner, name, _noted(watchdog, read))

    def _take_over_delay(self) -> None:
        """Let DOWNLOAD_DELAY be kept by our clocks alone (`config.rules.host`). Scrapy's own slots
        would wait a second time, and for a random time around it.
        """
        asked_s = self.crawler.settings.getfloat("DOWNLOAD_DELAY")
        if not asked_s:
            return
        log.info(
            "DOWNLOAD_DELAY is %g s, so a host is asked every %g s at most (the longer of it and "
            "POLITENESS_DELAY)",
            asked_s,
            self.config.rules.host.delay_s,
        )
        self.crawler.engine.downloader._delay = 0.0

    def close(self, reason: str) -> None:
        if self._timer:
            self._timer.cancel()
        if self._sampler is not None:
            self.time_use = self._sampler.stop()
        for use, spent_s in self.time_use.items():
            self.crawler.stats.set_value(f"time/{use}_s", round(spent_s, 3))
        if self.worker.is_open:
            self._note_figures()
        self.worker.close(lost=bool(self.broken))

    def has_pending_requests(self) -> bool:
        return not self.worker.exhausted and not self.broken

    def enqueue_request(self, request: Request) -> bool:
        try:
            return self._enqueue(request)
        except Exception as error:
            self._fail_crawl(error)
            return False

    def next_request(self) -> Request | None:
        try:
            while (ticket := self.worker.dispatcher.next_ticket()) is not None:
                request = self._request(ticket)
                if request is not None:
                    return request
            self._plan_wake()
        except Exception as error:
            self._fail_crawl(error)
        return None

    def _request(self, ticket: Ticket | RobotsTicket) -> Request | None:
        """The request of a ticket; None if it was stored by another version of the spider, which
        had a callback or an item that this one lacks. Then its visit has ended.
        """
        if isinstance(ticket, RobotsTicket):
            return robots_request(ticket, self._robots_came, self._robots_failed)
        try:
            request = request_of(ticket, self.spider)
        except (AttributeError, KeyError, NameError, TypeError, ValueError) as error:
            if ticket.request is None:
                raise
            self._count("requests/unloadable")
            log.error("The spider has changed, %s can't be asked for: %s", ticket.url, error)
            reason = f"request: {error}"
            page = Page(ticket, ticket.url, 0, at=self.worker.clock.now(), reason=reason)
            self.worker.end_visit(page)
            return None
        if ticket.found is Found.PROBE:
            # It is nothing that the spider has asked for.
            request.callback = _ignore_response
        own = request.errback
        if own is None:
            request.errback = self._failed
        else:
            request.errback = lambda failure: self._failed_for(failure, own)
        return request

    def _robots_came(self, response: Response) -> Iterator[Page]:
        assert response.request is not None
        yield page_of_response(response, response.request, self.worker.clock)

    def _robots_failed(self, failure: Failure) -> Iterator[Page]:
        page = page_of_failure(failure, self.worker.clock)
        yield page
        ticket = page.ticket
        assert isinstance(ticket, RobotsTicket)
        if not ticket.has_moved and page.reason not in NOT_THE_SERVERS:
            waiting = ticket.waiting_ticket
            yield Page(waiting, waiting.url, 0, at=page.at, reason=page.reason)

    def _failed(self, failure: Failure) -> Iterator[Page]:
        yield page_of_failure(failure, self.worker.clock)

    async def _failed_for(self, failure: Failure, errback: Any) -> AsyncIterator[Any]:
        """Give the output of the spider's own errback, then the Page, whatever the errback does."""
        try:
            output: Any = None
            if not is_followed_redirect(failure) and not is_unchanged(failure):
                output = errback(failure)
            if isawaitable(output):
                output = await output
            if hasattr(output, "__aiter__"):
                async for item in output:
                    yield item
            else:
                for item in iterate_spider_output(output):
                    yield item
        finally:
            for page in self._failed(failure):
                yield page

    def _enqueue(self, request: Request) -> bool:
        ticket = request.meta.get("ticket")
        if isinstance(ticket, Ticket | RobotsTicket):
            return self._end_replaced(request, ticket)
        url = self.row_of(request)
        if url is None:
            return False
        self.worker.add_urls([url])
        return True

    def row_of(self, request: Request, *, pushed: bool = False) -> NewUrl | None:
        """A row for any request that a spider may make, or that somebody has pushed; None, and an
        error in the log, if it can't be stored.
        """
        meta = request.meta
        url = canonical_url(request.url)
        depth = int(meta.get("depth", 0))
        parent = meta.get("parent")
        lane = Lane.NEW
        again = None
        found: Found | None = Found.REQUEST
        if pushed:
            lane = Lane.URGENT
            found = Found.PUSH
        elif meta.get("is_start_request"):
            found = Found.SEED
            if meta.get("stored_seed"):
                found = None  # nobody gives it now: how it was found stays
            self._starts += 1
            if self._starts <= MAX_ASKED_AGAIN:
                again = self.config.source_rest
        elif meta.get("from_source"):
            # A robots.txt or an index of sitemaps leads to sitemaps, which are asked again with it.
            again = self.config.source_rest
        if url is None:
            self._count("requests/bad_url")
            log.error("Not a web address, refused: %s", request)
            return None
        if is_plain(request):
            return self.worker.seen_urls.new_url(
                url, depth, parent, found=found, lane=lane, again=again
            )
        try:
            text = dump_request(request, self.spider)
        except (TypeError, ValueError) as error:
            self._count("requests/unstorable")
            log.error("This request can't be stored, refused: %s: %s", request, error)
            return None
        unique = ""
        if request.dont_filter and found is Found.REQUEST:
            unique = uuid4().hex
        name = f"request:{self.crawler.request_fingerprinter.fingerprint(request).hex()}{unique}"
        return NewUrl(
            url_key(self.config.spec.name, name),
            url,
            host_of(url),
            depth=depth,
            score=depth_score(depth) * 2.0 ** max(-30, min(30, request.priority)),
            parent=parent,
            lane=lane,
            request=text,
            found=found,
            again=again,
        )

    def _end_replaced(self, request: Request, ticket: Ticket | RobotsTicket) -> bool:
        """End the ticket of a request that a middleware gave instead of a response; the request
        starts anew.
        """
        self._count("requests/replaced")
        if isinstance(ticket, RobotsTicket):
            self.worker.dispatcher.put_back(ticket.waiting_ticket)
            return False
        del request.meta["ticket"]
        outcome = Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            epoch=ticket.epoch,
            state=State.MOVED,
            at=self.worker.clock.now(),
            why="replaced by a middleware",
            moved_to=request.url,
        )
        self.worker.dispatcher.end_ticket(ticket, outcome)
        request.meta["depth"] = ticket.depth
        request.meta["parent"] = ticket.id
        request.dont_filter = True
        return self._enqueue(request)

    def _is_onsite(self, url: str) -> bool:
        """Scrapy's own offsite rule, if the project has that middleware."""
        offsite = self.crawler.get_downloader_middleware(OffsiteMiddleware)
        return offsite is None or offsite.should_follow(Request(url), self.spider)

    def _handle_message(self, message: FromDatabase | Refill) -> None:
        try:
            self.worker.handle_message(message)
            if time.monotonic() - self._figures_at >= FIGURES_GAP_S:
                self._note_figures()
            self._abort_if_closing()
            self.wake_engine()
        except Exception as error:
            self._fail_crawl(error)

    def _note_figures(self) -> None:
        self._figures_at = time.monotonic()
        self.worker.note_figures(self._figures.gained(self.crawler.stats.get_stats()))

    def _abort_if_closing(self) -> None:
        """Give what is under way a few seconds when the engine closes; then it is cut off and stays
        due.
        """
        stop_if_missed(self.crawler)
        slot = self.crawler.engine._slot
        if slot is not None and slot.closing is not None and not self._aborting:
            self._aborting = True
            send_abort = self.crawler.signals.send_catch_log
            self._loop.call_later(self.config.shutdown_s, send_abort, ABORT)

    def wake_engine(self) -> None:
        """Let the engine ask again; left alone it looks only every five seconds."""
        slot = self.crawler.engine._slot
        if slot is not None:
            slot.nextcall.schedule()

    def _plan_wake(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        at = self.worker.dispatcher.window.next_time()
        if at is not None:
            wait_s = max(0.001, at - time.monotonic())
            self._timer = self._loop.call_later(wait_s, self.wake_engine)

    async def _send_item(self, item: object) -> None:
        """Let an item pass the pipelines that no callback gave."""
        await self.crawler.engine.scraper.start_itemproc_async(item, response=None)

    def _on_loop(self, call: Callable[[T], None]) -> Callable[[T], None]:
        """The same call from the database thread, done on the event loop."""

        def call_on_loop(argument: T) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(call, argument)

        return call_on_loop

    def _thread_failed(self, error: BaseException) -> None:
        self._fail_crawl(error, getattr(error, "end", "scheduler_error"))

    def _fail_crawl(self, error: BaseException, reason: str = "scheduler_error") -> None:
        """Log the error, count it, close the crawl. What was not stored is still due in the
        database.
        """
        if self.broken:
            return
        self.broken = reason
        self._count("scheduler/errors")
        cause = None
        if reason == "scheduler_error":
            cause = error
        log.critical("The crawl ends: %s", error, exc_info=cause)
        self._loop.create_task(self.crawler.engine.close_spider_async(reason=reason))

    def _count(self, name: str, number: int = 1) -> None:
        self.crawler.stats.inc_value(name, number)


def _ignore_response(response: Response) -> Iterator[Page]:
    yield from ()
