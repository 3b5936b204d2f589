"""Files of other tools as one row of bytes, packed or not: gzip members may hold one record, or
many, or a part of one.
"""

from __future__ import annotations

import re
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import BinaryIO, Protocol

from crawlproj.archive.gzip_members import GZIP, MAGIC, PIECE

SHORT = 1_024
WARC = re.compile(rb"WARC/(?:1\.[01]|0\.1[78])[ \t]*\r?\n")
ARC = re.compile(
    rb"([A-Za-z][A-Za-z0-9+.-]*:[^\r\n]*) ([0-9a-fA-F.:]+|-) ([0-9]{8,17}) ([^\r\n]*?) "
    rb"?([0-9]+)\r?\n"
)
"""How records start. A line of ARC: URL, address, time, type (and more in version 2), length."""
_WARC_LINE = re.compile(rb"(?m)^" + WARC.pattern)


class ByteSource(Protocol):
    """Bytes that can be read in order, and again from an earlier place."""

    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, at: int, /) -> object: ...


class ByteWindow:
    """Any part of a source. What comes after `floor` is kept, so that going back to it costs
    nothing.
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._at = 0
        self._data = bytearray()
        self.floor: int | None = None
        source.seek(0)

    def get(self, at: int, size: int) -> bytes:
        """Less than `size` only at the end."""
        if not self._at <= at <= self._at + len(self._data):
            self._fill(at if self.floor is None else min(at, self.floor))
        kept = max(self._at, at if self.floor is None else min(at, self.floor))
        del self._data[: kept - self._at]
        self._at = kept
        skipped = at - kept
        while len(self._data) < skipped + size and (piece := self._source.read(PIECE)):
            self._data += piece
        return bytes(memoryview(self._data)[skipped : skipped + size])

    def _fill(self, at: int) -> None:
        """Go there, or go on reading up to there if the floor is within reach."""
        if not self._at <= at <= self._at + len(self._data):
            self._source.seek(at)
            self._at = at
            self._data = bytearray()


class GzipStream:
    """What is in the gzip members of a file. After a damaged place it goes on with the next member
    that starts a record.

    `breaks` are the places where something is missing, as far as it was read, `broken` where the
    member starts in which it is; `tell` hears of each (byte in the file, why). `size` is known when
    all was read.
    """

    def __init__(self, file: BinaryIO, report: Callable[[int, str], None]) -> None:
        self._file = file
        self._tell = report
        self.breaks: list[int] = []
        self.broken_members: list[int] = []
        self.size: int | None = None
        self.starts = array("Q")
        self._offsets = array("Q")
        self._go(0, 0)

    def _go(self, at: int, offset: int) -> None:
        self._file.seek(offset)
        self._at = at
        self._from = at
        self._offset = offset
        self._input = b""
        self._ended = False
        self._inflater: zlib._Decompress | None = None

    def member_offset(self, at: int) -> int:
        """The byte in the file at which the member starts that holds this one."""
        found = bisect_right(self.starts, at) - 1
        return self._offsets[found] if found >= 0 else 0

    def seek(self, at: int, /) -> None:
        """Back means from the start of a member again."""
        if at < self._at:
            found = bisect_right(self.starts, at) - 1
            self._go(*((self.starts[found], self._offsets[found]) if found >= 0 else (0, 0)))
        while self._at < at and self.read(min(PIECE, at - self._at)):
            pass

    def read(self, size: int = -1, /) -> bytes:
        while not self._ended:
            if self._inflater is None and not self._open():
                continue
            assert self._inflater is not None
            self._input = self._input or self._file.read(PIECE)
            try:
                out = self._inflater.decompress(self._input, max(size, 1))
                fed = bool(self._input)
            except zlib.error as error:
                self._break(f"damaged gzip member ({str(error).rpartition(': ')[2]})")
                continue
            eof = self._inflater.eof
            self._input = self._inflater.unused_data if eof else self._inflater.unconsumed_tail
            self._inflater = None if eof else self._inflater
            if not out and not fed and not eof:
                self._break("cut inside a gzip member")
            elif out:
                self._at += len(out)
                return out
        self.size = self._at
        return b""

    def _open(self) -> bool:
        """The next member; False if there is none here."""
        while len(self._input) < len(MAGIC) and (more := self._file.read(PIECE)):
            self._input += more
        self._offset = self._file.tell() - len(self._input)
        self._from = self._at
        if not self._input:
            self._ended = True
        elif not self._input.startswith(MAGIC):
            cut = len(self._input) < len(MAGIC) and MAGIC.startswith(self._input)
            zeros = (
                "zeros where a gzip member should be"
                if not self._input.strip(b"\0")
                else "no gzip member"
            )
            self._break("cut inside a gzip member" if cut else zeros)
        else:
            self._start()
            return True
        return False

    def _start(self) -> None:
        self._inflater = zlib.decompressobj(GZIP)
        if not self._offsets or self._offset > self._offsets[-1]:
            self.starts.append(self._at)
            self._offsets.append(self._offset)

    def _break(self, why: str) -> None:
        if not self.breaks or self._at > self.breaks[-1]:
            self.breaks.append(self._at)
            self.broken_members.append(self._from)
            self._tell(self._offset, why)
        self._input = b""
        self._inflater = None
        self._offset = _next_start(self._file, self._offset + 1)
        self._ended = self._offset < 0
        if not self._ended:
            self._file.seek(self._offset)


def _next_start(file: BinaryIO, offset: int) -> int:
    """Where the next member is that begins like a record; -1 if there is none."""
    file.seek(offset)
    tail = b""
    while data := file.read(PIECE):
        base = file.tell() - len(data) - len(tail)
        data = tail + data
        at = data.find(MAGIC)
        while at >= 0:
            file.seek(base + at)
            if starts_record(decompressed_start(file.read(SHORT))):
                return base + at
            at = data.find(MAGIC, at + 1)
        tail = data[-len(MAGIC) + 1 :]
        file.seek(base + len(data))
    return -1


def begins_compressed(file: BinaryIO) -> bool:
    """Of a file that does not start with a member: is its start damaged, so that the first record
    in it is packed?
    """
    file.seek(0)
    if starts_record(file.read(SHORT)) or (left := _next_start(file, 0)) < 0:
        return False
    file.seek(0)
    tail = b""
    while data := file.read(min(PIECE, left)):
        if _WARC_LINE.search(tail + data):
            return False
        left = left - len(data)
        tail = data[-SHORT:]
    return True


def decompressed_start(data: bytes) -> bytes:
    """The first bytes of what is in the member at the start of `data`; nothing if there is none."""
    try:
        return zlib.decompressobj(GZIP).decompress(data, SHORT)
    except zlib.error:
        return b""


def starts_record(data: bytes) -> bool:
    data = data.lstrip(b"\r\n")
    return WARC.match(data) is not None or ARC.match(data) is not None
