"""What a commit writes to Postgres of URLs and pages: in columns, a few statements per commit.

`UrlWriter` adds URLs, `OUTCOME_COLUMNS` lists what the end of a visit writes to `url`, and
`put_contents` writes pages, versions and links.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Transaction
from crawlproj.frontier.base import (
    FINDING_STEP,
    GAP_PART,
    MAX_HELD_ADDRESSES,
    MAX_LEFT_OUT,
    SAME_ARTICLE,
    ArticleClaim,
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
    PageChange,
    ServerHints,
    State,
    lane_of,
    merge_urls,
)
from crawlproj.frontier.host_limits import is_found, left_out_hosts, limited_hosts, surplus_hosts
from crawlproj.frontier.rows import RECORD_PREFIX
from crawlproj.frontier.stored_links import encode_links
from crawlproj.urls.domains import registered_domain


class ChangedUrl(NamedTuple):
    """Id and host id of a URL that was written, as the statements return them."""

    id: int
    host: int


class AddedUrl(NamedTuple):
    """A URL that was new; without a lane it is not queued."""

    id: int
    host: int
    lane: int | None


class NearerUrl(NamedTuple):
    """A known URL that was found at a shorter depth."""

    id: int
    host: int
    depth: int


class UrlWriter:
    """Adds URLs: new ones in one statement, then what is left to do for those already known."""

    def __init__(self, spec: CrawlSpec, cache_hosts: int = 10_000) -> None:
        self.spec = spec
        self.crawl = 0
        self._hosts: dict[str, int] = {}
        self._limit = cache_hosts
        self._left_out: set[str] = set()
        self._room_left_out: int | None = None

    def forget_hosts(self) -> None:
        """Drop the cache: host ids of a transaction that was rolled back are not valid."""
        self._hosts.clear()
        self._left_out.clear()
        self._room_left_out = None

    def write_urls(
        self,
        tx: Transaction,
        urls: Sequence[NewUrl],
        now: datetime,
        touched: set[int],
        nearer: Iterable[tuple[int, int]],
        since: datetime | None = None,
    ) -> Committed:
        """Add the URLs. `nearer`: ids and depths of pages whose links are to be counted anew;
        `touched` collects hosts that have more or less to offer now.
        """
        offered = _merge_duplicates(urls)
        batch = self._within_domains(tx, offered, now)
        times = {id_: now + FINDING_STEP * position for position, id_ in enumerate(batch)}
        held = claim_articles(tx, self.crawl, list(batch.values()))
        # Sorted, so that two commits meet on rows in the same order.
        batch = {id_: batch[id_] for id_ in sorted(batch)}
        host_ids = self._host_ids(tx, {url.host for url in batch.values()})
        added = self._add(tx, batch, host_ids, times=times, held=held)
        new = {url.id for url in added}
        known = [url for id_, url in batch.items() if id_ not in new]
        closer = self._bring_nearer(tx, known)
        self._mark_seeds(tx, known)
        lifted = self._lift(tx, known)
        revived = self._revive(tx, known, since, times=times)
        depths = [*nearer, *((url.id, url.depth) for url in closer)]
        revived += self._spread(tx, depths, touched)
        self._pass_on(tx, batch.values())
        queued = {url.host for url in added if url.lane is not None}
        queued.update(url.host for url in (*revived, *lifted))
        touched.update(queued, (url.host for url in closer))
        return Committed(
            added=len(new),
            revived=len(revived),
            nearer=len(closer),
            refused=len(offered) - len(batch),
            hosts=self._host_names(tx, queued, host_ids),
        )

    def _host_names(
        self, tx: Transaction, hosts: set[int], host_ids: Mapping[str, int]
    ) -> frozenset[str]:
        """Names of hosts; those of `host_ids` need not be looked up."""
        names = {id_: name for name, id_ in host_ids.items()}
        found = {names[host] for host in hosts if host in names}
        missing = sorted(hosts - names.keys())
        if missing:
            rows = tx.fetch_rows("host_names", hosts=array_literal(missing))
            found.update(name for (name,) in rows)
        return frozenset(found)

    def leave_out_hosts(self, tx: Transaction, hosts: Iterable[LeftOutHost], now: datetime) -> None:
        """Note hosts that are not part of the crawl, each once, up to a limit."""
        new = {host.name: host for host in hosts if host.name not in self._left_out}
        if not new:
            return
        if self._room_left_out is None:
            self._room_left_out = MAX_LEFT_OUT - tx.fetch_value("count_left_out", crawl=self.crawl)
        if self._room_left_out <= 0:
            return
        self._room_left_out -= len(new)
        if len(self._left_out) + len(new) > self._limit:
            self._left_out.clear()
        self._left_out |= new.keys()
        rows = [new[name] for name in sorted(new)]
        tx.run(
            "leave_out_hosts",
            crawl=self.crawl,
            now=now,
            name=array_literal([host.name for host in rows]),
            url=array_literal([host.url for host in rows]),
            reason=array_literal([host.reason for host in rows]),
        )

    def _within_domains(
        self, tx: Transaction, batch: dict[int, NewUrl], now: datetime
    ) -> dict[int, NewUrl]:
        """The batch without URLs on new hosts of domains that have enough of them."""
        if not self.spec.domain_hosts:
            return batch
        names = {
            url.host for url in batch.values() if url.host not in self._hosts and is_found(url)
        }
        names = limited_hosts(names, self.spec.open_domains)
        if not names:
            return batch
        crawled = tx.fetch_rows(
            "crawled_hosts", crawl=self.crawl, names=array_literal(sorted(names))
        )
        names -= {name for (name,) in crawled}
        domains = sorted({registered_domain(name) for name in names})
        counts = dict(
            tx.fetch_rows(
                "domain_hosts",
                crawl=self.crawl,
                domains=array_literal(domains),
                most=self.spec.domain_hosts,
            )
        )
        refused = surplus_hosts(names, counts, self.spec.domain_hosts)
        self.leave_out_hosts(tx, left_out_hosts(batch.values(), refused), now)
        return {
            id_: url for id_, url in batch.items() if url.host not in refused or not is_found(url)
        }

    def _add(
        self,
        tx: Transaction,
        batch: dict[int, NewUrl],
        host_ids: dict[str, int],
        times: Mapping[int, datetime],
        held: Set[int],
    ) -> list[AddedUrl]:
        if not batch:
            return []
        full = set(self.full_hosts(tx, sorted(set(host_ids.values()))))
        columns = self._new_url_columns(list(batch.values()), host_ids, full, held=held)
        return tx.fetch_rows_as(
            "add_urls",
            AddedUrl,
            crawl=self.crawl,
            ordering=self.spec.order,
            first_seen=array_literal([times[id_] for id_ in batch]),
            **columns,
        )

    def full_hosts(self, tx: Transaction, hosts: Sequence[int]) -> list[int]:
        """Those of the hosts that are over their quota."""
        if not self.spec.host_pages and not self.spec.host_bytes:
            return []
        rows = tx.fetch_rows(
            "full_hosts",
            crawl=self.crawl,
            hosts=array_literal(hosts),
            host_pages=self.spec.host_pages,
            host_bytes=self.spec.host_bytes,
        )
        return [host for (host,) in rows]

    def _host_ids(self, tx: Transaction, names: set[str]) -> dict[str, int]:
        """Ids of hosts by name; hosts that are new are added."""
        missing = sorted(names - self._hosts.keys())
        found: dict[str, int] = {}
        if missing:
            found = dict(tx.fetch_rows("add_hosts", names=array_literal(missing)))
            known = [name for name in missing if name not in found]
            if known:
                found |= dict(tx.fetch_rows("host_ids", names=known))
            tx.run("add_crawl_hosts", crawl=self.crawl, hosts=array_literal(sorted(found.values())))
        ids = {name: self._hosts[name] for name in names if name in self._hosts} | found
        if len(self._hosts) + len(found) > self._limit:
            self._hosts.clear()
        self._hosts |= found
        return ids

    def _new_url_columns(
        self, urls: Sequence[NewUrl], host_ids: dict[str, int], full: set[int], held: Set[int]
    ) -> dict[str, str]:
        """What is written of new URLs: column of `url` -> the values of all of them."""
        hosts = [host_ids[url.host] for url in urls]
        states: list[str] = []
        reasons: list[str] = []
        lanes: list[int | None] = []
        for url, host in zip(urls, hosts, strict=True):
            reason = self._refusal(url, host in full)
            if not reason and url.id in held:
                reason = SAME_ARTICLE
            reasons.append(reason)
            if reason:
                states.append(State.IGNORED.value)
                lanes.append(None)
            else:
                states.append(State.NEW.value)
                lanes.append(int(url.lane))
        values: dict[str, Sequence[object]] = {
            "id": [url.id for url in urls],
            "host": hosts,
            "canonical": [url.url for url in urls],
            "state": states,
            "why": reasons,
            "lane": lanes,
            "depth": [url.depth for url in urls],
            "score": [url.score for url in urls],
            "parent": [url.parent for url in urls],
            "hops": [url.hops for url in urls],
            "request": [url.request for url in urls],
            "found": [url.found for url in urls],
            "published": [url.published for url in urls],
        }
        return {name: array_literal(column) for name, column in values.items()}

    def _refusal(self, url: NewUrl, host_full: bool) -> str:
        """Why a new URL is ignored; empty if it is queued."""
        if self.spec.max_depth and url.depth > self.spec.max_depth:
            return "depth"
        if url.hops > self.spec.max_hops:
            return "redirects"
        if host_full and url.lane in (Lane.NEW, Lane.BACKFILL):
            return "quota"
        return ""

    def _bring_nearer(self, tx: Transaction, urls: Sequence[NewUrl]) -> list[NearerUrl]:
        """Shorten the depths of known URLs that were found nearer."""
        if not urls:
            return []
        return tx.fetch_rows_as(
            "nearer_urls",
            NearerUrl,
            ordering=self.spec.order,
            id=array_literal([url.id for url in urls]),
            canonical=array_literal([url.url for url in urls]),
            depth=array_literal([url.depth for url in urls]),
            parent=array_literal([url.parent for url in urls]),
            score=array_literal([url.score for url in urls]),
            found=array_literal([url.found for url in urls]),
            lane=array_literal([int(url.lane) for url in urls]),
        )

    def _lift(self, tx: Transaction, urls: Sequence[NewUrl]) -> list[ChangedUrl]:
        """Let known URLs that wait go ahead of others if they are hot, and note of known ones when
        they were published; the result are those whose place has changed.
        """
        told = [url for url in urls if url.is_hot or url.published is not None]
        if not told:
            return []
        rows = tx.fetch_rows(
            "lift_urls",
            ordering=self.spec.order,
            id=array_literal([url.id for url in told]),
            canonical=array_literal([url.url for url in told]),
            hot=array_literal([url.is_hot for url in told]),
            score=array_literal([url.score for url in told]),
            published=array_literal([url.published for url in told]),
        )
        return [ChangedUrl(id_, host) for id_, host, is_queued in rows if is_queued]

    def _mark_seeds(self, tx: Transaction, urls: Sequence[NewUrl]) -> None:
        """Note of known URLs that they are given as seeds now, however they were found."""
        seeds = [url for url in urls if url.found is Found.SEED]
        if seeds:
            tx.run(
                "mark_seeds",
                seed=int(Found.SEED),
                id=array_literal([url.id for url in seeds]),
                canonical=array_literal([url.url for url in seeds]),
            )

    def _revive(
        self,
        tx: Transaction,
        urls: Sequence[NewUrl],
        since: datetime | None,
        times: Mapping[int, datetime],
    ) -> list[ChangedUrl]:
        """Queue known URLs again: urgent ones, start requests, retired ones, no longer too deep."""
        if not urls:
            return []
        return tx.fetch_rows_as(
            "revive_urls",
            ChangedUrl,
            ordering=self.spec.order,
            max_depth=self.spec.max_depth,
            since=since,
            id=array_literal([url.id for url in urls]),
            canonical=array_literal([url.url for url in urls]),
            urgent=array_literal([url.lane is Lane.URGENT for url in urls]),
            at=array_literal([times[url.id] for url in urls]),
            start=array_literal([url.found is not Found.REQUEST for url in urls]),
            again_s=array_literal([seconds_of(url.again) for url in urls]),
            request=array_literal([url.request for url in urls]),
            hot=array_literal([url.is_hot for url in urls]),
            found=array_literal([url.found for url in urls]),
            published=array_literal([url.published for url in urls]),
            link=int(Found.LINK),
        )

    def _pass_on(self, tx: Transaction, urls: Iterable[NewUrl]) -> None:
        """Let URLs have what was learned of the pages that have moved there for good."""
        heirs = [url for url in urls if url.heir_of is not None]
        if heirs:
            tx.run(
                "pass_on_rates",
                crawl=self.crawl,
                id=array_literal([url.id for url in heirs]),
                heir_of=array_literal([url.heir_of for url in heirs]),
            )

    def _spread(
        self, tx: Transaction, nearer: Iterable[tuple[int, int]], touched: set[int]
    ) -> list[ChangedUrl]:
        """Carry shorter depths on along stored links, ring by ring, the nearest first; the result
        are URLs that came within the depth limit.
        """
        rings: dict[int, set[int]] = defaultdict(set)
        for id_, depth in nearer:
            rings[depth].add(id_)
        moved: set[int] = set()
        while rings:
            depth = min(rings)
            rows = tx.fetch_rows(
                "nearer_children",
                ordering=self.spec.order,
                depth=depth,
                ids=array_literal(sorted(rings.pop(depth))),
            )
            touched.update(host for _, host in rows)
            moved.update(id_ for id_, _ in rows)
            if rows:
                rings[depth + 1].update(id_ for id_, _ in rows)
        if not moved or not self.spec.max_depth:
            return []
        return tx.fetch_rows_as(
            "revive_depths",
            ChangedUrl,
            ordering=self.spec.order,
            max_depth=self.spec.max_depth,
            ids=array_literal(sorted(moved)),
        )


@dataclass(slots=True)
class EndedVisits:
    """What the ends of visits in a commit came to: `read` are pages that had content, `fresh` those
    of them that are a new version, `counted` is pages and bytes per host, `nearer` are pages that
    were found nearer meanwhile, with their depths.
    """

    done: set[int] = field(default_factory=set)
    outcomes: list[Outcome] = field(default_factory=list)
    """Those that counted."""
    read: list[Outcome] = field(default_factory=list)
    fresh: set[int] = field(default_factory=set)
    counted: dict[int, list[int]] = field(default_factory=dict)
    nearer: list[tuple[int, int]] = field(default_factory=list)
    hosts: dict[int, int] = field(default_factory=dict)
    """Hosts of the pages."""
    articles: list[int] = field(default_factory=list)
    """Pages whose articles are to be taken."""
    gone: list[Outcome] = field(default_factory=list)
    """Pages that were read and are gone for good now, or have moved."""
    stored_again: list[Outcome] = field(default_factory=list)
    """Pages that were not read anew, but whose body was stored again."""
    hidden: list[Outcome] = field(default_factory=list)
    """Pages that were not read anew, but say noindex now."""

    def add_rows(self, rows: Iterable[tuple[Any, ...]], outcomes: Mapping[int, Outcome]) -> None:
        """Take the rows of `end_visits`, which are those of the outcomes that counted."""
        for id_, host, is_version, depth in rows:
            outcome = outcomes[id_]
            self.done.add(id_)
            self.hosts[id_] = host
            self.outcomes.append(outcome)
            count = self.counted.setdefault(host, [0, 0])
            count[0] += outcome.content is not None
            count[1] += outcome.received
            if outcome.content is None:
                if outcome.body_location is not None:
                    self.stored_again.append(outcome)
                if outcome.turns_noindex:
                    self.hidden.append(outcome)
                continue
            self.read.append(outcome)
            if is_version:
                self.fresh.add(id_)
            if outcome.depth is not None and depth < outcome.depth:
                self.nearer.append((id_, depth))


def _merge_duplicates(urls: Sequence[NewUrl]) -> dict[int, NewUrl]:
    """Each id once, as if its URLs were added one after the other; in the order of their coming."""
    batch: dict[int, NewUrl] = {}
    for url in urls:
        seen = batch.get(url.id)
        if seen is None:
            batch[url.id] = url
        elif seen.url == url.url:
            batch[url.id] = merge_urls(seen, url)
    return batch


def seconds_of(time: timedelta | None) -> float | None:
    return None if time is None else time.total_seconds()


def _body_digest(outcome: Outcome) -> bytes | None:
    return outcome.content.body_digest if outcome.content else None


def _block_digest(outcome: Outcome) -> bytes | None:
    return outcome.content.block_digest if outcome.content else None


OUTCOME_COLUMNS: Mapping[str, Callable[[Outcome], object]] = {
    "id": attrgetter("id"),
    "visit": attrgetter("visit"),
    "server": attrgetter("server"),
    "epoch": attrgetter("epoch"),
    "state": attrgetter("state.value"),
    "at": attrgetter("at"),
    "status": attrgetter("status"),
    "why": attrgetter("why"),
    "next_visit": attrgetter("next_visit"),
    "tries": attrgetter("tries"),
    "interval_s": attrgetter("interval_s"),
    "changed": attrgetter("changed"),
    "moved_to": attrgetter("moved_to"),
    "etag": attrgetter("etag"),
    "modified": attrgetter("modified"),
    "expires": attrgetter("expires"),
    "lane": lane_of,
    "body_digest": _body_digest,
    "block_digest": _block_digest,
    "source": attrgetter("source"),
    "rate_a": attrgetter("rate_a"),
    "rate_b": attrgetter("rate_b"),
    "own_a": attrgetter("own_a"),
    "own_b": attrgetter("own_b"),
    "saw_page": attrgetter("saw_page"),
}
"""What the end of a visit writes to `url`: argument of `end_visits` -> its value in an Outcome."""


def end_columns(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The outcomes as the arguments of `end_visits`."""
    return {name: array_literal(list(map(get, outcomes))) for name, get in OUTCOME_COLUMNS.items()}


