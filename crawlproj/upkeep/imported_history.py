"""Pages that were imported into the archive become known to a crawl, as if it had visited them
then.

The captures of a URL are replayed in the order of time: each is judged as a visit would be, so that
state, interval and next visit are what the crawl's own rules make of it. What the crawl knows from
a later visit of its own is left alone. Links are not stored: to which of them a crawl goes is for
its spider to say. So validators are left out, and the crawl's first own visit reads the page in
full.
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
from crawlproj.content.probe import is_probe_url
from crawlproj.content.robots_directives import NO_DIRECTIVES, parse_robots_headers
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.errors import ArchiveError
from crawlproj.fetch.pages import decompress_body, document_of
from crawlproj.frontier.base import Content, Found, Lane, Outcome, State, Ticket, lane_of
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.frontier.seen import depth_score
from crawlproj.http.status import REDIRECTS
from crawlproj.items import Page
from crawlproj.scheduling.outcomes import OutcomeRules
from crawlproj.upkeep.takedown import refresh_hosts
from crawlproj.urls.canonical import MAX_URL, canonical_url, host_of, url_key

BATCH_PAGES = 200
MAX_VERSIONS = 5_000
"""So many versions are stored in one statement: a page may have any number of captures."""
DEPTH = 1
"""The depth of a pushed URL: no seed, so that its host does not become part of the crawl."""
HEADERS = ("location", "retry-after", "content-type", "x-robots-tag")
LOCATION_COLUMNS = ("file", "start", "size", "record", "digest", "began")
VERSION_COLUMNS = (
    "url",
    "at",
    "status",
    "body_digest",
    "block_digest",
    "length",
    *LOCATION_COLUMNS,
)
PAGE_COLUMNS = (
    "url",
    "at",
    "title",
    "content_type",
    "charset",
    "language",
    "length",
    "noindex",
    "noarchive",
    *LOCATION_COLUMNS,
)
URL_COLUMNS = (
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
    "found",
    "source",
)
_UUID = re.compile(r"<urn:uuid:([0-9a-f-]{36})>")


@dataclass(slots=True)
class HistoryCounts:
    """URLs that were not known, URLs whose last visit is now a later one, and versions that were
    added.
    """

    urls: int = 0
    updated: int = 0
    versions: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a page; `known`: the database has it as a version."""

    at: datetime
    status: int
    content: Content
    location: RecordLocation | None
    known: bool = False


@dataclass(slots=True)
class History:
    """What the captures of a URL come to: its ticket and outcome after the last replayed visit."""

    url: str
    ticket: Ticket
    first_seen: datetime
    outcome: Outcome | None = None
    readings: list[Reading] = field(default_factory=list)
    digest: str = ""
    kind: str = ""


StoredDigests = Mapping[datetime, tuple[bytes, bytes]]
"""By the time of their records, the digests (body, text) of versions that the database has."""


