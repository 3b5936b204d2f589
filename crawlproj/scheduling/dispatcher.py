"""Which ticket goes out next, and what its end sets free: the scheduler's decisions, without Scrapy
and without waiting.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from crawlproj.config import Config
from crawlproj.frontier.base import LeftOutHost, NewUrl, Outcome, State, Ticket
from crawlproj.items import Page, RobotsTicket
from crawlproj.politeness.clocks import FetchTiming
from crawlproj.scheduling.barren_areas import BARREN
from crawlproj.scheduling.messages import FromDatabase, Refill
from crawlproj.scheduling.outcomes import NEVER_AGAIN
from crawlproj.scheduling.robots_lifecycle import RobotsLifecycle
from crawlproj.scheduling.time_use import Use
from crawlproj.scheduling.window import HostWindow, ServerWindow
from crawlproj.scheduling.worker_leases import WorkerLeases

MAX_UNSTORED = 5_000
"""So many ends may wait for the database before nothing more is handed out."""
MAX_ITEMS = 2_000
"""So many items may wait for the verdicts on their pages before nothing more is handed out."""
LATE_S = 0.05
"""A request that starts later than this after its time is counted as late."""
NOT_THE_SERVERS = NEVER_AGAIN | {"shutdown"}
"""Reasons why robots.txt was not read that say nothing about the URL which waits for it."""


class Dispatcher:
    """Hands out tickets from `leases`, robots.txt first. Lives on the event loop."""

    def __init__(
        self,
        config: Config,
        leases: WorkerLeases,
        robots: RobotsLifecycle,
        count: Callable[[str, int], None],
        leaves_out: Callable[[Ticket], bool] = lambda _: False,
    ) -> None:
        """`leaves_out`: is a URL not to be fetched, by what was learned since it was queued?"""
        self._config = config
        self._leaves_out = leaves_out
        self._leases = leases
        self._robots = robots
        self._count = count
        self.window = leases.window
        self._preparing: set[str] = set()
        self._looked_at = time.monotonic()
        self._parked: deque[HostWindow] = deque()
        self.items_waiting = 0
        """Items that wait until it is known whether their pages are copies."""

    @property
    def held_back(self) -> bool:
        """Is nothing handed out before more is stored?"""
        if self._leases.database_thread.storage_blocked or self.items_waiting > MAX_ITEMS:
            return True
        return len(self._leases.unstored) > MAX_UNSTORED

    def waiting_for(self, now: float) -> Use:
        """What is waited for, if nothing is computed."""
        if self.held_back:
            return Use.STORING
        if self.window.has_in_flight or self._leases.database_thread.resolver.pending:
            return Use.SERVERS
        at = self.window.next_time()
        if at is not None:
            if at > now:
                return Use.CLOCKS
            return Use.READING  # it is taken as soon as the engine comes round to it
        if not self.window.hosts and not self._leases.unstored:
            return self._waiting_without_hosts()
        return Use.DATABASE

    def _waiting_without_hosts(self) -> Use:
        outlook = self._leases.outlook
        time_now = self._leases.clock.now()
        if outlook.soonest is not None:
            if outlook.soonest > time_now:
                return Use.CLOCKS
            return Use.DATABASE
        if outlook.leased_elsewhere or outlook.next_visit is not None:
            return Use.IDLE
        return Use.DATABASE

    def next_ticket(self) -> Ticket | RobotsTicket | None:
        """Return the ticket of the host that may be asked first; None if none may be asked now."""
        if self.held_back:
            self._count("frontier/held_back", 1)
            return None
        now = time.monotonic()
        while (host := self.window.due_host(now)) is not None:
            if not host.prepared and len(self._preparing) >= self._config.prepare:
                self._park(host)
                continue
            ticket = self._ticket_of(host)
            if isinstance(ticket, Ticket) and self._leaves_out(ticket):
                self._leave_out(ticket)
                self.window.requeue_host(host)
                continue
            if ticket is not None:
                if not host.prepared:
                    self._preparing.add(host.name)
                self._note_lateness(host.server, now)
                sends = isinstance(ticket, RobotsTicket) or self._robots.allows(ticket)
                self.window.start_request(host, ticket, now, reaches_server=sends)
                self._leases.refill_ahead(host, now)
                return ticket
        self._looked_at = now
        return None

    def _ticket_of(self, host: HostWindow) -> Ticket | RobotsTicket | None:
        if host.foreign_robots:
            return host.foreign_robots.popleft()
        return self._robots.robots_first(host, host.pop_ticket())

    def _leave_out(self, ticket: Ticket) -> None:
        """End a URL without asking for it."""
        self._count("links/barren", 1)
        outcome = Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            epoch=ticket.epoch,
            state=State.IGNORED,
            at=self._leases.clock.now(),
            why=BARREN,
        )
        self.end_ticket(ticket, outcome)

    def _note_lateness(self, server: ServerWindow, now: float) -> None:
        """Count how well a clock was met that we have waited for: it came round since we last found
        nothing to do.
        """
        if server.entry is not None and server.entry[0] > self._looked_at:
            self._count("scheduler/awaited", 1)
            if now - server.entry[0] > LATE_S:
                self._count("scheduler/late", 1)

    def _park(self, host: HostWindow) -> None:
        """Let a new host wait: however many there are, only so many are asked for the first time at
        once.
        """
        host.parked = True
        self._parked.append(host)
        self.window.requeue_host(host)

    def _unpark(self) -> None:
        while self._parked and len(self._preparing) < self._config.prepare:
            host = self._parked.popleft()
            host.parked = False
            self.window.requeue_host(host)
            if self.window.hosts.get(host.name) is host:
                return

    def may_ask(self, ticket: Ticket | RobotsTicket) -> bool:
        """Is its lease still ours? Asked at the last moment: this process may have been stopped
        since the ticket was handed out.
        """
        host = self.window.hosts.get(ticket.host)
        if host is None or host.server.epoch != ticket.epoch:
            return False
        return time.monotonic() < host.server.deadline

    def add_urls(self, urls: Sequence[NewUrl]) -> None:
        """Hand new URLs to the frontier, with the next commit."""
        if urls:
            self._leases.mark_changed()
            self._leases.database_thread.fill_message(lambda message: message.urls.extend(urls))

    def note_left_out(self, hosts: Mapping[str, LeftOutHost]) -> None:
        """Hand hosts that are left out to the frontier, with the next commit."""
        if hosts:
            self._leases.database_thread.fill_message(
                lambda message: message.left_out.update(hosts)
            )

    def update_clocks(self, name: str, timing: FetchTiming) -> None:
        """Set the clocks of a host and of its server from what came back."""
        host = self.window.hosts.get(name)
        if host is not None:
            self.window.update_clocks(host, timing)

    def end_ticket(self, ticket: Ticket, outcome: Outcome) -> None:
        """Store what came of a visit, and let its host go on."""
        self._leases.unstored[ticket.id] = self.window.hosts.get(ticket.host)
        self._count(f"end/{outcome.state.value}", 1)
        idle = self._free_host(ticket)
        self._leases.database_thread.fill_message(
            lambda message: message.outcomes.append(outcome), ring=idle
        )

    def let_host_go_on(self, ticket: Ticket) -> None:
        """Let the host of a page be asked again whose end is still to come."""
        self._leases.unstored[ticket.id] = self.window.hosts.get(ticket.host)
        self._free_host(ticket)

    def put_back(self, ticket: Ticket) -> None:
        """Put a ticket back that was not fetched after all, and is still due."""
        self._leases.unstored.pop(ticket.id, None)
        host = self.window.hosts.get(ticket.host)
        if host is not None and host.server.epoch == ticket.epoch:
            host.add_ticket(ticket, first=True)
            self._free_host(ticket)

    def end_robots(self, page: Page, ticket: RobotsTicket) -> None:
        """Learn what came, and go on with the URL that waits for it. If there was no response at
        all, that URL ends with a Page of its own, since it can't be fetched either.
        """
        home = self.window.hosts.get(ticket.waiting_ticket.host)
        self._robots.end_fetch(page, ticket)
        if page.status or page.reason in NOT_THE_SERVERS or ticket.has_moved:
            if home is not None and home.in_flight is ticket:
                home.add_ticket(ticket.waiting_ticket, first=True)
            self._free_host(ticket)

    def _free_host(self, ticket: Ticket | RobotsTicket) -> bool:
        """Let the host be asked again; return True if it has nothing waiting."""
        self._leases.mark_changed()
        self._preparing.discard(ticket.host)
        self._unpark()
        host = self.window.hosts.get(ticket.host)
        if host is None:
            return True
        current = host.in_flight
        if isinstance(current, RobotsTicket) and current is not ticket:
            current = current.waiting_ticket
        if current is ticket:
            self.window.finish_request(host)
        if host.waiting:
            return False
        if host.deep and not host.server.leaving:
            self._count("scheduler/starved", 1)
        return True

    def handle_message(self, message: FromDatabase) -> None:
        """Take in what the database thread brought, and ask for what is wanted next."""
        self._robots.receive_stored(message.tickets, message.robots)
        self._leases.handle_message(message)
        self._robots.advance_moved()
        self._leases.release_and_refill(message.pushed)

    def handle_refill(self, refill: Refill) -> None:
        """Take in the tickets that came between two turns."""
        self._robots.receive_stored(refill.tickets, refill.robots)
        self._leases.handle_refill(refill)