def put_contents(
    tx: Transaction,
    outcomes: Sequence[Outcome],
    fresh: set[int],
    languages: Mapping[int, str],
) -> None:
    """Write page, text and links of each outcome, and a version where `fresh` says that it is the
    first or another one. `languages`: those of new texts, as far as they were found.
    """
    if not outcomes:
        return
    pages = [(outcome, outcome.content) for outcome in outcomes if outcome.content is not None]
    ids = array_literal([outcome.id for outcome, _ in pages])
    tx.run(
        "put_pages",
        url=ids,
        at=array_literal([outcome.at for outcome, _ in pages]),
        elapsed_s=array_literal([outcome.elapsed_s for outcome, _ in pages]),
        title=array_literal([content.title for _, content in pages]),
        content_type=array_literal([content.content_type for _, content in pages]),
        charset=array_literal([content.charset for _, content in pages]),
        declared_language=array_literal([content.language for _, content in pages]),
        length=array_literal([content.length for _, content in pages]),
        noindex=array_literal([content.noindex for _, content in pages]),
        noarchive=array_literal([content.noarchive for _, content in pages]),
        kind=array_literal([content.kind for _, content in pages]),
        canonical=array_literal([content.canonical for _, content in pages]),
        article=array_literal([content.article and "due" for _, content in pages]),
        **_text_columns(pages, languages),
        **location_columns([outcome for outcome, _ in pages]),
    )
    _put_texts(tx, pages)
    versions = [(outcome, content) for outcome, content in pages if outcome.id in fresh]
    if versions:
        tx.run(
            "put_versions",
            url=array_literal([outcome.id for outcome, _ in versions]),
            at=array_literal([outcome.at for outcome, _ in versions]),
            status=array_literal([outcome.status for outcome, _ in versions]),
            body_digest=array_literal([content.body_digest for _, content in versions]),
            block_digest=array_literal([content.block_digest for _, content in versions]),
            length=array_literal([content.length for _, content in versions]),
            **_change_columns([outcome.change for outcome, _ in versions]),
            **location_columns([outcome for outcome, _ in versions]),
        )
    links = [encode_links(content.links) for _, content in pages]
    tx.run(
        "put_links",
        url=ids,
        known=array_literal([array_literal(row.known) for row in links]),
        known_kinds=array_literal([row.known_kinds for row in links]),
        known_texts=array_literal([row.known_texts for row in links]),
        other=array_literal([row.other for row in links]),
        other_kinds=array_literal([row.other_kinds for row in links]),
        other_texts=array_literal([row.other_texts for row in links]),
        details=array_literal([row.details for row in links]),
    )
    held = sorted(address for _, content in pages for address in content.links.held)
    if held:
        tx.run(
            "put_held_addresses",
            id=array_literal([address.id for address in held]),
            page=array_literal([address.page for address in held]),
            url=array_literal([address.url for address in held]),
        )


