"""PowerPoint 97 to 2003: a tree of records; text and the targets of links are leaves of it."""

from __future__ import annotations

import struct
from typing import Final

from crawlproj.content.documents.result import DocumentResult

_CHARACTERS = 4000
_BYTES = 4008
_STRING = 4026
_MASTER = 1016
_LINK = 4055
LOCKED: Final = bytes.fromhex("dfc4d1f3")
"""What stands in the stream "Current User" of an encrypted file."""
_HEAD: Final = struct.Struct("<HHI")


def read_ppt(records: bytes, found: DocumentResult) -> None:
    at = 0
    in_link = 0
    while at + _HEAD.size <= len(records):
        version, kind, size = _HEAD.unpack_from(records, at)
        at += _HEAD.size
        body = records[at : at + size]
        if version & 0xF == 0xF and kind != _MASTER:  # holds others, which come next
            in_link = at + size if kind == _LINK else in_link
            continue
        at += size
        if kind in (_CHARACTERS, _BYTES):
            text = body.decode("utf-16-le" if kind == _CHARACTERS else "latin-1", "replace")
            for line in text.replace("\x0b", " ").split("\r"):
                if line != "*":  # where a date or a number will stand
                    found.add_block(line)
        elif kind == _STRING and at <= in_link and version >> 4 == 1:
            found.add_link(body.decode("utf-16-le", "replace"))
