"""The entries of the records of a file, which come one after the other. That of an answer is known
when its request has come, which is behind it.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable

from crawlproj.archive.cdxj import LISTED_KINDS, IndexEntry
from crawlproj.archive.post_keys import parse_post_query
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.http import heads

_SENT = re.compile(rb"(?m)^requestHeadBase64: ([A-Za-z0-9+/=]+)\r?$").search


class IndexBuilder:
    """`take` all records of the file in their order, then `close`: `give` gets the entries."""

    def __init__(self, file: str, emit: Callable[[IndexEntry], None]) -> None:
        self._file = file
        self._give = emit
        self._held: IndexEntry | None = None
        self._id = ""

    def add_record(self, stored: StoredRecord) -> None:
        if stored.kind in LISTED_KINDS:
            self.close()
            self._held = IndexEntry.from_stored(stored, self._file)
            self._id = stored.id
        elif (
            self._held is not None
            and self._id
            and stored.fields.get("warc-concurrent-to") == self._id
        ):
            self._give(self._held.with_post_query(_post_query(stored)))
            self._held = None

    def close(self) -> None:
        if self._held is not None:
            self._give(self._held)
            self._held = None


def _post_query(stored: StoredRecord) -> str:
    """The first record beside an answer is its request; or, if readers would have refused that, the
    metadata that has its head.
    """
    if stored.kind == "request":
        return parse_post_query(*heads.split_head(stored.block))
    try:
        found = _SENT(stored.block)
        return parse_post_query(b64decode(found[1]), b"") if found else ""
    except ValueError:
        return ""
