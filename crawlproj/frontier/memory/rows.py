"""What the frontier in memory keeps: frozen rows in dictionaries, so that a shallow copy is a
snapshot.

A row knows how it becomes a Ticket and what the end of a visit writes to it; rules that look at
other rows are in `crawl`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from crawlproj.archive.exchange import Original
from crawlproj.frontier.base import (
    GAP_PART,
    PUSH_RANK,
    Content,
    Found,
    Lane,
    Outcome,
    Pause,
    SourceNote,
    State,
    StoredUrl,
    Ticket,
)

STORED_URL_FIELDS = tuple(field.name for field in fields(StoredUrl))
FROM_OTHERS = frozenset({"server", "epoch", "source_last_new", "source_gap_s", "named_by"})
TICKET_FIELDS = tuple(field.name for field in fields(Ticket) if field.name not in FROM_OTHERS)
"""Fields of a Ticket that the row of its URL has too, under the same name."""


@dataclass(frozen=True, slots=True)
class UrlRow:
    """One URL. Its fields and properties have the names of `StoredUrl` and `Ticket`, which are cut
    out of it.
    """

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
    found: Found | None = None
    source: bool = False
    rate_a: float | None = None
    rate_b: float | None = None
    own_a: float | None = None
    own_b: float | None = None
    importance: float | None = None
    state_bytes: bytes | None = None
    listed: datetime | None = None
    fresh: datetime | None = None
    published: datetime | None = None
    noted_kind: str = ""
    read_at: datetime | None = None
    reads: int = 0

    @property
    def last_read(self) -> datetime | None:
        """What has a text has it from its last visit, if nothing else is known."""
        if self.read_at is None and self.block_digest is not None:
            return self.last_visit
        return self.read_at

    @property
    def source_kind(self) -> str:
        return self.noted_kind if self.source else ""

    @property
    def page_kind(self) -> str:
        return self.content.kind if self.content is not None else ""

    @property
    def page_state(self) -> bytes | None:
        return self.state_bytes if self.content is not None else None

    @property
    def fresh_until(self) -> datetime | None:
        return self.fresh if self.content is not None else None

    @property
    def listed_at(self) -> datetime | None:
        return self.listed if self.content is not None else None

    @property
    def pushed(self) -> bool:
        return self.lane is Lane.URGENT and self.rank == PUSH_RANK

    @property
    def body_digest(self) -> bytes | None:
        return self.content.body_digest if self.content else None

    @property
    def block_digest(self) -> bytes | None:
        return self.content.block_digest if self.content else None

    @property
    def noarchive(self) -> bool:
        return self.content is not None and self.content.noarchive

    @property
    def noindex(self) -> bool:
        return self.content is not None and self.content.noindex

    def to_stored_url(self) -> StoredUrl:
        return StoredUrl(**{name: getattr(self, name) for name in STORED_URL_FIELDS})

    def make_ticket(
        self, server: int, epoch: int, source: SourceRow | None = None, named_by: str = ""
    ) -> Ticket:
        """The row as it is handed out on a lease."""
        assert self.lane is not None
        values = {name: getattr(self, name) for name in TICKET_FIELDS}
        if self.request is not None:
            values["request"] = json.loads(self.request)
        if source is not None and self.source:
            values |= {"source_last_new": source.last_new, "source_gap_s": source.gap_s}
        return Ticket(server=server, epoch=epoch, named_by=named_by, **values)

    def end_visit(self, end: Outcome, lane: Lane | None, rank: float | None) -> UrlRow:
        """The row after a visit: what an Outcome stores is listed here."""
        is_first_content = end.content is not None and self.content is None
        values: dict[str, Any] = {
            "visit": self.visit + 1,
            "state": end.state,
            "lane": lane,
            "rank": rank,
            "status": end.status,
            "why": clean_text(end.why),
            "tries": end.tries,
            "next_visit": end.next_visit,
            "moved_to": clean_or_none(end.moved_to),
            "last_visit": end.at,
            "changes": self.changes + end.changed,
            "source": end.source,
        }
        values["read_at"] = self.last_read
        if end.saw_page:
            values["read_at"] = end.at
            values["reads"] = self.reads + 1
        if end.interval_s is not None:
            values["interval_s"] = end.interval_s
        for name in ("rate_a", "rate_b", "own_a", "own_b"):
            if getattr(end, name) is not None:
                values[name] = single_precision(getattr(end, name))
        if end.source_note is not None:
            values["noted_kind"] = end.source_note.kind or self.noted_kind or "page"
        if end.page_state is not None:
            values["state_bytes"] = end.page_state
        if end.hints is not None and end.hints.fresh_until is not None:
            values["fresh"] = end.hints.fresh_until
        if end.changed or is_first_content:
            values["last_change"] = end.at
        if end.content is not None:
            values["content"] = end.content
            values["etag"] = clean_or_none(end.etag)
            values["modified"] = clean_or_none(end.modified)
            values["expires"] = end.expires
            values["original"] = None
        else:
            if 200 <= end.status <= 304:
                values["etag"] = clean_or_none(end.etag) or self.etag
                values["modified"] = clean_or_none(end.modified) or self.modified
            if end.expires is not None:
                values["expires"] = end.expires
            if end.turns_noindex and self.content is not None:
                values["content"] = replace(self.content, noindex=True)
        if end.body_location is not None:
            values["original"] = end.body_location.original
        if end.ends_page and (end.content is not None or self.content is not None):
            values |= dict.fromkeys(("content", "etag", "modified", "original"))
        return replace(self, **values)


@dataclass(frozen=True, slots=True)
class ArticleKeyRow:
    """The addresses with one long number, with the columns of the table `article_key`."""

    fetched: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    is_free: bool = False


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source, with the columns of the table `source`."""

    site: str
    kind: str
    title: str
    first_visit: datetime
    last_visit: datetime
    visits: int = 0
    entries: int = 0
    new_links: int = 0
    last_new: datetime | None = None
    gap_s: float | None = None
    newest: datetime | None = None
    silent_since: datetime | None = None
    problem: str = ""

    def end_visit(self, note: SourceNote, at: datetime) -> SourceRow:
        """The row after a visit that has shown this."""
        row = replace(
            self,
            site=note.site,
            kind=note.kind or self.kind,
            title=clean_text(note.title) or self.title,
            last_visit=at,
            visits=self.visits + 1,
            new_links=self.new_links + note.new_links,
            newest=max(filter(None, (self.newest, note.newest)), default=None),
            problem=clean_text(note.problem),
        )
        if note.kind:
            row = replace(row, entries=note.entries or 0)
        if not note.new_links:
            return row
        gap_s = self.gap_s
        if self.last_new is not None and self.last_new < at:
            last_s = (at - self.last_new).total_seconds()
            gap_s = last_s if gap_s is None else gap_s + GAP_PART * (last_s - gap_s)
        return replace(row, last_new=at, gap_s=gap_s, silent_since=None)


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
    next_allowed: datetime | None = None
    reason: str = ""
    asked: Mapping[str, int] = field(default_factory=dict)
    busy_at: datetime | None = None

    @property
    def pause(self) -> Pause | None:
        if self.next_allowed is None:
            return None
        return Pause(self.next_allowed, self.reason, asked=self.asked, busy_at=self.busy_at)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker that said that it lives."""

    crawl: str
    wanting: bool
    until: datetime
    rules: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class PageCount:
    """Pages and bytes that were fetched."""

    pages: int = 0
    bytes: int = 0

    def reaches_limit(self, pages: int, bytes_: int) -> bool:
        """Whether one of the two limits is reached. Zero is no limit."""
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
            self.retry = lower_of(self.retry, rank)
        elif lane is Lane.REVISIT:
            self.revisit = lower_of(self.revisit, rank)
        elif lane is Lane.URGENT:
            self.ready = -math.inf
        else:
            self.ready = lower_of(self.ready, rank)

    def due_time(self, now_s: float) -> float | None:
        """The earliest time, if it has come."""
        times = [at for at in (self.retry, self.revisit) if at is not None and at <= now_s]
        return min(times, default=None)

    def has_due_url(self, now_s: float) -> bool:
        """Whether there is a URL that may be fetched now."""
        return self.ready is not None or self.due_time(now_s) is not None


def single_precision(number: float) -> float:
    """The number as a column of type real keeps it."""
    kept: float = struct.unpack("f", struct.pack("f", number))[0]
    return kept


def lower_of(best: float | None, rank: float) -> float:
    return rank if best is None else min(best, rank)


def clean_text(text: str) -> str:
    """Text that Postgres could store: no NUL, no lone surrogate."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def clean_or_none(text: str | None) -> str | None:
    return None if text is None else clean_text(text)
