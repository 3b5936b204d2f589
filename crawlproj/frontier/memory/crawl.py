"""One crawl in memory: its rows, and the rules by which a commit writes them."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawlproj.frontier.base import (
    LANE_OF,
    TIMED_LANES,
    Committed,
    Content,
    CrawlSpec,
    Lane,
    NewUrl,
    Outcome,
    State,
    compute_rank,
    lane_of,
)
from crawlproj.frontier.host_limits import is_found, surplus_hosts
from crawlproj.frontier.memory.rows import HostQueue, PageCount, UrlRow
from crawlproj.urls.domains import registered_domain

LIMITED_LANES = frozenset({Lane.NEW, Lane.BACKFILL})
"""Lanes that quotas and the depth limit close."""


@dataclass(slots=True)
class MemoryCrawl:
    """The data. `versions` are the readings that were first or different, as (id,
    time, content).
    """

    order: str
    max_depth: int
    rows: dict[int, UrlRow] = field(default_factory=dict)
    versions: list[tuple[int, datetime, Content]] = field(default_factory=list)
    total: PageCount = field(default_factory=PageCount)
    hosts: dict[str, PageCount] = field(default_factory=dict)
    waiting_since: dict[str, float] = field(default_factory=dict)
    """Hosts with ranked URLs, and since when they wait for a turn, in unix seconds."""

    def copy(self) -> MemoryCrawl:
        hosts = {host: PageCount(c.pages, c.bytes) for host, c in self.hosts.items()}
        total = PageCount(self.total.pages, self.total.bytes)
        return MemoryCrawl(
            self.order,
            self.max_depth,
            dict(self.rows),
            versions=list(self.versions),
            total=total,
            hosts=hosts,
            waiting_since=dict(self.waiting_since),
        )

    def host_count(self, host: str) -> PageCount:
        return self.hosts.setdefault(host, PageCount())

    def refresh_waiting(self, now: datetime) -> None:
        """Hosts that have something to rank now, and had nothing before, begin to wait."""
        ready = [
            host for host, work in self.host_queues(spent=False).items() if work.ready is not None
        ]
        self.waiting_since = {host: self.waiting_since.get(host, now.timestamp()) for host in ready}

    def turn_rank(self, host: str, work: HostQueue) -> float | None:
        """Whose turn is first: an hour of waiting is worth a whole rank."""
        return None if work.ready is None else self.waiting_since.get(host, 0.0) + 3600 * work.ready

    def host_queues(self, spent: bool) -> dict[str, HostQueue]:
        """Queues of all hosts that have one; without what a spent crawl may not fetch any more."""
        work: dict[str, HostQueue] = {}
        for row in self.rows.values():
            if (
                row.lane is not None
                and row.rank is not None
                and not (spent and row.lane in LIMITED_LANES)
            ):
                work.setdefault(row.host, HostQueue()).add_url(row.lane, row.rank)
        return work


class CrawlWriter:
    """One commit, or one opening, of a book under a spec; what it does is counted on the way."""

    def __init__(self, book: MemoryCrawl, spec: CrawlSpec) -> None:
        self.crawl = book
        self.spec = spec
        self.done: set[int] = set()
        self.late = self.added = self.revived = self.refused = 0
        self.nearer: set[int] = set()
        self.recount: set[int] = set()
        self.hosts: set[str] = set()

    def make_committed(self) -> Committed:
        hosts = frozenset(self.hosts)
        return Committed(
            frozenset(self.done),
            self.late,
            self.added,
            revived=self.revived,
            nearer=len(self.nearer),
            refused=self.refused,
            hosts=hosts,
        )

    # A changed order or depth limit

    def apply_spec(self) -> None:
        book = self.crawl
        spec = self.spec
        new_order = book.order != spec.order
        new_depth = book.max_depth != spec.max_depth
        book.order = spec.order
        book.max_depth = spec.max_depth
        for row in list(book.rows.values()):
            if new_order and row.lane in LIMITED_LANES:
                row = book.rows[row.id] = replace(row, rank=self._rank(row))
            if new_depth and self._shut_out(row):
                self._revive(row)
            elif (
                new_depth and self._unvisited(row) and row.visit == 0 and self._too_deep(row.depth)
            ):
                self._ignore(row, "depth")
        self.enforce_quotas()

    def _rank(self, row: UrlRow | NewUrl) -> float:
        return compute_rank(self.spec.order, row.depth, row.score)

    def _too_deep(self, depth: int) -> bool:
        return 0 < self.spec.max_depth < depth

    def _shut_out(self, row: UrlRow) -> bool:
        """Ignored for a depth that is within the limit now."""
        return row.state is State.IGNORED and row.why == "depth" and not self._too_deep(row.depth)

    def _unvisited(self, row: UrlRow) -> bool:
        return row.state is State.NEW and row.lane in LIMITED_LANES

    def _full(self, host: str) -> bool:
        return self.crawl.host_count(host).reaches_limit(self.spec.host_pages, self.spec.host_bytes)

    def _ignore(self, row: UrlRow, why: str) -> None:
        self.crawl.rows[row.id] = replace(row, state=State.IGNORED, why=why, lane=None, rank=None)

    # Ends

    def end_visit(self, row: UrlRow, end: Outcome) -> None:
        """The end of a visit that is known to be current."""
        book = self.crawl
        content = end.content
        first = content is not None and row.content is None
        lane = lane_of(end)
        place = (
            end.next_visit.timestamp()
            if lane in TIMED_LANES and end.next_visit
            else self._rank(row)
        )
        book.rows[row.id] = replace(
            row,
            visit=row.visit + 1,
            state=end.state,
            status=end.status,
            why=clean_text(end.why),
            tries=end.tries,
            next_visit=end.next_visit,
            interval_s=row.interval_s if end.interval_s is None else end.interval_s,
            moved_to=end.moved_to and clean_text(end.moved_to),
            last_visit=end.at,
            changes=row.changes + end.changed,
            last_change=end.at if end.changed or first else row.last_change,
            content=content or row.content,
            lane=lane,
            rank=None if lane is None else place,
            expires=end.expires or row.expires,
            original=end.body_location.original
            if end.body_location
            else None
            if content
            else row.original,
        )
        etag = end.etag and clean_text(end.etag)
        modified = end.modified and clean_text(end.modified)
        if content:
            book.rows[row.id] = replace(
                book.rows[row.id], etag=etag, modified=modified, expires=end.expires
            )
            if first or end.changed:
                book.versions.append((row.id, end.at, content))
            if end.depth is not None and row.depth < end.depth:
                self.recount.add(row.id)
        elif 200 <= end.status <= 304:
            book.rows[row.id] = replace(
                book.rows[row.id], etag=etag or row.etag, modified=modified or row.modified
            )
        for count in (book.total, book.host_count(row.host)):
            count.pages += content is not None
            count.bytes += end.received
        self.done.add(row.id)

    def enforce_quotas(self) -> None:
        """New URLs of hosts that have now given all that was wanted are ignored."""
        touched = {self.crawl.rows[id_].host for id_ in self.done} | self.hosts
        full = {host for host in touched if self._full(host)}
        for row in list(self.crawl.rows.values()):
            if row.host in full and self._unvisited(row):
                self._ignore(row, "quota")

    # URLs

    def add_urls(
        self, urls: Iterable[NewUrl], now: datetime, since: datetime | None = None
    ) -> None:
        batch = list(merge_duplicates(urls))
        refused = self._surplus({new.host for new in batch if is_found(new)})
        for new in batch:
            if new.host in refused and is_found(new):
                self.refused += 1
                continue
            row = self.crawl.rows.get(new.id)
            if row is None:
                self._insert(new, now)
            elif row.url == new.url:
                self._again(row, new, since)
        self._spread()

    def _surplus(self, names: set[str]) -> set[str]:
        if not self.spec.domain_hosts:
            return set()
        known = {row.host for row in self.crawl.rows.values()}
        counts = Counter(above for name in known if (above := registered_domain(name)) != name)
        return surplus_hosts(names - known, counts, self.spec.domain_hosts)

    def _insert(self, new: NewUrl, now: datetime) -> None:
        if not -(2**63) <= new.id < 2**63:
            raise ValueError(f"id {new.id} has more than 64 bits")
        if new.request is not None:
            json.loads(new.request)
        why = ""
        if self._too_deep(new.depth):
            why = "depth"
        elif new.hops > self.spec.max_hops:
            why = "redirects"
        elif new.lane in LIMITED_LANES and self._full(new.host):
            why = "quota"
        state, lane = (State.IGNORED, None) if why else (State.NEW, new.lane)
        place = None if why else 0.0 if lane is Lane.URGENT else self._rank(new)
        self.crawl.rows[new.id] = UrlRow(
            new.id,
            new.url,
            new.host,
            state=state,
            lane=lane,
            rank=place,
            depth=new.depth,
            score=new.score,
            parent=new.parent,
            hops=new.hops,
            request=new.request,
            first_seen=now,
            why=why,
        )
        self.added += 1
        if lane is not None:
            self.hosts.add(new.host)

    def _again(self, row: UrlRow, new: NewUrl, since: datetime | None) -> None:
        if new.depth < row.depth:
            row = self._nearer(row, new.depth, new.parent, score=new.score)
            self.nearer.add(row.id)
        visited = since is not None and row.last_visit is not None and row.last_visit >= since
        urgent = new.lane is Lane.URGENT and row.lane is not Lane.URGENT
        forgotten = row.state is State.FORBIDDEN and row.why == "forgotten"
        if (
            not visited
            and not forgotten
            and (urgent or row.state is State.RETIRED or self._shut_out(row))
        ):
            self._revive(row, urgent)

    def _nearer(self, row: UrlRow, depth: int, parent: int | None, score: float) -> UrlRow:
        row = replace(row, depth=depth, parent=parent, score=max(row.score, score))
        if row.lane in LIMITED_LANES:
            row = replace(row, rank=self._rank(row))
        self.crawl.rows[row.id] = row
        return row

    def _revive(self, row: UrlRow, urgent: bool = False) -> None:
        """Queue it: in the urgent lane, where a queued URL keeps its state, or as a new one."""
        if row.state not in LANE_OF:
            row = replace(row, state=State.NEW, tries=0, why="")
        lane, place = (Lane.URGENT, 0.0) if urgent else (Lane.NEW, self._rank(row))
        self.crawl.rows[row.id] = replace(row, lane=lane, rank=place)
        self.revived += 1
        self.hosts.add(row.host)

    def revive_allowed(self, origin: str, allows: Callable[[str], bool]) -> None:
        """Queue what robots.txt of the origin forbade and now allows."""
        for row in list(self.crawl.rows.values()):
            forbidden = (
                row.state is State.FORBIDDEN
                and row.why.startswith("robots")
                and row.url.startswith(f"{origin}/")
            )
            if forbidden and not self._too_deep(row.depth) and allows(row.url):
                self._revive(row)

    def _spread(self) -> None:
        """Carry shorter depths on along stored links, the nearest page first and of equals the
        lowest id.
        """
        rows = self.crawl.rows
        heap = sorted((rows[id_].depth, id_) for id_ in self.nearer | self.recount)
        while heap:
            depth, parent = heapq.heappop(heap)
            content = rows[parent].content
            for child in (
                rows[id_] for id_ in (content.links.known if content else ()) if id_ in rows
            ):
                if child.depth > depth + 1:
                    near = self._nearer(child, depth + 1, parent, score=1 / (2 + depth))
                    heapq.heappush(heap, (depth + 1, child.id))
                    if self._shut_out(near):
                        self._revive(near)


def merge_duplicates(urls: Iterable[NewUrl]) -> Iterable[NewUrl]:
    """Each id once: the first one, at the shortest depth of all, with the best score, urgent if one
    of them is.
    """
    batch: dict[int, NewUrl] = {}
    for url in urls:
        url = replace(url, url=clean_text(url.url))
        seen = batch.setdefault(url.id, url)
        if seen.url != url.url:
            continue
        near = url if url.depth < seen.depth else seen
        lane = Lane.URGENT if url.lane is Lane.URGENT else seen.lane
        score = max(seen.score, url.score)
        batch[url.id] = replace(seen, depth=near.depth, parent=near.parent, score=score, lane=lane)
    return batch.values()


def clean_text(text: str) -> str:
    """Text that Postgres could store: no NUL, no lone surrogate."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
