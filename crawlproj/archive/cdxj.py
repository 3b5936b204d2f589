"""CDXJ indexes as pywb reads and writes them: sorted lines `key timestamp {json}`, searched by
bisection.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Self

from crawlproj.archive.post_keys import METHOD, add_post_query
from crawlproj.archive.records import OCTETS, REVISIT_MIME, Record, mime_type
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.archive.surt import surt_key
from crawlproj.errors import ArchiveError
from crawlproj.http import heads

BLOCK = 4_096
LISTED_KINDS = ("response", "revisit", "resource")
_encode = json.JSONEncoder(separators=(", ", ": "), check_circular=False).encode


@dataclass(frozen=True, slots=True, order=True)
class IndexEntry:
    """One line of an index: a record with content.

    `timestamp` has 14 digits, `mime` of a revisit is `warc/revisit`, `file` has no folder.
    `post_query` distinguishes the request from a GET (see post_keys.py); it is part of `key`, too.
    """

    key: str
    timestamp: str
    url: str
    mime: str
    status: int
    digest: str
    length: int
    offset: int
    file: str
    post_query: str = ""

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """The entry of a line; ValueError or KeyError if it is none."""
        key, timestamp, rest = line.decode("utf-8", "replace").split(" ", 2)
        found = json.loads(rest)
        if not isinstance(found, dict):
            raise ValueError(f"no entry: {rest[:100]}")
        status = str(found.get("status", ""))
        return cls(
            key,
            timestamp,
            found["url"],
            mime=found.get("mime", ""),
            status=int(status) if status.isdecimal() else 0,
            digest=found.get("digest", ""),
            length=int(found["length"]),
            offset=int(found["offset"]),
            file=found["filename"],
            post_query=_post_query(found),
        )

    @classmethod
    def from_record(cls, record: Record, offset: int, length: int, file: str) -> Self:
        key = surt_key(add_post_query(record.url, record.post_query))
        stamp = format_timestamp(record.at)
        return cls(
            key,
            stamp,
            record.url,
            mime=record.mime,
            status=record.status,
            digest=record.digest,
            length=length,
            offset=offset,
            file=file,
            post_query=record.post_query,
        )

    @classmethod
    def from_stored(cls, stored: StoredRecord, file: str) -> Self | None:
        """The entry of a record that was read; None if the index does not list such records.

        A response with status 304 is not listed: replay would show the 304, which has no content.
        """
        if stored.kind not in LISTED_KINDS or not stored.url:
            return None
        head = stored.head
        status = heads.parse_status(head)
        if status == 304:
            return None
        if stored.kind == "revisit":
            mime = REVISIT_MIME
        elif stored.is_http:
            mime = mime_type(head)
        else:
            mime = stored.fields.get("content-type", OCTETS).partition(";")[0].strip()
        stamp = format_timestamp(stored.at)
        return cls(
            surt_key(stored.url),
            stamp,
            stored.url,
            mime=mime,
            status=status,
            digest=stored.digest,
            length=stored.length,
            offset=stored.offset,
            file=file,
        )

    def with_post_query(self, post_query: str) -> Self:
        """The same entry as that of the response to a request with this post query."""
        if not post_query:
            return self
        key = surt_key(add_post_query(self.url, post_query))
        return replace(self, key=key, post_query=post_query)

    def to_line(self) -> bytes:
        """The line of the entry; numbers are strings and unknown values left out, as usual."""
        values = {
            "url": self.url,
            "mime": self.mime,
            "status": str(self.status or ""),
            "digest": self.digest,
            "length": str(self.length),
            "offset": str(self.offset),
            "filename": self.file,
        }
        if self.post_query:
            values |= _method_fields(self.post_query)
        known = {name: value for name, value in values.items() if value}
        return f"{self.key} {self.timestamp} {_encode(known)}\n".encode("utf-8", "replace")

    @property
    def at(self) -> datetime:
        """The time of the capture, to the second."""
        return datetime.strptime(self.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def format_timestamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y%m%d%H%M%S")


def _method_fields(post_query: str) -> dict[str, str]:
    method, _, body = post_query.removeprefix(METHOD).partition("&")
    return {"method": method, "requestBody": body}


def _post_query(found: dict[str, Any]) -> str:
    """The post query of the values of a line."""
    method = found.get("method", "")
    body = found.get("requestBody", "")
    if not method:
        return ""
    if not body:
        return f"{METHOD}{method}"
    return f"{METHOD}{method}&{body}"


def find_entries(path: Path, url: str) -> Iterator[IndexEntry]:
    """The entries of a URL in a sorted index, oldest first; none if there is no such file."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return
    with file:
        wanted = surt_key(url).encode() + b" "
        for line in lines_from(file, wanted):
            if not line.startswith(wanted):
                return
            yield parse_entry(line, path)


def parse_entry(line: bytes, index: Path) -> IndexEntry:
    """The entry of a line of an index; ArchiveError if it is damaged."""
    try:
        return IndexEntry.from_line(line)
    except (ValueError, KeyError):
        raise ArchiveError(
            f"the index is damaged, scrapy warc repair makes it anew: {index}"
        ) from None


def lines_from(file: BinaryIO, wanted: bytes) -> Iterator[bytes]:
    """All lines from the first that is not less than `wanted`; a bisection over blocks."""
    low = 0
    high = os.fstat(file.fileno()).st_size // BLOCK
    # Looks for the first block whose first line (of those that start in it) is not less.
    while low < high:
        middle = (low + high) // 2
        line = _first_line(file, middle * BLOCK)
        if line and line < wanted:
            low = middle + 1
        else:
            high = middle
    file.seek(max(0, low - 1) * BLOCK)
    at_start = low <= 1
    rest = b""
    while data := file.read(BLOCK):
        *whole, rest = (rest + data).split(b"\n")
        if not at_start and whole:
            whole = whole[1:]
            at_start = True
        yield from (line for line in whole if line >= wanted)
    if rest and at_start and rest >= wanted:
        yield rest


def _first_line(file: BinaryIO, offset: int) -> bytes:
    """The first line that starts at `offset` or after it; empty if there is none."""
    if offset == 0:
        file.seek(0)
        return _read_past_newline(file, b"").partition(b"\n")[0]
    file.seek(offset - 1)
    _, newline, rest = _read_past_newline(file, b"").partition(b"\n")
    if not newline:
        return b""
    return _read_past_newline(file, rest).partition(b"\n")[0]


def _read_past_newline(file: BinaryIO, data: bytes) -> bytes:
    """`data` and more of the file, until a line end is in it or the file ends."""
    while b"\n" not in data:
        more = file.read(BLOCK)
        if not more:
            break
        data += more
    return data
