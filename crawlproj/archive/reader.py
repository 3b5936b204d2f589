"""Reading records back: by file and offset, or by URL and time. The latter needs the indexes only,
no database.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast

from crawlproj.archive.cdxj import IndexEntry, find_entries, format_timestamp, parse_entry
from crawlproj.archive.exchange import Original
from crawlproj.archive.gzip_members import BrokenRecordError, GzipMember, iter_members, read_member
from crawlproj.archive.index_merge import INDEX, covered_indexes, file_indexes, unique_lines
from crawlproj.archive.open_file import OPEN, SUFFIX, index_path
from crawlproj.archive.post_keys import add_post_query
from crawlproj.archive.records import OCTETS, REVISIT_MIME, compute_digest, plain_url
from crawlproj.archive.stored_record import StoredRecord, parse_record
from crawlproj.errors import ArchiveError
from crawlproj.http import heads
from crawlproj.http.encodings import decode_body

SETTLED_NS = 100_000_000
"""A folder that was changed more recently may be changed again without another time."""
PEEK = 4_096
"""Bytes that are read behind a response, for its request: most are shorter."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One version of a page. `payload` is the body as received; that of a revisit comes from the
    record that it points at.
    """

    url: str
    at: datetime
    record: StoredRecord
    head: bytes
    payload: bytes

    @property
    def status(self) -> int:
        if not self.head:
            return 200
        return heads.parse_status(self.head)

    def header(self, name: str) -> str:
        """The value of a header; of a capture without a head, only its type may be known."""
        if not self.head and name.lower() == "content-type":
            content_type = self.record.fields.get("content-type", "")
            if content_type != OCTETS:
                return content_type
        return heads.get_header(self.head, name)

    @property
    def content(self) -> bytes:
        """The body without its Content-Encoding."""
        return decode_body(self.payload, self.header("Content-Encoding"))


def read_record(path: Path, offset: int, length: int | None = None) -> StoredRecord:
    """The record at `offset`, read at once with a known length; ArchiveError if it isn't whole."""
    try:
        if length:
            member = _read_known_member(path, offset, length)
        else:
            with path.open("rb") as file:
                member = read_member(file, offset)
        if member is not None:
            return parse_record(member)
    except OSError as error:
        raise ArchiveError(f"{path.name} can't be read: {error.strerror}") from error
    except BrokenRecordError as error:
        raise ArchiveError(f"{path.name} is damaged: {error.why} at byte {offset}") from error
    raise ArchiveError(f"{path.name} ends before byte {offset}")


def _read_known_member(path: Path, offset: int, length: int) -> GzipMember | None:
    with path.open("rb", buffering=0) as file:
        data = os.pread(file.fileno(), length, offset)
    member = read_member(BytesIO(data), 0)
    if member is None:
        return None
    return GzipMember(offset, member.length, member.data)


def _read_request(
    data: bytes, start: int, file: BinaryIO, offset: int, response_id: str
) -> StoredRecord | None:
    """The request of a response, which follows it; None if there is none.

    `data` is what was read from `offset` on. It mostly has the request, at `start`.
    """
    try:
        try:
            member = read_member(BytesIO(data), start)
        except BrokenRecordError:
            member = read_member(file, offset + start)
        if member is None:
            return None
        stored = parse_record(member)
    except BrokenRecordError:
        return None
    if stored.kind != "request" or stored.fields.get("warc-concurrent-to") != response_id:
        return None
    return stored


