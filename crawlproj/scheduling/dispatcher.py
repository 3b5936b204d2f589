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
from crawlproj.frontier.clock import Times
from crawlproj.http.status import REDIRECTS
from crawlproj.items import Page, RobotsTicket
from crawlproj.politeness import robots
from crawlproj.politeness.clocks import Answer
from crawlproj.scheduling.database_thread import Keeper
from crawlproj.scheduling.messages import News
from crawlproj.scheduling.moved_robots import is_own
from crawlproj.scheduling.outcomes import NEVER_AGAIN
from crawlproj.scheduling.window import HostWindow, ServerWindow
from crawlproj.scheduling.worker_leases import Holdings
from crawlproj.urls.canonical import host as host_of
from crawlproj.urls.canonical import join, origin

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
        self.holdings = Holdings(config, timeout_s, now, count)
        self.window = self.holdings.window
        self.errands = self.holdings.errands
        self.robots = robots.RobotsCache(config.robot_name)
        self._detours: dict[str, tuple[str, int]] = {}
        self.allowed: Ticket | None = None
        """The ticket that was handed out last, if robots.txt allows it."""
        self._preparing: set[str] = set()
        self._looked_at = time.monotonic()
        self._parked: deque[HostWindow] = deque()

    @property
    def times(self) -> Times:
        return self.holdings.times

    @property
    def keeper(self) -> Keeper:
        return self.holdings.keeper

    def next(self) -> Ticket | RobotsTicket | None:
        if self.keeper.away or len(self.holdings.ending) > UNSTORED:
            self.count("frontier/held_back", 1)
            return None
        now = time.monotonic()
        while (host := self.window.due(now)) is not None:
            if not host.prepared and len(self._preparing) >= self.config.prepare:
                self._park(host)
                continue
            ticket = (
                host.errands.popleft() if host.errands else self._robots_first(host, host.pick())
            )
            if ticket is not None:
                if not host.prepared:
                    self._preparing.add(host.name)
                self._note_lateness(host.of, now)
                self.window.start(host, ticket, now, self._asks(ticket))
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
        self.window.ready(host)

    def _unpark(self) -> None:
        while self._parked and len(self._preparing) < self.config.prepare:
            host = self._parked.popleft()
            host.parked = False
            self.window.ready(host)
            if self.window.hosts.get(host.name) is host:
                return

    def _asks(self, ticket: Ticket | RobotsTicket) -> bool:
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
        if self.config.guard.refusal(address_of(host.of.address)):
            return ticket
        known = self.robots.current(ticket.url, self.times.now())
        if known is None:
            place = origin(ticket.url)
            return self._robots_ticket(
                host, ticket, *self._detours.get(place, (place + "/robots.txt", 0))
            )
        if known.unreachable:
            host.clock = host.clock.resting_until(
                self.times.not_before(known.row.expires), "robots.txt unreachable"
            )
        else:
            self._heed_delay(host, known)
        if host.clock.next_at <= time.monotonic():
            return ticket
        host.put(ticket, first=True)
        self.window.ready(host)
        return None

    def _robots_ticket(self, host: HostWindow, head: Ticket, url: str, hops: int) -> RobotsTicket:
        old = self.robots.get(head.url)
        etag, modified = (
            (old.row.etag, old.row.modified) if old is not None and old.row.body else (None, None)
        )
        return RobotsTicket(url, host.name, host.of.id, host.of.epoch, head, hops, etag, modified)

    def _heed_delay(self, host: HostWindow, known: robots.Robots) -> None:
        """A Crawl-delay that was not known when the clock was set counts from when the host was
        taken over.
        """
        host.heed(known.row.origin, known.crawl_delay_s(self.config.robot_name))
        if host.clock.reason == "taken over":
            host.clock = host.clock.resting_until(
                host.of.leased_at + host.clock.delay_s(self.config.rules), "taken over"
            )

    def may_ask(self, ticket: Ticket | RobotsTicket) -> bool:
        """Is its lease still ours? Asked at the last moment: this process may have been stopped
        since the ticket was handed out.
        """
        host = self.window.hosts.get(ticket.host)
        return (
            host is not None
            and host.of.epoch == ticket.epoch
            and time.monotonic() < host.of.deadline
        )

    def add(self, urls: Sequence[NewUrl]) -> None:
        if urls:
            self.holdings.touch()
            self.keeper.put(lambda tray: tray.urls.extend(urls))

    def answered(self, ticket: Ticket | RobotsTicket, answer: Answer) -> None:
        """Set the host's clock from what came back."""
        if (host := self.window.hosts.get(ticket.host)) is not None:
            self.window.answered(host, answer)

    def end(self, ticket: Ticket, outcome: Outcome) -> None:
        host = self.window.hosts.get(ticket.host)
        self.holdings.ending[ticket.id] = host
        self.count(f"end/{outcome.state.value}", 1)
        self.keeper.put(lambda tray: tray.outcomes.append(outcome), ring=self._free(ticket))

    def put_back(self, ticket: Ticket) -> None:
        """It was not fetched after all, and is still due."""
        if (
            host := self.window.hosts.get(ticket.host)
        ) is not None and host.of.epoch == ticket.epoch:
            host.put(ticket, first=True)
            self._free(ticket)

    def _free(self, ticket: Ticket | RobotsTicket) -> bool:
        """The host may be asked again; True if it has nothing waiting."""
        self.holdings.touch()
        self._preparing.discard(ticket.host)
        self._unpark()
        host = self.window.hosts.get(ticket.host)
        if host is None:
            return True
        if host.out is ticket or (isinstance(host.out, RobotsTicket) and host.out.head is ticket):
            self.window.finish(host)
        return not host.waiting

    def end_robots(self, page: Page, ticket: RobotsTicket) -> None:
        """Store what came, go on with the URL that waits for it. If there was no answer at all,
        that URL ends with a Page of its own, since it can't be fetched either.
        """
        home = self.window.hosts.get(ticket.head.host)
        errand = self.errands.of(ticket)
        if errand is not None:
            self.errands.finish(errand)
        if (target := self._moved_to(page, ticket)) is None:
            self._detours.pop(origin(ticket.head.url), None)
            self._learn(home, page, ticket)
        elif host_of(target) == ticket.head.host:
            self._detours[origin(ticket.head.url)] = (target, ticket.hops + 1)
        elif home is not None:
            errand_ticket = self._robots_ticket(home, ticket.head, target, ticket.hops + 1)
            self.errands.send(home, errand_ticket, time.monotonic())
            self.keeper.put(lambda tray: None, ring=True)
        if page.status or page.reason in NOT_THE_SERVERS or ticket.away:
            if home is not None and home.out is ticket:
                home.put(ticket.head, first=True)
            self._free(ticket)

    def _moved_to(self, page: Page, ticket: RobotsTicket) -> str | None:
        where = page.headers.get("location")
        return (
            join(page.url, where)
            if page.status in REDIRECTS and ticket.hops < ROBOTS_HOPS and where
            else None
        )

    def _place_errands(self) -> None:
        """Those whose rules are known meanwhile need not go; those that wait too long end as
        unreachable.
        """
        for place in self.errands.origins():
            if (known := self.robots.current(place + "/", self.times.now())) is not None:
                self._spare_errands(known.row)
        for errand in self.errands.place(time.monotonic()):
            page = Page(
                errand.ticket, errand.ticket.url, 0, self.times.now(), reason="out of reach"
            )
            self._learn(errand.home, page, errand.ticket)

    def _spare_errands(self, row: RobotsRow) -> None:
        for errand in self.errands.answered(row.origin):
            head = errand.ticket.head
            self._keep(errand.home, replace(row, origin=origin(head.url), host=head.host), head)

    def _learn(self, host: HostWindow | None, page: Page, ticket: RobotsTicket) -> None:
        if page.reason == "shutdown":
            return
        status = 404 if page.status in REDIRECTS else page.status
        self._keep(host, self._row(page, status, ticket.head.url, ticket.head.host), ticket.head)
        there = self.window.hosts.get(ticket.host)
        if ticket.away and is_own(page.url) and status and there is not None:
            self._keep(there, self._row(page, status, page.url, ticket.host), ticket.head)
        self.count("robots/unreachable" if robots.is_unreachable(status) else "robots/fetched", 1)

    def _row(self, page: Page, status: int, url: str, host: str) -> RobotsRow:
        earlier = self.robots.get(url)
        row = earlier.row if earlier else None
        return robots.answered(
            url, host, status, page.body, page.at, self.config.robots_ttl, row, page.headers
        )

    def _keep(self, host: HostWindow | None, row: RobotsRow, head: Ticket) -> None:
        known = self.robots.put(row)
        if host is not None:
            if row.status > 0 and not host.prepared:
                host.prepared = True
                self.keeper.put(lambda tray: None, ring=True)
            host.heed(row.origin, known.crawl_delay_s(self.config.robot_name))
            until = self.times.not_before(row.fetched) + host.clock.delay_s(self.config.rules)
            host.clock = host.clock.resting_until(until, "crawl-delay")
            self.window.ready(host)
        self._name_sitemaps(known.sitemaps(), head.depth + 1)
        self.keeper.put(lambda tray: tray.robots.append(row))
        self._spare_errands(row)

    def hear(self, news: News) -> None:
        depths: dict[str, int] = {}
        for ticket in news.tickets:
            place = origin(ticket.url)
            depths[place] = min(ticket.depth, depths.get(place, ticket.depth))
        for place, row in news.robots.items():
            self._name_sitemaps(self.robots.put(row).sitemaps(), depths.get(place, 0) + 1)
        self.holdings.hear(news)
        self._place_errands()
        self.holdings.ask(news.pushed)

    def closing(self) -> None:
        self.holdings.closing()
