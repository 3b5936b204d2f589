"""What goes between the event loop and the database thread: a message there, news back."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime

from crawlproj.frontier.base import (
    Batch,
    Committed,
    Frontier,
    Lease,
    NewUrl,
    Outcome,
    Outlook,
    Pause,
    RobotsRow,
    Ticket,
    Want,
)
from crawlproj.scheduling.sharing import PeerSummary


@dataclass(slots=True)
class ToDatabase:
    """What the event loop has for the frontier since the last turn."""

    outcomes: list[Outcome] = field(default_factory=list)
    urls: list[NewUrl] = field(default_factory=list)
    robots: list[RobotsRow] = field(default_factory=list)
    clocks: dict[str, Pause] = field(default_factory=dict)
    server_clocks: dict[int, Pause] = field(default_factory=dict)
    wants: list[Want] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    yielded: list[int] = field(default_factory=list)
    servers_wanted: int = 0
    ranked: int = 0
    unprepared: int = 0
    eager: bool = False
    """There is room that was not there before: look for leases at once."""
    unseen: int = 0
    held: int = 0
    hosts_to_borrow: list[str] = field(default_factory=list)
    """Hosts that are needed though they have no work here."""
    robots_origins: list[str] = field(default_factory=list)
    """Origins whose robots.txt would spare us an errand."""
    known_hosts: list[str] = field(default_factory=list)
    quiet: int | None = None
    """Number of the moment at which nothing at all was held here; asks for the outlook."""

    @property
    def batch(self) -> Batch:
        return Batch(
            self.outcomes,
            self.urls,
            self.robots,
            clocks=self.clocks,
            server_clocks=self.server_clocks,
        )

    def clear_batch(self) -> None:
        """It is stored."""
        self.outcomes = []
        self.urls = []
        self.robots = []
        self.clocks = {}
        self.server_clocks = {}

    def take_back(self, older: ToDatabase) -> None:
        """What was to be written or released and could not; what was wanted then is asked
        for anew.
        """
        self.outcomes = older.outcomes + self.outcomes
        self.urls = older.urls + self.urls
        self.robots = older.robots + self.robots
        self.clocks = older.clocks | self.clocks
        self.server_clocks = older.server_clocks | self.server_clocks
        self.release = older.release + self.release
        self.yielded = older.yielded + self.yielded


@dataclass(slots=True)
class FromDatabase:
    """What a turn brought. `stored`: ends that are safe now; `asked`: whose wants were answered by
    `tickets`.
    """

    now: datetime
    sent_at: float
    received_at: float
    """When the frontier was asked for its time, and when the answer was here."""
    stored: list[int] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    renewed: dict[int, datetime] | None = None
    contested: set[int] = field(default_factory=set)
    tickets: list[Ticket] = field(default_factory=list)
    wants: list[Want] = field(default_factory=list)
    robots: dict[str, RobotsRow] = field(default_factory=dict)
    peers: PeerSummary | None = None
    others_wait: bool = False
    """All places are taken, and other servers of this crawl wait for one."""
    pushed: bool = False
    outlook: Outlook | None = None
    quiet: int | None = None


def frontier_time(frontier: Frontier) -> tuple[datetime, float, float]:
    """The frontier's time, and between which moments of ours it was read."""
    asked = time.monotonic()
    return frontier.now(), asked, time.monotonic()
