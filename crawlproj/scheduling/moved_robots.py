"""Files robots.txt that have moved to another host: fetched there under that host's own lease and
clocks, like everything else.

The host whose rules are elsewhere is parked meanwhile. If it is the other host's own robots.txt
that is meant, and that is known, nothing is fetched at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawlproj.items import RobotsTicket
from crawlproj.scheduling.window import HostWindow, Window
from crawlproj.urls.canonical import host_of, origin_of

PATIENCE_S = 60.0
"""After so long without a response the rules count as unreachable."""


@dataclass(slots=True, eq=False)
class MovedRobotsFetch:
    """One fetch for the host `home`. `ticket` has no lease before there is a `target`: the host in
    whose queue it waits, or that it is sent to.
    """

    home: HostWindow
    ticket: RobotsTicket
    since: float
    target: HostWindow | None = None


class MovedRobots:
    """The fetches that are open, one at most for each host that waits."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._open: dict[str, MovedRobotsFetch] = {}

    def add_fetch(self, home: HostWindow, ticket: RobotsTicket, now: float) -> None:
        """Open a fetch, and park the host that waits for it."""
        home.parked = True
        self._window.requeue_host(home)
        self._open[home.name] = MovedRobotsFetch(home, ticket, now)

    def hosts_to_borrow(self) -> list[str]:
        """Hosts that have to be leased for these fetches."""
        hosts = [host_of(fetch.ticket.url) for fetch in self._open.values()]
        return [host for host in hosts if host not in self._window.hosts]

    def wanted_origins(self) -> list[str]:
        """Origins whose own robots.txt is what these fetches are for."""
        urls = [fetch.ticket.url for fetch in self._open.values()]
        return [origin_of(url) for url in urls if is_own_robots(url)]

    def queue_or_expire(self, now: float) -> list[MovedRobotsFetch]:
        """Put fetches into the queues of hosts that are held now; those that have waited too long
        are given up and returned.
        """
        late = []
        for fetch in list(self._open.values()):
            if self._window.hosts.get(fetch.home.name) is not fetch.home:
                self.finish_fetch(fetch)
            elif now - fetch.since > PATIENCE_S and not _is_target_busy(fetch):
                late.append(self.finish_fetch(fetch))
            else:
                self._queue_at_target(fetch)
        return late

    def _queue_at_target(self, fetch: MovedRobotsFetch) -> None:
        there = self._window.hosts.get(host_of(fetch.ticket.url))
        if there is not None and there is not fetch.target:
            fetch.target = there
            fetch.ticket = fetch.ticket.with_lease(there.name, there.server.id, there.server.epoch)
            there.foreign_robots.append(fetch.ticket)
            self._window.requeue_host(there)

    def find_fetch(self, ticket: RobotsTicket) -> MovedRobotsFetch | None:
        """The open fetch that a ticket belongs to."""
        fetch = self._open.get(ticket.waiting_ticket.host)
        if fetch is not None and fetch.ticket is ticket:
            return fetch
        return None

    def finish_for_origin(self, origin: str) -> list[MovedRobotsFetch]:
        """Finish the fetches that need not be sent any more, since the rules of an origin have
        become known; return them.
        """
        robots_url = origin + "/robots.txt"
        same = [
            fetch
            for fetch in self._open.values()
            if fetch.ticket.url == robots_url and not _is_in_flight(fetch)
        ]
        return [self.finish_fetch(fetch) for fetch in same]

    def finish_fetch(self, fetch: MovedRobotsFetch) -> MovedRobotsFetch:
        """Close a fetch, however it ended, and let the host that waited go on."""
        if self._open.get(fetch.home.name) is fetch:
            del self._open[fetch.home.name]
        if fetch.target is not None and fetch.ticket in fetch.target.foreign_robots:
            fetch.target.foreign_robots.remove(fetch.ticket)
            self._window.requeue_host(fetch.target)
        fetch.home.parked = False
        self._window.requeue_host(fetch.home)
        return fetch


def _is_in_flight(fetch: MovedRobotsFetch) -> bool:
    return fetch.target is not None and fetch.target.in_flight is fetch.ticket


def _is_target_busy(fetch: MovedRobotsFetch) -> bool:
    return fetch.target is not None and fetch.target.in_flight is not None


def is_own_robots(url: str) -> bool:
    """Is it the robots.txt of its own origin?"""
    return url == origin_of(url) + "/robots.txt"
