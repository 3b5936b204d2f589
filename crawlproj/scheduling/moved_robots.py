"""robots.txt that has moved to another host: asked there under that host's own lease and clocks,
like everything else.

The host whose rules are elsewhere is parked meanwhile. If it is the other host's own robots.txt
that is meant, and that is known, nothing is asked at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawlproj.items import RobotsTicket
from crawlproj.scheduling.window import HostWindow, Window
from crawlproj.urls.canonical import host_of, origin_of

PATIENCE_S = 60.0
"""After so long without an answer the rules count as unreachable."""


@dataclass(slots=True, eq=False)
class MovedRobotsFetch:
    """`ticket` has no lease of its own yet; `at` is the host whose slot it waits for or uses."""

    home: HostWindow
    ticket: RobotsTicket
    since: float
    target: HostWindow | None = None


class MovedRobots:
    """Those that are open, one at most for each host that waits."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._open: dict[str, MovedRobotsFetch] = {}

    def add_fetch(self, home: HostWindow, ticket: RobotsTicket, now: float) -> None:
        home.parked = True
        self._window.requeue_host(home)
        self._open[home.name] = MovedRobotsFetch(home, ticket, now)

    def hosts_to_borrow(self) -> list[str]:
        """Hosts that have to be borrowed for it."""
        return [
            name
            for fetch in self._open.values()
            if (name := host_of(fetch.ticket.url)) not in self._window.hosts
        ]

    def wanted_origins(self) -> list[str]:
        """Origins whose own rules are meant."""
        return [origin_of(e.ticket.url) for e in self._open.values() if is_own_robots(e.ticket.url)]

    def queue_or_expire(self, now: float) -> list[MovedRobotsFetch]:
        """Put fetches into the queues of hosts that are held now; those that have waited too long
        are given up and returned.
        """
        late = []
        for fetch in list(self._open.values()):
            if self._window.hosts.get(fetch.home.name) is not fetch.home:
                self.finish_fetch(fetch)
            elif now - fetch.since > PATIENCE_S and (
                fetch.target is None or fetch.target.in_flight is None
            ):
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
        fetch = self._open.get(ticket.waiting_ticket.host)
        return fetch if fetch is not None and fetch.ticket is ticket else None

    def finish_for_origin(self, place: str) -> list[MovedRobotsFetch]:
        """The rules of an origin have become known: these need not go there any more."""
        same = [
            e
            for e in self._open.values()
            if origin_of(e.ticket.url) == place
            and is_own_robots(e.ticket.url)
            and not self._is_out(e)
        ]
        return [self.finish_fetch(fetch) for fetch in same]

    def _is_out(self, fetch: MovedRobotsFetch) -> bool:
        return fetch.target is not None and fetch.target.in_flight is fetch.ticket

    def finish_fetch(self, fetch: MovedRobotsFetch) -> MovedRobotsFetch:
        """However it ended, the host at home goes on."""
        if self._open.get(fetch.home.name) is fetch:
            del self._open[fetch.home.name]
        if fetch.target is not None and fetch.ticket in fetch.target.foreign_robots:
            fetch.target.foreign_robots.remove(fetch.ticket)
            self._window.requeue_host(fetch.target)
        fetch.home.parked = False
        self._window.requeue_host(fetch.home)
        return fetch


def is_own_robots(url: str) -> bool:
    """Is it the robots.txt of its own origin?"""
    return url == origin_of(url) + "/robots.txt"
