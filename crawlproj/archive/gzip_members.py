"""Gzip members: a WARC file is a series of them, one per record, so that each can be read alone."""

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
"""A level that depends on the record: libdeflate's 1 for small ones, which gain little by more
effort, and 2 for others. Both stay within 8 % of gzip -6.
"""
SMALL = 64_000
MAX_RECORD = 1 << 30
FIRST = 4_096
"""Bytes that are read first: most records are small."""
PIECE = 65_536


class BrokenRecordError(ArchiveError):
    """What is at `offset` is no whole record."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(f"{why} at byte {offset}")
        self.offset = offset
        self.why = why


@dataclass(frozen=True, slots=True)
class GzipMember:
    """A member of a file. `data` is decompressed; `offset` and `length` are those in the file."""

    offset: int
    length: int
    data: bytes


def compress_member(data: bytes, level: int = BY_SIZE) -> bytes:
    """One gzip member. The same data always gives the same bytes: no time is written."""
    if level == BY_SIZE:
        level = 1 if len(data) < SMALL else 2
    return bytes(deflate.gzip_compress(data, level))


def read_member(file: BinaryIO, offset: int, limit: int = MAX_RECORD) -> GzipMember | None:
    """The member at `offset`; None at the end of the file.

    Raises BrokenRecordError if it is cut, damaged, or larger than `limit` when decompressed.
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
            if not inflater.eof:
                chunk = file.read(PIECE)
    except zlib.error as error:
        raise BrokenRecordError(offset, f"no gzip member ({error})") from None
    return GzipMember(offset, length - len(inflater.unused_data), b"".join(pieces))


def iter_members(file: BinaryIO, offset: int = 0) -> Iterator[GzipMember]:
    """All members from `offset` on; BrokenRecordError where there is none."""
    while (member := read_member(file, offset)) is not None:
        yield member
        offset += member.length


def next_member(file: BinaryIO, offset: int, limit: int = MAX_RECORD) -> GzipMember | None:
    """The next whole member that holds a WARC record, wherever after `offset` it starts."""
    file.seek(offset)
    tail = b""
    while data := file.read(PIECE):
        base = file.tell() - len(data) - len(tail)
        data = tail + data
        start = data.find(MAGIC)
        while start >= 0:
            member = _record_member(file, base + start, limit)
            if member is not None:
                return member
            start = data.find(MAGIC, start + 1)
        tail = data[-len(MAGIC) + 1 :]
        file.seek(base + len(data))
    return None


def _record_member(file: BinaryIO, offset: int, limit: int) -> GzipMember | None:
    """The member at `offset`, if it is whole and holds a WARC record."""
    try:
        member = read_member(file, offset, limit)
    except BrokenRecordError:
        return None
    if member is None or not member.data.startswith(b"WARC/1."):
        return None
    return member
