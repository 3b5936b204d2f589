"""The messages between the event loop and the database thread: one there, its reply back."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from crawlproj.frontier.base import (
    Batch,
    Committed,
    Frontier,
    HostText,
    Lease,
    LeftOutHost,
    NewUrl,
    Outcome,
    Outlook,
    Pause,
    RobotsRow,
    Ticket,
    Verdict,
    Want,
)
from crawlproj.politeness.clocks import PolitenessRules
from crawlproj.scheduling.sharing import PeerSummary


@dataclass(slots=True)
class ToDatabase:
    """What the event loop has for the frontier since the last turn.

    The fields up to `yielded` are work to be done, and gather until it is; the others say what is
    wanted and held at this moment, and are set anew each time.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    urls: list[NewUrl] = field(default_factory=list)
    robots: list[RobotsRow] = field(default_factory=list)
    clocks: dict[str, Pause] = field(default_factory=dict)
    server_clocks: dict[int, Pause] = field(default_factory=dict)
    left_out: dict[str, LeftOutHost] = field(default_factory=dict)
    """Hosts that links led to and that are not part of the crawl."""
    texts: dict[str, HostText] = field(default_factory=dict)
    """What is known of the texts of hosts, where that has changed."""
    listed: dict[int, datetime] = field(default_factory=dict)
    """Of known URLs when a sitemap says that they were changed."""
    release: list[int] = field(default_factory=list)
    yielded: list[int] = field(default_factory=list)
    """Servers that are released for other crawls, which come first then."""
    wants: list[Want] = field(default_factory=list)
    servers_wanted: int = 0
    ranked: int = 0
    """So many of the servers wanted are leased by rank, the others by time."""
    unprepared: int = 0
    """So many of them may be for hosts that were never asked."""
    eager: bool = False
    """There is room that was not there before: look for leases at once."""
    unseen: int = 0
    """How often a worker that died may have asked a host after it last stored a clock."""
    held: int = 0
    """The number of tickets that are held here."""
    tickets_seen: int = 0
    """The number of tickets that have come so far; those that are on their way are held too."""
    hosts_to_borrow: list[str] = field(default_factory=list)
    """Hosts that are needed though they have no work here."""
    robots_origins: list[str] = field(default_factory=list)
    """Origins whose robots.txt, if it is stored, need not be fetched from another host."""
    known_hosts: list[str] = field(default_factory=list)
    previews: list[Outcome] = field(default_factory=list)
    """Pages whose items wait until it is known whether they are copies."""
    figures: Counter[str] = field(default_factory=Counter)
    """What the crawl did since the last time, for its history."""
    price_moves: tuple[float, float] = (1.0, 1.0)
    """What the prices of pages and of sources were multiplied by since the last time."""
    quiet: int | None = None
    """Number of the moment at which nothing at all was held here; asks for the outlook."""
    nothing_fetched: bool = False
    """No response has come in this run: asks whether names can be resolved at all."""

    @property
    def batch(self) -> Batch:
        """What is to be stored."""
        return Batch(
            self.outcomes,
            self.urls,
            self.robots,
            clocks=self.clocks,
            server_clocks=self.server_clocks,
            left_out=self.left_out,
            texts=self.texts,
            listed=self.listed,
        )

    def replace_batch(self, batch: Batch) -> None:
        """Keep only this of what is to be stored."""
        self.outcomes = list(batch.outcomes)
        self.urls = list(batch.urls)
        self.robots = list(batch.robots)
        self.clocks = dict(batch.clocks)
        self.server_clocks = dict(batch.server_clocks)
        self.left_out = dict(batch.left_out)
        self.texts = dict(batch.texts)
        self.listed = dict(batch.listed)

    @property
    def unfinished(self) -> bool:
        """Is something left that is to be stored or released?"""
        return bool(
            self.outcomes
            or self.urls
            or self.robots
            or self.clocks
            or self.server_clocks
            or self.left_out
            or self.texts
            or self.listed
            or self.release
            or self.yielded
        )

    def has_work_of(self, server: int) -> bool:
        """Is something left that must be stored before this server is released?"""
        if self.clocks or self.server_clocks:
            return True
        return any(outcome.server == server for outcome in self.outcomes)

    def remove_want(self, host: str) -> None:
        """Don't want more of this host with the next turn, but what is urgent."""
        self.wants = [want for want in self.wants if want.host != host or want.urgent]

    def add_want(self, want: Want) -> None:
        """Want more of a host with the next turn; what is urgent goes before all else."""
        self.remove_want(want.host)
        if all(other.host != want.host for other in self.wants):
            self.wants.append(want)

    def move_prices(self, pages: float, sources: float) -> None:
        """Add to what the prices were multiplied by."""
        self.price_moves = (self.price_moves[0] * pages, self.price_moves[1] * sources)

    def take_back(self, older: ToDatabase) -> None:
        """Put back what was to be stored or released and could not; what was wanted then is asked
        for anew.
        """
        self.outcomes = older.outcomes + self.outcomes
        self.urls = older.urls + self.urls
        self.robots = older.robots + self.robots
        self.clocks = older.clocks | self.clocks
        self.server_clocks = older.server_clocks | self.server_clocks
        self.left_out = older.left_out | self.left_out
        self.texts = older.texts | self.texts
        self.listed = older.listed | self.listed
        self.release = older.release + self.release
        self.yielded = older.yielded + self.yielded
        self.previews = older.previews + self.previews
        self.figures = older.figures + self.figures
        self.price_moves = (
            older.price_moves[0] * self.price_moves[0],
            older.price_moves[1] * self.price_moves[1],
        )


