"""Reading back: by file and offset, or by URL and time from the indexes alone, when there is no
database.
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
PEEK = 4_096
"""Most requests are shorter."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One version of a page. `payload` is the body as received; for a revisit it comes from the
    record that it points at.
    """

    url: str
    at: datetime
    record: StoredRecord
    head: bytes
    payload: bytes

    @property
    def status(self) -> int:
        return heads.parse_status(self.head) if self.head else 200

    def header(self, name: str) -> str:
        """Of what has no head, only its type may be known."""
        if (
            not self.head
            and name.lower() == "content-type"
            and (kind := self.record.fields.get("content-type", "")) != OCTETS
        ):
            return kind
        return heads.get_header(self.head, name)

    @property
    def content(self) -> bytes:
        """The body without its Content-Encoding."""
        return decode_body(self.payload, self.header("Content-Encoding"))


def read_record(path: Path, offset: int, length: int | None = None) -> StoredRecord:
    """The record at `offset`; with its length it is read at one go. ArchiveError if there is no
    whole record.
    """
    try:
        with path.open("rb", buffering=0 if length else -1) as file:
            found = (
                _unpacked(os.pread(file.fileno(), length, offset), offset)
                if length
                else read_member(file, offset)
            )
        if found is not None:
            return parse_record(found)
    except OSError as error:
        raise ArchiveError(f"{path.name} can't be read: {error.strerror}") from error
    except BrokenRecordError as error:
        raise ArchiveError(f"{path.name} is damaged: {error.why} at byte {offset}") from error
    raise ArchiveError(f"{path.name} ends before byte {offset}")


def _unpacked(data: bytes, offset: int) -> GzipMember | None:
    found = read_member(BytesIO(data), 0) if data else None
    return found and GzipMember(offset, found.length, found.data)


def _read_request(
    data: bytes, at: int, file: BinaryIO, offset: int, answer_id: str
) -> StoredRecord | None:
    """The request that belongs to an answer: mostly it is in what was read already."""
    try:
        try:
            found = read_member(BytesIO(data), at)
        except BrokenRecordError:
            found = read_member(file, offset + at)
        stored = parse_record(found) if found is not None else None
    except BrokenRecordError:
        return None
    belongs = (
        stored is not None
        and stored.kind == "request"
        and stored.fields.get("warc-concurrent-to") == answer_id
    )
    return stored if belongs else None


class Archive:
    """All WARC files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen = -1
        self._whole = False
        self._covered = set[str]()
        self._others = list[Path]()

    def read(self, file: str, offset: int, length: int | None = None) -> StoredRecord:
        """The record at that place; of a file that is still written, too."""
        path = self.folder / Path(file).name
        written = path.with_name(path.name + OPEN)
        return read_record(
            written if not path.exists() and written.exists() else path, offset, length
        )

    def read_exchange(self, entry: IndexEntry) -> tuple[StoredRecord, StoredRecord | None]:
        """The record of an entry, and that of the request, which is behind it; None if nobody kept
        it.
        """
        path = self.folder / Path(entry.file).name
        try:
            with path.open("rb", buffering=0) as file:
                data = os.pread(file.fileno(), entry.length + PEEK, entry.offset)
                found = read_member(BytesIO(data), 0) if data else None
                if found is None:
                    raise ArchiveError(f"{path.name} ends before byte {entry.offset}")
                answer = parse_record(GzipMember(entry.offset, found.length, found.data))
                return answer, _read_request(
                    data,
                    found.length,
                    cast("BinaryIO", file),
                    offset=entry.offset,
                    answer_id=answer.id,
                )
        except OSError as error:
            raise ArchiveError(f"{path.name} can't be read: {error.strerror}") from error

    def versions(self, url: str, post_query: str = "") -> list[IndexEntry]:
        """All entries of a URL, oldest first; of answers to something else than a GET, if that is
        `asked` (see there).

        The index knows pages by keys that leave out case, scheme and `www.`; other spellings count
        only if this one isn't there.
        """
        found = self.entries_by_key(url, post_query)
        return [entry for entry in found if entry.url == plain_url(url)] or found

    def entries_by_key(self, url: str, post_query: str = "") -> list[IndexEntry]:
        """All entries under the key of a URL, whatever their spelling, oldest first."""
        self._look()
        url = add_post_query(url, post_query)
        found: set[IndexEntry] = set()
        if self._whole:
            found |= {
                entry for entry in find_entries(self.folder / INDEX, url) if self._counts(entry)
            }
        for path in self._others:
            found |= set(find_entries(path, url))
        return sorted(found, key=lambda entry: (entry.timestamp, entry.file, entry.offset))

    def iter_entries(self, keys: Container[int] | None = None) -> Iterator[IndexEntry]:
        """All of all closed files by key and time, in flat memory; or those whose key has one of
        these hashes.
        """
        self._look()
        with ExitStack() as stack:
            common = [self.folder / INDEX] if self._whole else []
            files = [stack.enter_context(path.open("rb")) for path in [*common, *self._others]]
            known = self._covered | {path.name for path in self._others}
            for line in unique_lines(merge(*files)):
                if keys is not None and hash(line.partition(b" ")[0]) not in keys:
                    continue
                entry = parse_entry(line, self.folder)
                if index_path(Path(entry.file)).name in known:
                    yield entry

    def _counts(self, entry: IndexEntry) -> bool:
        """Does an entry of the common index?"""
        return index_path(Path(entry.file)).name in self._covered

    def _look(self) -> None:
        """Which indexes there are; again only if a name in the folder has changed, which its time
        tells (not to the nanosecond).
        """
        changed = self.folder.stat().st_mtime_ns if self.folder.is_dir() else 0
        if changed != self._seen:
            self._whole, self._covered = covered_indexes(self.folder)
            self._others = [
                path for path in file_indexes(self.folder) if path.name not in self._covered
            ]
            self._seen = changed if time.time_ns() - changed > SETTLED_NS else -1

    def get(self, url: str, at: datetime | None = None) -> Capture | None:
        """The version in force at that time: the latest one until then; if all are later, the
        first. By default the last.
        """
        entries = self.versions(url)
        if not entries:
            return None
        wanted = format_timestamp(at) if at is not None else "9"
        before = [entry for entry in entries if entry.timestamp <= wanted]
        return self.read_capture(before[-1] if before else entries[0])

    def read_capture(self, entry: IndexEntry) -> Capture:
        """The version of an entry."""
        return self.resolve_record(self.read(entry.file, entry.offset, entry.length))

    def resolve_record(self, record: StoredRecord) -> Capture:
        """With the payload; ArchiveError if a revisit points at nothing that is there.

        What the server says with a 304 is little, so then the head is that of the original too.
        """
        if record.kind != "revisit":
            return Capture(record.url, record.at, record, head=record.head, payload=record.body)
        original = self.find_original(record)
        same = heads.parse_status(record.head) != 304 and record.head
        return Capture(
            record.url,
            record.at,
            record,
            head=record.head if same else original.head,
            payload=original.body,
        )

    def find_original(self, revisit: StoredRecord) -> StoredRecord:
        """The record that a revisit points at, by its URL, time and digest."""
        target = revisit.refers_to or Original(revisit.url, revisit.at, revisit.digest)
        stamp = format_timestamp(target.at)
        fitting = [
            entry
            for entry in self.versions(target.url)
            if entry.mime != REVISIT_MIME
            and (entry.digest == target.digest if target.digest else entry.timestamp == stamp)
        ]
        for entry in sorted(
            fitting, key=lambda entry: (entry.timestamp != stamp, entry.timestamp > stamp)
        ):
            record = self.read(entry.file, entry.offset, entry.length)
            if not target.digest or target.digest == compute_digest(
                record.body, algorithm=target.digest.partition(":")[0]
            ):
                return record
        raise ArchiveError(
            f"The original of {revisit.url} of {revisit.at:%Y-%m-%d %H:%M:%S} is not here: "
            f"{target.url}"
        )

    def closed_files(self) -> list[Path]:
        """All closed WARC files, in the order of their names."""
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    def iter_records(self) -> Iterator[tuple[Path, StoredRecord]]:
        """All records of all closed files, in the order in which they were written. Of a damaged
        file, those before the damage.
        """
        for path in self.closed_files():
            with path.open("rb", buffering=1 << 18) as file, suppress(BrokenRecordError):
                for found in iter_members(file):
                    yield path, parse_record(found)

    def iter_captures(self) -> Iterator[Capture]:
        """All versions that can be read, without the 304s."""
        for path, record in self.iter_records():
            if IndexEntry.from_stored(record, path.name) is not None:
                with suppress(ArchiveError):
                    yield self.resolve_record(record)
