"""Which ticket next, and what its end sets free: the scheduler's mind, without Scrapy and without
waiting.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from crawlproj.config import Config
from crawlproj.fetch.resolver import address_of
from crawlproj.frontier.base import NewUrl, Outcome, RobotsRow, Ticket
from crawlproj.frontier.clock import FrontierClock
from crawlproj.http.status import REDIRECTS
from crawlproj.items import Page, RobotsTicket
from crawlproj.politeness import robots
from crawlproj.politeness.clocks import FetchTiming
from crawlproj.scheduling.database_thread import DatabaseThread
from crawlproj.scheduling.messages import FromDatabase
from crawlproj.scheduling.moved_robots import is_own_robots
from crawlproj.scheduling.outcomes import NEVER_AGAIN
from crawlproj.scheduling.window import HostWindow, ServerWindow
from crawlproj.scheduling.worker_leases import WorkerLeases
from crawlproj.urls.canonical import host_of as host_of
from crawlproj.urls.canonical import join_href, origin_of

UNSTORED = 5_000
"""So many ends may wait for the database before nothing more is handed out."""
ROBOTS_HOPS = 5
LATE_S = 0.05
NOT_THE_SERVERS = NEVER_AGAIN | {"shutdown"}
"""Reasons why robots.txt was not read that say nothing about the URL which waits for it."""


class Dispatcher:
    """Lives on the event loop. What it hands out comes from `holdings`."""

    def __init__(
        self,
        config: Config,
        timeout_s: float,
        now: tuple[datetime, float, float],
        count: Callable[[str, int], None],
        name_sitemaps: Callable[[Sequence[str], int], None],
    ) -> None:
        self.config = config
        self.count = count
        self._name_sitemaps = name_sitemaps
        self.leases = WorkerLeases(config, timeout_s, now, count=count)
        self.window = self.leases.window
        self.moved_robots = self.leases.moved_robots
        self.robots = robots.RobotsCache(config.robot_name)
        self._detours: dict[str, tuple[str, int]] = {}
        self.allowed: Ticket | None = None
        """The ticket that was handed out last, if robots.txt allows it."""
        self._preparing: set[str] = set()
        self._looked_at = time.monotonic()
        self._parked: deque[HostWindow] = deque()

    @property
    def times(self) -> FrontierClock:
        return self.leases.times

    @property
    def database_thread(self) -> DatabaseThread:
        return self.leases.database_thread

    def next_ticket(self) -> Ticket | RobotsTicket | None:
        if self.database_thread.storage_blocked or len(self.leases.unstored) > UNSTORED:
            self.count("frontier/held_back", 1)
            return None
        now = time.monotonic()
        while (host := self.window.due_host(now)) is not None:
            if not host.prepared and len(self._preparing) >= self.config.prepare:
                self._park(host)
                continue
            ticket = (
                host.foreign_robots.popleft()
                if host.foreign_robots
                else self._robots_first(host, host.pop_ticket())
            )
            if ticket is not None:
                if not host.prepared:
                    self._preparing.add(host.name)
                self._note_lateness(host.server, now)
                self.window.start_request(host, ticket, now, asks=self._is_allowed(ticket))
                return ticket
        self._looked_at = now
        return None

    def _note_lateness(self, server: ServerWindow, now: float) -> None:
        """A clock that came round since we last found nothing to do was waited for: how well?"""
        if server.entry is not None and server.entry[0] > self._looked_at:
            self.count("scheduler/awaited", 1)
            if now - server.entry[0] > LATE_S:
                self.count("scheduler/late", 1)

    def _park(self, host: HostWindow) -> None:
        """However many new hosts there are, only so many are asked for the first time at once; the
        others wait here.
        """
        host.parked = True
        self._parked.append(host)
        self.window.requeue_host(host)

    def _unpark(self) -> None:
        while self._parked and len(self._preparing) < self.config.prepare:
            host = self._parked.popleft()
            host.parked = False
            self.window.requeue_host(host)
            if self.window.hosts.get(host.name) is host:
                return

    def _is_allowed(self, ticket: Ticket | RobotsTicket) -> bool:
        """Will it reach the server, or be refused before?"""
        if isinstance(ticket, RobotsTicket):
            return True
        known = self.robots.get(ticket.url)
        self.allowed = (
            ticket
            if known is not None and known.allows(ticket.url, self.config.robot_name)
            else None
        )
        return self.allowed is not None

    def _robots_first(self, host: HostWindow, ticket: Ticket) -> Ticket | RobotsTicket | None:
        """The ticket, or robots.txt before it, or neither while robots.txt can't be reached. An
        address that the guard will refuse is not asked for robots.txt either.
        """
        if self.config.guard.refusal_reason(address_of(host.server.address)):
            return ticket
        known = self.robots.get_fresh(ticket.url, self.times.now())
        if known is None:
            place = origin_of(ticket.url)
            return self._robots_ticket(
                host, ticket, *self._detours.get(place, (place + "/robots.txt", 0))
            )
        if known.unreachable:
            host.clock = host.clock.resting_until(
                self.times.not_before(known.row.expires), "robots.txt unreachable"
            )
        else:
            self._set_crawl_delay(host, known)
        if host.clock.next_at <= time.monotonic():
            return ticket
        host.add_ticket(ticket, first=True)
        self.window.requeue_host(host)
        return None

    def _robots_ticket(self, host: HostWindow, head: Ticket, url: str, hops: int) -> RobotsTicket:
        old = self.robots.get(head.url)
        etag, modified = (
            (old.row.etag, old.row.modified) if old is not None and old.row.body else (None, None)
        )
        return RobotsTicket(
            url,
            host.name,
            host.server.id,
            epoch=host.server.epoch,
            waiting_ticket=head,
            hops=hops,
            etag=etag,
            modified=modified,
        )

    def _set_crawl_delay(self, host: HostWindow, known: robots.Robots) -> None:
        """A Crawl-delay that was not known when the clock was set counts from when the host was
        taken over.
        """
        host.set_crawl_delay(known.row.origin, known.crawl_delay_s(self.config.robot_name))
        if host.clock.reason == "taken over":
            host.clock = host.clock.resting_until(
                host.server.leased_at + host.clock.delay_s(self.config.host_rules), "taken over"
            )

    def may_ask(self, ticket: Ticket | RobotsTicket) -> bool:
        """Is its lease still ours? Asked at the last moment: this process may have been stopped
        since the ticket was handed out.
        """
        host = self.window.hosts.get(ticket.host)
        return (
            host is not None
            and host.server.epoch == ticket.epoch
            and time.monotonic() < host.server.deadline
        )

    def add_urls(self, urls: Sequence[NewUrl]) -> None:
        if urls:
            self.leases.mark_changed()
            self.database_thread.fill_message(lambda tray: tray.urls.extend(urls))

    def update_clocks(self, ticket: Ticket | RobotsTicket, answer: FetchTiming) -> None:
        """Set the host's clock from what came back."""
        if (host := self.window.hosts.get(ticket.host)) is not None:
            self.window.update_clocks(host, answer)

    def end_ticket(self, ticket: Ticket, outcome: Outcome) -> None:
        host = self.window.hosts.get(ticket.host)
        self.leases.unstored[ticket.id] = host
        self.count(f"end/{outcome.state.value}", 1)
        self.database_thread.fill_message(
            lambda tray: tray.outcomes.append(outcome), ring=self._free_host(ticket)
        )

    def put_back(self, ticket: Ticket) -> None:
        """It was not fetched after all, and is still due."""
        if (
            host := self.window.hosts.get(ticket.host)
        ) is not None and host.server.epoch == ticket.epoch:
            host.add_ticket(ticket, first=True)
            self._free_host(ticket)

    def _free_host(self, ticket: Ticket | RobotsTicket) -> bool:
        """The host may be asked again; True if it has nothing waiting."""
        self.leases.mark_changed()
        self._preparing.discard(ticket.host)
        self._unpark()
        host = self.window.hosts.get(ticket.host)
        if host is None:
            return True
        if host.in_flight is ticket or (
            isinstance(host.in_flight, RobotsTicket) and host.in_flight.waiting_ticket is ticket
        ):
            self.window.finish_request(host)
        return not host.waiting

    def end_robots(self, page: Page, ticket: RobotsTicket) -> None:
        """Store what came, go on with the URL that waits for it. If there was no answer at all,
        that URL ends with a Page of its own, since it can't be fetched either.
        """
        home = self.window.hosts.get(ticket.waiting_ticket.host)
        errand = self.moved_robots.find_fetch(ticket)
        if errand is not None:
            self.moved_robots.finish_fetch(errand)
        if (target := self._moved_to(page, ticket)) is None:
            self._detours.pop(origin_of(ticket.waiting_ticket.url), None)
            self._store_robots(home, page, ticket)
        elif host_of(target) == ticket.waiting_ticket.host:
            self._detours[origin_of(ticket.waiting_ticket.url)] = (target, ticket.hops + 1)
        elif home is not None:
            errand_ticket = self._robots_ticket(
                home, ticket.waiting_ticket, target, hops=ticket.hops + 1
            )
            self.moved_robots.add_fetch(home, errand_ticket, time.monotonic())
            self.database_thread.fill_message(lambda tray: None, ring=True)
        if page.status or page.reason in NOT_THE_SERVERS or ticket.has_moved:
            if home is not None and home.in_flight is ticket:
                home.add_ticket(ticket.waiting_ticket, first=True)
            self._free_host(ticket)

    def _moved_to(self, page: Page, ticket: RobotsTicket) -> str | None:
        where = page.headers.get("location")
        return (
            join_href(page.url, where)
            if page.status in REDIRECTS and ticket.hops < ROBOTS_HOPS and where
            else None
        )

    def _advance_moved_robots(self) -> None:
        """Those whose rules are known meanwhile need not go; those that wait too long end as
        unreachable.
        """
        for place in self.moved_robots.wanted_origins():
            if (known := self.robots.get_fresh(place + "/", self.times.now())) is not None:
                self._finish_moved_robots(known.row)
        for errand in self.moved_robots.queue_or_expire(time.monotonic()):
            page = Page(
                errand.ticket, errand.ticket.url, 0, at=self.times.now(), reason="out of reach"
            )
            self._store_robots(errand.home, page, errand.ticket)

    def _finish_moved_robots(self, row: RobotsRow) -> None:
        for errand in self.moved_robots.finish_for_origin(row.origin):
            head = errand.ticket.waiting_ticket
            self._apply_robots(
                errand.home, replace(row, origin=origin_of(head.url), host=head.host), head
            )

    def _store_robots(self, host: HostWindow | None, page: Page, ticket: RobotsTicket) -> None:
        if page.reason == "shutdown":
            return
        status = 404 if page.status in REDIRECTS else page.status
        self._apply_robots(
            host,
            self._robots_row(
                page, status, ticket.waiting_ticket.url, host=ticket.waiting_ticket.host
            ),
            ticket.waiting_ticket,
        )
        there = self.window.hosts.get(ticket.host)
        if ticket.has_moved and is_own_robots(page.url) and status and there is not None:
            self._apply_robots(
                there,
                self._robots_row(page, status, page.url, host=ticket.host),
                ticket.waiting_ticket,
            )
        self.count("robots/unreachable" if robots.is_unreachable(status) else "robots/fetched", 1)

    def _robots_row(self, page: Page, status: int, url: str, host: str) -> RobotsRow:
        earlier = self.robots.get(url)
        row = earlier.row if earlier else None
        return robots.row_from_response(
            url,
            host,
            status,
            body=page.body,
            now=page.at,
            ttl=self.config.robots_ttl,
            earlier=row,
            headers=page.headers,
        )

    def _apply_robots(self, host: HostWindow | None, row: RobotsRow, head: Ticket) -> None:
        known = self.robots.add_row(row)
        if host is not None:
            if row.status > 0 and not host.prepared:
                host.prepared = True
                self.database_thread.fill_message(lambda tray: None, ring=True)
            host.set_crawl_delay(row.origin, known.crawl_delay_s(self.config.robot_name))
            until = self.times.not_before(row.fetched) + host.clock.delay_s(self.config.host_rules)
            host.clock = host.clock.resting_until(until, "crawl-delay")
            self.window.requeue_host(host)
        self._name_sitemaps(known.sitemap_urls(), head.depth + 1)
        self.database_thread.fill_message(lambda tray: tray.robots.append(row))
        self._finish_moved_robots(row)

    def handle_message(self, news: FromDatabase) -> None:
        depths: dict[str, int] = {}
        for ticket in news.tickets:
            place = origin_of(ticket.url)
            depths[place] = min(ticket.depth, depths.get(place, ticket.depth))
        for place, row in news.robots.items():
            self._name_sitemaps(self.robots.add_row(row).sitemap_urls(), depths.get(place, 0) + 1)
        self.leases.handle_message(news)
        self._advance_moved_robots()
        self.leases.release_and_refill(news.pushed)

    def store_all_clocks(self) -> None:
        self.leases.store_all_clocks()