@dataclass(frozen=True, slots=True)
class BudgetNews:
    """What the revisits of a crawl have to share: its prices, in parts of what they were at first;
    and sometimes how many pages and sources wait for a visit, how fresh they are by estimate, and
    how many articles were found in the last 24 hours.
    """

    page_price: float
    source_price: float
    pages: int | None = None
    sources: int = 0
    freshness: float | None = None
    age_s: float | None = None
    articles_of_day: int | None = None


@dataclass(slots=True)
class FromDatabase:
    """What a turn brought. `stored`: ends that are safe now; `wants`: those that `tickets` are the
    response to.
    """

    now: datetime
    sent_at: float
    received_at: float
    """`now` is the frontier's time, read between these moments of the monotonic clock."""
    stored: list[int] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    renewed: dict[int, datetime] | None = None
    contested: set[int] = field(default_factory=set)
    tickets: list[Ticket] = field(default_factory=list)
    wants: list[Want] = field(default_factory=list)
    robots: dict[str, RobotsRow] = field(default_factory=dict)
    peers: PeerSummary | None = None
    rules: PolitenessRules | None = None
    """The strictest of this worker's rules of politeness and those of the others that live."""
    texts: dict[str, HostText] = field(default_factory=dict)
    """What is known of the texts of hosts that were leased."""
    budget: BudgetNews | None = None
    fallen_silent: int = 0
    """So many sources have fallen silent."""
    previews: dict[int, tuple[str, Verdict] | None] = field(default_factory=dict)
    """Pages whose items waited, and of which page each is a copy."""
    others_wait: bool = False
    """All places are taken, and other servers of this crawl wait for one."""
    pushed: bool = False
    outlook: Outlook | None = None
    unresolved: dict[str, str] = field(default_factory=dict)
    """Names that do not resolve, and why, if nothing else is left to ask for soon."""
    quiet: int | None = None


@dataclass(frozen=True, slots=True)
class Refill:
    """The tickets of quick hosts, which come between two turns."""

    wants: list[Want]
    tickets: list[Ticket]
    robots: dict[str, RobotsRow]


def frontier_time(frontier: Frontier) -> tuple[datetime, float, float]:
    """The frontier's time, and the moments of the monotonic clock between which it was read."""
    sent_at = time.monotonic()
    now = frontier.now()
    return now, sent_at, time.monotonic()