class CaptureReplay:
    """Replays captures by the rules of a crawl."""

    def __init__(self, crawl: str, config: Config, archive: Archive) -> None:
        self._outcome_rules = OutcomeRules.from_config(config, steers=False)
        self._crawl = crawl
        self._config = config
        self._archive = archive
        self._agents = ("robots", config.robot_name.partition("/")[0].lower())

    def replay_captures(
        self, url: str, entries: list[IndexEntry], stored: StoredDigests
    ) -> History | None:
        """The history of a URL by its captures; None if none of them can be read."""
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
        if history.outcome is None:
            return None
        return history

    def _visit(
        self, history: History, entry: IndexEntry, capture: Capture, stored: StoredDigests
    ) -> None:
        """Take one capture for a visit, and update outcome and ticket of the history."""
        ticket = history.ticket
        headers = {}
        for name in HEADERS:
            value = capture.header(name)
            if value:
                headers[name] = value
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
        outcome = self._outcome_rules.decide_outcome(page, ticket)
        if outcome.status in REDIRECTS and outcome.moved_to is not None:
            # Where it leads is for the spider to follow.
            outcome = replace(outcome, next_visit=page.at + self._config.bounds.interval)
        last_change = ticket.last_change
        block_digest = ticket.block_digest
        if page.content is not None:
            if block_digest is None:
                last_change = page.at
            block_digest = page.content.block_digest
        if page.changed:
            last_change = page.at
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
            block_digest=block_digest,
            source=outcome.source,
        )

    def _read(
        self,
        history: History,
        page: Page,
        entry: IndexEntry,
        capture: Capture,
        stored: StoredDigests,
    ) -> None:
        """Read the content of a capture, unless it has the same bytes as the one before."""
        if entry.digest and entry.digest == history.digest:
            page.kind = history.kind
            return
        history.digest = entry.digest
        known = stored.get(page.at)
        content = self._content(page, capture, known)
        history.kind = page.kind
        page.content = content
        page.changed = history.ticket.block_digest not in (None, content.block_digest)
        location = _location_of(history.url, entry, capture)
        history.readings.append(
            Reading(page.at, page.status, content, location=location, known=known is not None)
        )

    def _content(self, page: Page, capture: Capture, known: tuple[bytes, bytes] | None) -> Content:
        """The content of a capture, with the digests that the database has, if it knows them."""
        body = capture.content
        readable = decompress_body(body)
        named_type = ""
        if readable is body:
            named_type = page.content_type
        page.kind = feeds.sniff_kind(readable, named_type)
        if known is not None:
            page.body_digest = known[0]
        else:
            page.body_digest = sha256(body).digest()[:16]
        content_type = page.content_type[:200]
        size = len(body)
        document = document_of(page, readable, self._agents)
        if document is None:
            return Content(
                page.body_digest, page.body_digest, content_type=content_type, length=size
            )
        block_digest = document.block_digest
        if known is not None:
            block_digest = known[1]
        in_headers = parse_robots_headers([page.headers.get("x-robots-tag", "")], self._agents)
        page.directives = in_headers | (document.robots or NO_DIRECTIVES)
        return Content(
            page.body_digest,
            block_digest,
            document.title[:1000],
            content_type=content_type,
            charset=document.charset,
            language=document.language[:35],
            length=size,
            noindex=page.directives.noindex,
            noarchive=page.directives.noarchive,
        )


def _location_of(url: str, entry: IndexEntry, capture: Capture) -> RecordLocation | None:
    """Where the body of a capture is; None if it has no record of its own."""
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
    """Import all pages whose keys in the index have one of these hashes.

    Doing it again adds nothing.
    """
    name = frontier.spec.name
    counts = HistoryCounts()
    crawl = db.fetch_value("crawl_named", name=name)
    assert crawl is not None
    replay = CaptureReplay(name, config, archive)
    pages = _pages(archive, keys)
    while batch := list(islice(pages, BATCH_PAGES)):
        by_id = {url_key(name, url): (url, entries) for url, entries in batch}
        _import_batch(db, crawl, replay, pages=by_id, counts=counts)
    return counts


def _pages(archive: Archive, keys: set[int]) -> Iterator[tuple[str, list[IndexEntry]]]:
    """URLs as the frontier spells them, with their captures, oldest first; without robots.txt."""
    if not keys:
        return
    for _, group in groupby(archive.iter_entries(keys), key=lambda entry: entry.key):
        by_url: dict[str, list[IndexEntry]] = {}
        for entry in group:
            if entry.post_query:  # the response to a form is not the page
                continue
            url = canonical_url(entry.url)
            if url is None or len(url) > MAX_URL:
                continue
            if not url.endswith("/robots.txt") and not is_probe_url(url):
                by_url.setdefault(url, []).append(entry)
        yield from by_url.items()


def _import_batch(
    db: Database,
    crawl: int,
    replay: CaptureReplay,
    pages: Mapping[int, tuple[str, list[IndexEntry]]],
    counts: HistoryCounts,
) -> None:
    """Replay the captures of these pages, by URL id, and store what came of it."""
    stored: dict[int, dict[datetime, tuple[bytes, bytes]]] = {}
    timeline: dict[int, list[tuple[datetime, bytes]]] = {}
    rows = db.fetch_rows("import_known", ids=array_literal(pages))
    for id_, at, record_at, body_digest, block_digest in rows:
        timeline.setdefault(id_, []).append((at, block_digest))
        if record_at is not None:
            stored.setdefault(id_, {})[record_at] = body_digest, block_digest
    histories = []
    for id_, (url, entries) in pages.items():
        history = replay.replay_captures(url, entries, stored.get(id_, {}))
        if history is not None:
            histories.append(history)
    versions = [
        (history, reading)
        for history in histories
        for reading in _new_versions(history, timeline.get(history.ticket.id, []))
    ]
    latest = [(history, history.readings[-1]) for history in histories if history.readings]
    with db.transaction() as tx:
        hosts = _add_hosts(tx, crawl, {history.ticket.host for history in histories})
        rows = tx.fetch_rows("import_urls", crawl=crawl, **_url_columns(histories, hosts))
        for start in range(0, len(versions), MAX_VERSIONS):
            piece = versions[start : start + MAX_VERSIONS]
            counts.versions += tx.run("import_versions", **_version_columns(piece))
        tx.run("import_pages", **_page_columns(latest))
        refresh_hosts(tx, [(crawl, host_id) for _, host_id, _ in rows])
        for _, _, is_new in rows:
            if is_new:
                counts.urls += 1
            else:
                counts.updated += 1


