"""Frontier <-> Scrapy's engine.

`next_request` is synchronous and never waits or queries: it gives the request of the host that may
be asked first. The keeper thread talks to the database. Whatever goes wrong in here closes the
crawl with a reason; nothing hangs, nothing is lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from scrapy.core.scheduler import BaseScheduler
from scrapy.http import Request, Response
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from crawlproj.config import read_config
from crawlproj.database import opening
from crawlproj.database.migrations import migrate
from crawlproj.database.watchdog import DatabaseWatchdog
from crawlproj.errors import DatabaseError
from crawlproj.fetch.handler import ABORT
from crawlproj.fetch.pages import page_of_failure, page_of_response
from crawlproj.fetch.requests import (
    dump_request,
    is_followed_redirect,
    is_plain,
    request_of,
    robots_request,
)
from crawlproj.fetch.resolver import Resolver
from crawlproj.frontier.base import Lane, NewUrl, Outcome, State, Ticket
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.frontier.seen import SeenUrls, depth_score
from crawlproj.items import Page, RobotsTicket
from crawlproj.politeness.guard import StaticNames
from crawlproj.politeness.networks import SharedNetworks
from crawlproj.scheduling import gc_tuning
from crawlproj.scheduling.archiver import Archiver
from crawlproj.scheduling.database_thread import DatabaseThread
from crawlproj.scheduling.dispatcher import NOT_THE_SERVERS, Dispatcher
from crawlproj.scheduling.messages import FromDatabase, frontier_time
from crawlproj.scheduling.notifications import NotificationListener
from crawlproj.scheduling.stopping import stop_if_missed
from crawlproj.scheduling.worker import worker_name
from crawlproj.urls.canonical import MAX_URL, canonical_url, host_of, url_key

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

log = logging.getLogger(__name__)


class CrawlScheduler(BaseScheduler):
    """What Scrapy's engine calls. Pipelines and middlewares reach the rest through
    `crawler.engine.scheduler`.
    """

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.spider is not None
        self.crawler = crawler
        self.spider = crawler.spider
        self.config = read_config(crawler.settings, crawler.spider.name)
        self.worker = worker_name()
        self.dispatcher: Dispatcher
        self.seen_urls: SeenUrls
        self._timer: asyncio.TimerHandle | None = None
        self._leaving = False
        self._opened: ExitStack | None = None
        self.broken: str = ""
        self.examples: dict[str, str] = {}
        """Kind of failure -> the first URL that had it."""
        self.counts: dict[str, int] = {}
        """URLs per state, known only when the crawl has ended."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        config = self.config
        self._loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            self._database, embedded = opening.open_database(config.database_url, config.crawl_dir)
            if embedded:
                stack.callback(embedded.close)
            stack.callback(self._database.close)
            self.archiver = stack.enter_context(
                Archiver(config, self.worker, self.crawler.settings)
            )
            migrate(self._database)
            self.frontier = PostgresFrontier(self._database, config.spec)
            self.frontier.open()
            self._notifications = NotificationListener(
                self.frontier,
                self.worker,
                self.archiver,
                changed=lambda names: self._database_thread.mark_robots_changed(names),
            )
            self._notifications.start_listening()
            resolver = Resolver(
                StaticNames(dict(config.dns_hosts)), SharedNetworks(config.shared_networks)
            )
            stack.callback(resolver.close)
            stack.callback(DatabaseWatchdog(self._database, config.database_patience_s).stop)
            self._start(spider, resolver, embedded.start if embedded else None)
            self._opened = stack.pop_all()
        gc_tuning.freeze_startup_objects()

    def _start(self, spider: Spider, resolver: Resolver, heal: Callable[[], str] | None) -> None:
        config = self.config
        wants = getattr(spider, "wants", None) or (lambda url: False)
        self.seen_urls = SeenUrls(
            config.spec.name, wants, config.known_urls, follow_nofollow=config.follow_nofollow
        )
        timeout_s = self.crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
        self.dispatcher = Dispatcher(
            config,
            timeout_s,
            frontier_time(self.frontier),
            count=self._count,
            name_sitemaps=self._add_sitemaps,
        )
        self.dispatcher.leases.database_thread = self._database_thread = DatabaseThread(
            self.frontier,
            self.worker,
            resolver,
            flush_s=config.flush_s,
            pushes=self._notifications.poll_pushes,
            tell=self._on_loop(self._handle_message),
            fail=self._on_loop(self._thread_failed),
            agent=config.robot_name,
            patience_s=config.database_patience_s,
            heal=heal,
            rest_s=max(config.host_rules.delay_s, config.host_rules.max_delay_s),
            vault=self.archiver,
        )
        if learn := getattr(spider, "learn_seeds", None):
            learn(self.frontier.seed_urls())
        self._database_thread.start()

    def close(self, reason: str) -> None:
        if self._timer:
            self._timer.cancel()
        if self._opened is None:
            return
        self.dispatcher.store_all_clocks()
        self._database_thread.flush_and_stop()
        self._read_final_counts()
        self._opened.close()

    @property
    def database_location(self) -> str:
        """Where the database is, for people; without any password."""
        return self._database.location

    def _read_final_counts(self) -> None:
        """For the summary; a database that is lost has been complained about already."""
        if self.seen_urls.too_long:
            self._count("links/too_long", self.seen_urls.too_long)
            log.info(
                "%d links were longer than %d characters and left out",
                self.seen_urls.too_long,
                MAX_URL,
            )
        if self.broken:
            return
        with suppress(DatabaseError):
            self.counts = self.frontier.count_urls()
            self.dispatcher.leases.outlook = self.frontier.outlook()

    def has_pending_requests(self) -> bool:
        return not self.dispatcher.leases.exhausted and not self.broken

    def enqueue_request(self, request: Request) -> bool:
        try:
            return self._enqueue(request)
        except Exception as error:
            self._fail_crawl(error)
            return False

    def next_request(self) -> Request | None:
        try:
            ticket = self.dispatcher.next_ticket()
            if ticket is None:
                self._plan_wake()
                return None
            return self._request(ticket)
        except Exception as error:
            self._fail_crawl(error)
            return None

    def _request(self, ticket: Ticket | RobotsTicket) -> Request:
        if isinstance(ticket, RobotsTicket):
            return robots_request(ticket, self._robots_came, self._robots_failed)
        request = request_of(ticket, self.spider)
        own = request.errback
        request.errback = (
            self._failed if own is None else lambda failure: self._failed_for(failure, own)
        )
        return request

    def _robots_came(self, response: Response) -> Iterator[Page]:
        assert response.request is not None
        yield page_of_response(response, response.request, self.dispatcher.times)

    def _robots_failed(self, failure: Failure) -> Iterator[Page]:
        page = page_of_failure(failure, self.dispatcher.times)
        yield page
        ticket = page.ticket
        if (
            isinstance(ticket, RobotsTicket)
            and not ticket.has_moved
            and page.reason not in NOT_THE_SERVERS
        ):
            yield Page(
                ticket.waiting_ticket, ticket.waiting_ticket.url, 0, at=page.at, reason=page.reason
            )

    def _failed(self, failure: Failure) -> Iterator[Page]:
        yield page_of_failure(failure, self.dispatcher.times)

    async def _failed_for(self, failure: Failure, errback: Any) -> AsyncIterator[Any]:
        """The spider's own errback, then the Page, whatever the errback does."""
        try:
            output: Any = None if is_followed_redirect(failure) else errback(failure)
            output = await output if isawaitable(output) else output
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
        if (url := self.row_of(request)) is None:
            return False
        self.dispatcher.add_urls([url])
        return True

    def row_of(self, request: Request) -> NewUrl | None:
        """A row for any request that a spider may make; None, said loudly, if it can't
        be stored.
        """
        meta = request.meta
        url = canonical_url(request.url)
        depth = int(meta.get("depth", 0))
        parent = meta.get("parent")
        again = bool(request.dont_filter and meta.get("is_start_request"))
        lane = Lane.URGENT if again else Lane.NEW
        if url is None:
            self._count("requests/bad_url")
            log.error("Not a web address, refused: %s", request)
            return None
        if is_plain(request):
            return self.seen_urls.new_url(url, depth, parent, lane=lane)
        try:
            text = dump_request(request, self.spider)
        except (TypeError, ValueError) as error:
            self._count("requests/unstorable")
            log.error("This request can't be stored as JSON, refused: %s: %s", request, error)
            return None
        unique = uuid4().hex if request.dont_filter and not again else ""
        name = f"request:{self.crawler.request_fingerprinter.fingerprint(request).hex()}{unique}"
        worth = depth_score(depth) * 2.0 ** max(-30, min(30, request.priority))
        return NewUrl(
            url_key(self.config.spec.name, name),
            url,
            host_of(url),
            depth=depth,
            score=worth,
            parent=parent,
            lane=lane,
            request=text,
        )

    def _add_sitemaps(self, urls: Sequence[str], depth: int) -> None:
        """Sitemaps that a robots.txt names, whoever fetched it."""
        wanted = [
            url for name in urls if (url := canonical_url(name)) and self.seen_urls.wants(url)
        ]
        self.dispatcher.add_urls([self.seen_urls.new_url(url, depth) for url in wanted])

    def _end_replaced(self, request: Request, ticket: Ticket | RobotsTicket) -> bool:
        """A middleware gave another request instead of an answer: the ticket ends here, the request
        starts anew.
        """
        self._count("requests/replaced")
        if isinstance(ticket, RobotsTicket):
            self.dispatcher.put_back(ticket.waiting_ticket)
            return False
        del request.meta["ticket"]
        at = self.dispatcher.times.now()
        why = "replaced by a middleware"
        whose = (ticket.id, ticket.visit, ticket.server, ticket.epoch)
        self.dispatcher.end_ticket(
            ticket, Outcome(*whose, State.MOVED, at, why=why, moved_to=request.url)
        )
        request.meta["depth"] = ticket.depth
        request.meta["parent"] = ticket.id
        request.dont_filter = True
        return self._enqueue(request)

    def _handle_message(self, news: FromDatabase) -> None:
        try:
            self.dispatcher.handle_message(news)
            self._abort_if_closing()
            self.wake_engine()
        except Exception as error:
            self._fail_crawl(error)

    def _abort_if_closing(self) -> None:
        """The engine is closing: what is under way gets a few seconds, then it is cut off and stays
        due.
        """
        stop_if_missed(self.crawler)
        slot = self.crawler.engine._slot
        if slot is not None and slot.closing is not None and not self._leaving:
            self._leaving = True
            self._loop.call_later(
                self.config.shutdown_s, self.crawler.signals.send_catch_log, ABORT
            )

    def wake_engine(self) -> None:
        """Let the engine ask again; left alone it looks only every five seconds."""
        slot = self.crawler.engine._slot
        if slot is not None:
            slot.nextcall.schedule()

    def _plan_wake(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        at = self.dispatcher.window.next_time()
        if at is not None:
            self._timer = self._loop.call_later(max(0.001, at - time.monotonic()), self.wake_engine)

    def _on_loop(self, call: Any) -> Any:
        """The same call from the keeper's thread, done on the event loop."""
        return lambda argument: (
            None if self._loop.is_closed() else self._loop.call_soon_threadsafe(call, argument)
        )

    def _thread_failed(self, error: BaseException) -> None:
        self._fail_crawl(error, getattr(error, "end", "scheduler_error"))

    def _fail_crawl(self, error: BaseException, reason: str = "scheduler_error") -> None:
        """Never hang: say it, count it, close the crawl. What was not stored is still due in the
        database.
        """
        if self.broken:
            return
        self.broken = reason
        self._count("scheduler/errors")
        log.critical(
            "The crawl ends: %s", error, exc_info=error if reason == "scheduler_error" else None
        )
        self._loop.create_task(self.crawler.engine.close_spider_async(reason=reason))

    def _count(self, name: str, number: int = 1) -> None:
        self.crawler.stats.inc_value(name, number)