class Archive:
    """All WARC files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folder_mtime_ns = -1
        self._has_common_index = False
        self._covered = set[str]()
        self._other_indexes = list[Path]()

    def read(self, file: str, offset: int, length: int | None = None) -> StoredRecord:
        """The record at `offset` of a file, which may still be open."""
        path = self.folder / Path(file).name
        open_path = path.with_name(path.name + OPEN)
        if not path.exists() and open_path.exists():
            path = open_path
        return read_record(path, offset, length)

    def read_exchange(self, entry: IndexEntry) -> tuple[StoredRecord, StoredRecord | None]:
        """The record of an entry, and that of its request; None if that was not kept."""
        path = self.folder / Path(entry.file).name
        try:
            with path.open("rb", buffering=0) as file:
                data = os.pread(file.fileno(), entry.length + PEEK, entry.offset)
                member = read_member(BytesIO(data), 0)
                if member is None:
                    raise ArchiveError(f"{path.name} ends before byte {entry.offset}")
                response = parse_record(GzipMember(entry.offset, member.length, member.data))
                request = _read_request(
                    data,
                    member.length,
                    cast("BinaryIO", file),
                    offset=entry.offset,
                    response_id=response.id,
                )
                return response, request
        except OSError as error:
            raise ArchiveError(f"{path.name} can't be read: {error.strerror}") from error

    def versions(self, url: str, post_query: str = "") -> list[IndexEntry]:
        """All entries of a URL, oldest first; with a `post_query`, those of such requests.

        Keys of the index leave out case, scheme and `www.`; other spellings of the URL count only
        if this one isn't there.
        """
        found = self.entries_by_key(url, post_query)
        return [entry for entry in found if entry.url == plain_url(url)] or found

    def entries_by_key(self, url: str, post_query: str = "") -> list[IndexEntry]:
        """All entries under the key of a URL, whatever their spelling, oldest first."""
        self._find_indexes()
        url = add_post_query(url, post_query)
        found: set[IndexEntry] = set()
        if self._has_common_index:
            for entry in find_entries(self.folder / INDEX, url):
                if index_path(Path(entry.file)).name in self._covered:
                    found.add(entry)
        for path in self._other_indexes:
            found |= set(find_entries(path, url))
        return sorted(found, key=lambda entry: (entry.timestamp, entry.file, entry.offset))

    def iter_entries(self, keys: Container[int] | None = None) -> Iterator[IndexEntry]:
        """The entries of all closed files by key and time, in constant memory; with `keys`, those
        whose key has one of these hashes.
        """
        self._find_indexes()
        indexes = list(self._other_indexes)
        if self._has_common_index:
            indexes.insert(0, self.folder / INDEX)
        known = self._covered | {path.name for path in self._other_indexes}
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("rb")) for path in indexes]
            for line in unique_lines(merge(*files)):
                if keys is not None and hash(line.partition(b" ")[0]) not in keys:
                    continue
                entry = parse_entry(line, self.folder)
                if index_path(Path(entry.file)).name in known:
                    yield entry

    def _find_indexes(self) -> None:
        """Find out which indexes there are, if names in the folder have changed since.

        The folder's time says so, but not to the nanosecond: a recent one is not trusted.
        """
        mtime_ns = self.folder.stat().st_mtime_ns if self.folder.is_dir() else 0
        if mtime_ns == self._folder_mtime_ns:
            return
        self._has_common_index, self._covered = covered_indexes(self.folder)
        self._other_indexes = [
            path for path in file_indexes(self.folder) if path.name not in self._covered
        ]
        is_settled = time.time_ns() - mtime_ns > SETTLED_NS
        self._folder_mtime_ns = mtime_ns if is_settled else -1

    def get(self, url: str, at: datetime | None = None) -> Capture | None:
        """The last version of a URL; with `at` the last until then or, if all are later, the first.
        None if there is none.
        """
        entries = self.versions(url)
        if not entries:
            return None
        if at is None:
            return self.read_capture(entries[-1])
        wanted = format_timestamp(at)
        before = [entry for entry in entries if entry.timestamp <= wanted]
        if before:
            return self.read_capture(before[-1])
        return self.read_capture(entries[0])

    def read_capture(self, entry: IndexEntry) -> Capture:
        """The version of an entry."""
        return self.resolve_record(self.read(entry.file, entry.offset, entry.length))

    def resolve_record(self, record: StoredRecord) -> Capture:
        """The record with its payload; ArchiveError if the original of a revisit is not there.

        The head of a 304 says little, so then that of the original is taken.
        """
        head = record.head
        if record.kind != "revisit":
            return Capture(record.url, record.at, record, head=head, payload=record.body)
        original = self.find_original(record)
        if not head or heads.parse_status(head) == 304:
            head = original.head
        return Capture(record.url, record.at, record, head=head, payload=original.body)

    def find_original(self, revisit: StoredRecord) -> StoredRecord:
        """The record that a revisit points at, by its URL, time and digest."""
        target = revisit.refers_to or Original(revisit.url, revisit.at, revisit.digest)
        stamp = format_timestamp(target.at)
        entries = [entry for entry in self.versions(target.url) if entry.mime != REVISIT_MIME]
        if target.digest:
            entries = [entry for entry in entries if entry.digest == target.digest]
        else:
            entries = [entry for entry in entries if entry.timestamp == stamp]
        # Those of exactly that time first, then earlier ones, then later ones.
        entries.sort(key=lambda entry: (entry.timestamp != stamp, entry.timestamp > stamp))
        algorithm = target.digest.partition(":")[0]
        for entry in entries:
            record = self.read(entry.file, entry.offset, entry.length)
            if not target.digest:
                return record
            if compute_digest(record.body, algorithm=algorithm) == target.digest:
                return record
        raise ArchiveError(
            f"The original of {revisit.url} of {revisit.at:%Y-%m-%d %H:%M:%S} is not here: "
            f"{target.url}"
        )

    def closed_files(self) -> list[Path]:
        """All closed WARC files, in the order of their names."""
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    def iter_records(self) -> Iterator[tuple[Path, StoredRecord]]:
        """All records of all closed files in the order of writing; of a damaged file, those before
        the damage.
        """
        for path in self.closed_files():
            with path.open("rb", buffering=1 << 18) as file, suppress(BrokenRecordError):
                for member in iter_members(file):
                    yield path, parse_record(member)

    def captures(self) -> Iterator[Capture]:
        """All versions that can be read, without the 304s."""
        for path, record in self.iter_records():
            if IndexEntry.from_stored(record, path.name) is not None:
                with suppress(ArchiveError):
                    yield self.resolve_record(record)
