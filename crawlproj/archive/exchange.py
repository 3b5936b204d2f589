"""An exchange with a server, and where its records are in the archive.

These values are never changed. Those of which there is one per page are not frozen all the same: it
would make them three times as slow to create.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from crawlproj.archive.post_keys import parse_post_query


class Truncated(StrEnum):
    """Why a body was cut off, in the words of WARC."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"
    UNSPECIFIED = "unspecified"


@dataclass(slots=True)
class PageMetadata:
    """What was read from a page, for its metadata record. `links` are tuples (URL, kind, ...) as
    the HTML parser makes them.
    """

    title: str = ""
    links: Sequence[tuple[Any, ...]] = ()


@dataclass(slots=True)
class Exchange:
    """One request and its response, as they went over the wire.

    `head` is the response's status line and headers with their line ends and the empty line, byte
    by byte; empty if the server sent none (HTTP/0.9). `body` is still compressed
    (Content-Encoding), but the chunks of a Transfer-Encoding are joined: readers disagree about the
    digest of a payload in chunks. `request` is the head of the request as sent, empty if it was not
    kept.
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
    """The type of a body that has no HTTP head, if it is known."""

    @property
    def post_query(self) -> str:
        """What distinguishes the request from a GET of the same URL; empty for a GET."""
        return parse_post_query(self.request, self.request_body)

    @property
    def size(self) -> int:
        return len(self.head) + len(self.body) + len(self.request) + len(self.request_body)


@dataclass(frozen=True, slots=True)
class LaterNote:
    """What became known of a stored page later, for a metadata record of its own. `record_id` is
    that of the page's body, empty if it isn't known.
    """

    url: str
    at: datetime
    record_id: str
    fields: tuple[tuple[str, object], ...]
    size: int = 1_000


@dataclass(frozen=True, slots=True)
class Original:
    """A record with a payload (never a revisit) that revisit records point at. `record_id` is empty
    if it isn't known.
    """

    url: str
    at: datetime
    digest: str
    record_id: str = ""


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """Where the response of an exchange is stored.

    `file` is the name that the file has or will have when it is closed; `offset` and `length` are
    those of the gzip member. `original` is what later revisits must point at: this record, or the
    one that this record points at.
    """

    file: str
    offset: int
    length: int
    kind: str
    record_id: str
    digest: str
    at: datetime
    original: Original | None
