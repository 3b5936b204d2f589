"""Finds the records in files of other tools, and goes on behind what is none.

A record counts if it ends where it says: behind it is nothing, or another record. If not, its
length is wrong, and the next line that starts a record is looked for. A record with digests counts
only if one of them fits.
"""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import BinaryIO
from urllib.parse import quote_from_bytes

from crawlproj.archive.foreign.streams import ARC, WARC, ByteWindow, GzipStream, starts_record
from crawlproj.archive.gzip_members import PIECE
from crawlproj.archive.stored_record import StoredRecord

MAX_BLOCK = 256 << 20
MAX_HEADER = 1 << 20
FIRST = 4_096
TAIL = 1_024
LINE = 4_096
WAYS_BACK = 20
"""So often it goes back in a gzip member of many records, for lengths that lie by more than a
block: each time costs all of it.
"""
ONCE = (
    "warc-type",
    "warc-target-uri",
    "warc-date",
    "warc-record-id",
    "content-length",
    "warc-block-digest",
    "warc-payload-digest",
)
_BLANK = re.compile(rb"\r?\n[ \t]*\r?\n")
_NEXT_WARC = re.compile(rb"\n(WARC/(?:1\.[01]|0\.1[78])[ \t]*\r?\n)(?=[A-Za-z-]+[ \t]*:)")
_NEXT_ARC = re.compile(
    rb"\n((?:https?|ftp|dns):[^\r\n]* (?:[0-9.]+|-) [0-9]{14} [^\r\n]*[0-9]+\r?\n)"
)
_FOLD = re.compile(rb"\r?\n[ \t]+")
_URL = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_EMPTY_LINES = (b"\r\n\r\n", b"\n\n", b"\r\n", b"\n", b"")

ReportDamage = Callable[[int, str], None]
"""Of a byte in the file, and what is wrong there."""
Verify = Callable[[StoredRecord], bool | None]
"""Do the digests of a record fit? None if it has none."""


