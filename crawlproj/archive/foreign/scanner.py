"""Finds the records in files of other tools, and goes on after damage.

A record counts if it ends where its length says: nothing, or another record, follows it. Else its
length is wrong, and the next line that starts a record is looked for. A record with digests counts
only if one of them is right.

Positions (`at`, `start`, `end`) are those in the decompressed content of the file.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO
from urllib.parse import quote_from_bytes

from crawlproj.archive.foreign.streams import (
    WARC,
    ArcLine,
    ByteWindow,
    GzipStream,
    match_arc_line,
    starts_record,
)
from crawlproj.archive.gzip_members import PIECE
from crawlproj.archive.stored_record import StoredRecord

MAX_BLOCK = 256 << 20
MAX_HEADER = 1 << 20
FIRST = 4_096
TAIL = 1_024
LINE = 4_096
MAX_REWINDS = 20
"""How often a gzip member with many records is read again because a record's length is wrong by
more than a block: each time costs as much as the whole member.
"""
UNIQUE_FIELDS = (
    "warc-type",
    "warc-target-uri",
    "warc-date",
    "warc-record-id",
    "content-length",
    "warc-block-digest",
    "warc-payload-digest",
)
_EMPTY_LINE = re.compile(rb"\r?\n[ \t]*\r?\n")
_NEXT_WARC = re.compile(rb"\n(WARC/(?:1\.[01]|0\.1[78])[ \t]*\r?\n)(?=[A-Za-z-]+[ \t]*:)")
_MAYBE_ARC = re.compile(rb"\n((?:https?|ftp|dns):[^\r\n]*)\r?(?=\n)")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_URL = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_EMPTY_LINES = (b"\r\n\r\n", b"\n\n", b"\r\n", b"\n", b"")

ReportDamage = Callable[[int, str], None]
"""Called with an offset in the file, and what is wrong there."""
Verify = Callable[[StoredRecord], bool | None]
"""Whether a digest of a record is right; None if none can be judged."""


def _next_warc(data: bytes) -> int | None:
    """Where the first line that starts a record of WARC is in `data`, but for its first byte."""
    found = _NEXT_WARC.search(data)
    if found is None:
        return None
    return found.start(1)


def _next_arc(data: bytes) -> int | None:
    """The same for ARC."""
    for found in _MAYBE_ARC.finditer(data):
        if match_arc_line(found[1] + b"\n", strict=True) is not None:
            return found.start(1)
    return None


class Scanner:
    """Finds all records of one file; it holds one at a time, of at most `max_block` bytes."""

    def __init__(
        self,
        file: BinaryIO,
        compressed: bool,
        report: ReportDamage,
        verify: Verify,
        max_block: int = MAX_BLOCK,
    ) -> None:
        self._report = report
        self._verify = verify
        self._max = max_block
        self._gzip: GzipStream | None = None
        self._plain_size: int | None = None
        if compressed:
            self._gzip = GzipStream(file, report)
        else:
            self._plain_size = os.fstat(file.fileno()).st_size
        self._window = ByteWindow(self._gzip or file)
        self._next_record: Callable[[bytes], int | None] = _next_warc
        self._rewinds_left = MAX_REWINDS

    @property
    def _size(self) -> int | None:
        """The size of the content; None if it is compressed and was not read to its end."""
        if self._gzip is None:
            return self._plain_size
        return self._gzip.size

    def iter_records(self) -> Iterator[StoredRecord]:
        """All records that count, in their order."""
        at = self._skip_empty_lines(0)
        while self._window.get(at, 1):
            stored, end = self._read_record(at)
            if stored is not None:
                self._window.floor = end
                self._window.get(end, 0)
                yield stored
            at = self._skip_empty_lines(end)

    def _skip_empty_lines(self, at: int) -> int:
        """The position behind the empty lines at this one."""
        self._window.floor = None
        while data := self._window.get(at, FIRST):
            rest = data.lstrip(b"\r\n")
            at += len(data) - len(rest)
            if rest:
                break
        return at

    def _read_record(self, at: int) -> tuple[StoredRecord | None, int]:
        """The record at this position, or None, and where to go on, which is always further on."""
        self._window.floor = at
        header = self._read_header(at)
        if header is None:
            first = self._window.get(at, 40).partition(b"\n")[0].strip()
            if WARC.match(first + b"\n"):
                why = "a damaged header"
            else:
                why = f"no record: {first.decode('latin-1')!a}"
            end, problem = self._find_next_record(at, at + 1, why)
            if problem:
                self._report(self._file_offset(at), problem)
            return None, end
        fields, start = header
        length_text = fields.get("content-length", "")
        if not length_text.isdecimal() or len(length_text) > 18:
            return self._read_by_digest(
                fields, at, start, length=None, why="a record without a length that makes sense"
            )
        length = int(length_text)
        if length > self._max:
            return self._skip_large_record(fields, at, start, length=length)
        if not self._reaches(start + length):
            return self._read_by_digest(fields, at, start, length=length, why="the record is cut")
        return self._read_by_length(fields, at, start, length=length)

    def _read_by_length(
        self, fields: dict[str, str], at: int, start: int, length: int
    ) -> tuple[StoredRecord | None, int]:
        end, is_record_end = self._find_record_end(start + length)
        if not is_record_end:
            return self._read_by_digest(
                fields, at, start, length=length, why="the record does not end where it says"
            )
        stored = StoredRecord(fields, self._window.get(start, length), self._file_offset(at))
        damaged = self._is_damaged(at, start + length, end)
        verified = self._verify(stored)
        if verified or (verified is None and not damaged):
            return stored, start + length
        if not damaged:
            self._report(stored.offset, "its digests do not fit: the record is damaged")
        return None, end

    def _reaches(self, end: int) -> bool:
        """Whether the content goes on up to this position."""
        size = self._size
        if size is not None:
            return end <= size
        return bool(self._window.get(end - 1, 1))

    def _find_record_end(self, at: int) -> tuple[int, bool]:
        """Where the empty lines behind a record end, and whether a record can end there."""
        tail = self._window.get(at, TAIL)
        rest = tail.lstrip(b"\r\n")
        end = at + len(tail) - len(rest)
        if not rest.strip(b"\0") or starts_record(rest):
            return end, True
        return end, self._is_whole_member(at, end)

    def _is_whole_member(self, first: int, last: int) -> bool:
        """Whether the record at the floor is all of its member, which ends between these two."""
        if self._gzip is None:
            return False
        starts = self._gzip.starts
        number = bisect_left(starts, self._window.floor or 0)
        if number + 1 >= len(starts) or starts[number] != self._window.floor:
            return False
        return first <= starts[number + 1] <= last

    def _skip_large_record(
        self, fields: dict[str, str], at: int, start: int, length: int
    ) -> tuple[StoredRecord | None, int]:
        """Go on behind a record that is too large to be held, if its length is right."""
        self._window.floor = None
        is_size_known = self._size is not None
        if self._reaches(start + length) and self._find_record_end(start + length)[1]:
            self._report(self._file_offset(at), f"more than {self._max} bytes in one record")
            return None, start + length
        if not is_size_known:
            self._rewinds_left -= 1
        if self._rewinds_left < 0:
            self._report(
                self._file_offset(at),
                "the lengths of its records make no sense; the rest is left out",
            )
            return None, start + length
        return self._read_by_digest(fields, at, start, length=None, why="its length is wrong")

    def _read_by_digest(
        self, fields: dict[str, str], at: int, start: int, length: int | None, why: str
    ) -> tuple[StoredRecord | None, int]:
        """A record that seems not to end where its length says: it counts if the block digest is
        right there, or where the next record starts.
        """
        end, problem = self._find_next_record(at, start, why)
        if fields.get("warc-block-digest") and end - start <= self._max:
            data = self._window.get(start, end - start)
            sizes = [len(data) - len(line) for line in _EMPTY_LINES if data.endswith(line)]
            if length is not None and length <= len(data):
                sizes.insert(0, length)
            for size in sizes:
                stored = StoredRecord(fields, data[:size], self._file_offset(at))
                if self._verify(stored):
                    if size != length:
                        self._report(
                            stored.offset, "its length is wrong; by its digest it is whole"
                        )
                    return stored, start + size
        if problem:
            self._report(self._file_offset(at), problem)
        return None, end

    def _find_next_record(self, at: int, start: int, why: str) -> tuple[int, str]:
        """The next position from `start` on where a record starts or damage was skipped, and what
        to report about the record at `at`: `why`, unless the damage was reported already.
        """
        position = start - 1
        damaged = False
        while data := self._window.get(position, PIECE + LINE):
            if position - start >= self._max:
                self._window.floor = None
            candidates = self._record_starts(data, position, start)
            damage = self._first_break(at, position + len(data))
            if damage is not None:
                candidates.append(damage)
            if candidates:
                position = min(candidates)
                damaged = position == damage
                break
            if len(data) > LINE:
                position += len(data) - LINE
            else:
                position += len(data)
        if position - start > self._max:
            return position, f"more than {self._max} bytes in one record"
        if damaged:
            return position, ""
        return position, why

    def _record_starts(self, data: bytes, position: int, start: int) -> list[int]:
        """The first line in `data`, and the first member from `start` on, that start a record."""
        found = list[int]()
        line = self._next_record(data)
        if line is not None:
            found.append(position + line)
        if self._gzip is None:
            return found
        members = self._gzip.starts
        first = bisect_left(members, start)
        last = bisect_right(members, position + len(data) - 1)
        for member in members[first:last]:
            if starts_record(data[member - position : member - position + LINE]):
                found.append(member)
                break
        return found

    def _first_break(self, at: int, end: int) -> int | None:
        """The first position after `at` and up to `end` where something is missing."""
        if self._gzip is None:
            return None
        breaks = self._gzip.breaks
        number = bisect_right(breaks, at)
        if number == len(breaks) or breaks[number] > end:
            return None
        return breaks[number]

    def _is_damaged(self, at: int, end: int, last: int) -> bool:
        """Whether something is missing in the members of a record.

        A break behind its `end`, up to `last`, may be that of a member of the next record.
        """
        found = self._first_break(at, last)
        if found is None or self._gzip is None:
            return False
        number = bisect_left(self._gzip.breaks, found)
        return self._gzip.broken_members[number] < end

    def _file_offset(self, at: int) -> int:
        """The offset in the file: that of the gzip member, if it is compressed."""
        if self._gzip is None:
            return at
        return self._gzip.member_offset(at)

    def _read_header(self, at: int) -> tuple[dict[str, str], int] | None:
        """The fields of the record at this position, and where its block starts."""
        head = self._window.get(at, FIRST)
        if WARC.match(head):
            return self._read_warc_header(at, head)
        line = match_arc_line(head)
        if line is None:
            return None
        fields = _arc_fields(line)
        if fields is None:
            return None
        self._next_record = _next_arc
        return fields, at + line.end

    def _read_warc_header(self, at: int, head: bytes) -> tuple[dict[str, str], int] | None:
        end = _EMPTY_LINE.search(head)
        if end is None:
            head = self._window.get(at, MAX_HEADER)
            end = _EMPTY_LINE.search(head)
        if end is None:
            return None
        fields = _warc_fields(head[: end.start()])
        if fields is None:
            return None
        self._next_record = _next_warc
        return fields, at + end.end()


def _warc_fields(head: bytes) -> dict[str, str] | None:
    """The fields of a header, of several the first, with names in lower case.

    None if it contradicts itself, as where pieces of two headers were run together.
    """
    found: dict[str, str] = {}
    if b"\0" in head:
        return None
    for line in _FOLD.sub(b" ", head).split(b"\n")[1:]:
        name, colon, value = line.partition(b":")
        if not colon:
            continue
        key = name.strip().lower().decode("latin-1")
        text = _decode_value(value.strip())
        if found.setdefault(key, text) != text and key in UNIQUE_FIELDS:
            return None
    return found


def _decode_value(value: bytes) -> str:
    """The text of a field's value; what is not UTF-8 can only be in a URL."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(value, safe=_URL + " ")


def _arc_fields(line: ArcLine) -> dict[str, str] | None:
    """The fields that a WARC record would have for this line; None if it has no date."""
    parts = [_decode_value(part.strip()) for part in line[:5]]
    url, address, stamp, content_type, length = parts
    try:
        at = datetime.strptime(stamp[:14].ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    kind = "response"
    if url.startswith("filedesc:"):
        kind = "warcinfo"
    return {
        "warc-type": kind,
        "warc-target-uri": url,
        "warc-date": at.isoformat(),
        "warc-ip-address": address,
        "content-length": length,
        "archive-length": length,
        "content-type": content_type.partition(" ")[0].rstrip(";"),
    }
