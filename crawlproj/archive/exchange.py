"""What an exchange with a server, and its place in the archive, consist of: values that nobody
changes. Where there is one per page they are not frozen, which would make them three times as slow
to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from crawlproj.archive.post_keys import parse_post_query


class Truncated(StrEnum):
    """Why a body ends before its end, in the words of WARC."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"
    UNSPECIFIED = "unspecified"


@dataclass(slots=True)
class PageMetadata:
    """What was read from a page, for its metadata record. `links` are (URL, kind, ...) as the
    parser names kinds.
    """

    title: str = ""
    links: Sequence[tuple[Any, ...]] = ()


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as they went over the wire.

    `head` is the answer's status line and headers with their line ends and the empty line, byte by
    byte; empty if the server sent none (HTTP/0.9). `body` is still packed (Content-Encoding), but
    the chunks of a Transfer-Encoding are joined: no reader agrees with another on the digest of a
    payload in chunks. `request` is the head of the request as sent, empty if nobody kept it.
    """

    url: str
    at: datetime
    head: bytes
    body: bytes
    request: bytes = b""
    request_body: bytes = b""
    address: str = ""
    elapsed_s: float | None = None
    truncated: Truncated | None = None
    metadata: PageMetadata | None = None
    content_type: str = ""
    """Of what has no HTTP head, if somebody knows it."""

    @property
    def post_query(self) -> str:
        """What the request is told by from a GET; empty if it is one."""
        return parse_post_query(self.request, self.request_body)

    @property
    def size(self) -> int:
        return len(self.head) + len(self.body) + len(self.request) + len(self.request_body)


@dataclass(frozen=True, slots=True)
class Original:
    """A record with a payload (never a revisit) that revisit records can point at. `record_id` is
    empty if it isn't known.
    """

    url: str
    at: datetime
    digest: str
    record_id: str = ""


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """Where the answer of an exchange is: `file` is the name that the file has or will have,
    `offset` and `length` are those of the gzip member. `original` is what later revisits must point
    at: this record, or the one that this record points at.
    """

    file: str
    offset: int
    length: int
    kind: str
    record_id: str
    digest: str
    at: datetime
    original: Original | None
