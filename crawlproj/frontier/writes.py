"""How the Postgres frontier writes URLs and contents: in columns, a few statements per commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Transaction
from crawlproj.frontier.base import (
    Committed,
    CrawlSpec,
    Lane,
    NewUrl,
    Outcome,
    State,
    compute_rank,
    lane_of,
)
from crawlproj.frontier.host_limits import is_found, surplus_hosts
from crawlproj.urls.domains import registered_domain

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
RECORD_PREFIX = "<urn:uuid:"


class UrlWriter:
    """Adds URLs: new ones in one statement, then what is left to do for those already known."""

    def __init__(self, spec: CrawlSpec, cache_hosts: int = 10_000) -> None:
        self.spec = spec
        self.crawl = 0
        self._hosts: dict[str, int] = {}
        self._limit = cache_hosts

    def forget_hosts(self) -> None:
        """Host ids of a transaction that was rolled back are not to be believed."""
        self._hosts.clear()

    def write_urls(
        self,
        tx: Transaction,
        urls: Sequence[NewUrl],
        now: datetime,
        touched: set[int],
        nearer: Iterable[tuple[int, int]],
        since: datetime | None = None,
    ) -> Committed:
        """`nearer`: ids and depths of pages whose links are to be counted anew."""
        offered = _merge_duplicates(urls)
        batch = self._within_domains(tx, offered)
        ids = self._host_ids(tx, {url.host for url in batch.values()})
        added = self._add(tx, batch, ids, now=now)
        new = {row[0] for row in added}
        known = [url for key, url in batch.items() if key not in new]
        closer, revived = self._known(tx, known, since) if known else ([], [])
        revived += self._spread(tx, [*nearer, *((key, depth) for key, _, depth in closer)], touched)
        queued = {row[1] for row in added if row[2] is not None} | {host for _, host in revived}
        touched.update(queued, (host for _, host, _ in closer))
        names = {host: name for name, host in ids.items()}
        hosts = {names[host] for host in queued if host in names}
        if missing := queued - names.keys():
            hosts.update(
                row[0] for row in tx.fetch_rows("host_names", hosts=array_literal(sorted(missing)))
            )
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
            for (name,) in tx.fetch_rows(
                "crawled_hosts", crawl=self.crawl, names=array_literal(sorted(names))
            )
        }
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
        return {
            key: url for key, url in batch.items() if url.host not in refused or not is_found(url)
        }

    def _add(
        self, tx: Transaction, batch: dict[int, NewUrl], ids: dict[str, int], now: datetime
    ) -> list[tuple[Any, ...]]:
        if not batch:
            return []
        full = set(self.full_hosts(tx, sorted(set(ids.values()))))
        return tx.fetch_rows(
            "add_urls", crawl=self.crawl, now=now, **self._columns(batch, ids, full)
        )

    def full_hosts(self, tx: Transaction, hosts: Sequence[int]) -> list[int]:
        """Those of the hosts that are over their quota."""
        limits = {"host_pages": self.spec.host_pages, "host_bytes": self.spec.host_bytes}
        if not any(limits.values()):
            return []
        return [
            row[0]
            for row in tx.fetch_rows(
                "full_hosts", crawl=self.crawl, hosts=array_literal(hosts), **limits
            )
        ]

    def _host_ids(self, tx: Transaction, names: set[str]) -> dict[str, int]:
        missing = sorted(names - self._hosts.keys())
        found: dict[str, int] = {}
        if missing:
            found = dict(tx.fetch_rows("add_hosts", names=array_literal(missing)))
            if left := [name for name in missing if name not in found]:
                found |= dict(tx.fetch_rows("host_ids", names=left))
            tx.run("add_crawl_hosts", crawl=self.crawl, hosts=array_literal(sorted(found.values())))
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
            place = (
                None
                if why
                else 0.0
                if u.lane is Lane.URGENT
                else compute_rank(order, u.depth, u.score)
            )
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
            name: array_literal(column)
            for name, column in zip(names, zip(*rows, strict=True), strict=True)
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
        names = {
            "id": array_literal(u.id for u in urls),
            "canonical": array_literal(u.url for u in urls),
        }
        nearer = tx.fetch_rows(
            "nearer_urls",
            ordering=ordering,
            depth=array_literal(u.depth for u in urls),
            parent=array_literal(u.parent for u in urls),
            score=array_literal(u.score for u in urls),
            **names,
        )
        urgent = array_literal(u.lane is Lane.URGENT for u in urls)
        return nearer, tx.fetch_rows(
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
            rows = tx.fetch_rows(
                "nearer_children",
                ordering=self.spec.order,
                depth=depth,
                ids=array_literal(sorted(rings.pop(depth))),
            )
            touched.update(host for _, host in rows)
            moved.update(key for key, _ in rows)
            if rows:
                rings[depth + 1].update(key for key, _ in rows)
        if not moved or not self.spec.max_depth:
            return []
        return tx.fetch_rows(
            "revive_depths",
            ordering=self.spec.order,
            max_depth=self.spec.max_depth,
            ids=array_literal(sorted(moved)),
        )


@dataclass(slots=True)
class EndedVisits:
    """What the ends of a commit came to: `counted` is pages and bytes per host, `nearer` pages that
    were found nearer meanwhile.
    """

    done: set[int] = field(default_factory=set)
    read: list[Outcome] = field(default_factory=list)
    fresh: set[int] = field(default_factory=set)
    counted: dict[int, list[int]] = field(default_factory=dict)
    nearer: list[tuple[int, int]] = field(default_factory=list)
    stored_again: list[Outcome] = field(default_factory=list)
    """Pages that were not read anew, but whose body was stored again."""

    def add_rows(self, rows: Iterable[tuple[Any, ...]], ends: Mapping[int, Outcome]) -> None:
        for key, host, is_version, depth in rows:
            end = ends[key]
            self.done.add(key)
            count = self.counted.setdefault(host, [0, 0])
            count[0] += end.content is not None
            count[1] += end.received
            if end.content is None:
                self.stored_again += [end] if end.body_location is not None else []
                continue
            self.read.append(end)
            if is_version:
                self.fresh.add(key)
            if end.depth is not None and depth < end.depth:
                self.nearer.append((key, depth))


def _merge_duplicates(urls: Sequence[NewUrl]) -> dict[int, NewUrl]:
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
    columns = {name: array_literal([getattr(o, name) for o in outcomes]) for name in plain}
    columns["state"] = array_literal([o.state.value for o in outcomes])
    columns["lane"] = array_literal([lane_of(o) for o in outcomes])
    columns["body_digest"] = array_literal(
        [o.content.body_digest if o.content else None for o in outcomes]
    )
    columns["block_digest"] = array_literal(
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
    url = array_literal([o.id for o, _ in pages])
    at = array_literal([o.at for o, _ in pages])
    length = array_literal([c.length for _, c in pages])
    texts = {
        name: array_literal([getattr(c, name) for _, c in pages])
        for name in ("title", "content_type", "charset", "language")
    }
    orders = {
        name: array_literal([getattr(c, name) for _, c in pages])
        for name in ("noindex", "noarchive")
    }
    elapsed_s = array_literal([o.elapsed_s for o, _ in pages])
    places = location_columns([o for o, _ in pages])
    tx.run(
        "put_pages", url=url, at=at, length=length, elapsed_s=elapsed_s, **orders, **texts, **places
    )
    versions = [(o, c) for o, c in pages if o.id in fresh]
    if versions:
        tx.run(
            "put_versions",
            url=array_literal([o.id for o, _ in versions]),
            at=array_literal([o.at for o, _ in versions]),
            status=array_literal([o.status for o, _ in versions]),
            body_digest=array_literal([c.body_digest for _, c in versions]),
            block_digest=array_literal([c.block_digest for _, c in versions]),
            length=array_literal([c.length for _, c in versions]),
            **location_columns([o for o, _ in versions]),
        )
    links = [c.links for _, c in pages]
    tx.run(
        "put_links",
        url=url,
        known=array_literal([array_literal(x.known) for x in links]),
        known_kinds=array_literal([encode_kinds(x.known_kinds) for x in links]),
        known_texts=array_literal([join_lines(x.known_texts) for x in links]),
        other=array_literal([join_lines(x.other) for x in links]),
        other_kinds=array_literal([encode_kinds(x.other_kinds) for x in links]),
        other_texts=array_literal([join_lines(x.other_texts) for x in links]),
    )


def put_locations(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    """The bodies of these pages are stored elsewhere now too, and there revisits are to point."""
    if outcomes:
        tx.run(
            "put_places", url=array_literal([o.id for o in outcomes]), **location_columns(outcomes)
        )


def location_columns(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Where their bodies are in the archive. Record ids are stored as what they are, UUIDs."""
    places = [o.body_location for o in outcomes]
    return {
        "file": array_literal([p and p.file for p in places]),
        "start": array_literal([p and p.offset for p in places]),
        "size": array_literal([p and p.length for p in places]),
        "record": array_literal(
            [p and p.record_id.removeprefix(RECORD_PREFIX).rstrip(">") for p in places]
        ),
        "digest": array_literal([p and p.digest for p in places]),
        "began": array_literal([p and p.at for p in places]),
    }


def encode_kinds(kinds: Sequence[str]) -> str:
    return "".join([KIND_LETTERS.get(kind, "?") for kind in kinds])


def join_lines(texts: Sequence[str]) -> str:
    """One line for each."""
    joined = "\n".join(texts)
    return (
        joined
        if joined.count("\n") < max(1, len(texts))
        else "\n".join([text.replace("\n", " ") for text in texts])
    )
