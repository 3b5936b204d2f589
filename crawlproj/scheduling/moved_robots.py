"""robots.txt that has moved to another host: asked there under that host's own lease and clocks,
like everything else.

The host whose rules are elsewhere is parked meanwhile. If it is the other host's own robots.txt
that is meant, and that is known, nothing is asked at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawlproj.items import RobotsTicket
from crawlproj.scheduling.window import HostWindow, Window
from crawlproj.urls.canonical import host, origin

PATIENCE_S = 60.0
"""After so long without an answer the rules count as unreachable."""


@dataclass(slots=True, eq=False)
class Errand:
    """`ticket` has no lease of its own yet; `at` is the host whose slot it waits for or uses."""

    home: HostWindow
    ticket: RobotsTicket
    since: float
    at: HostWindow | None = None


class Errands:
    """Those that are open, one at most for each host that waits."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._open: dict[str, Errand] = {}

    def send(self, home: HostWindow, ticket: RobotsTicket, now: float) -> None:
        home.parked = True
        self._window.ready(home)
        self._open[home.name] = Errand(home, ticket, now)

    def hosts(self) -> list[str]:
        """Hosts that have to be borrowed for it."""
        return [
            name
            for errand in self._open.values()
            if (name := host(errand.ticket.url)) not in self._window.hosts
        ]

    def origins(self) -> list[str]:
        """Origins whose own rules are meant."""
        return [origin(e.ticket.url) for e in self._open.values() if is_own(e.ticket.url)]

    def place(self, now: float) -> list[Errand]:
        """Put errands into the queues of hosts that are held now; those that have waited too long
        are given up and returned.
        """
        late = []
        for errand in list(self._open.values()):
            if self._window.hosts.get(errand.home.name) is not errand.home:
                self.finish(errand)
            elif now - errand.since > PATIENCE_S and (errand.at is None or errand.at.out is None):
                late.append(self.finish(errand))
            else:
                self._place(errand)
        return late

    def _place(self, errand: Errand) -> None:
        there = self._window.hosts.get(host(errand.ticket.url))
        if there is not None and there is not errand.at:
            errand.at = there
            errand.ticket = errand.ticket.under(there.name, there.of.id, there.of.epoch)
            there.errands.append(errand.ticket)
            self._window.ready(there)

    def of(self, ticket: RobotsTicket) -> Errand | None:
        errand = self._open.get(ticket.head.host)
        return errand if errand is not None and errand.ticket is ticket else None

    def answered(self, place: str) -> list[Errand]:
        """The rules of an origin have become known: these need not go there any more."""
        same = [
            e
            for e in self._open.values()
            if origin(e.ticket.url) == place and is_own(e.ticket.url) and not self._is_out(e)
        ]
        return [self.finish(errand) for errand in same]

    def _is_out(self, errand: Errand) -> bool:
        return errand.at is not None and errand.at.out is errand.ticket

    def finish(self, errand: Errand) -> Errand:
        """However it ended, the host at home goes on."""
        if self._open.get(errand.home.name) is errand:
            del self._open[errand.home.name]
        if errand.at is not None and errand.ticket in errand.at.errands:
            errand.at.errands.remove(errand.ticket)
            self._window.ready(errand.at)
        errand.home.parked = False
        self._window.ready(errand.home)
        return errand


def is_own(url: str) -> bool:
    """Is it the robots.txt of its own origin?"""
    return url == origin(url) + "/robots.txt"
