"""A WARC record as it is read back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from crawlproj.archive.exchange import Original
from crawlproj.archive.gzip_members import BrokenRecordError, GzipMember
from crawlproj.http import heads

_FIELD = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]++)[ \t]*+:[ \t]*+([^\r\n]*+(?:\r\n[ \t][^\r\n]*+)*+)\r\n"
)
_VERSION = re.compile(rb"WARC/(1\.[01])\r\n")
_END = b"\r\n\r\n"
HTTP_KINDS = ("response", "revisit")


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record that was read. Names of `fields` are in lower case, `block` is the record's content;
    `offset` and `length` are those of its gzip member.
    """

    fields: dict[str, str]
    block: bytes
    offset: int = 0
    length: int = 0

    @property
    def kind(self) -> str:
        return self.fields.get("warc-type", "")

    @property
    def id(self) -> str:
        return self.fields.get("warc-record-id", "")

    @property
    def url(self) -> str:
        return self.fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")

    @property
    def at(self) -> datetime:
        return parse_warc_date(self.fields["warc-date"])

    @property
    def digest(self) -> str:
        return self.fields.get("warc-payload-digest", "")

    @property
    def is_http(self) -> bool:
        content_type = self.fields.get("content-type", "")
        return self.kind in HTTP_KINDS and content_type.startswith("application/http")

    @property
    def head(self) -> bytes:
        """The HTTP head; empty if there is none."""
        if not self.is_http:
            return b""
        return heads.split_head(self.block)[0]

    @property
    def body(self) -> bytes:
        """The payload as it was received; a revisit has none, that of its original is meant."""
        if not self.is_http:
            return self.block
        return heads.split_head(self.block)[1]

    @property
    def refers_to(self) -> Original | None:
        """The record that a revisit points at; None if it doesn't say."""
        url = self.fields.get("warc-refers-to-target-uri")
        date = self.fields.get("warc-refers-to-date")
        if self.kind != "revisit" or not url or not date:
            return None
        try:
            return Original(
                url.removeprefix("<").removesuffix(">"),
                parse_warc_date(date),
                self.digest,
                record_id=self.fields.get("warc-refers-to", ""),
            )
        except ValueError:
            return None


def parse_warc_date(text: str) -> datetime:
    """The time of a WARC-Date of any precision; ValueError if it is none, or an impossible one."""
    is_timestamp = text.isdecimal() and len(text) == 14  # as in an index, or in an ARC file
    if is_timestamp:
        found = datetime.fromisoformat(f"{text[:8]}T{text[8:]}")
    else:
        missing = {4: "-01-01", 7: "-01"}.get(len(text), "")
        found = datetime.fromisoformat(text + missing)
    # At the ends of the calendar, a conversion to UTC would overflow.
    if not 1900 < found.year < 9999:
        raise ValueError(f"{text} is no date of a capture")
    if found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    return found.astimezone(UTC)


def parse_record(member: GzipMember) -> StoredRecord:
    """The record in a member; BrokenRecordError if it is not exactly one whole record."""
    data = member.data
    fields = dict[str, str]()
    version = _VERSION.match(data)
    if version is None:
        raise BrokenRecordError(member.offset, "no WARC record")
    position = version.end()
    while found := _FIELD.match(data, position):
        name = found[1].lower().decode("ascii")
        fields.setdefault(name, found[2].rstrip().decode("utf-8", "replace"))
        position = found.end()
    start = position + 2
    if data[position:start] != b"\r\n" or not fields.get("content-length", "").isdecimal():
        raise BrokenRecordError(member.offset, "no whole WARC header")
    end = start + int(fields["content-length"])
    if data[end:] != _END or end > len(data):
        raise BrokenRecordError(member.offset, "Content-Length and record differ")
    return StoredRecord(fields, data[start:end], member.offset, length=member.length)
