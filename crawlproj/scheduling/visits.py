"""The one end of everything: each visit ends here once, whatever came of it.

A Page becomes an Outcome, the Outcome is counted, its redirect followed, its line written into the
log of requests; then the dispatcher hands it to the database thread and lets the host go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crawlproj.config import Config
from crawlproj.fetch.resolver import address_of
from crawlproj.frontier.base import Outcome, State, Ticket
from crawlproj.frontier.seen import SeenUrls
from crawlproj.items import Page, RobotsTicket
from crawlproj.scheduling.dispatcher import Dispatcher
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.scheduling.redirects import RedirectFollower
from crawlproj.scheduling.request_log import RequestLog, log_line
from crawlproj.scheduling.robots_lifecycle import RobotsLifecycle

log = logging.getLogger(__name__)

STAT_AREAS = {
    State.RETRY: "failed",
    State.DEAD: "failed",
    State.GONE: "gone",
    State.RETIRED: "gone",
    State.FORBIDDEN: "forbidden",
}
"""How ends that are not pages are counted: `area/reason`."""
NO_PAGE = frozenset({State.DEAD, State.GONE, State.RETIRED, State.FORBIDDEN, State.IGNORED})
MISSING = frozenset({State.GONE, State.RETIRED})
MAX_CRAWL_DELAY_S = 1e9
"""The log says no more than this: infinity is no JSON."""


class VisitEnds:
    """Lives on the event loop. `examples`: of each kind of failure the first URL that had it."""

    def __init__(
        self,
        config: Config,
        worker: str,
        dispatcher: Dispatcher,
        *,
        rules: OutcomeRules,
        robots: RobotsLifecycle,
        redirects: RedirectFollower,
        seen_urls: SeenUrls,
        request_log: RequestLog | None,
        count: Callable[[str, int], None],
    ) -> None:
        self._config = config
        self._worker = worker
        self._dispatcher = dispatcher
        self._rules = rules
        self._robots = robots
        self._redirects = redirects
        self._seen_urls = seen_urls
        self._request_log = request_log
        self._count = count
        self.examples: dict[str, str] = {}

    def end_visit(self, page: Page, failed: str = "") -> None:
        """End the ticket of a page. `failed`: it was fetched, but could not be kept, and why."""
        page.ended = True
        if self._request_log is None:
            self._end_ticket(page, {}, failed)
            return
        # No end counts before its line is on disk; and another worker may rely on robots.txt as
        # soon as it is stored.
        with self._request_log.before_commit():
            line = self._log_line(page)
            self._end_ticket(page, line, failed)
            self._request_log.write(line)

    def _end_ticket(self, page: Page, line: dict[str, Any], failed: str) -> None:
        ticket = page.ticket
        if isinstance(ticket, RobotsTicket):
            self._dispatcher.end_robots(page, ticket)
            self._add_robots_facts(page, ticket, line)
        elif page.reason == "shutdown":
            self._dispatcher.put_back(ticket)
        else:
            self._end_page(page, ticket, failed)

    def _end_page(self, page: Page, ticket: Ticket, failed: str) -> None:
        if failed:
            outcome = self._rules.retry_outcome(page, ticket, failed)
        else:
            outcome = self._rules.decide_outcome(page, ticket)
        self._count_outcome(outcome, page, ticket)
        self._count("pages/bytes", outcome.received)
        self._dispatcher.add_urls(self._redirects.follow(outcome, ticket))
        if outcome.state in MISSING and ticket.state is State.WAITING:
            self._count("changes/gone", 1)
        leads_elsewhere = self._seen_urls.leads_elsewhere(ticket.url, outcome.moved_to)
        if outcome.state in NO_PAGE or leads_elsewhere:
            self._dispatcher.add_urls(self._seen_urls.note_failed(ticket.url))
        article_ends = self._seen_urls.take_article_ends(ticket.url)
        if article_ends:
            outcome = replace(outcome, article_ends=article_ends)
        if outcome.state is State.RETIRED:
            self._seen_urls.forget_url(ticket.url)
        elif outcome.state is State.FORBIDDEN and outcome.why == "robots":
            outcome = replace(outcome, next_visit=self._robots.cache.schedule_probe(ticket.url))
        self._dispatcher.end_ticket(ticket, outcome)

    def _count_outcome(self, outcome: Outcome, page: Page, ticket: Ticket) -> None:
        if outcome.state is State.WAITING:
            if ticket.block_digest is not None and not outcome.set_aside:
                weight = round(1000 * self._rules.weight_of(page, ticket))
                self._count("revisit/weight", weight)
                if page.changed:
                    self._count("revisit/weight_changed", weight)
            unread = page.document is not None and not page.document.charset
            if page.content_type.startswith("text/") and (page.kind == "binary" or unread):
                self._count("pages/binary", 1)
                log.info("Sent as %s, but it is no text: %s", page.content_type, ticket.url)
            return
        area = STAT_AREAS.get(outcome.state)
        if area is None:
            return
        name = f"{area}/{outcome.why.partition(':')[0].replace(' ', '_')}"
        self._count(name, 1)
        self.examples.setdefault(name, ticket.url)
        again = ""
        if outcome.next_visit:
            again = f", again at {outcome.next_visit:%Y-%m-%d %H:%M:%S} UTC"
        log.info("%s (%s)%s: %s", outcome.state.value.capitalize(), outcome.why, again, ticket.url)

    def _log_line(self, page: Page) -> dict[str, Any]:
        """What the log of requests says of it; made before the end changes the clock."""
        ticket = page.ticket
        host = self._dispatcher.window.hosts.get(ticket.host)
        address = ""
        delay_s = self._dispatcher.window.rules.host.delay_s
        if host is not None:
            address = address_of(host.server.address)
            delay_s = host.clock.delay_s(self._dispatcher.window.rules.host)
        robots_at = None
        if isinstance(ticket, Ticket):
            robots_at = self._robots.fetched_at(ticket.url)
        return log_line(
            page,
            self._worker,
            self._config.spec.name,
            address=address,
            delay_s=delay_s,
            robots_at=robots_at,
        )

    def log_extra(self, page: Page) -> None:
        """Log a request that was made without a ticket; that of the page stands in for one."""
        if self._request_log is not None:
            self._request_log.write(self._log_line(page) | {"lane": "extra"})

    def _add_robots_facts(self, page: Page, ticket: RobotsTicket, line: dict[str, Any]) -> None:
        """What robots.txt demands, if this response was the last word and not a redirect on
        the way.
        """
        known = self._robots.cache.get(ticket.waiting_ticket.url)
        if known is not None and known.row.fetched == page.at:
            delay_s = known.crawl_delay_s(self._config.robot_name) or 0.0
            line["away"] = known.unreachable
            line["crawl_delay_s"] = min(delay_s, MAX_CRAWL_DELAY_S)