def _new_versions(history: History, timeline: list[tuple[datetime, bytes]]) -> Iterator[Reading]:
    """Readings that differ from the version before them, whether a visit or an import read that.

    `timeline` has the time and the text's digest of each version that the database knows.
    """
    known = sorted(timeline)
    for reading in history.readings:
        before = [digest for at, digest in known if at <= reading.at]
        digest = reading.content.block_digest
        if not reading.known and (not before or before[-1] != digest):
            yield reading
            known = sorted([*known, (reading.at, digest)])


def _add_hosts(tx: Transaction, crawl: int, names: Iterable[str]) -> dict[str, int]:
    wanted = sorted(names)
    found = dict(tx.fetch_rows("add_hosts", names=array_literal(wanted)))
    found |= dict(tx.fetch_rows("host_ids", names=wanted))
    tx.run("add_crawl_hosts", crawl=crawl, hosts=array_literal(sorted(found.values())))
    return found


def _url_columns(histories: list[History], hosts: Mapping[str, int]) -> dict[str, str]:
    """The arguments of the query import_urls."""
    rows: list[dict[str, Any]] = []
    for history in sorted(histories, key=lambda history: history.ticket.id):
        outcome = history.outcome
        ticket = history.ticket
        assert outcome is not None
        rows.append(
            {
                "id": ticket.id,
                "host": hosts[ticket.host],
                "canonical": history.url,
                "state": outcome.state.value,
                "why": outcome.why,
                "lane": lane_of(outcome),
                "depth": DEPTH,
                "score": depth_score(DEPTH),
                "visit": ticket.visit,
                "tries": outcome.tries,
                "changes": ticket.changes,
                "status": outcome.status,
                "first_seen": history.first_seen,
                "last_visit": outcome.at,
                "last_change": ticket.last_change,
                "next_visit": outcome.next_visit,
                "interval_s": ticket.interval_s,
                "block_digest": ticket.block_digest,
                "moved_to": outcome.moved_to,
                "expires": outcome.expires,
                "found": Found.IMPORT,
                "source": outcome.source,
            }
        )
    return _columns(URL_COLUMNS, rows)


def _columns(names: tuple[str, ...], rows: list[dict[str, Any]]) -> dict[str, str]:
    """Each column of the rows as an array for the database."""
    return {name: array_literal(row[name] for row in rows) for name in names}


def _location_values(location: RecordLocation | None) -> dict[str, Any]:
    if location is None:
        return dict.fromkeys(LOCATION_COLUMNS)
    uuid = _UUID.fullmatch(location.record_id)
    return {
        "file": location.file,
        "start": location.offset,
        "size": location.length,
        "record": uuid and uuid[1],
        "digest": location.digest,
        "began": location.at,
    }


def _version_columns(versions: list[tuple[History, Reading]]) -> dict[str, str]:
    """The arguments of the query import_versions."""
    rows = [
        {
            "url": history.ticket.id,
            "at": reading.at,
            "status": reading.status,
            "body_digest": reading.content.body_digest,
            "block_digest": reading.content.block_digest,
            "length": reading.content.length,
            **_location_values(reading.location),
        }
        for history, reading in versions
    ]
    return _columns(VERSION_COLUMNS, rows)


def _page_columns(latest: list[tuple[History, Reading]]) -> dict[str, str]:
    """The arguments of the query import_pages."""
    rows = []
    for history, reading in latest:
        content = reading.content
        rows.append(
            {
                "url": history.ticket.id,
                "at": reading.at,
                "title": content.title,
                "content_type": content.content_type,
                "charset": content.charset,
                "language": content.language,
                "length": content.length,
                "noindex": content.noindex,
                "noarchive": content.noarchive,
                **_location_values(reading.location),
            }
        )
    return _columns(PAGE_COLUMNS, rows)
