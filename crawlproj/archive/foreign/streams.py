"""Files of other tools as one sequence of bytes, compressed or not: a gzip member may hold one
record, many, or a part of one.
"""

from __future__ import annotations

import re
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import BinaryIO, NamedTuple, Protocol

from crawlproj.archive.gzip_members import GZIP, MAGIC, PIECE

START_BYTES = 1_024
"""Enough to see whether a record starts."""
WARC = re.compile(rb"WARC/(?:1\.[01]|0\.1[78])[ \t]*\r?\n")
"""How a record of WARC starts."""
_WARC_LINE = re.compile(rb"(?m)^" + WARC.pattern)
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*+:")
_ADDRESS = re.compile(rb"[0-9a-fA-F.:]+|-")
_IPV4 = re.compile(rb"[0-9.]+|-")
_DIGITS = b"0123456789"


class ArcLine(NamedTuple):
    """How a record of ARC starts: with a line. `kind` is its type, and more in version 2; `end` is
    behind the line.
    """

    url: bytes
    address: bytes
    time: bytes
    kind: bytes
    length: bytes
    end: int


def match_arc_line(data: bytes, *, strict: bool = False) -> ArcLine | None:
    """The line of ARC at the start of `data`. `strict`: text must not be taken for one.

    URLs and types may hold blanks, so the last address with a time behind it counts. One pattern
    for it takes cubic time.
    """
    is_address = _IPV4.fullmatch if strict else _ADDRESS.fullmatch
    digits = (14, 14) if strict else (8, 17)
    line, newline, _ = data.partition(b"\n")
    end = len(line) + 1
    line = line.removesuffix(b"\r")
    rest = line.rstrip(_DIGITS)
    if not newline or rest == line or b"\r" in line or _SCHEME.match(line) is None:
        return None
    words = line.split(b" ")
    for number in range(len(words) - 3, 0, -1):
        time = words[number + 1]
        is_time = time.isdigit() and digits[0] <= len(time) <= digits[1]
        if not is_time or is_address(words[number]) is None:
            continue
        url = b" ".join(words[:number])
        if _SCHEME.match(url) is None:
            return None
        kind = b" ".join(words[number + 2 :])
        bare = kind.rstrip(_DIGITS)
        return ArcLine(
            url,
            words[number],
            time,
            kind=bare.removesuffix(b" "),
            length=kind[len(bare) :],
            end=end,
        )
    return None


class ByteSource(Protocol):
    """Bytes that can be read in order, and again from an earlier position."""

    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, at: int, /) -> object: ...


