"""Pages that came into the archive from elsewhere become known to a crawl, as if it had visited
them then.

The captures of a URL are played back in the order of time: each is judged as a visit would be, so
that state, interval and next visit are what the crawl's own rules make of it. What the crawl knows
from a later visit of its own is left alone. Links are not
stored: to which of them a crawl goes is for its spider to say. So validators are left out, and the
first visit of its own reads the page in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import groupby, islice
from typing import Any

from crawlproj.archive import Archive, Capture
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.exchange import RecordLocation
from crawlproj.config import Config
from crawlproj.content import feeds
from crawlproj.content.robots_directives import NO_DIRECTIVES, parse_robots_headers
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.errors import ArchiveError
from crawlproj.fetch.pages import decompress_body, document_of
from crawlproj.frontier.base import Content, Lane, Outcome, State, Ticket, lane_of
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.frontier.seen import depth_score
from crawlproj.http.status import REDIRECTS
from crawlproj.items import Page
from crawlproj.revisit.policies import choose_policy
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.upkeep.takedown import refresh_hosts
from crawlproj.urls.canonical import MAX_URL, canonical_url, host_of, url_key

AT_ONCE = 200
DEPTH = 1
"""As of a push: no seed, so that its host does not become part of the crawl."""
HEADERS = ("location", "retry-after", "content-type", "x-robots-tag")
_UUID = re.compile(r"<urn:uuid:([0-9a-f-]{36})>")


@dataclass(slots=True)
class HistoryCounts:
    """URLs that were not known, URLs whose last visit is a later one now, versions that
    were added.
    """

    urls: int = 0
    updated: int = 0
    versions: int = 0


@dataclass(frozen=True, slots=True)
class Version:
    """One reading. `known`: the database has it."""

    at: datetime
    status: int
    content: Content
    place: RecordLocation | None
    known: bool = False


@dataclass(slots=True)
class History:
    """What the captures of a URL come to."""

    url: str
    ticket: Ticket
    first_seen: datetime
    outcome: Outcome | None = None
    readings: list[Version] = field(default_factory=list)
    digest: str = ""
    kind: str = ""


Stored = Mapping[datetime, tuple[bytes, bytes]]
"""By the time of their records, the digests (body, text) of versions that the database has."""


class CaptureReplay:
    """Plays captures back by the rules of a crawl."""

    def __init__(self, crawl: str, config: Config, archive: Archive) -> None:
        policy = choose_policy(
            config.policy, config.bounds, config.increase, decrease=config.decrease
        )
        self._ends = OutcomeRules(
            policy,
            config.retries,
            config.retry_delay,
            gone_limit=config.gone_limit,
            gone_interval=config.bounds.interval,
        )
        self._crawl = crawl
        self._config = config
        self._archive = archive
        self._agents = ("robots", config.robot_name.partition("/")[0].lower())

    def replay_captures(
        self, url: str, entries: list[IndexEntry], stored: Stored
    ) -> History | None:
        """None if nothing of it can be read."""
        ticket = Ticket(
            url_key(self._crawl, url),
            url,
            host_of(url),
            server=0,
            epoch=0,
            visit=0,
            lane=Lane.NEW,
            state=State.NEW,
            depth=DEPTH,
        )
        history = History(url, ticket, entries[0].at)
        for entry in entries:
            with suppress(ArchiveError):
                self._visit(history, entry, self._archive.read_capture(entry), stored=stored)
        return history if history.outcome is not None else None

    def _visit(self, history: History, entry: IndexEntry, capture: Capture, stored: Stored) -> None:
        ticket = history.ticket
        headers = {name: value for name in HEADERS if (value := capture.header(name))}
        page = Page(
            ticket,
            history.url,
            capture.status,
            at=capture.at,
            headers=headers,
            content_type=headers.get("content-type", ""),
        )
        if 200 <= page.status < 300:
            self._read(history, page, entry, capture=capture, stored=stored)
        outcome = self._ends.decide_outcome(page, ticket)
        if outcome.state is State.WAITING and page.kind not in self._config.revisit_filter:
            outcome = replace(outcome, next_visit=None)
        if outcome.status in REDIRECTS and outcome.moved_to is not None:
            # Where it leads is for the spider to follow.
            outcome = replace(outcome, next_visit=page.at + self._config.bounds.interval)
        last_change = (
            page.at
            if page.changed or (ticket.block_digest is None and page.content is not None)
            else ticket.last_change
        )
        history.outcome = outcome
        history.ticket = replace(
            ticket,
            visit=ticket.visit + 1,
            state=outcome.state,
            tries=outcome.tries,
            last_visit=page.at,
            last_change=last_change,
            interval_s=outcome.interval_s or ticket.interval_s,
            changes=ticket.changes + page.changed,
            expires=outcome.expires,
            block_digest=page.content.block_digest
            if page.content is not None
            else ticket.block_digest,
        )

    def _read(
        self, history: History, page: Page, entry: IndexEntry, capture: Capture, stored: Stored
    ) -> None:
        """The same bytes as before are not read again."""
        if entry.digest and entry.digest == history.digest:
            page.kind = history.kind
            return
        history.digest = entry.digest
        known = stored.get(page.at)
        content = self._content(page, capture, known)
        history.kind = page.kind
        page.content = content
        page.changed = history.ticket.block_digest not in (None, content.block_digest)
        place = _place(history.url, entry, capture)
        history.readings.append(
            Version(page.at, page.status, content, place=place, known=known is not None)
        )

    def _content(self, page: Page, capture: Capture, known: tuple[bytes, bytes] | None) -> Content:
        body = capture.content
        readable = decompress_body(body)
        page.kind = feeds.sniff_kind(readable, page.content_type if readable is body else "")
        page.body_digest = known[0] if known else sha256(body).digest()[:16]
        kind = page.content_type[:200]
        size = len(body)
        if (document := document_of(page, readable, self._agents)) is None:
            return Content(page.body_digest, page.body_digest, content_type=kind, length=size)
        page.directives = parse_robots_headers(
            [page.headers.get("x-robots-tag", "")], self._agents
        ) | (document.robots or NO_DIRECTIVES)
        return Content(
            page.body_digest,
            known[1] if known else document.block_digest,
            document.title[:1000],
            content_type=kind,
            charset=document.charset,
            language=document.language[:35],
            length=size,
            noindex=page.directives.noindex,
            noarchive=page.directives.noarchive,
        )


def _place(url: str, entry: IndexEntry, capture: Capture) -> RecordLocation | None:
    """Where its body is; None if that is not a record of its own."""
    record = capture.record
    if (
        record.kind != "response"
        or canonical_url(record.url) != url
        or not _UUID.fullmatch(record.id)
    ):
        return None
    return RecordLocation(
        entry.file,
        entry.offset,
        entry.length,
        kind=record.kind,
        record_id=record.id,
        digest=record.digest,
        at=record.at,
        original=None,
    )


def import_history(
    db: Database, frontier: PostgresFrontier, config: Config, archive: Archive, keys: set[int]
) -> HistoryCounts:
    """All pages whose keys in the index have one of these hashes. Doing it again adds nothing."""
    name = frontier.spec.name
    done = HistoryCounts()
    row = db.fetch_row("crawl_named", name=name)
    assert row is not None
    player = CaptureReplay(name, config, archive)
    pages = _pages(archive, keys)
    while batch := list(islice(pages, AT_ONCE)):
        _import_some(
            db,
            row[0],
            player,
            pages={url_key(name, url): (url, entries) for url, entries in batch},
            done=done,
        )
    return done


def _pages(archive: Archive, keys: set[int]) -> Iterator[tuple[str, list[IndexEntry]]]:
    """URLs in the form that the frontier knows, with their captures, oldest first; without
    robots.txt.
    """
    for _, group in groupby(
        archive.iter_entries(keys) if keys else (), key=lambda entry: entry.key
    ):
        by_url: dict[str, list[IndexEntry]] = {}
        for entry in group:
            url = (
                canonical_url(entry.url) if not entry.post_query else None
            )  # the answer to a form is not the page
            if url is not None and len(url) <= MAX_URL and not url.endswith("/robots.txt"):
                by_url.setdefault(url, []).append(entry)
        yield from by_url.items()


def _import_some(
    db: Database,
    crawl: int,
    player: CaptureReplay,
    pages: Mapping[int, tuple[str, list[IndexEntry]]],
    done: HistoryCounts,
) -> None:
    stored: dict[int, dict[datetime, tuple[bytes, bytes]]] = {}
    timeline: dict[int, list[tuple[datetime, bytes]]] = {}
    for id_, at, began, body, text in db.fetch_rows("import_known", ids=array_literal(pages)):
        timeline.setdefault(id_, []).append((at, text))
        if began is not None:
            stored.setdefault(id_, {})[began] = body, text
    found = [
        player.replay_captures(url, entries, stored.get(id_, {}))
        for id_, (url, entries) in pages.items()
    ]
    histories = [history for history in found if history is not None]
    with db.transaction() as tx:
        hosts = _hosts(tx, crawl, {history.ticket.host for history in histories})
        rows = tx.fetch_rows("import_urls", crawl=crawl, **_url_columns(histories, hosts))
        versions = [(h, v) for h in histories for v in _fresh(h, timeline.get(h.ticket.id, []))]
        done.versions += tx.run("import_versions", **_version_columns(versions))
        latest = [(h, h.readings[-1]) for h in histories if h.readings]
        tx.run("import_pages", **_page_columns(latest))
        refresh_hosts(tx, [(crawl, host_id) for _, host_id, _ in rows])
        done.urls += sum(new for _, _, new in rows)
        done.updated += sum(not new for _, _, new in rows)


def _fresh(history: History, timeline: list[tuple[datetime, bytes]]) -> Iterator[Version]:
    """Readings that differ from the version before them, whoever has read that."""
    known = sorted(timeline)
    for version in history.readings:
        before = [text for at, text in known if at <= version.at]
        if not version.known and (not before or before[-1] != version.content.block_digest):
            yield version
            known = sorted([*known, (version.at, version.content.block_digest)])


def _hosts(tx: Transaction, crawl: int, names: Iterable[str]) -> dict[str, int]:
    wanted = sorted(names)
    found = dict(tx.fetch_rows("add_hosts", names=array_literal(wanted)))
    found |= dict(tx.fetch_rows("host_ids", names=wanted))
    tx.run("add_crawl_hosts", crawl=crawl, hosts=array_literal(sorted(found.values())))
    return found


def _url_columns(histories: list[History], hosts: Mapping[str, int]) -> dict[str, str]:
    rows: list[tuple[Any, ...]] = []
    for history in sorted(histories, key=lambda history: history.ticket.id):
        end = history.outcome
        ticket = history.ticket
        assert end is not None
        lane = lane_of(end)
        rows.append(
            (
                ticket.id,
                hosts[ticket.host],
                history.url,
                end.state.value,
                end.why,
                lane,
                DEPTH,
                depth_score(DEPTH),
                ticket.visit,
                end.tries,
                ticket.changes,
                end.status,
                history.first_seen,
                end.at,
                ticket.last_change,
                end.next_visit,
                ticket.interval_s,
                ticket.block_digest,
                end.moved_to,
                end.expires,
            )
        )
    names = (
        "id",
        "host",
        "canonical",
        "state",
        "why",
        "lane",
        "depth",
        "score",
        "visit",
        "tries",
        "changes",
        "status",
        "first_seen",
        "last_visit",
        "last_change",
        "next_visit",
        "interval_s",
        "block_digest",
        "moved_to",
        "expires",
    )
    return _columns(names, rows)


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, str]:
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return dict(zip(names, map(array_literal, columns), strict=True))


PLACE = ("file", "start", "size", "record", "digest", "began")


def _placed(place: RecordLocation | None) -> tuple[Any, ...]:
    if place is None:
        return (None,) * len(PLACE)
    found = _UUID.fullmatch(place.record_id)
    return place.file, place.offset, place.length, found and found[1], place.digest, place.at


def _version_columns(versions: list[tuple[History, Version]]) -> dict[str, str]:
    names = ("url", "at", "status", "body_digest", "block_digest", "length", *PLACE)
    return _columns(
        names,
        [
            (
                h.ticket.id,
                v.at,
                v.status,
                v.content.body_digest,
                v.content.block_digest,
                v.content.length,
                *_placed(v.place),
            )
            for h, v in versions
        ],
    )


def _page_columns(latest: list[tuple[History, Version]]) -> dict[str, str]:
    names = (
        "url",
        "at",
        "title",
        "content_type",
        "charset",
        "language",
        "length",
        "noindex",
        "noarchive",
        *PLACE,
    )
    return _columns(
        names,
        [
            (
                h.ticket.id,
                v.at,
                c.title,
                c.content_type,
                c.charset,
                c.language,
                c.length,
                c.noindex,
                c.noarchive,
                *_placed(v.place),
            )
            for h, v in latest
            for c in (v.content,)
        ],
    )