class Scanner:
    """All records of one file, in flat memory: at most one of `max_block` bytes is held."""

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
        self._packed = GzipStream(file, report) if compressed else None
        self._window = ByteWindow(self._packed or file)
        self._size = None if compressed else os.fstat(file.fileno()).st_size
        self._next = _NEXT_WARC
        self._ways_back = WAYS_BACK

    def iter_records(self) -> Iterator[StoredRecord]:
        at = self._blank(0)
        while self._window.get(at, 1):
            stored, end = self._record(at)
            if stored is not None:
                self._window.floor = end
                self._window.get(end, 0)
                yield stored
            at = self._blank(end)

    def _blank(self, at: int) -> int:
        """Behind the empty lines there."""
        self._window.floor = None
        while data := self._window.get(at, FIRST):
            rest = data.lstrip(b"\r\n")
            at += len(data) - len(rest)
            if rest:
                break
        return at

    def _record(self, at: int) -> tuple[StoredRecord | None, int]:
        """The record there, or None, and where to go on, which is always further on."""
        self._window.floor = at
        header = self._header(at)
        if header is None:
            first = self._window.get(at, 40).partition(b"\n")[0].strip()
            text = (
                "a damaged header"
                if WARC.match(first + b"\n")
                else f"no record: {first.decode('latin-1')!a}"
            )
            return None, self._resumed(at, at + 1, text)
        fields, start = header
        said = fields.get("content-length", "")
        if not said.isdecimal() or len(said) > 18:
            return self._mended(
                fields, at, start, length=None, why="a record without a length that makes sense"
            )
        length = int(said)
        if length > self._max:
            return self._passed(fields, at, start, length=length)
        if not self._reaches(start + length):
            return self._mended(fields, at, start, length=length, why="the record is cut")
        return self._whole(fields, at, start, length=length)

    def _whole(
        self, fields: dict[str, str], at: int, start: int, length: int
    ) -> tuple[StoredRecord | None, int]:
        end, sound = self._ends(start + length)
        if not sound:
            return self._mended(
                fields, at, start, length=length, why="the record does not end where it says"
            )
        stored = StoredRecord(fields, self._window.get(start, length), self._file_offset(at))
        damaged = self._is_damaged(at, start + length, end)
        fit = self._verify(stored)
        if fit or (fit is None and not damaged):
            return stored, start + length
        if not damaged:
            self._report(stored.offset, "its digests do not fit: the record is damaged")
        return None, end

    def _reaches(self, end: int) -> bool:
        size = self._size if self._packed is None else self._packed.size
        return end <= size if size is not None else bool(self._window.get(end - 1, 1))

    def _ends(self, at: int) -> tuple[int, bool]:
        """Where the empty lines behind a record end, and whether that is where a record can end."""
        tail = self._window.get(at, TAIL)
        rest = tail.lstrip(b"\r\n")
        end = at + len(tail) - len(rest)
        return end, not rest.strip(b"\0") or starts_record(rest) or self._is_member(at, end)

    def _is_member(self, first: int, last: int) -> bool:
        """Is the record at the floor all that is in its member, which ends there?"""
        starts = self._packed.starts if self._packed is not None else array("Q")
        found = bisect_left(starts, self._window.floor or 0)
        return (
            found + 1 < len(starts)
            and starts[found] == self._window.floor
            and first <= starts[found + 1] <= last
        )

    def _passed(
        self, fields: dict[str, str], at: int, start: int, length: int
    ) -> tuple[StoredRecord | None, int]:
        """Behind a record that is too big to be held."""
        self._window.floor = None
        known = self._packed is None or self._packed.size is not None
        if self._reaches(start + length) and self._ends(start + length)[1]:
            self._report(self._file_offset(at), f"more than {self._max} bytes in one record")
            return None, start + length
        self._ways_back -= not known
        if self._ways_back < 0:
            self._report(
                self._file_offset(at),
                "the lengths of its records make no sense; the rest is left out",
            )
            return None, start + length
        return self._mended(fields, at, start, length=None, why="its length is wrong")

    def _mended(
        self, fields: dict[str, str], at: int, start: int, length: int | None, why: str
    ) -> tuple[StoredRecord | None, int]:
        """A record that does not end where it says counts if its digest says that it does, or where
        else.
        """
        heard: list[str] = []
        end = self._resumed(at, start, why, heard=heard)
        if fields.get("warc-block-digest") and end - start <= self._max:
            data = self._window.get(start, end - start)
            sizes = [len(data) - len(line) for line in _EMPTY_LINES if data.endswith(line)]
            for size in [length, *sizes] if length is not None and length <= len(data) else sizes:
                stored = StoredRecord(fields, data[:size], self._file_offset(at))
                if self._verify(stored):
                    if size != length:
                        self._report(
                            stored.offset, "its length is wrong; by its digest it is whole"
                        )
                    return stored, start + size
        for text in heard:
            self._report(self._file_offset(at), text)
        return None, end

    def _resumed(self, at: int, start: int, why: str, heard: list[str] | None = None) -> int:
        """The next place where a record starts. Why it was needed is told, if that was not said of
        a damaged member already.
        """
        pos = start - 1
        damaged = False
        heard_by = (
            heard.append if heard is not None else partial(self._report, self._file_offset(at))
        )
        while data := self._window.get(pos, PIECE + LINE):
            self._window.floor = self._window.floor if pos - start < self._max else None
            ahead = self._break(at, pos + len(data))
            if places := [*self._starts(data, pos, start), *([] if ahead is None else [ahead])]:
                pos = min(places)
                damaged = ahead == min(places)
                break
            pos += max(1, len(data) - LINE) if len(data) > LINE else len(data)
        if pos - start > self._max:
            heard_by(f"more than {self._max} bytes in one record")
        elif not damaged:
            heard_by(why)
        return pos

    def _starts(self, data: bytes, pos: int, start: int) -> Iterator[int]:
        """Lines that start a record, and members that do."""
        if found := self._next.search(data):
            yield pos + found.start(1)
        if self._packed is not None:
            starts = self._packed.starts
            for each in starts[
                bisect_left(starts, start) : bisect_right(starts, pos + len(data) - 1)
            ]:
                if starts_record(data[each - pos : each - pos + LINE]):
                    yield each
                    return

    def _break(self, at: int, end: int) -> int | None:
        """The first place after `at`, not after `end`, where something is missing."""
        breaks = self._packed.breaks if self._packed is not None else []
        found = bisect_right(breaks, at)
        return breaks[found] if found < len(breaks) and breaks[found] <= end else None

    def _is_damaged(self, at: int, end: int, last: int) -> bool:
        """Is something missing in the members of a record? Where it ends there may be a break that
        is of the next one.
        """
        found = self._break(at, last)
        return (
            found is not None
            and self._packed is not None
            and self._packed.broken_members[bisect_left(self._packed.breaks, found)] < end
        )

    def _file_offset(self, at: int) -> int:
        return at if self._packed is None else self._packed.member_offset(at)

    def _header(self, at: int) -> tuple[dict[str, str], int] | None:
        """The fields of the record that starts there, and where its block starts."""
        head = self._window.get(at, FIRST)
        if WARC.match(head):
            if (end := _BLANK.search(head)) is None and (
                end := _BLANK.search(head := self._window.get(at, MAX_HEADER))
            ) is None:
                return None
            if (fields := _fields(head[: end.start()])) is None:
                return None
            self._next = _NEXT_WARC
            return fields, at + end.end()
        if (line := ARC.match(head)) and (fields := _arc_fields(line)) is not None:
            self._next = _NEXT_ARC
            return fields, at + line.end()
        return None


def _fields(head: bytes) -> dict[str, str] | None:
    """Names in lower case; of several the first. None if it says two things at once, as where
    pieces of two are run together.
    """
    found: dict[str, str] = {}
    if b"\0" in head:
        return None
    for line in _FOLD.sub(b" ", head).split(b"\n")[1:]:
        name, colon, value = line.partition(b":")
        key = name.strip().lower().decode("latin-1")
        text = _text(value.strip())
        if colon and found.setdefault(key, text) != text and key in ONCE:
            return None
    return found


def _text(value: bytes) -> str:
    """What is not UTF-8 can only be in a URL."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(value, safe=_URL + " ")


def _arc_fields(line: re.Match[bytes]) -> dict[str, str] | None:
    """As a WARC record would have them; None if it has no date."""
    url, address, stamp, kind, length = (_text(part.strip()) for part in line.groups())
    try:
        at = datetime.strptime(stamp[:14].ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return {
        "warc-type": "warcinfo" if url.startswith("filedesc:") else "response",
        "warc-target-uri": url,
        "warc-date": at.isoformat(),
        "warc-ip-address": address,
        "content-length": length,
        "archive-length": length,
        "content-type": kind.partition(" ")[0].rstrip(";"),
    }
