"""Which ticket next, and what its end sets free: the scheduler's mind, without Scrapy and without waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from crawlproj import robots
from crawlproj.config import Config
from crawlproj.ends import NEVER_AGAIN, REDIRECTS
from crawlproj.frontier.base import NewUrl, Outcome, Outlook, RobotsRow, Ticket, Want
from crawlproj.items import Page, RobotsTicket
from crawlproj.keeper import Keeper, News, Tray
from crawlproj.politeness import Answer, HostClock
from crawlproj.times import Times
from crawlproj.urls import join, origin
from crawlproj.window import HostWindow, Window

UNSTORED = 5_000
"""So many ends may wait for the database before nothing more is handed out."""
ROBOTS_HOPS = 5
NOT_THE_SERVERS = NEVER_AGAIN | {"shutdown"}
"""Reasons why robots.txt was not read that say nothing about the URL which waits for it."""
REST_S = 10.0
"""A host that rests longer than this is given back meanwhile."""


class Dispatcher:
    """Lives on the event loop. `exhausted` turns True when nothing is left to do or to wait for."""

    def __init__(self, config: Config, timeout_s: float, now: datetime, count: Callable[[str, int], None]) -> None:
        self.config, self._timeout_s, self.count = config, timeout_s, count
        self.times = Times(now, time.monotonic())
        self.window = Window(config.spec.shares, config.window)
        self.robots = robots.RobotsCache(config.robot_name)
        self.keeper: Keeper
        self.outlook = Outlook()
        self.exhausted = False
        self._ending: dict[int, HostWindow | None] = {}
        self._detours: dict[str, tuple[str, int]] = {}
        self._servers: set[int] = set()
        self._moment = 0

    def next(self) -> Ticket | RobotsTicket | None:
        if len(self._ending) > UNSTORED:
            self.count("frontier/held_back", 1)
            return None
        now = time.monotonic()
        while (host := self.window.due(now)) is not None:
            ticket = self._robots_first(host, host.pick())
            if ticket is not None:
                host.out = ticket
                return ticket
        return None

    def _robots_first(self, host: HostWindow, ticket: Ticket) -> Ticket | RobotsTicket | None:
        """The ticket, or robots.txt before it, or neither while robots.txt can't be reached. An address that the guard will refuse
        is not asked for robots.txt either."""
        if self.config.guard.refusal(host.address):
            return ticket
        known = self.robots.current(ticket.url, self.times.now())
        if known is None:
            place = origin(ticket.url)
            url, hops = self._detours.get(place, (place + "/robots.txt", 0))
            old = self.robots.get(ticket.url)
            etag, modified = (old.row.etag, old.row.modified) if old is not None and old.row.body else (None, None)
            return RobotsTicket(url, host.name, host.server, host.epoch, ticket, hops, etag, modified)
        if known.unreachable:
            host.put(ticket, first=True)
            host.clock = host.clock.resting_until(self.times.seconds(known.row.expires), "robots.txt unreachable")
            self.window.ready(host)
            return None
        return ticket

    def add(self, urls: Sequence[NewUrl]) -> None:
        if urls:
            self._moment += 1
            self.exhausted = False
            self.keeper.put(lambda tray: tray.urls.extend(urls))

    def answered(self, ticket: Ticket | RobotsTicket, answer: Answer) -> None:
        """Set the host's clock from what came back."""
        if (host := self.window.hosts.get(ticket.host)) is not None:
            host.clock = host.clock.after(answer, self.config.rules)

    def end(self, ticket: Ticket, outcome: Outcome) -> None:
        host = self.window.hosts.get(ticket.host)
        self._ending[ticket.id] = host
        self.count(f"end/{outcome.state.value}", 1)
        self.keeper.put(lambda tray: tray.outcomes.append(outcome), ring=self._free(ticket))

    def put_back(self, ticket: Ticket) -> None:
        """It was not fetched after all, and is still due."""
        if (host := self.window.hosts.get(ticket.host)) is not None:
            host.put(ticket, first=True)
            self._free(ticket)

    def _free(self, ticket: Ticket | RobotsTicket) -> bool:
        """The host may be asked again; True if it has nothing waiting."""
        self._moment += 1
        host = self.window.hosts.get(ticket.host)
        if host is None:
            return True
        if host.out is ticket or (isinstance(host.out, RobotsTicket) and host.out.head is ticket):
            host.out = None
            self.window.ready(host)
        return not host.waiting

    def end_robots(self, page: Page, ticket: RobotsTicket) -> list[str]:
        """Store what came, go on with the URL that waits for it; sitemaps that were named. If there was no answer at all, that URL
        ends with a Page of its own, since it can't be fetched either."""
        host = self.window.hosts.get(ticket.host)
        place = origin(ticket.head.url)
        where = page.headers.get("location")
        if page.status in REDIRECTS and ticket.hops < ROBOTS_HOPS and where and (target := join(page.url, where)):
            self._detours[place] = (target, ticket.hops + 1)
        else:
            self._detours.pop(place, None)
            self._learn(host, page, ticket)
        if page.status or page.reason in NOT_THE_SERVERS:
            if host is not None and host.out is ticket:
                host.put(ticket.head, first=True)
            self._free(ticket)
        known = self.robots.get(ticket.head.url)
        return known.sitemaps() if known else []

    def _learn(self, host: HostWindow | None, page: Page, ticket: RobotsTicket) -> None:
        if page.reason == "shutdown":
            return
        earlier = self.robots.get(ticket.head.url)
        status = 404 if page.status in REDIRECTS else page.status
        row = robots.answered(
            ticket.head.url,
            ticket.host,
            status,
            page.body,
            page.at,
            self.config.robots_ttl,
            earlier.row if earlier else None,
            page.headers,
        )
        self._put_robots(row, host)
        self.count("robots/unreachable" if robots.is_unreachable(status) else "robots/fetched", 1)
        self.keeper.put(lambda tray: tray.robots.append(row))

    def _put_robots(self, row: RobotsRow, host: HostWindow | None) -> None:
        known = self.robots.put(row)
        if host is not None:
            host.clock = host.clock.with_crawl_delay(known.crawl_delay_s(self.config.robot_name))

    def hear(self, news: News) -> None:
        """Take in what the keeper brought, then say what is wanted next."""
        self.times.hear(news.now, news.monotonic)
        self._stored(news)
        for row in news.robots.values():
            self._put_robots(row, self.window.hosts.get(row.host))
        for lease in news.leases:
            self.window.admit(lease, self.times.seconds(lease.until) - self._timeout_s, self._clock_of)
            self._servers.add(lease.server)
            self._moment += 1
        if news.renewed is not None:
            self._renewed(news.renewed)
        self.window.take(news.tickets)
        self._answered_wants(news)
        if news.outlook is not None and news.quiet == self._moment:
            self.outlook = news.outlook
            self.exhausted = self._nothing_left(news.outlook)
        self._ask(news.pushed)

    def _stored(self, news: News) -> None:
        for key in news.stored:
            if (host := self._ending.pop(key, None)) is not None:
                host.holding.discard(key)
        for committed in news.committed:
            for name in ("late", "added", "revived", "nearer"):
                if number := getattr(committed, name):
                    self.count(f"frontier/{name}", number)
            for name in committed.hosts:
                if name in self.window.hosts:
                    self.window.hosts[name].more = True
        if news.pushed:
            for held in self.window.hosts.values():
                held.more = True

    def _answered_wants(self, news: News) -> None:
        """A host that was asked for more and had nothing has nothing until a commit or a push says so."""
        got = {ticket.host for ticket in news.tickets}
        for want in news.asked:
            if want.host not in got and (host := self.window.hosts.get(want.host)) is not None:
                host.more = False

    def _clock_of(self, allowed: datetime | None) -> HostClock:
        return HostClock(self.times.seconds(allowed), "stored") if allowed else HostClock()

    def _renewed(self, renewed: dict[int, datetime]) -> None:
        lost = self._servers - renewed.keys()
        for host in self.window.hosts.values():
            if host.server in renewed:
                host.deadline = self.times.seconds(renewed[host.server]) - self._timeout_s
        if lost:
            self.count("frontier/lost_leases", len(lost))
            self._servers -= lost
            self.window.drop(lost)

    def _nothing_left(self, outlook: Outlook) -> bool:
        if self.config.continuous or outlook.leased_elsewhere:
            return False
        return outlook.soonest is None or outlook.soonest > self.times.now() + self.config.patience

    def _ask(self, pushed: bool = False) -> None:
        """Let go of hosts and servers that have nothing to do, and ask for what is wanted; after a push also for hosts that have
        enough, since what is urgent goes ahead of all that waits here."""
        clocks = self._clocks(self.window.leave(time.monotonic() + REST_S))
        idle = self._servers - self.window.servers()
        self._servers -= idle
        size = self.config.window
        hosts = list(self.window.hosts.values() if pushed else self.window.hungry())
        wants = [Want(h.name, h.server, h.epoch, max(1, size - h.waiting, size // 2), frozenset(h.holding)) for h in hosts]
        quiet = None if self.window.hosts or self._ending else self._moment

        def fill(tray: Tray) -> None:
            tray.wants, tray.quiet, tray.known = wants, quiet, list(self.window.hosts)
            tray.room = self.config.servers - len(self._servers)
            tray.release.extend(idle)
            tray.clocks.update(clocks)

        self.keeper.put(fill, ring=pushed or bool(idle) or any(not h.waiting and h.out is None for h in hosts))

    def _clocks(self, hosts: Iterable[HostWindow]) -> dict[str, datetime]:
        return {host.name: self.times.date(host.clock.next_at) for host in hosts if host.clock.next_at}

    def closing(self) -> None:
        """Store the clocks of all hosts that are held, so that the next worker keeps their pauses."""
        clocks = self._clocks(self.window.hosts.values())
        self.keeper.put(lambda tray: tray.clocks.update(clocks))
