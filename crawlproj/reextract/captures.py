"""Which captures answer a request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from crawlproj.archive import Archive, Capture
from crawlproj.archive.cdxj import IndexEntry, format_timestamp
from crawlproj.archive.open_file import OPEN, SUFFIX, plain_name, prefix_of
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.errors import ArchiveError
from crawlproj.http import heads
from crawlproj.urls.canonical import canonical_url

VERSIONS = ("last", "all")
_PART_OF = re.compile(rb"(?im)^isPartOf:[ \t]*(.*?)\r?$").search
_IMPORTED = re.compile(r"import-[0-9]{17}-").match
_METHOD = re.compile(rb"[A-Z]+").match


@dataclass(frozen=True, slots=True)
class ReextractOptions:
    """Captures from `since` up to `until`, both included. `callback`: of captures whose request
    nobody knows; empty: as the spider's kind has it.
    """

    since: datetime | None = None
    until: datetime | None = None
    versions: str = "last"
    callback: str = ""


class CaptureSelector:
    """The captures of one crawl, and those that were imported, which belong to every crawl."""

    def __init__(
        self, archive: Archive, crawl: str, options: ReextractOptions, count: Callable[[str], None]
    ) -> None:
        self.archive = archive
        self._crawl = crawl
        self._options = options
        self._count = count
        self._since = format_timestamp(options.since) if options.since else ""
        self._until = format_timestamp(options.until) if options.until else "9"
        self._owners: dict[str, str | None] = {}

    def captured_pages(self) -> Iterator[tuple[str, list[IndexEntry]]]:
        """Each URL with its captures, oldest first; in flat memory."""
        for _, alike in groupby(self.archive.iter_entries(), key=lambda entry: entry.key):
            found: dict[str, list[IndexEntry]] = {}
            for entry in alike:
                if entry.post_query or not self._counts(
                    entry
                ):  # no page: a spider's own requests know of it
                    continue
                found.setdefault(canonical_url(entry.url) or entry.url, []).append(entry)
            yield from found.items()

    def find_entries(self, url: str, ways: Iterable[str] = ("",)) -> list[IndexEntry]:
        """All captures of a URL, in whichever spelling; if it was no GET, asked for in one of these
        ways.
        """
        wanted = canonical_url(url) or url
        spellings = [
            (spelling, asked) for spelling in dict.fromkeys((url, wanted)) for asked in ways
        ]
        alike = {
            entry: None
            for spelling, asked in spellings
            for entry in self.archive.entries_by_key(spelling, asked)
        }
        found = [
            entry
            for entry in alike
            if (canonical_url(entry.url) or entry.url) == wanted and self._counts(entry)
        ]
        return sorted(found, key=lambda entry: (entry.timestamp, entry.file, entry.offset))

    def any_imported(self, entries: Sequence[IndexEntry] | None = None) -> bool:
        """Did any of them come from elsewhere? By default: is anything in the archive that did?"""
        files = (
            {path.name for path in self.archive.closed_files()}
            if entries is None
            else {entry.file for entry in entries}
        )
        return any(self._owner(file) is None for file in files)

    def matching_captures(
        self, entries: Sequence[IndexEntry], method: str = "GET", body: bytes = b""
    ) -> Iterator[Capture]:
        """The answers to such a request: each that differs from the one before it; or the last one
        only, an error only if there was never a page.
        """
        if self._options.versions == "all":
            before = None
            for entry in entries:
                capture = self._read(entry, method, body)
                if capture is not None and (
                    not entry.digest or (entry.digest, entry.status) != before
                ):
                    before = (entry.digest, entry.status)
                    yield capture
            return
        good = [entry for entry in entries if 200 <= entry.status < 300]
        others = [entry for entry in entries if not 200 <= entry.status < 300]
        for entry in [*reversed(good), *reversed(others)]:
            if (capture := self._read(entry, method, body)) is not None:
                yield capture
                return

    def _counts(self, entry: IndexEntry) -> bool:
        return self._since <= entry.timestamp <= self._until and self._owner(entry.file) in (
            self._crawl,
            None,
        )

    def count_unfinished(self) -> int:
        """Files of the crawl that are being written, or were left open by a kill: they have no
        index yet.
        """
        names = (
            path.name.removesuffix(OPEN) for path in self.archive.folder.glob(f"*{SUFFIX}{OPEN}")
        )
        return sum(self._owner(name) == self._crawl for name in names)

    def _owner(self, file: str) -> str | None:
        """The crawl that wrote a file; None if it was imported."""
        if file not in self._owners:
            try:
                first = self.archive.read(file, 0)
                said = _PART_OF(first.block) if first.kind == "warcinfo" else None
            except ArchiveError:
                said = None
            self._owners[file] = said[1].decode("utf-8", "replace") if said else self._named(file)
        return self._owners[file]

    def _named(self, file: str) -> str | None:
        """By its name: whose it is, if it has lost its first record."""
        if _IMPORTED(file):
            return None
        return self._crawl if prefix_of(file) == plain_name(self._crawl) else ""

    def _read(self, entry: IndexEntry, method: str, body: bytes) -> Capture | None:
        """None if it answers another request, or was no whole answer: the spider had not seen it
        either.
        """
        try:
            record, asked = self.archive.read_exchange(entry)
            if not record.is_http or record.fields.get("warc-truncated"):
                self._count("reextract/not_whole")
                return None
            return (
                self.archive.resolve_record(record)
                if matches_request(asked, method, body)
                else None
            )
        except ArchiveError:
            self._count("reextract/unreadable")
            return None


def matches_request(asked: StoredRecord | None, method: str, body: bytes) -> bool:
    """Is it the answer to such a request? One whose request nobody kept is taken for that to
    a GET.
    """
    if asked is None:
        return method == "GET" and not body
    head, sent = heads.split_head(asked.block)
    found = _METHOD(head)
    return found is not None and found[0].decode() == method and sent == body
