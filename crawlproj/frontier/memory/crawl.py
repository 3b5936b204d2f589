"""One crawl in memory: its rows, and the rules by which a commit writes them."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from crawlproj.frontier.base import (
    FINDING_STEP,
    LANE_OF,
    MAX_HELD_ADDRESSES,
    PUSH_RANK,
    SAME_ARTICLE,
    TIMED_LANES,
    ArticleEnd,
    Committed,
    Content,
    CrawlSpec,
    Found,
    HostText,
    Lane,
    LeftOutHost,
    NewUrl,
    Outcome,
    Rejudged,
    State,
    compute_rank,
    lane_of,
    merge_urls,
    start_rank,
)
from crawlproj.frontier.host_limits import is_found, left_out_hosts, limited_hosts, surplus_hosts
from crawlproj.frontier.memory.rows import (
    ArticleKeyRow,
    HostQueue,
    PageCount,
    SourceRow,
    UrlRow,
    clean_text,
)
from crawlproj.frontier.rules import CrawlRules, IntervalRules, make_rescaling
from crawlproj.frontier.seen import FOLLOWED, depth_score
from crawlproj.frontier.stored_links import is_nofollow
from crawlproj.urls.canonical import MAX_URL, host_of, url_key
from crawlproj.urls.domains import registered_domain
from crawlproj.urls.scope import is_below

LIMITED_LANES = frozenset({Lane.NEW, Lane.BACKFILL})
"""Lanes that quotas and the depth limit close."""


@dataclass(slots=True)
class MemoryCrawl:
    """The rows of a crawl. `versions` are contents that were the first of their page or different,
    as (id, time, content).
    """

    order: str
    max_depth: int
    rows: dict[int, UrlRow] = field(default_factory=dict)
    versions: list[tuple[int, datetime, Content]] = field(default_factory=list)
    total: PageCount = field(default_factory=PageCount)
    hosts: dict[str, PageCount] = field(default_factory=dict)
    rules: CrawlRules | None = None
    left_out: dict[str, LeftOutHost] = field(default_factory=dict)
    texts: dict[str, HostText] = field(default_factory=dict)
    sources: dict[int, SourceRow] = field(default_factory=dict)
    article_keys: dict[tuple[int, int], ArticleKeyRow] = field(default_factory=dict)
    waiting_since: dict[str, float] = field(default_factory=dict)
    """Hosts with ranked URLs -> since when they wait for a turn, in unix seconds."""

    def copy(self) -> MemoryCrawl:
        """A snapshot: rows never change, so only what holds them is copied."""
        return replace(
            self,
            rows=dict(self.rows),
            versions=list(self.versions),
            total=replace(self.total),
            hosts={name: replace(count) for name, count in self.hosts.items()},
            waiting_since=dict(self.waiting_since),
            left_out=dict(self.left_out),
            texts=dict(self.texts),
            sources=dict(self.sources),
            article_keys=dict(self.article_keys),
        )

    def host_count(self, host: str) -> PageCount:
        return self.hosts.setdefault(host, PageCount())

    def named_by(self, row: UrlRow) -> str:
        """The host of the page that names a feed outside of the scope, also after redirects."""
        above: UrlRow | None = row
        seen = set[int]()
        while above is not None and above.found is Found.NAMED_FEED and above.id not in seen:
            seen.add(above.id)
            above = self.rows.get(above.parent) if above.parent is not None else None
        if above is None or above is row or above.found is Found.NAMED_FEED:
            return ""
        return above.host

    def refresh_waiting(self, now: datetime) -> None:
        """Hosts that have ranked URLs now, and had none before, begin to wait."""
        queues = self.host_queues(spent=False)
        ready = [host for host, queue in queues.items() if queue.ready is not None]
        self.waiting_since = {host: self.waiting_since.get(host, now.timestamp()) for host in ready}

    def turn_rank(self, host: str, queue: HostQueue) -> float | None:
        """Whose turn is first: an hour of waiting is worth a whole rank."""
        if queue.ready is None:
            return None
        return self.waiting_since.get(host, 0.0) + 3600 * queue.ready

    def host_queues(self, spent: bool) -> dict[str, HostQueue]:
        """Queues of all hosts that have one; without what a spent crawl may not fetch any more."""
        queues: dict[str, HostQueue] = {}
        for row in self.rows.values():
            if row.lane is None or row.rank is None:
                continue
            if spent and row.lane in LIMITED_LANES:
                continue
            queues.setdefault(row.host, HostQueue()).add_url(row.lane, row.rank)
        return queues


TAKEN_BACK = frozenset({"scope", "barren"})
"""Why URLs are ignored that other rules may want."""


class CrawlWriter:
    """One commit, or one opening, of a crawl under a spec; what it does is counted on the way."""

    def __init__(self, crawl: MemoryCrawl, spec: CrawlSpec) -> None:
        self.crawl = crawl
        self.spec = spec
        self.done: set[int] = set()
        self.late = 0
        self.added = 0
        self.revived = 0
        self.refused = 0
        self.nearer: set[int] = set()
        self.recount: set[int] = set()
        self.hosts: set[str] = set()
        self._held: set[int] = set()

    def make_committed(self) -> Committed:
        return Committed(
            done=frozenset(self.done),
            late=self.late,
            added=self.added,
            revived=self.revived,
            nearer=len(self.nearer),
            refused=self.refused,
            hosts=frozenset(self.hosts),
        )

    # A changed order or depth limit

    def apply_spec(self) -> None:
        """Known URLs follow the order and depth limit that the spider came back with."""
        crawl = self.crawl
        new_order = crawl.order != self.spec.order
        new_depth = crawl.max_depth != self.spec.max_depth
        crawl.order = self.spec.order
        crawl.max_depth = self.spec.max_depth
        for row in list(crawl.rows.values()):
            if new_order and row.lane in LIMITED_LANES:
                row = replace(row, rank=self._rank(row))
                crawl.rows[row.id] = row
            if new_depth:
                self._apply_depth_limit(row)
        self.enforce_quotas()

    def _apply_depth_limit(self, row: UrlRow) -> None:
        if self._shut_out(row):
            self._revive(row)
        elif self._unvisited(row) and row.visit == 0 and self._too_deep(row.depth):
            self._ignore(row, "depth")

    def _rank(self, row: UrlRow) -> float:
        return compute_rank(self.spec.order, row.depth, row.score, row.first_seen)

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

    # A changed scope or revisit interval

    def apply_rules(
        self, rules: CrawlRules, wanted: Callable[[str], bool], now: datetime
    ) -> Rejudged:
        before = self.crawl.rules
        self.crawl.rules = rules
        out = 0
        back = 0
        added = 0
        rescheduled = 0
        if before is None or not rules.judges_like(before):
            for row in list(self.crawl.rows.values()):
                if self._is_judged(row) and not wanted(row.url):
                    self._ignore(row, "scope")
                    out += 1
                elif row.state is State.IGNORED and row.why in TAKEN_BACK and wanted(row.url):
                    self._take_back(row)
                    back += 1
        if before is not None and rules.may_want_more_than(before):
            known = self.added
            self.add_urls([*self._outside_links(wanted), *self._opened_hosts(wanted)], now)
            added = self.added - known
        if before is not None and rules.intervals != before.intervals:
            rescheduled = self._rescale(before.intervals, rules.intervals)
        return Rejudged(out, back, added, rescheduled)

    def _is_judged(self, row: UrlRow) -> bool:
        """Whether it came by a link and may be left out."""
        came_by_link = row.request is None and row.depth > 0 and row.parent is not None
        came_by_link = came_by_link and row.found not in (Found.REQUEST, Found.NAMED_FEED)
        queued = row.lane is not None and row.lane is not Lane.URGENT
        too_deep = row.state is State.IGNORED and row.why == "depth"
        return came_by_link and (queued or too_deep)

    def _take_back(self, row: UrlRow) -> None:
        if row.content is not None and row.next_visit is not None:
            at = row.next_visit.timestamp()
            row = replace(row, state=State.WAITING, why="", lane=Lane.REVISIT, rank=at)
        elif self._too_deep(row.depth):
            row = replace(row, why="depth")
        else:
            rank = self._rank(row)
            row = replace(row, state=State.NEW, why="", tries=0, lane=Lane.NEW, rank=rank)
        self.crawl.rows[row.id] = row
        self.hosts.add(row.host)

    def _outside_links(self, wanted: Callable[[str], bool]) -> list[NewUrl]:
        found = []
        for row in self.crawl.rows.values():
            if row.content is None or row.state is not State.WAITING:
                continue
            links = row.content.links
            for url, kind in zip(links.other, links.other_kinds, strict=True):
                if kind in FOLLOWED and len(url) <= MAX_URL and wanted(url):
                    depth = row.depth + 1
                    found.append(
                        NewUrl(
                            url_key(self.spec.name, url),
                            url,
                            host_of(url),
                            depth=depth,
                            score=depth_score(depth),
                            parent=row.id,
                            found=Found.LINK,
                        )
                    )
        return found

    def _opened_hosts(self, wanted: Callable[[str], bool]) -> list[NewUrl]:
        opened = []
        for host in list(self.crawl.left_out.values()):
            surplus = host.reason == "domain hosts"
            if surplus and is_below(host.name, self.spec.open_domains) and wanted(host.url):
                del self.crawl.left_out[host.name]
                id_ = url_key(self.spec.name, host.url)
                opened.append(NewUrl(id_, host.url, host.name, depth=1, score=depth_score(1)))
        return opened

    def _rescale(self, before: IntervalRules, after: IntervalRules) -> int:
        pages = make_rescaling(before.pages, after.pages, after.policy)
        sources = make_rescaling(before.sources, after.sources, after.policy)
        changed = 0
        for row in list(self.crawl.rows.values()):
            waits = row.state is State.WAITING and row.lane is Lane.REVISIT
            would_wait = row.state is State.IGNORED and row.why == "scope"
            if not waits and not would_wait:
                continue
            if row.last_visit is None or row.next_visit is None or row.interval_s is None:
                continue
            rescaling = sources if row.source else pages
            new_s, at = rescaling.new_visit(row.last_visit, row.next_visit, row.interval_s)
            if (new_s, at) == (row.interval_s, row.next_visit):
                continue
            rank = at.timestamp() if waits else None
            self.crawl.rows[row.id] = replace(row, interval_s=new_s, next_visit=at, rank=rank)
            changed += 1
        return changed

    # Ends

    def end_visit(self, row: UrlRow, end: Outcome) -> None:
        """Write the end of a visit that is known to be current."""
        crawl = self.crawl
        lane = lane_of(end)
        crawl.rows[row.id] = row.end_visit(end, lane, self._rank_after(row, end, lane))
        if end.content is not None:
            if end.changed or row.content is None:
                crawl.versions.append((row.id, end.at, end.content))
            if end.depth is not None and row.depth < end.depth:
                self.recount.add(row.id)
        for article_end in end.article_ends:
            self._settle_article(article_end, row.id)
        note = end.source_note
        if note is not None:
            first = SourceRow(note.site, "page", "", end.at, end.at)
            crawl.sources[row.id] = crawl.sources.get(row.id, first).end_visit(note, end.at)
        for count in (crawl.total, crawl.host_count(row.host)):
            count.pages += end.content is not None
            count.bytes += end.received
        self.done.add(row.id)

    def _rank_after(self, row: UrlRow, end: Outcome, lane: Lane | None) -> float | None:
        if lane is None:
            return None
        if lane in TIMED_LANES and end.next_visit:
            return end.next_visit.timestamp()
        return self._rank(row)

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
        offered = merge_duplicates(urls)
        refused = self._surplus({new.host for new in offered if is_found(new)})
        self.leave_out_hosts(left_out_hosts(offered, refused), now)
        batch = [new for new in offered if new.host not in refused or not is_found(new)]
        self.refused += len(offered) - len(batch)
        for position, new in enumerate(batch):
            at = now + FINDING_STEP * position
            self._claim_article(new)
            row = self.crawl.rows.get(new.id)
            if row is None:
                self._insert(new, at)
            elif row.url == new.url:
                self._add_known(row, new, since, at=at)
        self._spread()
        self._pass_on(batch)

    def _pass_on(self, urls: Iterable[NewUrl]) -> None:
        """Let URLs have what was learned of the pages that have moved there for good."""
        for url in urls:
            if url.heir_of is None or url.heir_of == url.id:
                continue
            row = self.crawl.rows.get(url.id)
            before = self.crawl.rows.get(url.heir_of)
            if row is None or before is None or row.visit or row.rate_a is not None:
                continue
            if before.rate_a is None:
                continue
            self.crawl.rows[row.id] = replace(
                row,
                rate_a=before.rate_a,
                rate_b=before.rate_b,
                own_a=before.own_a,
                own_b=before.own_b,
                importance=before.importance,
                interval_s=before.interval_s if row.interval_s is None else row.interval_s,
                last_change=row.last_change or before.last_change,
                changes=row.changes + before.changes,
            )

    def put_texts(self, texts: Mapping[str, HostText]) -> None:
        """Store what is known of the texts of hosts; None keeps what is stored."""
        for host, text in texts.items():
            before = self.crawl.texts.get(host, HostText())
            self.crawl.texts[host] = HostText(
                before.noise if text.noise is None else text.noise,
                before.probe if text.probe is None else text.probe,
            )

    def put_listed(self, listed: Mapping[int, datetime]) -> None:
        """Store of pages that were visited when a sitemap says that they were changed."""
        for id_, at in listed.items():
            row = self.crawl.rows.get(id_)
            if row is not None and row.visit:
                self.crawl.rows[id_] = replace(row, listed=at)

    def _surplus(self, names: set[str]) -> set[str]:
        if not self.spec.domain_hosts:
            return set()
        known = {row.host for row in self.crawl.rows.values()}
        below = [name for name in known if registered_domain(name) != name]
        counts = Counter(registered_domain(name) for name in below)
        limited = limited_hosts(names - known, self.spec.open_domains)
        return surplus_hosts(limited, counts, self.spec.domain_hosts)

    def leave_out_hosts(self, hosts: Iterable[LeftOutHost], now: datetime) -> None:
        for host in hosts:
            self.crawl.left_out.setdefault(host.name, replace(host, first_seen=now))

    def _insert(self, new: NewUrl, first_seen: datetime) -> None:
        if not -(2**63) <= new.id < 2**63:
            raise ValueError(f"id {new.id} has more than 64 bits")
        if new.request is not None:
            json.loads(new.request)
        row = UrlRow(
            id=new.id,
            url=new.url,
            host=new.host,
            state=State.NEW,
            lane=new.lane,
            rank=PUSH_RANK,
            depth=new.depth,
            score=new.score,
            parent=new.parent,
            hops=new.hops,
            request=new.request,
            first_seen=first_seen,
            found=new.found,
            published=new.published,
        )
        if new.lane is not Lane.URGENT:
            row = replace(row, rank=self._rank(row))
        self.crawl.rows[new.id] = row
        self.added += 1
        refusal = self._refusal(new) or (SAME_ARTICLE if new.id in self._held else "")
        if refusal:
            self._ignore(row, refusal)
        else:
            self.hosts.add(new.host)

    def _claim_article(self, new: NewUrl) -> None:
        """Take an address for its article, or let it wait if enough others go through."""
        if new.claim is None:
            return
        shape, number, most = new.claim
        row = self.crawl.article_keys.get((shape, number), ArticleKeyRow())
        if row.is_free or new.id in (*row.fetched, *row.held):
            return
        if len(row.fetched) < most:
            row = replace(row, fetched=(*row.fetched, new.id))
        else:
            self._held.add(new.id)
            if len(row.held) < MAX_HELD_ADDRESSES:
                row = replace(row, held=(*row.held, new.id))
        self.crawl.article_keys[shape, number] = row

    def _settle_article(self, end: ArticleEnd, id_: int) -> None:
        """Queue addresses of an article that have waited for this end."""
        keys = self.crawl.article_keys
        for key, row in list(keys.items()):
            if key[0] != end.shape or end.number not in (key[1], None):
                continue
            waited = row.held if end.is_free else row.held[:1]
            if end.is_free:
                keys[key] = replace(row, held=(), is_free=True)
            elif id_ in row.fetched:
                rest = tuple(each for each in row.fetched if each != id_)
                keys[key] = replace(row, fetched=(*rest, *waited), held=row.held[1:])
            else:
                continue
            for each in waited:
                url = self.crawl.rows.get(each)
                if url is not None and (url.state, url.why) == (State.IGNORED, SAME_ARTICLE):
                    url = replace(url, state=State.NEW, why="", lane=Lane.NEW)
                    self.crawl.rows[each] = replace(url, rank=self._rank(url))

    def _refusal(self, new: NewUrl) -> str:
        """Why a new URL is ignored; empty if it is queued."""
        if self._too_deep(new.depth):
            return "depth"
        if new.hops > self.spec.max_hops:
            return "redirects"
        if new.lane in LIMITED_LANES and self._full(new.host):
            return "quota"
        return ""

    def _add_known(self, row: UrlRow, new: NewUrl, since: datetime | None, at: datetime) -> None:
        if new.depth < row.depth:
            lane = row.lane
            if lane is Lane.BACKFILL and new.lane is not Lane.BACKFILL:
                lane = Lane.NEW
            row = replace(row, found=new.found, lane=lane)
            row = self._nearer(row, new.depth, new.parent, score=new.score)
            self.nearer.add(row.id)
        if new.found is Found.SEED:
            row = replace(row, found=Found.SEED)
            self.crawl.rows[row.id] = row
        row = self._lift(row, new)
        if since is not None and row.last_visit is not None and row.last_visit >= since:
            return
        if row.state is State.FORBIDDEN and row.why == "forgotten":
            return
        if new.lane is Lane.URGENT:
            if row.lane is not Lane.URGENT or row.rank != PUSH_RANK:
                self._revive(row, PUSH_RANK)
        elif new.again is not None and (row.source or new.found is not Found.REQUEST):
            self._ask_again(row, new, at=at)
        elif row.state is State.RETIRED:
            if row.next_visit is None or row.next_visit <= at or _is_new_link(row, new):
                self._revive(row)
        elif self._shut_out(row):
            self._revive(row)

    def _lift(self, row: UrlRow, new: NewUrl) -> UrlRow:
        """A known URL that a source lists anew goes ahead of others; when it was published is
        noted if that was not known.
        """
        waits = row.lane is Lane.BACKFILL or (row.lane is Lane.NEW and row.score < new.score)
        if new.is_hot and waits:
            row = replace(row, lane=Lane.NEW, score=max(row.score, new.score))
            row = replace(row, rank=self._rank(row))
            self.hosts.add(row.host)
        if row.published is None:
            row = replace(row, published=new.published)
        self.crawl.rows[row.id] = row
        return row

    def _ask_again(self, row: UrlRow, new: NewUrl, at: datetime) -> None:
        """Queue a start request that is known, unless it is queued or had its response just now.
        What was never visited waits among the new ones, where quotas hold.
        """
        assert new.again is not None
        if row.lane is Lane.URGENT or (row.visit == 0 and row.lane is not None):
            return
        if row.status and row.last_visit is not None and row.last_visit > at - new.again:
            return
        row = replace(row, request=new.request or row.request)
        if row.visit:
            self._revive(row, start_rank(at))
        else:
            self._revive(row)

    def _nearer(self, row: UrlRow, depth: int, parent: int | None, score: float) -> UrlRow:
        row = replace(row, depth=depth, parent=parent, score=max(row.score, score))
        if row.lane in LIMITED_LANES:
            row = replace(row, rank=self._rank(row))
        self.crawl.rows[row.id] = row
        return row

    def _revive(self, row: UrlRow, urgent_rank: float | None = None) -> None:
        """Queue a URL: in the urgent lane, where a queued one keeps its state, or as a new one."""
        if row.state not in LANE_OF:
            tries = 0
            if row.state is State.RETIRED and urgent_rank is None:
                tries = row.tries
            row = replace(row, state=State.NEW, tries=tries, why="")
        if urgent_rank is not None:
            row = replace(row, lane=Lane.URGENT, rank=urgent_rank)
        else:
            row = replace(row, lane=Lane.NEW, rank=self._rank(row))
        self.crawl.rows[row.id] = row
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
        """Carry shorter depths on along stored links that are followed, the nearest page first and
        of equals the lowest id.
        """
        rows = self.crawl.rows
        heap = sorted((rows[id_].depth, id_) for id_ in self.nearer | self.recount)
        while heap:
            depth, parent = heapq.heappop(heap)
            content = rows[parent].content
            if content is None:
                continue
            links = content.links
            for id_, kind in zip(links.known, links.known_kinds, strict=True):
                child = rows.get(id_)
                if child is not None and child.depth > depth + 1 and not is_nofollow(kind):
                    score = 1 / (2 + depth)
                    if child.lane is Lane.BACKFILL:
                        score = child.score
                    near = self._nearer(child, depth + 1, parent, score=score)
                    heapq.heappush(heap, (depth + 1, child.id))
                    if self._shut_out(near):
                        self._revive(near)


def merge_duplicates(urls: Iterable[NewUrl]) -> list[NewUrl]:
    """Each id once: its first URL, at the shortest depth of all, with the best score, urgent if one
    of them is; in the order in which they came.
    """
    batch: dict[int, NewUrl] = {}
    for url in urls:
        url = replace(url, url=clean_text(url.url))
        seen = batch.setdefault(url.id, url)
        if seen is not url and seen.url == url.url:
            batch[url.id] = merge_urls(seen, url)
    return list(batch.values())


def _is_new_link(row: UrlRow, new: NewUrl) -> bool:
    """Is a retired URL found by a link that was not there, or listed with a date since?"""
    if not new.is_hot:
        return False
    if new.found is Found.LINK:
        return True
    if new.published is None or row.last_visit is None:
        return False
    return new.published > row.last_visit
