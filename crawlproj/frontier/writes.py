"""How the Postgres frontier writes URLs and contents: in columns, a few statements per commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from crawlproj.database.arrays import array
from crawlproj.database.connection import Transaction
from crawlproj.frontier.base import (
    Committed,
    CrawlSpec,
    Lane,
    NewUrl,
    Outcome,
    State,
    lane_of,
    rank,
)
from crawlproj.frontier.host_limits import is_found, surplus
from crawlproj.urls.domains import domain

KIND_LETTERS = {
    "a": "a",
    "area": "r",
    "link": "l",
    "img": "i",
    "iframe": "f",
    "script": "s",
    "feed": "e",
    "canonical": "c",
    "alternate": "t",
    "onclick": "o",
    "text": "x",
    "sitemap": "m",
    "refresh": "h",
    "media": "d",
    "next": "n",
}
"""One letter per link in `page_links`; anything else is '?'."""
RECORD = "<urn:uuid:"


class UrlWriter:
    """Adds URLs: new ones in one statement, then what is left to do for those already known."""

    def __init__(self, spec: CrawlSpec, cache_hosts: int = 10_000) -> None:
        self.spec = spec
        self.crawl = 0
        self._hosts: dict[str, int] = {}
        self._limit = cache_hosts

    def forget(self) -> None:
        """Host ids of a transaction that was rolled back are not to be believed."""
        self._hosts.clear()

    def write(
        self,
        tx: Transaction,
        urls: Sequence[NewUrl],
        now: datetime,
        touched: set[int],
        nearer: Iterable[tuple[int, int]],
        since: datetime | None = None,
    ) -> Committed:
        """`nearer`: ids and depths of pages whose links are to be counted anew."""
        offered = _folded(urls)
        batch = self._within_domains(tx, offered)
        ids = self._host_ids(tx, {url.host for url in batch.values()})
        added = self._add(tx, batch, ids, now)
        new = {row[0] for row in added}
        known = [url for key, url in batch.items() if key not in new]
        closer, revived = self._known(tx, known, since) if known else ([], [])
        revived += self._spread(tx, [*nearer, *((key, depth) for key, _, depth in closer)], touched)
        queued = {row[1] for row in added if row[2] is not None} | {host for _, host in revived}
        touched.update(queued, (host for _, host, _ in closer))
        names = {host: name for name, host in ids.items()}
        hosts = {names[host] for host in queued if host in names}
        if missing := queued - names.keys():
            hosts.update(row[0] for row in tx.rows("host_names", hosts=array(sorted(missing))))
        return Committed(
            added=len(new),
            revived=len(revived),
            nearer=len(closer),
            refused=len(offered) - len(batch),
            hosts=frozenset(hosts),
        )

    def _within_domains(self, tx: Transaction, batch: dict[int, NewUrl]) -> dict[int, NewUrl]:
        """Without URLs on new hosts of domains that have enough of them."""
        names = {
            url.host for url in batch.values() if url.host not in self._hosts and is_found(url)
        }
        if not self.spec.domain_hosts or not names:
            return batch
        names -= {
            name
            for (name,) in tx.rows("crawled_hosts", crawl=self.crawl, names=array(sorted(names)))
        }
        domains = sorted({domain(name) for name in names})
        counts = dict(
            tx.rows(
                "domain_hosts",
                crawl=self.crawl,
                domains=array(domains),
                most=self.spec.domain_hosts,
            )
        )
        refused = surplus(names, counts, self.spec.domain_hosts)
        return {
            key: url for key, url in batch.items() if url.host not in refused or not is_found(url)
        }

    def _add(
        self, tx: Transaction, batch: dict[int, NewUrl], ids: dict[str, int], now: datetime
    ) -> list[tuple[Any, ...]]:
        if not batch:
            return []
        full = set(self.full(tx, sorted(set(ids.values()))))
        return tx.rows("add_urls", crawl=self.crawl, now=now, **self._columns(batch, ids, full))

    def full(self, tx: Transaction, hosts: Sequence[int]) -> list[int]:
        """Those of the hosts that are over their quota."""
        limits = {"host_pages": self.spec.host_pages, "host_bytes": self.spec.host_bytes}
        if not any(limits.values()):
            return []
        return [
            row[0] for row in tx.rows("full_hosts", crawl=self.crawl, hosts=array(hosts), **limits)
        ]

    def _host_ids(self, tx: Transaction, names: set[str]) -> dict[str, int]:
        missing = sorted(names - self._hosts.keys())
        found: dict[str, int] = {}
        if missing:
            found = dict(tx.rows("add_hosts", names=array(missing)))
            if left := [name for name in missing if name not in found]:
                found |= dict(tx.rows("host_ids", names=left))
            tx.run("add_crawl_hosts", crawl=self.crawl, hosts=array(sorted(found.values())))
        ids = {name: self._hosts[name] for name in names if name in self._hosts} | found
        if len(self._hosts) + len(found) > self._limit:
            self._hosts.clear()
        self._hosts |= found
        return ids

    def _columns(
        self, batch: dict[int, NewUrl], ids: dict[str, int], full: set[int]
    ) -> dict[str, str]:
        order = self.spec.order
        rows = []
        for key, u in batch.items():
            host = ids[u.host]
            why = self._refusal(u, host in full)
            lane = None if why else int(u.lane)
            place = None if why else 0.0 if u.lane is Lane.URGENT else rank(order, u.depth, u.score)
            state = State.IGNORED.value if why else State.NEW.value
            rows.append(
                (
                    key,
                    host,
                    u.url,
                    state,
                    why,
                    lane,
                    place,
                    u.depth,
                    u.score,
                    u.parent,
                    u.hops,
                    u.request,
                )
            )
        names = (
            "id",
            "host",
            "canonical",
            "state",
            "why",
            "lane",
            "rank",
            "depth",
            "score",
            "parent",
            "hops",
            "request",
        )
        return {
            name: array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
        }

    def _refusal(self, url: NewUrl, full: bool) -> str:
        if self.spec.max_depth and url.depth > self.spec.max_depth:
            return "depth"
        if url.hops > self.spec.max_hops:
            return "redirects"
        return "quota" if full and url.lane in (Lane.NEW, Lane.BACKFILL) else ""

    def _known(
        self, tx: Transaction, urls: Sequence[NewUrl], since: datetime | None
    ) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        ordering = self.spec.order
        max_depth = self.spec.max_depth
        names = {"id": array(u.id for u in urls), "canonical": array(u.url for u in urls)}
        nearer = tx.rows(
            "nearer_urls",
            ordering=ordering,
            depth=array(u.depth for u in urls),
            parent=array(u.parent for u in urls),
            score=array(u.score for u in urls),
            **names,
        )
        urgent = array(u.lane is Lane.URGENT for u in urls)
        return nearer, tx.rows(
            "revive_urls",
            ordering=ordering,
            max_depth=max_depth,
            since=since,
            urgent=urgent,
            **names,
        )

    def _spread(
        self, tx: Transaction, nearer: Iterable[tuple[int, int]], touched: set[int]
    ) -> list[tuple[Any, ...]]:
        """Carry shorter depths on along stored links, ring by ring, the nearest first; rows that
        came within the depth limit.
        """
        rings: dict[int, set[int]] = defaultdict(set)
        for key, depth in nearer:
            rings[depth].add(key)
        moved: set[int] = set()
        while rings:
            depth = min(rings)
            rows = tx.rows(
                "nearer_children",
                ordering=self.spec.order,
                depth=depth,
                ids=array(sorted(rings.pop(depth))),
            )
            touched.update(host for _, host in rows)
            moved.update(key for key, _ in rows)
            if rows:
                rings[depth + 1].update(key for key, _ in rows)
        if not moved or not self.spec.max_depth:
            return []
        return tx.rows(
            "revive_depths",
            ordering=self.spec.order,
            max_depth=self.spec.max_depth,
            ids=array(sorted(moved)),
        )


@dataclass(slots=True)
class Ended:
    """What the ends of a commit came to: `counted` is pages and bytes per host, `nearer` pages that
    were found nearer meanwhile.
    """

    done: set[int] = field(default_factory=set)
    read: list[Outcome] = field(default_factory=list)
    fresh: set[int] = field(default_factory=set)
    counted: dict[int, list[int]] = field(default_factory=dict)
    nearer: list[tuple[int, int]] = field(default_factory=list)
    moved: list[Outcome] = field(default_factory=list)
    """Pages that were not read anew, but whose body was stored again."""

    def take(self, rows: Iterable[tuple[Any, ...]], ends: Mapping[int, Outcome]) -> None:
        for key, host, is_version, depth in rows:
            end = ends[key]
            self.done.add(key)
            count = self.counted.setdefault(host, [0, 0])
            count[0] += end.content is not None
            count[1] += end.received
            if end.content is None:
                self.moved += [end] if end.place is not None else []
                continue
            self.read.append(end)
            if is_version:
                self.fresh.add(key)
            if end.depth is not None and depth < end.depth:
                self.nearer.append((key, depth))


def _folded(urls: Sequence[NewUrl]) -> dict[int, NewUrl]:
    """Each id once, sorted, so that two commits meet on rows in the same order; as if added one
    after the other.
    """
    batch: dict[int, NewUrl] = {}
    for url in urls:
        seen = batch.get(url.id)
        if seen is None:
            batch[url.id] = url
            continue
        if seen.url != url.url:
            continue
        near = url if url.depth < seen.depth else seen
        lane = Lane.URGENT if Lane.URGENT in (url.lane, seen.lane) else seen.lane
        batch[url.id] = replace(
            seen, depth=near.depth, parent=near.parent, score=max(seen.score, url.score), lane=lane
        )
    return {key: batch[key] for key in sorted(batch)}


def end_columns(outcomes: Sequence[Outcome]) -> dict[str, str]:
    plain = (
        "id",
        "visit",
        "server",
        "epoch",
        "at",
        "status",
        "why",
        "next_visit",
        "tries",
        "interval_s",
        "changed",
        "moved_to",
        "etag",
        "modified",
        "expires",
    )
    columns = {name: array([getattr(o, name) for o in outcomes]) for name in plain}
    columns["state"] = array([o.state.value for o in outcomes])
    columns["lane"] = array([lane_of(o) for o in outcomes])
    columns["body_digest"] = array([o.content.body_digest if o.content else None for o in outcomes])
    columns["block_digest"] = array(
        [o.content.block_digest if o.content else None for o in outcomes]
    )
    return columns


def put_contents(tx: Transaction, outcomes: Sequence[Outcome], fresh: set[int]) -> None:
    """Page and links of each outcome; a version where `fresh` says that it is the first or another
    one.
    """
    if not outcomes:
        return
    pages = [(o, o.content) for o in outcomes if o.content is not None]
    url = array([o.id for o, _ in pages])
    at = array([o.at for o, _ in pages])
    length = array([c.length for _, c in pages])
    texts = {
        name: array([getattr(c, name) for _, c in pages])
        for name in ("title", "content_type", "charset", "language")
    }
    orders = {
        name: array([getattr(c, name) for _, c in pages]) for name in ("noindex", "noarchive")
    }
    elapsed_s = array([o.elapsed_s for o, _ in pages])
    places = place_columns([o for o, _ in pages])
    tx.run(
        "put_pages", url=url, at=at, length=length, elapsed_s=elapsed_s, **orders, **texts, **places
    )
    versions = [(o, c) for o, c in pages if o.id in fresh]
    if versions:
        tx.run(
            "put_versions",
            url=array([o.id for o, _ in versions]),
            at=array([o.at for o, _ in versions]),
            status=array([o.status for o, _ in versions]),
            body_digest=array([c.body_digest for _, c in versions]),
            block_digest=array([c.block_digest for _, c in versions]),
            length=array([c.length for _, c in versions]),
            **place_columns([o for o, _ in versions]),
        )
    links = [c.links for _, c in pages]
    tx.run(
        "put_links",
        url=url,
        known=array([array(x.known) for x in links]),
        known_kinds=array([letters(x.known_kinds) for x in links]),
        known_texts=array([lines(x.known_texts) for x in links]),
        other=array([lines(x.other) for x in links]),
        other_kinds=array([letters(x.other_kinds) for x in links]),
        other_texts=array([lines(x.other_texts) for x in links]),
    )


def put_places(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    """The bodies of these pages are stored elsewhere now too, and there revisits are to point."""
    if outcomes:
        tx.run("put_places", url=array([o.id for o in outcomes]), **place_columns(outcomes))


def place_columns(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Where their bodies are in the archive. Record ids are stored as what they are, UUIDs."""
    places = [o.place for o in outcomes]
    return {
        "file": array([p and p.file for p in places]),
        "start": array([p and p.offset for p in places]),
        "size": array([p and p.length for p in places]),
        "record": array([p and p.record_id.removeprefix(RECORD).rstrip(">") for p in places]),
        "digest": array([p and p.digest for p in places]),
        "began": array([p and p.at for p in places]),
    }


def letters(kinds: Sequence[str]) -> str:
    return "".join([KIND_LETTERS.get(kind, "?") for kind in kinds])


def lines(texts: Sequence[str]) -> str:
    """One line for each."""
    joined = "\n".join(texts)
    return (
        joined
        if joined.count("\n") < max(1, len(texts))
        else "\n".join([text.replace("\n", " ") for text in texts])
    )
