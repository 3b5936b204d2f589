"""The crawl's side of the archive: each page that came over the network is put into it, and is on
disk before its end counts.

Pages are put in on the event loop; the database thread flushes, closes files and asks what is
stored.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Self

from crawlproj.archive.exchange import Exchange, LaterNote, Original, PageMetadata, Truncated
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.locks import try_rewrite_lock
from crawlproj.archive.recovery import repair_indexes, repair_open_files
from crawlproj.archive.writer import WarcWriter
from crawlproj.config import Config
from crawlproj.errors import ArchiveError
from crawlproj.fetch.wire import WireCapture
from crawlproj.frontier.base import Outcome, Ticket
from crawlproj.frontier.takedown import TakedownRules
from crawlproj.items import Page
from crawlproj.scheduling.noarchive import says_noarchive
from crawlproj.scheduling.request_log import rules_in_force

log = logging.getLogger(__name__)

TRUNCATION_REASONS = {
    "timeout": Truncated.TIME,
    "too big": Truncated.LENGTH,
    "cut off": Truncated.DISCONNECT,
    "reset": Truncated.DISCONNECT,
}
"""Why a body that began to come is not whole, by the reason of its Page."""


class Archiver:
    """A context manager: what a killed worker left is repaired first; at the end the file is closed
    and the indexes are merged. With WARC_ENABLED off it keeps nothing and is never full.
    """

    def __init__(self, config: Config, worker: str, settings: Mapping[str, Any]) -> None:
        self._config = config
        self._folder = config.warc_dir
        self._writer: WarcWriter | None = None
        self._rules = TakedownRules()
        self._lock = threading.Lock()
        self._rotation = 0
        """How often the file was closed for take-downs."""
        self._unstored = Counter[int]()
        """Rotation -> records whose position is not in the database yet."""
        self._agents = ("robots", config.robot_name.partition("/")[0].lower())
        if config.warc is not None:
            self._repair_files()
            self._writer = WarcWriter(
                self._folder,
                config.spec.name,
                worker,
                info=warcinfo_fields(config, settings),
                options=config.warc,
            )

    def _repair_files(self) -> None:
        try:
            for found in repair_open_files(self._folder):
                cut = ""
                if found.cut_bytes:
                    cut = f", {found.cut_bytes} bytes cut off"
                log.info(
                    "Left open by a worker that ended, now closed: %s (%d records%s)",
                    found.file,
                    found.records,
                    cut,
                )
            with try_rewrite_lock(self._folder) as locked:
                if locked:
                    self._repair_indexes()
        except OSError as error:
            raise ArchiveError(
                f"The archive can't be used: {error.strerror or error} ({self._folder})"
            ) from error

    def _repair_indexes(self) -> None:
        for found in repair_indexes(self._folder):
            log.info(
                "Its index was missing, or without a file: %s (%d records)",
                found.file,
                found.records,
            )

    def archive_page(self, page: Page) -> str:
        """Queue the exchange of a page, once; return what was done with it: `exchanges`,
        `noarchive`, `forgotten` or nothing.
        """
        wire = page.wire
        page.wire = None
        if wire is None or self._writer is None or not (wire.head or wire.chunks):
            return ""
        if self._config.obey_noarchive and says_noarchive(page, wire, self._agents):
            return "noarchive"
        original = None
        if isinstance(page.ticket, Ticket):
            original = page.ticket.original
        return self._queue_exchange(page, _exchange_of(page, wire), original)

    def _queue_exchange(self, page: Page, exchange: Exchange, original: Original | None) -> str:
        assert self._writer is not None
        with self._lock:
            if self._rules and self._is_removed(exchange, original):
                return "forgotten"
            page.receipt = self._writer.put(exchange, original)
            if isinstance(page.ticket, Ticket):
                page.receipt.rotation = self._rotation
                self._unstored[self._rotation] += 1
        return "exchanges"

    def put_notes(self, notes: Sequence[LaterNote]) -> bool:
        """Write what became known of stored pages; True: all of it is on disk. Of pages that are to
        be forgotten nothing is written.
        """
        if self._writer is None:
            return False
        with self._lock:
            for note in notes:
                if not self._rules or not self._rules.removed_by(note.url, note.at):
                    self._writer.put_note(note)
        self.flush_to_disk()
        return True

    def _is_removed(self, exchange: Exchange, original: Original | None) -> bool:
        """Is it to be forgotten itself, or does it refer to a page that is?"""
        if self._rules.removed_by(exchange.url, exchange.at):
            return True
        return original is not None and bool(self._rules.removed_by(original.url, original.at))

    def is_barred(self, url: str) -> bool:
        """Was it forgotten, so that it may not be asked for?"""
        return self._rules.is_barred(url)

    def apply_takedowns(self, rules: TakedownRules) -> None:
        """Keep nothing of these from now on, and close the file, so that what it has of them can be
        removed.
        """
        closed = None
        with self._lock:
            self._rules = rules
            self._rotation += 1
            if self._writer is not None:
                closed = self._writer.rotate_file()
        if closed is not None:
            closed.result()

    def mark_stored(self, outcomes: Iterable[Outcome]) -> None:
        """Note that the positions of these records are in the database."""
        with self._lock:
            for outcome in outcomes:
                if outcome.receipt is not None:
                    self._unstored[outcome.receipt.rotation] -= 1

    @property
    def all_stored(self) -> bool:
        """Are the positions of all records in closed files in the database?"""
        with self._lock:
            return not any(
                number
                for rotation, number in self._unstored.items()
                if 0 <= rotation < self._rotation
            )

    @property
    def full(self) -> bool:
        """Is nothing more to be fetched for a while, since the archive does not keep up?"""
        return self._writer is not None and self._writer.is_full

    def flush_to_disk(self) -> None:
        """Return when all that was put in so far is on disk; ArchiveError if the disk does not take
        it.
        """
        if self._writer is not None:
            self._writer.flush().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
            if self._folder.is_dir():
                repair_open_files(self._folder)
                merge_indexes(self._folder)
        except (ArchiveError, OSError) as failure:
            log.error("The archive was not closed, the next crawl will repair it: %s", failure)


def _exchange_of(page: Page, wire: WireCapture) -> Exchange:
    at = page.at
    if page.started_s is not None:
        at = datetime.fromtimestamp(page.started_s, UTC)
    truncated = wire.truncated
    if not wire.whole:
        reason = page.reason.partition(":")[0]
        truncated = TRUNCATION_REASONS.get(reason, Truncated.UNSPECIFIED)
    metadata = None
    if page.document is not None:
        metadata = PageMetadata(page.document.title, page.document.links)
    return Exchange(
        page.url,
        at,
        wire.head,
        body=wire.body,
        request=wire.request,
        request_body=wire.request_body,
        address=wire.address,
        elapsed_s=page.elapsed_s,
        truncated=truncated,
        metadata=metadata,
    )


def warcinfo_fields(config: Config, settings: Mapping[str, Any]) -> dict[str, object]:
    """What the warcinfo record says: by whom, with what and under which rules the file was made."""
    try:
        ours = version("crawlproj")
    except PackageNotFoundError:
        ours = "unknown"
    rules = rules_in_force(settings) | {"POLITENESS_SHARED_NETWORKS": len(config.shared_networks)}
    found: dict[str, object] = {
        "software": f"crawlproj/{ours} Scrapy/{version('scrapy')}",
        "isPartOf": config.spec.name,
        "operator": config.robot_contact,
        "http-header-user-agent": config.user_agent,
        "robots": "obey",
        "settings": json.dumps(rules),
    }
    return {name: value for name, value in found.items() if value}