def _text_columns(
    pages: Sequence[tuple[Outcome, Content]], languages: Mapping[int, str]
) -> dict[str, str]:
    """What is written to `page` of new texts; NULL where the text is the same as before."""
    texts = [(outcome.id, content.text) for outcome, content in pages]
    return {
        "reader": array_literal([text and text.reader for _, text in texts]),
        "reader_version": array_literal([text and text.reader_version for _, text in texts]),
        "words": array_literal([text and text.words for _, text in texts]),
        "language": array_literal([text and languages.get(id_, "") for id_, text in texts]),
    }


def _put_texts(tx: Transaction, pages: Sequence[tuple[Outcome, Content]]) -> None:
    texts = [(outcome.id, content.text.packed) for outcome, content in pages if content.text]
    if texts:
        tx.run(
            "put_texts",
            url=array_literal([id_ for id_, _ in texts]),
            blocks=array_literal([packed for _, packed in texts]),
        )


def put_article_sources(tx: Transaction, crawl: int, outcomes: Sequence[Outcome]) -> list[int]:
    """Queue the pages whose articles are to be taken, and give their ids."""
    queued = [
        (outcome, outcome.content.article)
        for outcome in outcomes
        if outcome.content is not None and outcome.content.article is not None
    ]
    if not queued:
        return []
    ids = [outcome.id for outcome, _ in queued]
    tx.run(
        "put_article_sources",
        crawl=crawl,
        page=array_literal(ids),
        at=array_literal([outcome.at for outcome, _ in queued]),
        charset=array_literal([source.charset for _, source in queued]),
        body=array_literal([source.body for _, source in queued]),
    )
    return ids


