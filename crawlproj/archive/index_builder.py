"""Index entries from the records of a file, one after the other.

The entry of a response is known only after its request, which follows it in the file.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable

from crawlproj.archive.cdxj import LISTED_KINDS, IndexEntry
from crawlproj.archive.post_keys import parse_post_query
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.http import heads

_SENT_HEAD = re.compile(rb"(?m)^requestHeadBase64: ([A-Za-z0-9+/=]+)\r?$").search


class IndexBuilder:
    """Gives the entries of a file to `emit`. Add all its records in their order, then close."""

    def __init__(self, file: str, emit: Callable[[IndexEntry], None]) -> None:
        self._file = file
        self._emit = emit
        self._pending: IndexEntry | None = None
        self._pending_id = ""

    def add_record(self, stored: StoredRecord) -> None:
        if stored.kind in LISTED_KINDS:
            self.close()
            self._pending = IndexEntry.from_stored(stored, self._file)
            self._pending_id = stored.id
        elif self._pending is not None and self._is_concurrent(stored):
            self._emit(self._pending.with_post_query(_post_query(stored)))
            self._pending = None

    def _is_concurrent(self, stored: StoredRecord) -> bool:
        """Whether a record says that it belongs to the pending response."""
        concurrent_to = stored.fields.get("warc-concurrent-to")
        return bool(concurrent_to) and concurrent_to == self._pending_id

    def close(self) -> None:
        """Emit the last entry."""
        if self._pending is not None:
            self._emit(self._pending)
            self._pending = None


def _post_query(stored: StoredRecord) -> str:
    """The post query, by the first record that follows a response.

    That is the request or, if readers would have rejected it, the metadata with the request's head.
    """
    if stored.kind == "request":
        return parse_post_query(*heads.split_head(stored.block))
    try:
        found = _SENT_HEAD(stored.block)
        if found is None:
            return ""
        return parse_post_query(b64decode(found[1]), b"")
    except ValueError:
        return ""
