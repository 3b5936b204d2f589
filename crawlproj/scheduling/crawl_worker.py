"""One running worker: the owner of its parts, and the door to them.

Scheduler, middlewares, pipelines, the download handler and the panel ask a CrawlWorker, and nothing
behind it. It lives on the event loop; only `database_thread` talks to the database while the crawl
runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from crawlproj.articles.delays import Delays, read_site_delays
from crawlproj.articles.store import ArticleStore, QueuedPage
from crawlproj.config import Config
from crawlproj.content.document import Link
from crawlproj.content.language_process import LanguageReader
from crawlproj.content.slices import Slices
from crawlproj.database.connection import Database
from crawlproj.database.migrations import migrate
from crawlproj.database.opening import open_database
from crawlproj.database.watchdog import DatabaseWatchdog
from crawlproj.duplicates.marks import PageMarker
from crawlproj.errors import DatabaseError
from crawlproj.fetch.big_bodies import MANY_LINKS, BigBodies
from crawlproj.fetch.resolver import Resolver, address_of, describe_failures
from crawlproj.formatting import format_count
from crawlproj.frontier.article_addresses import ArticleAddresses
from crawlproj.frontier.base import (
    Content,
    CrawlSpec,
    Found,
    HostText,
    Lane,
    Links,
    NewUrl,
    Outcome,
    Outlook,
    Rejudged,
    State,
    Ticket,
    Verdict,
)
from crawlproj.frontier.clock import FrontierClock
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.frontier.rules import CrawlRules, IntervalRules, describe_change
from crawlproj.frontier.seen import SeenUrls
from crawlproj.items import Article, ItemVerdict, Page, RobotsTicket
from crawlproj.politeness.clocks import FetchTiming, PolitenessRules
from crawlproj.politeness.guard import StaticNames
from crawlproj.politeness.networks import SharedNetworks
from crawlproj.politeness.robotstxt import MAX_SITEMAPS
from crawlproj.revisit.policies import choose_policy
from crawlproj.scheduling.archiver import Archiver
from crawlproj.scheduling.article_threads import ArticleThreads
from crawlproj.scheduling.barren_areas import BarrenAreas
from crawlproj.scheduling.change_watch import ChangeWatch
from crawlproj.scheduling.crawl_stats import CrawlStats
from crawlproj.scheduling.database_thread import DatabaseThread
from crawlproj.scheduling.dispatcher import Dispatcher
from crawlproj.scheduling.duplicate_notes import DuplicateNotes
from crawlproj.scheduling.hang_watchdog import TOO_SLOW, HangWatchdog, set_hung_pages_aside
from crawlproj.scheduling.hub_trials import HubTrials
from crawlproj.scheduling.language_watch import LanguageWatch
from crawlproj.scheduling.late_verdicts import LateVerdicts
from crawlproj.scheduling.link_places import LinkPlacer, PlaceRules, count_articles
from crawlproj.scheduling.marking import PageMarking
from crawlproj.scheduling.memory_tuning import release_memory
from crawlproj.scheduling.messages import BudgetNews, FromDatabase, Refill, frontier_time
from crawlproj.scheduling.notifications import NotificationListener
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.scheduling.redirects import RedirectFollower
from crawlproj.scheduling.request_log import RequestLog, log_file_name, rules_in_force
from crawlproj.scheduling.revisit_budget import NO_MOVES, RevisitBudget
from crawlproj.scheduling.robots_lifecycle import RobotsLifecycle
from crawlproj.scheduling.source_watch import SourceWatch
from crawlproj.scheduling.spider import (
    ChoosesLinks,
    LearnsSeeds,
    check_scope,
    revisits_of,
    scope_of,
    seeds_of,
    site_rules_of,
    wants_articles,
    wants_only_articles,
)
from crawlproj.scheduling.visits import VisitEnds
from crawlproj.scheduling.worker import worker_name
from crawlproj.scheduling.worker_leases import WorkerLeases
from crawlproj.urls.canonical import MAX_URL, host_of, url_key
from crawlproj.urls.suffixes import has_suffix

log = logging.getLogger(__name__)

TIDY_BODIES = 8
TIDY_S = 2.0
"""After so many big bodies, and not more often than that, memory is given back."""
ARTICLES_S = 10.0
"""So long the end of a crawl waits for the articles of its last pages."""
LEAST_STOP_S = 1.0
"""So long the threads of articles have at least to write what was sent."""
PREVIEW_S = 60.0
"""So long items wait at most until it is known whether their page is a copy."""
FOUND_ON = {"feed": Found.FEED, "sitemap": Found.SITEMAP}
"""How links were found, by the kind of the page that has them; on all others by a link."""


class CrawlWorker:
    """One running worker. `open` it before use.

    `counts`: URLs per state, known only when the crawl has ended.
    """

    def __init__(
        self,
        config: Config,
        spider: object,
        settings: Mapping[str, Any],
        *,
        count: Callable[[str, int], None],
        is_onsite: Callable[[str], bool],
        wake_engine: Callable[[], None],
        send_item: Callable[[Article], Awaitable[None]],
    ) -> None:
        """`count` raises a stat; `is_onsite` is Scrapy's offsite rule; `wake_engine` lets the
        engine ask for requests again; `send_item` lets an item pass the pipelines.
        """
        check_scope(spider, config.spec)
        self.config = config
        self.name = worker_name()
        self.notices: list[str] = []
        """What is to be said on the screen when the crawl begins."""
        self.changed_rules: list[str] = []
        """Which rules of revisits are not those of the last run, for the summary."""
        self.left_out = 0
        """Hosts that are left out, known only when the crawl has ended."""
        self.counts: dict[str, int] = {}
        self.big_bodies = BigBodies()
        self._tidied_at = 0.0
        self._spider = spider
        self._settings = settings
        self._count = count
        self._is_onsite = is_onsite
        self._wake_engine = wake_engine
        self._send_item = send_item
        self._sends = True
        self._items: set[asyncio.Task[None]] = set()
        self.articles: ArticleThreads | None = None
        """What takes articles from pages; None: nobody wants them."""
        self._site_of = partial(site_rules_of, spider)
        self._opened: ExitStack | None = None
        self.watchdog: HangWatchdog | None = None
        self._languages: LanguageWatch | None = None
        self.marker: PageMarker | None = None
        """Makes what pages are compared by; None: they are not."""
        self.freshness: float | None = None
        self.age_s: float | None = None
        """How fresh the copies of this crawl are by estimate; None: nobody has looked yet."""
        self.delays: Delays | None = None
        """How soon this run has fetched new articles; known only when the crawl has ended."""
        self.slow_sites: list[tuple[str, Delays]] = []
        """The same of each site, the slowest first."""
        self.articles_of_day: int | None = None
        """How many articles the crawl has found in the last 24 hours; None: nobody has looked."""
        self.source_kinds: dict[str, int] = {}
        """How many sources the crawl has of each kind; known only when it has ended."""
        self.changes = ChangeWatch(
            config.spec.name,
            config.change_rules,
            add_urls=self.add_urls,
            put_texts=self._put_texts,
            count=count,
            verdict=self._verdict_of,
        )
        self.marking = self._new_marking()
        self._place_rules = PlaceRules(
            config.source_old or None,
            moves=config.spec.order == "best",
            verdict=self._verdict_of,
        )
        self._previews: dict[int, asyncio.Future[ItemVerdict | None]] = {}
        self._late_verdicts = LateVerdicts()

    def open(
        self,
        timeout_s: float,
        on_message: Callable[[FromDatabase | Refill], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Open database, archive and log, and start the database thread.

        It calls `on_message` with what it brings, and `on_failure` with the error that ended it:
        both in its own thread.
        """
        config = self.config
        self._loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            database, embedded = open_database(config.database_url, config.crawl_dir)
            if embedded:
                stack.callback(embedded.close)
            stack.callback(database.close)
            self.archiver = stack.enter_context(Archiver(config, self.name, self._settings))
            migrate(database)
            find_languages = None
            if config.text and config.language:
                languages = LanguageReader()
                languages.start()
                stack.callback(languages.close)
                find_languages = languages.detect
                self._languages = LanguageWatch(languages, self._count)
            self.frontier = PostgresFrontier(database, self._spec(), find_languages=find_languages)
            self.frontier.open()
            self._open_judge()
            delay_s = config.rules.host.delay_s
            database.run("put_crawl_delay", name=config.spec.name, delay_s=delay_s)
            notifications = NotificationListener(
                self.frontier,
                self.name,
                self.archiver,
                on_robots_changed=lambda origins: self.database_thread.mark_robots_changed(origins),
                set_hung_pages_aside=self._set_hung_pages_aside,
                rules=config.rules,
                on_seeds_added=self._take_new_seeds,
            )
            notifications.start_listening()
            names = StaticNames(dict(config.dns_hosts))
            resolver = Resolver(names, SharedNetworks(config.shared_networks))
            stack.callback(resolver.close)
            stack.callback(DatabaseWatchdog(database, config.database_patience_s).stop)
            self._make_parts(timeout_s)
            self._budget = RevisitBudget(self.frontier, self._planner.estimate)
            self._source_watch = SourceWatch(self.frontier, config.source_silence)
            self._began = self.frontier.now()
            notes = None
            if self.marker is not None and config.warc is not None:
                notes = DuplicateNotes(self.frontier, self.archiver)
            heal = None
            if embedded:
                heal = embedded.start
            self.database_thread = DatabaseThread(
                self.frontier,
                self.name,
                resolver,
                flush_s=config.flush_s,
                poll_pushes=notifications.poll_pushes,
                on_message=on_message,
                on_failure=on_failure,
                robot_name=config.robot_name,
                patience_s=config.database_patience_s,
                heal=heal,
                rest_s=max(config.rules.host.delay_s, config.rules.host.max_delay_s),
                archiver=self.archiver,
                request_log=self._request_log,
                wait_for_hosts_s=config.patience.total_seconds(),
                rules=config.rules,
                notes=notes,
                stats=CrawlStats(self.frontier),
                budget=self._budget,
                source_watch=self._source_watch,
            )
            self.leases.database_thread = self.database_thread
            if isinstance(self._spider, LearnsSeeds):
                self._spider.learn_seeds(self.frontier.seed_urls())
            self._apply_rules()
            self.watchdog = self._open_watchdog()
            self._start_articles(database, stack)
            self.database_thread.start()
            self._opened = stack.pop_all()

    def _verdict_of(self, url: str) -> str:
        """What the rules of its site say of a URL; empty if they say nothing."""
        site = self._site_of(url)
        if site is None:
            return ""
        return site.verdict(url)

    def _new_marking(self) -> PageMarking:
        return PageMarking(
            self.config,
            self.marker,
            self._site_of,
            articles=wants_articles(self._spider) and self.config.article_processes > 0,
            changes=self.changes,
        )

    def _start_articles(self, database: Database, stack: ExitStack) -> None:
        """Start what takes articles from pages, if they are wanted."""
        number = self.config.article_processes
        if not number or not wants_articles(self._spider):
            return
        crawl = self.frontier.crawl_id
        keeps_copies = self.config.duplicates.keep_all
        self.frontier.keeps_copies = keeps_copies
        self.articles = ArticleThreads(
            [
                ArticleStore(
                    database.new_connection(),
                    crawl,
                    f"{self.name}-{thread}",
                    keeps_copies=keeps_copies,
                )
                for thread in range(number)
            ],
            site_of=self._site_of,
            send=lambda queued, item: self._on_loop(self._send_article, queued, item),
            count=lambda name, n: self._on_loop(self._count, name, n),
            on_idle=lambda: self._on_loop(self._wake_engine),
            labels=self.config.article_labels,
        )
        stack.callback(self.articles.stop)
        self.articles.start()

    def _on_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call something on the event loop, from a thread."""
        if not self._loop.is_closed():
            with suppress(RuntimeError):  # it closes just now
                self._loop.call_soon_threadsafe(call, *arguments)

    def _send_article(self, queued: QueuedPage, item: Article) -> None:
        """Let the item of an article pass the pipelines, and then say so."""
        if not self._sends:
            return
        task = self._loop.create_task(self._pass_pipelines(queued, item))
        self._items.add(task)
        task.add_done_callback(self._items.discard)

    async def _pass_pipelines(self, queued: QueuedPage, item: Article) -> None:
        assert self.articles is not None
        try:
            await self._send_item(item)
        except Exception:  # as with items whose pipeline fails
            log.exception("The item of %s has not passed the pipelines", item.url)
        else:
            self._count("articles/sent", 1)
        self.articles.note_sent(queued)

    async def finish_articles(self, stopped: bool) -> None:
        """Wait until the articles of all pages that were read have passed the pipelines, but not
        for ever, and only for CRAWL_SHUTDOWN if the crawl was `stopped`; what is left waits in the
        database for the next run.
        """
        if self.articles is None:
            return
        self.database_thread.ring()
        wait_s = ARTICLES_S
        if stopped:
            wait_s = min(ARTICLES_S, self.config.shutdown_s)
        until = time.monotonic() + wait_s
        while time.monotonic() < until and self.database_thread.is_alive():
            if not self.leases.unstored and self.articles.is_idle:
                break
            await asyncio.sleep(0.05)
        self._sends = False
        if self._items:
            await asyncio.wait(self._items, timeout=max(0.0, until - time.monotonic()))
        # What the threads still do is counted, as the loop goes on meanwhile.
        left_s = max(LEAST_STOP_S, until - time.monotonic())
        await asyncio.to_thread(self.articles.stop, left_s)

    def _open_judge(self) -> None:
        """Let pages be compared, unless the settings say that none are."""
        if not self.config.duplicates.exact:
            return
        # It loads numpy.
        from crawlproj.duplicates.postgres import DuplicateJudge

        self.marker = PageMarker(self.config.duplicates, self.frontier.crawl_id)
        self.marking = self._new_marking()
        self.frontier.judge = DuplicateJudge(self.marker, archived=self.config.warc is not None)
        before = self.frontier.db.fetch_value(
            "put_duplicate_scheme", crawl=self.frontier.crawl_id, scheme=self.marker.scheme
        )
        if before is not None and before != self.marker.scheme:
            log.warning(
                "Pages that were read before are not compared with new ones any more, the settings "
                "for that have changed: %s, before %s",
                self.marker.scheme,
                before,
            )

    def _spec(self) -> CrawlSpec:
        scope = scope_of(self._spider)
        if scope is None:
            return self.config.spec
        return replace(self.config.spec, open_domains=scope.rules.domains)

    def _apply_rules(self) -> None:
        """Let a scope or interval that is not that of the last run take effect on what is known."""
        config = self.config
        wants = self.seen_urls.wants
        if wants is _wants_none:
            # All it fetches are its own requests.
            return
        scope = scope_of(self._spider)
        rules = CrawlRules(
            None if scope is None else scope.rules,
            config.suffixes,
            IntervalRules(config.bounds, config.source_bounds, config.revisit.policy),
            barren_tries=config.barren_tries if wants_only_articles(self._spider) else 0,
        )
        given = frozenset(seeds_of(self._spider))

        def wanted(url: str) -> bool:
            return url in given or (wants(url) and not has_suffix(url, config.suffixes))

        stored = self.frontier.db.fetch_value("crawl_rules", crawl=self.frontier.crawl_id)
        if stored is not None:
            before = CrawlRules.from_dict(stored).intervals
            self.changed_rules = describe_change(before, rules.intervals)
        self.notices += self.changed_rules
        self._note_rejudged(self.frontier.apply_rules(rules, wanted))

    def _take_new_seeds(self) -> None:
        """Let seeds that were added while the crawl runs belong to it. In the database thread."""
        seeds = self.frontier.seed_urls()
        self._on_loop(self._learn_seeds, seeds)

    def _learn_seeds(self, seeds: list[str]) -> None:
        if not isinstance(self._spider, LearnsSeeds):
            return
        self._spider.learn_seeds(seeds)
        # What was out of scope may be inside now.
        self.seen_urls.forget_all()
        self._count("scope/new_seeds", 1)
        log.info("Seeds were added: this crawl has %s", format_count(len(seeds), "seed"))

    def _note_rejudged(self, done: Rejudged) -> None:
        if done.out:
            self._count("scope/out", done.out)
        if done.back:
            self._count("scope/back", done.back)
        if done.added:
            self._count("scope/added", done.added)
        if done.rescheduled:
            self._count("scope/rescheduled", done.rescheduled)
        if done.out or done.back or done.added:
            self.notices.append(
                f"The scope has changed: {format_count(done.out, 'known URL')} left out now, "
                f"{done.back:,} back, {done.added:,} added that pages link to"
            )
        if done.rescheduled:
            self.notices.append(
                "The revisit interval has changed: "
                f"{format_count(done.rescheduled, 'page has', 'pages have')} another next visit"
            )
        for notice in self.notices:
            log.info("%s", notice)

    def _make_parts(self, timeout_s: float) -> None:
        config = self.config
        count = self._count
        wants = _wants_none
        if isinstance(self._spider, ChoosesLinks):
            wants = self._spider.wants
        self.seen_urls = SeenUrls(
            config.spec.name,
            wants,
            config.known_urls,
            follow_nofollow=config.follow_nofollow,
            suffixes=config.suffixes,
            addresses=self._article_addresses(),
        )
        self.leases = WorkerLeases(
            config,
            timeout_s,
            frontier_time(self.frontier),
            count=count,
            on_rules_changed=self._log_rules,
        )
        self.robots = RobotsLifecycle(config, self.leases, count, add_sitemaps=self._add_sitemaps)
        self._barren = self._barren_areas()
        leaves_out = self._barren.leaves_out if self._barren is not None else lambda _: False
        self.dispatcher = Dispatcher(
            config, self.leases, self.robots, count=count, leaves_out=leaves_out
        )
        self._request_log = self._open_request_log()
        sites = {**revisits_of(self._spider), **config.revisit.sites}
        self._planner = choose_policy(replace(config.revisit, sites=sites))
        self._visits = VisitEnds(
            config,
            self.name,
            self.dispatcher,
            rules=replace(
                OutcomeRules.from_config(config, self._planner), trials=self._hub_trials()
            ),
            robots=self.robots,
            redirects=RedirectFollower(
                config.spec.name,
                self._spider,
                self.seen_urls,
                is_onsite=self._is_onsite,
                again=config.source_rest,
            ),
            seen_urls=self.seen_urls,
            request_log=self._request_log,
            count=count,
        )

    def _hub_trials(self) -> HubTrials | None:
        """Hubs are looked for where articles are wanted, soon after they are published."""
        if not wants_articles(self._spider) or self.config.spec.order != "best":
            return None
        return HubTrials(self.config.source_bounds.interval, self.config.bounds.shortest)

    def _barren_areas(self) -> BarrenAreas | None:
        """Where nothing but articles is wanted, what leads to none is left out."""
        tries = self.config.barren_tries
        if not tries or not wants_only_articles(self._spider):
            return None
        return BarrenAreas(tries, self._verdict_of)

    def _article_addresses(self) -> ArticleAddresses | None:
        """Who wants articles needs each once; any other crawl wants all addresses."""
        if not self.config.article_keys or not wants_articles(self._spider):
            return None
        return ArticleAddresses(self.config.known_urls, partial(url_key, self.config.spec.name))

    def _open_request_log(self) -> RequestLog | None:
        config = self.config
        if not config.log_requests:
            return None
        header = {
            "rules": rules_in_force(self._settings),
            "worker": self.name,
            "crawl": config.spec.name,
        }
        return RequestLog(
            config.log_dir / log_file_name(self.name),
            header,
            config.log_requests_bytes,
            later=asyncio.get_running_loop().call_later,
            clock=lambda: self.clock.earliest_unix(time.monotonic()),
        )

    def _log_rules(self, rules: PolitenessRules) -> None:
        """Say in the log of requests which rules are in force from now on."""
        if self._request_log is not None:
            self._request_log.change_rules(rules_in_force(self._settings) | rules.as_settings())

    def _open_watchdog(self) -> HangWatchdog | None:
        config = self.config
        if not config.watchdog_timeout_s:
            return None
        try:
            return HangWatchdog(
                config.crawl_dir,
                config.log_dir,
                self.name,
                crawl=config.spec.name,
                timeout_s=config.watchdog_timeout_s,
            )
        except OSError as error:
            log.warning("No watchdog: %s", error)
            return None

    def _set_hung_pages_aside(self) -> None:
        """Look for pages that workers of this crawl hung on. In the database thread, and before."""
        config = self.config
        try:
            number = set_hung_pages_aside(
                config.crawl_dir,
                config.log_dir,
                config.spec.name,
                set_aside=lambda note: self.frontier.set_aside(
                    note.id, note.visit, status=note.status, why=TOO_SLOW
                ),
            )
        except OSError as error:
            log.warning("Pages that hung can't be looked for: %s", error)
            return
        if number:
            self._loop.call_soon_threadsafe(lambda: self._count("watchdog/set_aside", number))

    @property
    def is_open(self) -> bool:
        """Has it been opened, and not been closed?"""
        return self._opened is not None

    def close(self, *, lost: bool) -> None:
        """Store what is left and give everything back. `lost`: the database is gone, and that is
        logged already.
        """
        if self._opened is None:
            return
        if self.watchdog is not None:
            self.watchdog.close()
        self.leases.store_all_clocks()
        self.changes.write_texts()
        self.database_thread.flush_and_stop()
        if self._languages is not None:
            self._languages.take_look()
        if self._request_log is not None:
            self._request_log.close()
        if self.seen_urls.too_long:
            self._count("links/too_long", self.seen_urls.too_long)
            log.info(
                "%d links were longer than %d characters and left out",
                self.seen_urls.too_long,
                MAX_URL,
            )
        addresses = self.seen_urls.addresses
        if addresses is not None and addresses.held_back:
            self._count("links/same_article", addresses.held_back)
        if self.seen_urls.media:
            self._count("links/media", self.seen_urls.media)
        if self._planner.errors:
            self._count("revisit/policy_failed", self._planner.errors)
        if not lost:
            with suppress(DatabaseError):
                self.freshness, self.age_s = self._budget.estimate_freshness()
                self._look_at_sources()
                self.left_out = self.frontier.count_left_out()
                self.counts = self.frontier.count_urls()
                self.leases.outlook = self.frontier.outlook()
        self._opened.close()

    def _look_at_sources(self) -> None:
        """Look once more which sources are silent, and how soon articles were fetched."""
        look = self._source_watch.look_at_all()
        for name, number in (
            ("fallen_silent", look.fallen),
            ("silent", look.silent),
            ("disagreeing", look.disagreeing),
            ("missed", look.missed),
        ):
            if number:
                self._count(f"sources/{name}", number)
        if look.a_silent:
            self.examples["sources/silent"] = look.a_silent
        if look.a_disagreeing:
            self.examples["sources/disagreeing"] = look.a_disagreeing
        crawl = self.frontier.crawl_id
        self.source_kinds = dict(self.database.fetch_rows("source_kinds", crawl=crawl))
        if self.articles is not None:
            self.articles_of_day = self.database.fetch_value("articles_of_day", crawl=crawl)
            self.delays, self.slow_sites = read_site_delays(self.database, crawl, self._began)

    # What is asked about a request, in the order of its way to the network and back.

    def is_barred(self, url: str) -> bool:
        """Is it to be forgotten, so that it may not be asked for?"""
        return self.archiver.is_barred(url)

    def robots_refusal(self, url: str, ticket: Ticket | RobotsTicket | None) -> str:
        """Why robots.txt does not let it pass: "robots", "robots unread" or nothing."""
        return self.robots.refusal(url, ticket)

    def leased_address(self, host: str) -> str | None:
        """The address that a leased host is pinned to; empty: it has none; None: not leased."""
        leased = self.leases.window.hosts.get(host)
        if leased is None:
            return None
        return address_of(leased.server.address)

    def wait_s(self, ticket: Ticket | RobotsTicket) -> float:
        """How long its host must still rest; 0 or less: it may be asked now."""
        host = self.leases.window.hosts.get(ticket.host)
        if host is None:
            return 0.0
        return host.clock.next_at - time.monotonic()

    def take_turn(self, url: str) -> float | None:
        """How long a request without a ticket, such as that of a media pipeline, must still wait;
        0: it goes now. None: its host is not leased to us, so it may not be asked at all.
        """
        host = self.leases.window.hosts.get(host_of(url))
        now = time.monotonic()
        if host is None or now >= host.server.deadline:
            return None
        return self.leases.window.take_turn(host, now)

    def may_ask(self, ticket: Ticket | RobotsTicket) -> bool:
        """Is its lease still ours?"""
        return self.dispatcher.may_ask(ticket)

    def note_sent(self, host: str) -> None:
        """Count the pause of a host from now: a request to it has just left, perhaps later than
        planned.
        """
        leased = self.leases.window.hosts.get(host)
        if leased is not None:
            self.leases.window.mark_sent(leased, time.monotonic())

    def note_response(self, ticket: Ticket | RobotsTicket, timing: FetchTiming) -> None:
        """Set the clocks of host and server by what came back, or failed."""
        self.dispatcher.update_clocks(ticket.host, timing)

    def note_extra(self, url: str, status: int, timing: FetchTiming) -> None:
        """The same for a request without a ticket, whose only trace is its line in the log."""
        host = self.leases.window.hosts.get(host_of(url))
        if host is None:
            return
        lease = host.server
        stand_in = Ticket(
            0,
            url,
            host.name,
            server=lease.id,
            epoch=lease.epoch,
            visit=0,
            lane=Lane.URGENT,
            state=State.NEW,
        )
        page = Page(stand_in, url, status, at=self.clock.now())
        page.started_s = self.clock.earliest_unix(timing.started)
        page.ended_s = self.clock.earliest_unix(timing.ended)
        if not status:
            page.reason = "failed"
        self._visits.log_extra(page)
        self.dispatcher.update_clocks(host.name, timing)

    def archive_page(self, page: Page) -> str:
        """Put the exchange into the archive; return what became of it, for a stat."""
        return self.archiver.archive_page(page)

    def add_links(
        self, page: Page, ticket: Ticket, links: Sequence[Link], *, follow: bool
    ) -> Links:
        """Hand the links of a page that are new and wanted to the frontier; return all of them as
        they are stored with the page.
        """
        found = FOUND_ON.get(page.kind, Found.LINK)
        placer = LinkPlacer(page, ticket, self._place_rules)
        stored, urls = self.seen_urls.classify_links(
            ticket, links, follow=follow, found=found, placer=placer
        )
        self._add_found(page, urls)
        return stored

    def add_links_in_slices(
        self, page: Page, ticket: Ticket, links: Sequence[Link], *, follow: bool
    ) -> Slices[Links]:
        """As `add_links`, for a page with very many of them."""
        found = FOUND_ON.get(page.kind, Found.LINK)
        placer = LinkPlacer(page, ticket, self._place_rules)
        stored, urls = yield from self.seen_urls.classify_in_slices(
            ticket, links, follow=follow, found=found, placer=placer
        )
        self._add_found(page, urls)
        return stored

    def _add_found(self, page: Page, urls: Sequence[NewUrl]) -> None:
        page.fresh_links = len(urls)
        if self._barren is not None and urls and isinstance(page.ticket, Ticket):
            self._barren.note_links(page, page.ticket, urls)
        if urls and page.kind == "html" and page.verdict is not None and page.verdict.changed:
            found = [url.url for url in urls]
            page.fresh_articles = count_articles(found, found, self._verdict_of)
        old = sum(url.lane is Lane.BACKFILL for url in urls)
        if old:
            self._count("links/old", old)
        ahead = sum(url.lane is Lane.NEW and url.is_hot for url in urls)
        if ahead:
            self._count("links/ahead", ahead)
        self.dispatcher.add_urls(urls)
        self.dispatcher.note_left_out(self.seen_urls.take_left_out())

    def handle_message(self, message: FromDatabase | Refill) -> None:
        """Take in what the database thread brought, and ask for what is wanted next."""
        if isinstance(message, Refill):
            self.dispatcher.handle_refill(message)
            return
        self.big_bodies.leave(*message.stored)
        self.changes.note_texts(message.texts)
        if message.budget is not None:
            self._note_budget(message.budget)
        if message.fallen_silent:
            self._count("sources/fallen_silent", message.fallen_silent)
        for id_, found in message.previews.items():
            self._end_preview(id_, found)
        self._count_late_verdicts(message)
        if self._languages is not None:
            self._languages.take_look()
        self.dispatcher.handle_message(message)
        if self.articles is not None:
            self._note_articles(self.articles, message)
        now = time.monotonic()
        if self.big_bodies.left >= TIDY_BODIES and now - self._tidied_at > TIDY_S:
            self.big_bodies.left = 0
            self._tidied_at = now
            release_memory()

    def _note_budget(self, news: BudgetNews) -> None:
        """Take over the shared prices, and what is to share the budget."""
        prices = self._planner.prices
        prices.pages.set_price(news.page_price)
        prices.sources.set_price(news.source_price)
        if news.pages is not None:
            self._planner.set_counts(news.pages, news.sources)
            self.freshness = news.freshness
            self.age_s = news.age_s
            self.articles_of_day = news.articles_of_day
            self.leases.window.set_freshness(news.freshness)

    def _move_prices(self) -> None:
        """Hand over what the visits of late have made of the prices."""
        prices = self._planner.prices
        pages = prices.pages.take_factor()
        sources = prices.sources.take_factor()
        if (pages, sources) != NO_MOVES:
            self.database_thread.fill_message(lambda message: message.move_prices(pages, sources))

    def _note_articles(self, articles: ArticleThreads, message: FromDatabase) -> None:
        copies = sum(committed.article_copies for committed in message.committed)
        if copies:
            self._count("articles/copies", copies)
        if any(committed.articles for committed in message.committed):
            articles.wake()

    def note_listed(self, listed: Mapping[int, datetime]) -> None:
        """Take when a sitemap says that pages were changed."""
        if listed:
            self.database_thread.fill_message(lambda message: message.listed.update(listed))

    def _put_texts(self, texts: Mapping[str, HostText]) -> None:
        if texts:
            self.database_thread.fill_message(lambda message: message.texts.update(texts))

    def note_figures(self, figures: Counter[str]) -> None:
        """Take what the crawl did since the last time, for its history."""
        self.database_thread.fill_message(lambda message: message.figures.update(figures))

    async def mark_page(self, page: Page) -> None:
        """Make what the page is stored with and compared by, if that is new."""
        await self.marking.mark_apart(page)

    async def preview_verdict(self, page: Page, items: int) -> ItemVerdict | None:
        """Of which page this one is a copy, as far as is known before it is stored: its items wait
        for it, `items` of them. Its host may be asked on meanwhile. A page whose text is as before
        is what it was.
        """
        ticket = page.ticket
        if self.marker is None or not isinstance(ticket, Ticket):
            return None
        content = None
        if page.marks is not None:
            content = Content(page.body_digest, b"", text=page.text, marks=page.marks)
        elif not _is_as_before(page, ticket):
            return None
        self.dispatcher.let_host_go_on(ticket)
        self._wake_engine()
        asked = Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            ticket.epoch,
            State.WAITING,
            page.at,
            content=content,
        )
        future: asyncio.Future[ItemVerdict | None] = self._loop.create_future()
        self._previews[ticket.id] = future
        self.dispatcher.items_waiting += items
        self.database_thread.fill_message(lambda message: message.previews.append(asked), ring=True)
        verdict = None
        try:
            verdict = await asyncio.wait_for(future, PREVIEW_S)
        except TimeoutError:
            self._count("duplicates/unasked", 1)
        finally:
            self._previews.pop(ticket.id, None)
            self.dispatcher.items_waiting -= items
        return verdict

    def note_items_passed(self, page: Page, items: int) -> None:
        """Note that so many items of a page went on, since it seemed to be no copy."""
        if self.marker is not None and isinstance(page.ticket, Ticket):
            self._late_verdicts.note_passed(page.ticket.id, items)

    def _count_late_verdicts(self, message: FromDatabase) -> None:
        copies = {id_ for committed in message.committed for id_ in committed.verdicts}
        late = self._late_verdicts.take_late(message.stored, copies)
        if late:
            self._count("duplicates/items_late", late)

    def _end_preview(self, id_: int, found: tuple[str, Verdict] | None) -> None:
        future = self._previews.get(id_)
        if future is None or future.done():
            return
        verdict = None
        if found is not None:
            url, judged = found
            verdict = ItemVerdict(url, judged.kind.value, judged.similarity)
        future.set_result(verdict)

    def end_visit(self, page: Page, failed: str = "") -> None:
        """End the ticket of a page; once for each ticket. The links of a page with very many still
        take memory until they are stored.
        """
        if page.status:
            self.leases.nothing_fetched = False
        if self._barren is not None and isinstance(page.ticket, Ticket):
            self._barren.note_read(page, page.ticket)
        self._visits.end_visit(page, failed)
        self._move_prices()
        if isinstance(page.ticket, Ticket) and not _has_many_links(page):
            self.big_bodies.leave(page.ticket.id)
        self._wake_engine()

    # What is asked about the worker itself.

    @property
    def clock(self) -> FrontierClock:
        """The frontier's time."""
        return self.leases.clock

    @property
    def database(self) -> Database:
        """The connection of the database thread: for others to make their own, or to say where."""
        return self.frontier.db

    @property
    def exhausted(self) -> bool:
        """Is nothing left to do or to wait for?"""
        if self.articles is not None and not self.articles.is_idle:
            return False
        return self.leases.exhausted

    @property
    def unresolved(self) -> str:
        """Why nobody can be asked, if all that is left are names that do not resolve."""
        return describe_failures(self.leases.unresolved)

    @property
    def outlook(self) -> Outlook:
        """What the frontier said last about what is due, and when."""
        return self.leases.outlook

    @property
    def examples(self) -> dict[str, str]:
        """Of each kind of failure the first URL that had it."""
        return self._visits.examples

    def add_urls(self, urls: Sequence[NewUrl]) -> None:
        """Hand new URLs to the frontier."""
        self.dispatcher.add_urls(urls)

    def note_pushed(self) -> None:
        """Look soon for URLs that were pushed into the database."""
        self.leases.mark_changed()
        self.database_thread.ring()

    def _add_sitemaps(self, urls: Sequence[str], depth: int) -> None:
        """Hand the sitemaps to the frontier that a robots.txt names, whoever fetched it."""
        limit = min(MAX_SITEMAPS, self.config.link_limits.links)
        if len(urls) > limit:
            self._count("links/too_many", 1)
        wanted = [url for url in urls[:limit] if self.seen_urls.wants(url)]
        self.dispatcher.add_urls(
            [self.seen_urls.new_url(url, depth, found=Found.ROBOTS) for url in wanted]
        )


def _is_as_before(page: Page, ticket: Ticket) -> bool:
    """Is it a page that was read before, and has the same text?"""
    if ticket.block_digest is None or (page.verdict is not None and page.verdict.set_aside):
        return False
    return page.status == 304 or 200 <= page.status < 300


def _has_many_links(page: Page) -> bool:
    if page.content is None:
        return False
    links = page.content.links
    return len(links.known) + len(links.other) > MANY_LINKS


def _wants_none(url: str) -> bool:
    return False