def retire_pages(tx: Transaction, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Let text and links of pages that are gone stop counting; gives those of the outcomes whose
    page had been read. If one is ever back, it is read as if for the first time, but what was
    learned of its changes stays.
    """
    gone = {outcome.id: outcome for outcome in outcomes if outcome.ends_page}
    if not gone:
        return []
    rows = tx.fetch_rows("retire_pages", ids=array_literal(sorted(gone)))
    ids = sorted(id_ for (id_,) in rows)
    if ids:
        tx.run("drop_texts", ids=array_literal(ids))
        tx.run("drop_links", ids=array_literal(ids))
    return [gone[id_] for id_ in ids]


def hide_pages(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    """Store of pages that were not read anew that they say noindex now."""
    if outcomes:
        tx.run("hide_pages", ids=array_literal(sorted(outcome.id for outcome in outcomes)))


def _change_columns(changes: Sequence[PageChange | None]) -> dict[str, str]:
    return {
        "change": array_literal([change and change.kind for change in changes]),
        "new_letters": array_literal([change and change.new_letters for change in changes]),
        "gone_letters": array_literal([change and change.gone_letters for change in changes]),
    }


def put_states(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    """Store what the next visits of pages are compared with, and what their servers said."""
    said = [outcome for outcome in outcomes if outcome.page_state or outcome.hints]
    if not said:
        return
    said.sort(key=attrgetter("id"))
    hints = [outcome.hints or ServerHints() for outcome in said]
    tx.run(
        "put_page_states",
        url=array_literal([outcome.id for outcome in said]),
        state=array_literal([outcome.page_state for outcome in said]),
        modified_at=array_literal([hint.modified_at for hint in hints]),
        fresh_until=array_literal([hint.fresh_until for hint in hints]),
    )


def claim_articles(tx: Transaction, crawl: int, urls: Sequence[NewUrl]) -> set[int]:
    """Take addresses for their articles; the result are those that are not to be fetched now."""
    left = [(url.claim, url.id) for url in urls if url.claim is not None]
    held: set[int] = set()
    while left:
        # One address of each number at a time: the next ones meet what that has left.
        first: dict[tuple[int, int], tuple[ArticleClaim, int]] = {}
        for claim, id_ in left:
            first.setdefault((claim.shape, claim.number), (claim, id_))
        taken = {id_ for _, id_ in first.values()}
        left = [(claim, id_) for claim, id_ in left if id_ not in taken]
        for most in sorted({claim.most for claim, _ in first.values()}):
            now = [pair for pair in first.values() if pair[0].most == most]
            rows = tx.fetch_rows(
                "claim_articles",
                crawl=crawl,
                most=most,
                most_held=MAX_HELD_ADDRESSES,
                shape=array_literal([claim.shape for claim, _ in now]),
                number=array_literal([claim.number for claim, _ in now]),
                id=array_literal([id_ for _, id_ in now]),
            )
            for shape, number, fetched in rows:
                _, id_ = first[shape, number]
                if id_ not in fetched:
                    held.add(id_)
    return held


def settle_articles(tx: Transaction, ordering: str, outcomes: Sequence[Outcome]) -> set[int]:
    """Queue addresses of articles that have waited for these ends; returns their hosts."""
    ends = [(end, outcome.id) for outcome in outcomes for end in outcome.article_ends]
    if not ends:
        return set()
    ids: set[int] = set()
    # They are few. In one order, so that two commits don't wait for each other.
    for end, id_ in sorted(ends, key=_order_of_end):
        rows = _settle_article(tx, end, id_)
        ids.update(number for (numbers,) in rows for number in numbers if number != id_)
    if not ids:
        return set()
    queued = tx.fetch_rows("queue_addresses", ordering=ordering, ids=array_literal(sorted(ids)))
    return {host for _, host in queued}


def _order_of_end(pair: tuple[ArticleEnd, int]) -> tuple[int, int, int]:
    end, id_ = pair
    return end.shape, end.number or 0, id_


def _settle_article(tx: Transaction, end: ArticleEnd, id_: int) -> list[tuple[Any, ...]]:
    shape = end.shape
    number = end.number
    if not end.is_free:
        return tx.fetch_rows("replace_address", shape=shape, number=number, id=id_)
    if number is None:
        rows = tx.fetch_rows("lock_shape", shape=shape)
        tx.run("free_shape", shape=shape)
        return rows
    rows = tx.fetch_rows("lock_number", shape=shape, number=number)
    tx.run("free_number", shape=shape, number=number)
    return rows


def put_sources(tx: Transaction, crawl: int, outcomes: Sequence[Outcome]) -> None:
    """Store what visits have shown of sources."""
    noted = sorted(
        ((outcome.id, outcome.at, outcome.source_note) for outcome in outcomes),
        key=itemgetter(0),
    )
    seen = [(id_, at, note) for id_, at, note in noted if note is not None]
    if not seen:
        return
    tx.run(
        "put_sources",
        crawl=crawl,
        part=GAP_PART,
        url=array_literal([id_ for id_, _, _ in seen]),
        at=array_literal([at for _, at, _ in seen]),
        kind=array_literal([note.kind for _, _, note in seen]),
        site=array_literal([note.site for _, _, note in seen]),
        title=array_literal([note.title for _, _, note in seen]),
        entries=array_literal([note.entries for _, _, note in seen]),
        newest=array_literal([note.newest for _, _, note in seen]),
        new_links=array_literal([note.new_links for _, _, note in seen]),
        problem=array_literal([note.problem for _, _, note in seen]),
    )


def count_hints(tx: Transaction, outcomes: Sequence[Outcome], hosts: Mapping[int, int]) -> None:
    """Count what came of what servers said. `hosts`: the number of each page's host."""
    counts: Counter[tuple[int, str, bool, bool]] = Counter()
    for outcome in outcomes:
        for hint, said in outcome.hints_met:
            counts[hosts[outcome.id], hint, outcome.changed, said] += 1
    if not counts:
        return
    rows = sorted({(host, hint) for host, hint, _, _ in counts})
    columns = {
        name: array_literal([counts[host, hint, changed, said] for host, hint in rows])
        for name, changed, said in HINT_COLUMNS
    }
    tx.run(
        "count_hints",
        host=array_literal([host for host, _ in rows]),
        hint=array_literal([hint for _, hint in rows]),
        **columns,
    )


HINT_COLUMNS = (
    ("changed_said", True, True),
    ("changed_unsaid", True, False),
    ("same_said", False, True),
    ("same_unsaid", False, False),
)
"""Columns of `host_hint`: had the page changed, and had the hint said so?"""


def put_host_texts(tx: Transaction, crawl: int, texts: Mapping[str, HostText]) -> None:
    """Store what is known of the texts of hosts."""
    if texts:
        names = sorted(texts)
        tx.run(
            "put_host_texts",
            crawl=crawl,
            name=array_literal(names),
            noise=array_literal([texts[name].noise for name in names]),
            probe=array_literal([texts[name].probe for name in names]),
        )


def put_listed(tx: Transaction, crawl: int, listed: Mapping[int, datetime]) -> None:
    """Store of pages that are known when a sitemap says that they were changed."""
    if listed:
        ids = sorted(listed)
        tx.run(
            "put_listed",
            crawl=crawl,
            url=array_literal(ids),
            listed_at=array_literal([listed[id_] for id_ in ids]),
        )


def put_locations(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    """The bodies of these pages were stored again, and revisit records are to point there."""
    if outcomes:
        ids = array_literal([outcome.id for outcome in outcomes])
        tx.run("put_places", url=ids, **location_columns(outcomes))


def location_columns(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Where the bodies of outcomes are in the archive; NULL where they are not."""
    locations = [outcome.body_location for outcome in outcomes]
    return {
        "file": array_literal([at and at.file for at in locations]),
        "start": array_literal([at and at.offset for at in locations]),
        "size": array_literal([at and at.length for at in locations]),
        "record": array_literal([at and _uuid(at.record_id) for at in locations]),
        "digest": array_literal([at and at.digest for at in locations]),
        "began": array_literal([at and at.at for at in locations]),
    }


def _uuid(record_id: str) -> str:
    return record_id.removeprefix(RECORD_PREFIX).rstrip(">")
