"""Gzip members: a WARC file is a row of them, one per record, so that each can be read alone."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import deflate

from crawlproj.errors import ArchiveError

GZIP = 31
"""Window bits that mean gzip, with zlib's largest window."""
MAGIC = b"\x1f\x8b\x08"
BY_SIZE = 0
SMALL = 64_000
"""Level 2 of libdeflate; 1 for small records, which gain little by more effort. Both stay within 8
% of gzip -6.
"""
MAX_RECORD = 1 << 30
FIRST = 4_096
PIECE = 65_536
"""Most records are small: a little is read first."""


class BrokenRecordError(ArchiveError):
    """What is at `offset` is no whole record."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(f"{why} at byte {offset}")
        self.offset = offset
        self.why = why


@dataclass(frozen=True, slots=True)
class GzipMember:
    """`data` is unpacked; `offset` and `length` are in the file."""

    offset: int
    length: int
    data: bytes


def compress_member(data: bytes, level: int = BY_SIZE) -> bytes:
    """One member. The same data always gives the same bytes: no time is written."""
    return bytes(deflate.gzip_compress(data, level or (1 if len(data) < SMALL else 2)))


def read_member(file: BinaryIO, offset: int, limit: int = MAX_RECORD) -> GzipMember | None:
    """The member at `offset`; None at the end of the file. BrokenError if it is cut, damaged, or
    unpacked more than `limit`.
    """
    file.seek(offset)
    inflater = zlib.decompressobj(GZIP)
    pieces = []
    length = 0
    size = 0
    chunk = file.read(FIRST)
    if not chunk:
        return None
    try:
        while not inflater.eof:
            if not chunk:
                raise BrokenRecordError(offset, "cut inside a gzip member")
            length += len(chunk)
            pieces.append(inflater.decompress(chunk, limit + 1 - size))
            size += len(pieces[-1])
            if size > limit:
                raise BrokenRecordError(offset, f"more than {limit} bytes in one record")
            chunk = b"" if inflater.eof else file.read(PIECE)
    except zlib.error as error:
        raise BrokenRecordError(offset, f"no gzip member ({error})") from None
    return GzipMember(offset, length - len(inflater.unused_data), b"".join(pieces))


def iter_members(file: BinaryIO, offset: int = 0) -> Iterator[GzipMember]:
    """All members from there on; BrokenError at the first that is none."""
    while (found := read_member(file, offset)) is not None:
        yield found
        offset += found.length


def next_member(file: BinaryIO, offset: int, limit: int = MAX_RECORD) -> GzipMember | None:
    """The next whole member with a WARC record in it, after bytes that are none."""
    file.seek(offset)
    tail = b""
    while data := file.read(PIECE):
        base = file.tell() - len(data) - len(tail)
        data = tail + data
        at = data.find(MAGIC)
        while at >= 0:
            if (found := _record_at(file, base + at, limit)) is not None:
                return found
            at = data.find(MAGIC, at + 1)
        tail = data[-len(MAGIC) + 1 :]
        file.seek(base + len(data))
    return None


def _record_at(file: BinaryIO, offset: int, limit: int) -> GzipMember | None:
    try:
        found = read_member(file, offset, limit)
    except BrokenRecordError:
        return None
    return found if found is not None and found.data.startswith(b"WARC/1.") else None