class ByteWindow:
    """Random access to a source. All after `floor` is kept in memory, so that going back to it
    costs nothing.
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._at = 0
        self._data = bytearray()
        self.floor: int | None = None
        source.seek(0)

    def get(self, at: int, size: int) -> bytes:
        """The `size` bytes at this position; fewer only at the end."""
        lowest = at
        if self.floor is not None:
            lowest = min(at, self.floor)
        if not self._holds(at) and not self._holds(lowest):
            self._source.seek(lowest)
            self._at = lowest
            self._data = bytearray()
        kept = max(self._at, lowest)
        del self._data[: kept - self._at]
        self._at = kept
        start = at - kept
        while len(self._data) < start + size:
            piece = self._source.read(PIECE)
            if not piece:
                break
            self._data += piece
        return bytes(memoryview(self._data)[start : start + size])

    def _holds(self, at: int) -> bool:
        """Whether a position is in memory, or the next to be read."""
        return self._at <= at <= self._at + len(self._data)


class GzipStream:
    """The content of the gzip members of a file; after damage it goes on with the next member that
    starts a record.

    Positions are those in the decompressed content, offsets those in the file. `starts` are the
    positions where members start, as far as it was read; `breaks` those where something is missing,
    `broken_members` where the members that were damaged there start. `report` is called with the
    offset of each damage and what it is. `size` is known when all was read.
    """

    def __init__(self, file: BinaryIO, report: Callable[[int, str], None]) -> None:
        self._file = file
        self._report = report
        self.breaks: list[int] = []
        self.broken_members: list[int] = []
        self.size: int | None = None
        self.starts = array("Q")
        self._offsets = array("Q")
        self._restart(0, 0)

    def _restart(self, at: int, offset: int) -> None:
        """Go on at the member with this position and offset."""
        self._file.seek(offset)
        self._at = at
        self._member_start = at
        self._offset = offset
        self._input = b""
        self._ended = False
        self._inflater: zlib._Decompress | None = None

    def member_offset(self, at: int) -> int:
        """The offset of the member that holds this position."""
        number = bisect_right(self.starts, at) - 1
        if number < 0:
            return 0
        return self._offsets[number]

    def seek(self, at: int, /) -> None:
        """Go to a position; going back means reading again from the start of its member."""
        if at < self._at:
            number = bisect_right(self.starts, at) - 1
            if number < 0:
                self._restart(0, 0)
            else:
                self._restart(self.starts[number], self._offsets[number])
        while self._at < at and self.read(min(PIECE, at - self._at)):
            pass

    def read(self, size: int = -1, /) -> bytes:
        while not self._ended:
            if self._inflater is None and not self._open_member():
                continue
            inflater = self._inflater
            assert inflater is not None
            self._input = self._input or self._file.read(PIECE)
            at_file_end = not self._input
            try:
                out = inflater.decompress(self._input, max(size, 1))
            except zlib.error as error:
                self._skip_damage(f"damaged gzip member ({str(error).rpartition(': ')[2]})")
                continue
            if inflater.eof:
                self._input = inflater.unused_data
                self._inflater = None
            else:
                self._input = inflater.unconsumed_tail
            if not out and at_file_end and not inflater.eof:
                self._skip_damage("cut inside a gzip member")
            elif out:
                self._at += len(out)
                return out
        self.size = self._at
        return b""

    def _open_member(self) -> bool:
        """Start the next member; False if there is none at this offset."""
        while len(self._input) < len(MAGIC):
            more = self._file.read(PIECE)
            if not more:
                break
            self._input += more
        self._offset = self._file.tell() - len(self._input)
        self._member_start = self._at
        if not self._input:
            self._ended = True
            return False
        if not self._input.startswith(MAGIC):
            self._skip_damage(_no_member_reason(self._input))
            return False
        self._inflater = zlib.decompressobj(GZIP)
        if not self._offsets or self._offset > self._offsets[-1]:
            self.starts.append(self._at)
            self._offsets.append(self._offset)
        return True

    def _skip_damage(self, why: str) -> None:
        """Note the damage, if it is new, and go on at the next member that starts a record."""
        if not self.breaks or self._at > self.breaks[-1]:
            self.breaks.append(self._at)
            self.broken_members.append(self._member_start)
            self._report(self._offset, why)
        self._input = b""
        self._inflater = None
        self._offset = _next_start(self._file, self._offset + 1)
        self._ended = self._offset < 0
        if not self._ended:
            self._file.seek(self._offset)


def _no_member_reason(data: bytes) -> str:
    """What is there instead of a gzip member."""
    if len(data) < len(MAGIC) and MAGIC.startswith(data):
        return "cut inside a gzip member"
    if not data.strip(b"\0"):
        return "zeros where a gzip member should be"
    return "no gzip member"


def _next_start(file: BinaryIO, offset: int) -> int:
    """The offset of the next member that starts with a record; -1 if there is none."""
    file.seek(offset)
    tail = b""
    while data := file.read(PIECE):
        base = file.tell() - len(data) - len(tail)
        data = tail + data
        start = data.find(MAGIC)
        while start >= 0:
            file.seek(base + start)
            if starts_record(decompressed_start(file.read(START_BYTES))):
                return base + start
            start = data.find(MAGIC, start + 1)
        tail = data[-len(MAGIC) + 1 :]
        file.seek(base + len(data))
    return -1


def begins_compressed(file: BinaryIO) -> bool:
    """Whether a file is compressed although it does not start with a member: its start is damaged,
    and the first record in it is in a member.
    """
    file.seek(0)
    if starts_record(file.read(START_BYTES)):
        return False
    first_member = _next_start(file, 0)
    if first_member < 0:
        return False
    file.seek(0)
    bytes_left = first_member
    tail = b""
    while data := file.read(min(PIECE, bytes_left)):
        if _WARC_LINE.search(tail + data):
            return False
        bytes_left -= len(data)
        tail = data[-START_BYTES:]
    return True


def decompressed_start(data: bytes) -> bytes:
    """The first bytes of the member at the start of `data`; nothing if there is none."""
    try:
        return zlib.decompressobj(GZIP).decompress(data, START_BYTES)
    except zlib.error:
        return b""


def starts_record(data: bytes) -> bool:
    data = data.lstrip(b"\r\n")
    return WARC.match(data) is not None or match_arc_line(data) is not None
