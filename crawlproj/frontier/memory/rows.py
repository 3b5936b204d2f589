"""What the twin in memory keeps: frozen rows in dictionaries, so that a shallow copy is a snapshot.

Nothing here knows the rules of the frontier.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from datetime import datetime

from crawlproj.archive.exchange import Original
from crawlproj.frontier.base import Content, Lane, Pause, State, StoredUrl, Ticket


@dataclass(frozen=True, slots=True)
class UrlRow:
    """One URL. The names are those of `Found` and `Ticket`, which are cut out of it."""

    id: int
    url: str
    host: str
    state: State
    lane: Lane | None
    rank: float | None
    depth: int
    score: float
    parent: int | None
    hops: int
    request: str | None
    first_seen: datetime
    why: str = ""
    visit: int = 0
    tries: int = 0
    changes: int = 0
    status: int = 0
    last_visit: datetime | None = None
    last_change: datetime | None = None
    next_visit: datetime | None = None
    interval_s: float | None = None
    moved_to: str | None = None
    etag: str | None = None
    modified: str | None = None
    content: Content | None = None
    expires: datetime | None = None
    original: Original | None = None

    def to_stored_url(self) -> StoredUrl:
        return StoredUrl(**{f.name: getattr(self, f.name) for f in fields(StoredUrl)})

    def make_ticket(self, server: int, epoch: int) -> Ticket:
        """The row as it is handed out on a lease."""
        assert self.lane is not None
        body, block = (
            (self.content.body_digest, self.content.block_digest) if self.content else (None, None)
        )
        request = json.loads(self.request) if self.request is not None else None
        return Ticket(
            self.id,
            self.url,
            self.host,
            server=server,
            epoch=epoch,
            visit=self.visit,
            lane=self.lane,
            state=self.state,
            depth=self.depth,
            tries=self.tries,
            hops=self.hops,
            changes=self.changes,
            interval_s=self.interval_s,
            last_visit=self.last_visit,
            last_change=self.last_change,
            etag=self.etag,
            modified=self.modified,
            body_digest=body,
            block_digest=block,
            request=request,
            expires=self.expires,
            original=self.original,
            noarchive=self.content is not None and self.content.noarchive,
        )


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host of all crawls: its server and its clock; `taken_until` while a worker resolves it."""

    name: str
    server: int | None = None
    pause: Pause | None = None
    prepared: bool = False
    resolved: datetime | None = None
    taken_until: datetime | None = None

    @property
    def next_allowed(self) -> datetime | None:
        return self.pause.until if self.pause else None


@dataclass(frozen=True, slots=True)
class ServerRow:
    """An address and its lease."""

    id: int
    address: str
    epoch: int = 0
    worker: str | None = None
    until: datetime | None = None
    yielded: str | None = None
    pause: Pause | None = None

    @property
    def next_allowed(self) -> datetime | None:
        return self.pause.until if self.pause else None


@dataclass(frozen=True, slots=True, order=True)
class WorkerRow:
    """A worker that said that it lives."""

    crawl: str
    wanting: bool
    until: datetime


@dataclass(slots=True)
class PageCount:
    """Pages and bytes that were fetched."""

    pages: int = 0
    bytes: int = 0

    def reaches_limit(self, pages: int, bytes_: int) -> bool:
        """Is one of the two limits reached? Zero is no limit."""
        return 0 < pages <= self.pages or 0 < bytes_ <= self.bytes


@dataclass(slots=True)
class HostQueue:
    """What one host has queued: best rank of its ranked lanes, earliest times of its timed ones."""

    ready: float | None = None
    retry: float | None = None
    revisit: float | None = None

    def add_url(self, lane: Lane, rank: float) -> None:
        """Note one more queued URL."""
        if lane is Lane.RETRY:
            self.retry = rank if self.retry is None else min(self.retry, rank)
        elif lane is Lane.REVISIT:
            self.revisit = rank if self.revisit is None else min(self.revisit, rank)
        else:
            rank = -math.inf if lane is Lane.URGENT else rank
            self.ready = rank if self.ready is None else min(self.ready, rank)

    def due_time(self, now_s: float) -> float | None:
        """The earliest time, if it has come."""
        return min(
            (at for at in (self.retry, self.revisit) if at is not None and at <= now_s),
            default=None,
        )

    def has_due_url(self, now_s: float) -> bool:
        """Is there a URL that may be fetched now?"""
        return self.ready is not None or self.due_time(now_s) is not None
