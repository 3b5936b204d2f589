"""CDXJ: sorted lines `key timestamp {json}`, in which anything is found by halving. As pywb reads
and writes them.
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
from crawlproj.archive.records import OCTETS, Record, mime_type
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.archive.surt import surt_key
from crawlproj.errors import ArchiveError
from crawlproj.http import heads

BLOCK = 4_096
_encode = json.JSONEncoder(separators=(", ", ": "), check_circular=False).encode


@dataclass(frozen=True, slots=True, order=True)
class IndexEntry:
    """One record with content. `timestamp` has 14 digits, `mime` of a revisit is `warc/revisit`,
    `file` has no folder. `asked` is what the request is told by from a GET; `key` has it, too.
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
        if not isinstance(found := json.loads(rest), dict):
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
        """For a record that was read; None if the index does not list such records.

        An answer that says 304 is not listed: replay would show the 304 itself, which is nothing to
        see.
        """
        status = heads.parse_status(stored.head) if stored.is_http else 0
        if (
            stored.kind not in ("response", "revisit", "resource")
            or status == 304
            or not stored.url
        ):
            return None
        if stored.kind == "revisit":
            kind = "warc/revisit"
        else:
            kind = (
                mime_type(stored.head)
                if stored.is_http
                else stored.fields.get("content-type", OCTETS).partition(";")[0].strip()
            )
        stamp = format_timestamp(stored.at)
        return cls(
            surt_key(stored.url),
            stamp,
            stored.url,
            mime=kind,
            status=status,
            digest=stored.digest,
            length=stored.length,
            offset=stored.offset,
            file=file,
        )

    def with_post_query(self, post_query: str) -> Self:
        """The same as the answer to such a request."""
        return (
            replace(self, key=surt_key(add_post_query(self.url, post_query)), post_query=post_query)
            if post_query
            else self
        )

    def to_line(self) -> bytes:
        """Numbers are strings, and what isn't known is left out, as all tools write it."""
        rest = {
            "url": self.url,
            "mime": self.mime,
            "status": str(self.status or ""),
            "digest": self.digest,
            "length": str(self.length),
            "offset": str(self.offset),
            "filename": self.file,
        } | (_method_fields(self.post_query) if self.post_query else {})
        known = {name: value for name, value in rest.items() if value}
        return f"{self.key} {self.timestamp} {_encode(known)}\n".encode("utf-8", "replace")

    @property
    def at(self) -> datetime:
        """To the second."""
        return datetime.strptime(self.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def format_timestamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y%m%d%H%M%S")


def _method_fields(asked: str) -> dict[str, str]:
    method, _, body = asked.removeprefix(METHOD).partition("&")
    return {"method": method, "requestBody": body}


def _post_query(found: dict[str, Any]) -> str:
    method = found.get("method", "")
    body = found.get("requestBody", "")
    return f"{METHOD}{method}{'&' if body else ''}{body}" if method else ""


def find_entries(path: Path, url: str) -> Iterator[IndexEntry]:
    """The entries of a URL in a sorted index, oldest first; of a file that isn't there, none."""
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


def parse_entry(line: bytes, path: Path) -> IndexEntry:
    """The entry of a line of that index, or one in that folder; ArchiveError if it is damaged."""
    try:
        return IndexEntry.from_line(line)
    except (ValueError, KeyError):
        raise ArchiveError(
            f"the index is damaged, scrapy warc repair makes it anew: {path}"
        ) from None


def lines_from(file: BinaryIO, wanted: bytes) -> Iterator[bytes]:
    """All lines from the first that is not less than `wanted`. Reads a block for each halving."""
    low = 0
    high = os.fstat(file.fileno()).st_size // BLOCK
    while low < high:  # the first block in which the first line that starts there is not less
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
    file.seek(max(0, offset - 1))
    data = file.read(BLOCK)
    start = 0 if offset == 0 else data.find(b"\n") + 1
    while (start == 0 < offset or b"\n" not in data[start:]) and (more := file.read(BLOCK)):
        data += more
        start = start or (data.find(b"\n") + 1 if offset else 0)
    return data[start:].partition(b"\n")[0] if start or not offset else b""
