"""Which captures of the archive match a request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from crawlproj.archive import Archive, Capture
from crawlproj.archive.cdxj import IndexEntry, format_timestamp
from crawlproj.archive.open_file import OPEN, SUFFIX, plain_name, prefix_of
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.content.probe import is_probe_url
from crawlproj.errors import ArchiveError
from crawlproj.http import heads
from crawlproj.urls.canonical import canonical_url

VERSIONS = ("last", "all")
_PART_OF = re.compile(rb"(?im)^isPartOf:[ \t]*(.*?)\r?$").search
_IMPORTED = re.compile(r"import-[0-9]{17}-").match
_METHOD = re.compile(rb"[A-Z]+").match


@dataclass(frozen=True, slots=True)
class ReextractOptions:
    """The options of a run: captures from `since` up to `until`, both included.

    `callback` is the method for captures whose request is not known; empty: the one that the kind
    of the spider has for them.
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
        self._since = ""
        self._until = "9"  # later than any timestamp
        if options.since:
            self._since = format_timestamp(options.since)
        if options.until:
            self._until = format_timestamp(options.until)
        self._owners: dict[str, str | None] = {}

    def captured_pages(self) -> Iterator[tuple[str, list[IndexEntry]]]:
        """Each URL with its captures, oldest first; in flat memory."""
        for _, alike in groupby(self.archive.iter_entries(), key=lambda entry: entry.key):
            found: dict[str, list[IndexEntry]] = {}
            for entry in alike:
                # The response to a POST is no page: a spider's own request leads to it. Nor is that
                # to a path that nobody has.
                if entry.post_query or not self._is_selected(entry):
                    continue
                url = canonical_url(entry.url) or entry.url
                if not is_probe_url(url):
                    found.setdefault(url, []).append(entry)
            yield from found.items()

    def find_entries(self, url: str, queries: Iterable[str] = ("",)) -> list[IndexEntry]:
        """All captures of a URL, in whichever spelling, oldest first.

        `queries` are what the index adds to the key of a request that is not a GET.
        """
        wanted = canonical_url(url) or url
        alike: dict[IndexEntry, None] = {}
        for spelling in dict.fromkeys((url, wanted)):
            for query in queries:
                alike.update(dict.fromkeys(self.archive.entries_by_key(spelling, query)))
        found = [
            entry
            for entry in alike
            if (canonical_url(entry.url) or entry.url) == wanted and self._is_selected(entry)
        ]
        return sorted(found, key=lambda entry: (entry.timestamp, entry.file, entry.offset))

    def any_imported(self, entries: Sequence[IndexEntry] | None = None) -> bool:
        """Whether any of the entries, by default any file of the archive, was imported."""
        if entries is None:
            files = {path.name for path in self.archive.closed_files()}
        else:
            files = {entry.file for entry in entries}
        return any(self._owner(file) is None for file in files)

    def matching_captures(
        self, entries: Sequence[IndexEntry], method: str = "GET", body: bytes = b""
    ) -> Iterator[Capture]:
        """The responses to such a request, as the option `versions` wants them.

        `all`: each that differs from the one before it. `last`: only the last one, an error only
        if there was never a page.
        """
        if self._options.versions == "all":
            before = None
            for entry in entries:
                capture = self._read(entry, method, body)
                if capture is None:
                    continue
                if not entry.digest or (entry.digest, entry.status) != before:
                    before = (entry.digest, entry.status)
                    yield capture
            return
        good = [entry for entry in entries if 200 <= entry.status < 300]
        others = [entry for entry in entries if not 200 <= entry.status < 300]
        for entry in [*reversed(good), *reversed(others)]:
            capture = self._read(entry, method, body)
            if capture is not None:
                yield capture
                return

    def _is_selected(self, entry: IndexEntry) -> bool:
        if not self._since <= entry.timestamp <= self._until:
            return False
        return self._owner(entry.file) in (self._crawl, None)

    def count_unfinished(self) -> int:
        """How many files of the crawl are being written, or were left open by a kill.

        They have no index yet.
        """
        names = (
            path.name.removesuffix(OPEN) for path in self.archive.folder.glob(f"*{SUFFIX}{OPEN}")
        )
        return sum(self._owner(name) == self._crawl for name in names)

    def _owner(self, file: str) -> str | None:
        """The crawl that wrote a file; None if it was imported."""
        if file not in self._owners:
            part_of = None
            with suppress(ArchiveError):
                first = self.archive.read(file, 0)
                if first.kind == "warcinfo":
                    part_of = _PART_OF(first.block)
            if part_of:
                self._owners[file] = part_of[1].decode("utf-8", "replace")
            else:
                self._owners[file] = self._owner_by_name(file)
        return self._owners[file]

    def _owner_by_name(self, file: str) -> str | None:
        """The owner of a file that has lost its first record, as far as its name tells."""
        if _IMPORTED(file):
            return None
        if prefix_of(file) == plain_name(self._crawl):
            return self._crawl
        return ""

    def _read(self, entry: IndexEntry, method: str, body: bytes) -> Capture | None:
        """The capture; None if it belongs to another request, or is truncated or damaged.

        The spider has not seen a truncated response in the crawl either.
        """
        try:
            record, stored_request = self.archive.read_exchange(entry)
            if not record.is_http or record.fields.get("warc-truncated"):
                self._count("reextract/not_whole")
                return None
            if not matches_request(stored_request, method, body):
                return None
            return self.archive.resolve_record(record)
        except ArchiveError:
            self._count("reextract/unreadable")
            return None


def matches_request(stored_request: StoredRecord | None, method: str, body: bytes) -> bool:
    """Whether a stored request has this method and body.

    A response whose request was not stored is taken for that to a GET.
    """
    if stored_request is None:
        return method == "GET" and not body
    head, sent = heads.split_head(stored_request.block)
    found = _METHOD(head)
    return found is not None and found[0].decode() == method and sent == body
