"""900: the one end of everything. Each Page that gets here, is dropped, or fails on the way, ends
its ticket once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware

from crawlproj.config import read_config
from crawlproj.fetch.pages import error_text
from crawlproj.fetch.requests import redirected_request
from crawlproj.fetch.resolver import address_of
from crawlproj.frontier.base import Lane, NewUrl, Outcome, State, Ticket
from crawlproj.items import Page, RobotsTicket
from crawlproj.revisit.policies import choose_policy
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.scheduling.request_log import RequestLog, log_file_name, log_line, rules_in_force
from crawlproj.urls.canonical import canonical_url, url_key

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from crawlproj.scheduling.scheduler import CrawlScheduler

log = logging.getLogger(__name__)

AREAS = {
    State.RETRY: "failed",
    State.DEAD: "failed",
    State.GONE: "gone",
    State.RETIRED: "gone",
    State.FORBIDDEN: "forbidden",
}
"""How ends that are not pages are counted: `area/reason`."""

CIRCLE_S = 60.0
URGED = 10_000


class RevisitPipeline:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        config = self._config = read_config(crawler.settings, crawler.spidercls.name or "")
        policy = choose_policy(
            config.policy, config.bounds, config.increase, decrease=config.decrease
        )
        self._outcome_rules = OutcomeRules(
            policy,
            config.retries,
            config.retry_delay,
            gone_limit=config.gone_limit,
            gone_interval=config.bounds.interval,
        )
        self._request_log: RequestLog | None = None
        self._urged: dict[int, float] = {}
        crawler.signals.connect(self.item_dropped, signal=signals.item_dropped)
        crawler.signals.connect(self.item_error, signal=signals.item_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @property
    def _scheduler(self) -> CrawlScheduler:
        return self._crawler.engine.scheduler  # type: ignore[return-value]

    def open_spider(self) -> None:
        config = self._config
        scheduler = self._scheduler
        if config.log_requests:
            times = scheduler.dispatcher.times
            header = {
                "rules": rules_in_force(self._crawler.settings),
                "worker": scheduler.worker,
                "crawl": config.spec.name,
            }
            path = config.log_dir / log_file_name(scheduler.worker)
            later = asyncio.get_running_loop().call_later

            def clock() -> float:
                return times.earliest_unix(time.monotonic())

            self._request_log = RequestLog(
                path, header, config.log_requests_bytes, later=later, clock=clock
            )

    def close_spider(self) -> None:
        if self._request_log is not None:
            self._request_log.close()

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Page) and not item.ended:
            self._end(item)
        return item

    def item_dropped(self, item: Any, exception: Exception) -> None:
        """Somebody does not want to keep it: it was visited all the same."""
        if isinstance(item, Page) and not item.ended:
            item.content = None
            item.error = f"dropped: {exception}"
            self._end(item)

    def item_error(self, item: Any, failure: Failure) -> None:
        """It was fetched, but could not be kept: try again."""
        if isinstance(item, Page) and not item.ended:
            item.content = None
            self._end(item, f"pipeline: {error_text(failure)}")

    def _end(self, page: Page, failed: str = "") -> None:
        page.ended = True
        dispatcher = self._scheduler.dispatcher
        ticket = page.ticket
        line = self._line(page) if self._request_log is not None else {}
        if isinstance(ticket, RobotsTicket):
            dispatcher.end_robots(page, ticket)
            self._read_robots(page, ticket, line)
        elif page.reason == "shutdown":
            dispatcher.put_back(ticket)
        else:
            outcome = (
                self._outcome_rules.retry_outcome(page, ticket, failed)
                if failed
                else self._outcome_rules.decide_outcome(page, ticket)
            )
            self._count(outcome, page, ticket)
            dispatcher.add_urls(self._follow(outcome, ticket))
            dispatcher.end_ticket(ticket, self._filtered(outcome, page, ticket))
        if self._request_log is not None:
            # Another worker may rely on robots.txt as soon as it is stored: then the log must have
            # it too.
            self._request_log.write(line, at_once=isinstance(ticket, RobotsTicket))
        self._scheduler.wake_engine()

    def _line(self, page: Page) -> dict[str, Any]:
        """What the log of requests says of it; asked for before the end changes the clock."""
        dispatcher = self._scheduler.dispatcher
        ticket = page.ticket
        host = dispatcher.window.hosts.get(ticket.host)
        rules = self._config.host_rules
        address, delay_s = (
            (address_of(host.server.address), host.clock.delay_s(rules))
            if host
            else ("", rules.delay_s)
        )
        known = None if isinstance(ticket, RobotsTicket) else dispatcher.robots.get(ticket.url)
        return log_line(
            page,
            self._scheduler.worker,
            self._config.spec.name,
            address=address,
            delay_s=delay_s,
            robots_at=known.row.fetched if known else None,
        )

    def _read_robots(self, page: Page, ticket: RobotsTicket, line: dict[str, Any]) -> None:
        """What robots.txt asks for, if this answer was the last word and not a redirect on
        the way.
        """
        known = self._scheduler.dispatcher.robots.get(ticket.waiting_ticket.url)
        if known is not None and known.row.fetched == page.at:
            line["away"] = known.unreachable
            line["crawl_delay_s"] = min(known.crawl_delay_s(self._config.robot_name) or 0.0, 1e9)

    def _count(self, outcome: Outcome, page: Page, ticket: Ticket) -> None:
        """A stat for what came of it; of each kind of failure the first URL is kept as
        an example.
        """
        inc = self._crawler.stats.inc_value
        if outcome.state is State.WAITING:
            unreadable = page.kind == "binary" or (
                page.document is not None and not page.document.charset
            )
            if unreadable and page.content_type.startswith("text/"):
                inc("pages/binary")
                log.info("Sent as %s, but it is no text: %s", page.content_type, ticket.url)
        elif (area := AREAS.get(outcome.state)) is not None:
            name = f"{area}/{outcome.why.partition(':')[0].replace(' ', '_')}"
            inc(name)
            self._scheduler.examples.setdefault(name, ticket.url)
            again = (
                f", again at {outcome.next_visit:%Y-%m-%d %H:%M:%S} UTC"
                if outcome.next_visit
                else ""
            )
            log.info(
                "%s (%s)%s: %s", outcome.state.value.capitalize(), outcome.why, again, ticket.url
            )

    def _filtered(self, outcome: Outcome, page: Page, ticket: Ticket) -> Outcome:
        """Only pages of the wanted kinds are visited again; an ordinary request of a spider is made
        once.
        """
        if outcome.state is State.RETIRED:
            self._scheduler.seen_urls.forget_url(ticket.url)
        if outcome.state is State.FORBIDDEN and outcome.why == "robots":
            return replace(
                outcome, next_visit=self._scheduler.dispatcher.robots.schedule_probe(ticket.url)
            )
        if outcome.state is not State.WAITING or outcome.status == 304:
            return outcome
        another_try = 0 < outcome.tries <= self._config.retries  # to read its document
        wanted = ticket.request is None and (
            page.kind in self._config.revisit_filter or another_try
        )
        return outcome if wanted else replace(outcome, next_visit=None)

    def _follow(self, outcome: Outcome, ticket: Ticket) -> list[NewUrl]:
        """Where a redirect leads. That of a seed is a seed, so that a site that has moved is still
        crawled.
        """
        target = outcome.moved_to
        sieve = self._scheduler.seen_urls
        if target is None:
            return []
        if (
            ticket.request is None
            and ticket.depth == 0
            and (learn := getattr(self._spider, "learn_seeds", None))
        ):
            learn([target])
        if not self._is_followed(target, outcome.status, ticket):
            return []
        if ticket.request is not None:
            text = json.dumps(redirected_request(ticket.request, target, outcome.status))
            name = f"redirect:{ticket.id}:{target}"
            url = sieve.new_url(
                canonical_url(target) or target, ticket.depth, ticket.id, hops=ticket.hops + 1
            )
            return [
                self._make_urgent(
                    replace(url, id=url_key(self._config.spec.name, name), request=text), ticket
                )
            ]
        return [
            self._make_urgent(
                sieve.new_url(target, ticket.depth, ticket.id, hops=ticket.hops + 1), ticket
            )
        ]

    def _make_urgent(self, url: NewUrl, ticket: Ticket) -> NewUrl:
        """Who pushed a URL wants what it leads to, also if that is known. Once in a while only:
        redirects may go in circles.
        """
        now = time.monotonic()
        if ticket.lane is not Lane.URGENT or now - self._urged.get(url.id, -CIRCLE_S) < CIRCLE_S:
            return url
        if len(self._urged) >= URGED:
            self._urged.clear()
        self._urged[url.id] = now
        return replace(url, lane=Lane.URGENT)

    def _is_followed(self, target: str, status: int, ticket: Ticket) -> bool:
        """Is a redirect followed? Of a URL, if the spider wants its target. Of an ordinary request
        as Scrapy would: not if the spider takes the redirect itself, and not off its domains,
        unless it was a start or not to be filtered.
        """
        spider = self._spider
        crawler = self._crawler
        request = ticket.request
        if request is None and hasattr(spider, "wants"):
            return self._scheduler.seen_urls.wants(target)
        meta = request["meta"] if request is not None else {}
        taken = meta.get("handle_httpstatus_list", getattr(spider, "handle_httpstatus_list", ()))
        if meta.get("dont_redirect") or meta.get("handle_httpstatus_all") or status in taken:
            return False
        free = request["dont_filter"] if request is not None else ticket.depth == 0
        offsite = crawler.get_downloader_middleware(OffsiteMiddleware)
        return (
            free
            or offsite is None
            or spider is None
            or offsite.should_follow(Request(target), spider)
        )

    @property
    def _spider(self) -> Spider | None:
        return self._crawler.spider
