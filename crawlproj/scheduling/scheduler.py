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
from crawlproj.database.watchdog import Watch
from crawlproj.errors import DatabaseError
from crawlproj.fetch.handler import ABORT
from crawlproj.fetch.pages import page_of_failure, page_of_response
from crawlproj.fetch.requests import dump, is_plain, only_leads_on, request_of, robots_request
from crawlproj.fetch.resolver import Resolver
from crawlproj.frontier.base import Lane, NewUrl, Outcome, State, Ticket
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.frontier.seen import Sieve, score
from crawlproj.items import Page, RobotsTicket
from crawlproj.politeness.guard import StaticNames
from crawlproj.politeness.networks import SharedNetworks
from crawlproj.scheduling import gc_tuning
from crawlproj.scheduling.archiver import Vault
from crawlproj.scheduling.database_thread import Keeper
from crawlproj.scheduling.dispatcher import NOT_THE_SERVERS, Dispatcher
from crawlproj.scheduling.messages import News, moment
from crawlproj.scheduling.notifications import Notices
from crawlproj.scheduling.stopping import stop_if_missed
from crawlproj.scheduling.worker import worker_name
from crawlproj.urls.canonical import MAX_URL, canonical, host, key

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
        self.sieve: Sieve
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
            self.vault = stack.enter_context(Vault(config, self.worker, self.crawler.settings))
            migrate(self._database)
            self.frontier = PostgresFrontier(self._database, config.spec)
            self.frontier.open()
            self._notices = Notices(
                self.frontier, self.worker, self.vault, lambda names: self._keeper.forget(names)
            )
            self._notices.start()
            resolver = Resolver(
                StaticNames(dict(config.dns_hosts)), SharedNetworks(config.shared_networks)
            )
            stack.callback(resolver.close)
            stack.callback(Watch(self._database, config.database_patience_s).stop)
            self._start(spider, resolver, embedded.start if embedded else None)
            self._opened = stack.pop_all()
        gc_tuning.freeze_startup_objects()

    def _start(self, spider: Spider, resolver: Resolver, heal: Callable[[], str] | None) -> None:
        config = self.config
        wants = getattr(spider, "wants", None) or (lambda url: False)
        self.sieve = Sieve(config.spec.name, wants, config.known_urls, config.follow_nofollow)
        timeout_s = self.crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
        self.dispatcher = Dispatcher(
            config, timeout_s, moment(self.frontier), self._count, self._add_sitemaps
        )
        self.dispatcher.holdings.keeper = self._keeper = Keeper(
            self.frontier,
            self.worker,
            resolver,
            config.flush_s,
            self._notices.heard,
            self._later(self._hear),
            self._later(self._lost),
            config.robot_name,
            config.database_patience_s,
            heal,
            max(config.rules.delay_s, config.rules.max_delay_s),
            self.vault,
        )
        if learn := getattr(spider, "learn_seeds", None):
            learn(self.frontier.seeds())
        self._keeper.start()

    def close(self, reason: str) -> None:
        if self._timer:
            self._timer.cancel()
        if self._opened is None:
            return
        self.dispatcher.closing()
        self._keeper.finish()
        self._last_look()
        self._opened.close()

    @property
    def place(self) -> str:
        """Where the database is, for people; without any password."""
        return self._database.place

    def _last_look(self) -> None:
        """For the summary; a database that is lost has been complained about already."""
        if self.sieve.too_long:
            self._count("links/too_long", self.sieve.too_long)
            log.info(
                "%d links were longer than %d characters and left out", self.sieve.too_long, MAX_URL
            )
        if self.broken:
            return
        with suppress(DatabaseError):
            self.counts = self.frontier.counts()
            self.dispatcher.holdings.outlook = self.frontier.outlook()

    def has_pending_requests(self) -> bool:
        return not self.dispatcher.holdings.exhausted and not self.broken

    def enqueue_request(self, request: Request) -> bool:
        try:
            return self._enqueue(request)
        except Exception as error:
            self._break(error)
            return False

    def next_request(self) -> Request | None:
        try:
            ticket = self.dispatcher.next()
            if ticket is None:
                self._plan_wake()
                return None
            return self._request(ticket)
        except Exception as error:
            self._break(error)
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
            and not ticket.away
            and page.reason not in NOT_THE_SERVERS
        ):
            yield Page(ticket.head, ticket.head.url, 0, page.at, reason=page.reason)

    def _failed(self, failure: Failure) -> Iterator[Page]:
        yield page_of_failure(failure, self.dispatcher.times)

    async def _failed_for(self, failure: Failure, errback: Any) -> AsyncIterator[Any]:
        """The spider's own errback, then the Page, whatever the errback does."""
        try:
            output: Any = None if only_leads_on(failure) else errback(failure)
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
            return self._replace(request, ticket)
        if (url := self.row_of(request)) is None:
            return False
        self.dispatcher.add([url])
        return True

    def row_of(self, request: Request) -> NewUrl | None:
        """A row for any request that a spider may make; None, said loudly, if it can't
        be stored.
        """
        meta = request.meta
        url = canonical(request.url)
        depth = int(meta.get("depth", 0))
        parent = meta.get("parent")
        again = bool(request.dont_filter and meta.get("is_start_request"))
        lane = Lane.URGENT if again else Lane.NEW
        if url is None:
            self._count("requests/bad_url")
            log.error("Not a web address, refused: %s", request)
            return None
        if is_plain(request):
            return self.sieve.url(url, depth, parent, lane)
        try:
            text = dump(request, self.spider)
        except (TypeError, ValueError) as error:
            self._count("requests/unstorable")
            log.error("This request can't be stored as JSON, refused: %s: %s", request, error)
            return None
        unique = uuid4().hex if request.dont_filter and not again else ""
        name = f"request:{self.crawler.request_fingerprinter.fingerprint(request).hex()}{unique}"
        worth = score(depth) * 2.0 ** max(-30, min(30, request.priority))
        return NewUrl(
            key(self.config.spec.name, name),
            url,
            host(url),
            depth,
            worth,
            parent,
            lane,
            request=text,
        )

    def _add_sitemaps(self, urls: Sequence[str], depth: int) -> None:
        """Sitemaps that a robots.txt names, whoever fetched it."""
        wanted = [url for name in urls if (url := canonical(name)) and self.sieve.wants(url)]
        self.dispatcher.add([self.sieve.url(url, depth) for url in wanted])

    def _replace(self, request: Request, ticket: Ticket | RobotsTicket) -> bool:
        """A middleware gave another request instead of an answer: the ticket ends here, the request
        starts anew.
        """
        self._count("requests/replaced")
        if isinstance(ticket, RobotsTicket):
            self.dispatcher.put_back(ticket.head)
            return False
        del request.meta["ticket"]
        at = self.dispatcher.times.now()
        why = "replaced by a middleware"
        whose = (ticket.id, ticket.visit, ticket.server, ticket.epoch)
        self.dispatcher.end(ticket, Outcome(*whose, State.MOVED, at, why=why, moved_to=request.url))
        request.meta["depth"] = ticket.depth
        request.meta["parent"] = ticket.id
        request.dont_filter = True
        return self._enqueue(request)

    def _hear(self, news: News) -> None:
        try:
            self.dispatcher.hear(news)
            self._watch_for_the_end()
            self.wake()
        except Exception as error:
            self._break(error)

    def _watch_for_the_end(self) -> None:
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

    def wake(self) -> None:
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
            self._timer = self._loop.call_later(max(0.001, at - time.monotonic()), self.wake)

    def _later(self, call: Any) -> Any:
        """The same call from the keeper's thread, done on the event loop."""
        return lambda argument: (
            None if self._loop.is_closed() else self._loop.call_soon_threadsafe(call, argument)
        )

    def _lost(self, error: BaseException) -> None:
        self._break(error, getattr(error, "end", "scheduler_error"))

    def _break(self, error: BaseException, reason: str = "scheduler_error") -> None:
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
