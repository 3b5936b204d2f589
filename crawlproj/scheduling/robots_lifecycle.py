"""The life of a robots.txt: needed before the first page of an origin, fetched or followed to where
it has moved, learned, stored, and known to all that wait for it.

Lives on the event loop, never waits. What is asked of another host goes through `moved_robots`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from crawlproj.config import Config
from crawlproj.fetch.resolver import address_of
from crawlproj.frontier.base import RobotsRow, Ticket
from crawlproj.http.status import REDIRECTS
from crawlproj.items import Page, RobotsTicket
from crawlproj.politeness import robots
from crawlproj.politeness.guard import bad_port
from crawlproj.scheduling.moved_robots import is_own_robots
from crawlproj.scheduling.window import HostWindow
from crawlproj.scheduling.worker_leases import WorkerLeases
from crawlproj.urls.canonical import host_of, join_href, origin_of

MAX_HOPS = 5
"""So many redirects of a robots.txt are followed."""
MAX_REDIRECTED = 10_000
"""So many origins are remembered whose robots.txt is being followed."""


class RobotsLifecycle:
    """`cache` has the rules that are known here. `add_sitemaps` is called with the sitemaps that a
    file names, and the depth of what it leads to.
    """

    def __init__(
        self,
        config: Config,
        leases: WorkerLeases,
        count: Callable[[str, int], None],
        add_sitemaps: Callable[[Sequence[str], int], None],
    ) -> None:
        self._config = config
        self._leases = leases
        self._window = leases.window
        self._moved = leases.moved_robots
        self._count = count
        self._add_sitemaps = add_sitemaps
        self.cache = robots.RobotsCache(config.robot_name)
        self._redirected: dict[str, tuple[str, int]] = {}
        """Origin -> where its file is on the same host, and after how many redirects."""
        self._allowed: Ticket | None = None

    def robots_first(self, host: HostWindow, ticket: Ticket) -> Ticket | RobotsTicket | None:
        """Return the ticket, or robots.txt before it, or neither while robots.txt can't be reached.

        An address or a port that the guard will refuse is not asked for robots.txt either.
        """
        if self._config.guard.refusal_reason(address_of(host.server.address)):
            return ticket
        known = self.cache.get_fresh(ticket.url, self._leases.clock.now())
        if known is None:
            if bad_port(ticket.url) is not None:
                return ticket
            origin = origin_of(ticket.url)
            url, hops = self._redirected.get(origin, (origin + "/robots.txt", 0))
            return self._make_ticket(host, ticket, url, hops=hops)
        if known.unreachable:
            until = self._leases.clock.not_before(known.row.expires)
            host.clock = host.clock.resting_until(until, "robots.txt unreachable")
        else:
            self._set_crawl_delay(host, known)
        if host.clock.next_at <= time.monotonic():
            return ticket
        host.add_ticket(ticket, first=True)
        self._window.requeue_host(host)
        return None

    def allows(self, ticket: Ticket) -> bool:
        """Will it reach the server, or be refused before? Asked when it is handed out."""
        known = self.cache.get(ticket.url)
        if known is not None and known.allows(ticket.url, self._config.robot_name):
            self._allowed = ticket
            return True
        self._allowed = None
        return False

    def refusal(self, url: str, ticket: Ticket | RobotsTicket | None) -> str:
        """Why a request may not be sent, or nothing. What is not known is not forbidden for good.

        A ticket that was allowed when it was handed out, a moment ago, is not judged again.
        """
        if isinstance(ticket, RobotsTicket) or (ticket is not None and ticket is self._allowed):
            return ""
        known = self.cache.get(url)
        if known is None:
            return "robots unread"
        if known.allows(url, self._config.robot_name):
            return ""
        if known.unreachable:
            return "robots unread"
        return "robots"

    def receive_stored(self, tickets: Sequence[Ticket], rows: Mapping[str, RobotsRow]) -> None:
        """Take in rules that are stored: of origins that are new here, or changed elsewhere."""
        depths: dict[str, int] = {}
        if not rows:
            return
        for ticket in tickets:
            origin = origin_of(ticket.url)
            depths[origin] = min(ticket.depth, depths.get(origin, ticket.depth))
        for origin, row in rows.items():
            known = self.cache.add_row(row)
            self._add_sitemaps(known.sitemap_urls(), depths.get(origin, 0) + 1)

    def end_fetch(self, page: Page, ticket: RobotsTicket) -> None:
        """Learn what came, or follow where the file has moved to."""
        home = self._window.hosts.get(ticket.waiting_ticket.host)
        origin = origin_of(ticket.waiting_ticket.url)
        moved = self._moved.find_fetch(ticket)
        if moved is not None:
            self._moved.finish_fetch(moved)
        target = _redirect_target(page, ticket)
        if target is None:
            self._redirected.pop(origin, None)
            self._learn(home, page, ticket)
        elif host_of(target) == ticket.waiting_ticket.host:
            if len(self._redirected) >= MAX_REDIRECTED:
                self._redirected.clear()
            self._redirected[origin] = (target, ticket.hops + 1)
        elif home is not None:
            hops = ticket.hops + 1
            elsewhere = self._make_ticket(home, ticket.waiting_ticket, target, hops=hops)
            self._moved.add_fetch(home, elsewhere, time.monotonic())
            self._leases.database_thread.ring()

    def advance_moved(self) -> None:
        """Go on with files that have moved to another host: those that are known meanwhile need not
        be fetched; those that wait too long end as unreachable.
        """
        now = self._leases.clock.now()
        for origin in self._moved.wanted_origins():
            known = self.cache.get_fresh(origin + "/", now)
            if known is not None:
                self._finish_moved(known.row)
        for late in self._moved.queue_or_expire(time.monotonic()):
            page = Page(late.ticket, late.ticket.url, 0, at=now, reason="out of reach")
            self._learn(late.home, page, late.ticket)

    def _make_ticket(
        self, host: HostWindow, waiting: Ticket, url: str, *, hops: int
    ) -> RobotsTicket:
        old = self.cache.get(waiting.url)
        etag = modified = None
        if old is not None and old.row.body:
            etag = old.row.etag
            modified = old.row.modified
        return RobotsTicket(
            url,
            host.name,
            host.server.id,
            epoch=host.server.epoch,
            waiting_ticket=waiting,
            hops=hops,
            etag=etag,
            modified=modified,
        )

    def _set_crawl_delay(self, host: HostWindow, known: robots.Robots) -> None:
        """Set the Crawl-delay of a host. One that was not known when the host was taken over counts
        from then on.
        """
        host.set_crawl_delay(known.row.origin, known.crawl_delay_s(self._config.robot_name))
        if host.clock.reason == "taken over":
            until = host.server.leased_at + host.clock.delay_s(self._window.rules.host)
            host.clock = host.clock.resting_until(until, "taken over")

    def _learn(self, home: HostWindow | None, page: Page, ticket: RobotsTicket) -> None:
        """Take in the rules that were fetched. A redirect that leads nowhere counts as no file; a
        file that was found on another host, and is that host's own, is learned for both.
        """
        if page.reason == "shutdown":
            return
        status = page.status
        if status in REDIRECTS:
            status = 404
        waiting = ticket.waiting_ticket
        self._apply(home, self._make_row(page, status, waiting.url, host=waiting.host), waiting)
        there = self._window.hosts.get(ticket.host)
        if ticket.has_moved and is_own_robots(page.url) and status and there is not None:
            self._apply(there, self._make_row(page, status, page.url, host=ticket.host), waiting)
        if robots.is_unreachable(status):
            self._count("robots/unreachable", 1)
        else:
            self._count("robots/fetched", 1)

    def _make_row(self, page: Page, status: int, url: str, *, host: str) -> RobotsRow:
        known = self.cache.get(url)
        earlier = None
        if known is not None:
            earlier = known.row
        return robots.row_from_response(
            url,
            host,
            status,
            body=page.body,
            now=page.at,
            ttl=self._config.robots_ttl,
            earlier=earlier,
            headers=page.headers,
        )

    def _apply(self, host: HostWindow | None, row: RobotsRow, waiting: Ticket) -> None:
        """Put rules in force: here from now on, and everywhere once they are stored."""
        known = self.cache.add_row(row)
        if host is not None:
            if row.status > 0 and not host.prepared:
                host.prepared = True
                self._leases.database_thread.ring()
            self._rest_after_robots(host, known)
        self._add_sitemaps(known.sitemap_urls(), waiting.depth + 1)
        self._leases.database_thread.fill_message(lambda message: message.robots.append(row))
        self._finish_moved(row)

    def _rest_after_robots(self, host: HostWindow, known: robots.Robots) -> None:
        host.set_crawl_delay(known.row.origin, known.crawl_delay_s(self._config.robot_name))
        fetched_at = self._leases.clock.not_before(known.row.fetched)
        until = fetched_at + host.clock.delay_s(self._window.rules.host)
        host.clock = host.clock.resting_until(until, "crawl-delay")
        self._window.requeue_host(host)

    def _finish_moved(self, row: RobotsRow) -> None:
        for moved in self._moved.finish_for_origin(row.origin):
            waiting = moved.ticket.waiting_ticket
            own = replace(row, origin=origin_of(waiting.url), host=waiting.host)
            self._apply(moved.home, own, waiting)

    def fetched_at(self, url: str) -> datetime | None:
        """When the rules that hold for a URL were read."""
        known = self.cache.get(url)
        if known is None:
            return None
        return known.row.fetched


def _redirect_target(page: Page, ticket: RobotsTicket) -> str | None:
    location = page.headers.get("location")
    if page.status in REDIRECTS and ticket.hops < MAX_HOPS and location:
        return join_href(page.url, location)
    return None
