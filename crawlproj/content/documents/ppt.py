"""PowerPoint 97 to 2003 (ppt): a tree of records, whose leaves hold text and links."""

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
"""What the stream "Current User" of an encrypted file has at offset 12."""
_HEAD: Final = struct.Struct("<HHI")


def read_ppt(records: bytes, result: DocumentResult) -> None:
    """Read the stream "PowerPoint Document"."""
    at = 0
    link_end = 0
    while at + _HEAD.size <= len(records):
        version, kind, size = _HEAD.unpack_from(records, at)
        at += _HEAD.size
        body = records[at : at + size]
        if version & 0xF == 0xF and kind != _MASTER:  # holds others, which come next
            if kind == _LINK:
                link_end = at + size
            continue
        at += size
        if kind == _CHARACTERS:
            _add_lines(body.decode("utf-16-le", "replace"), result)
        elif kind == _BYTES:
            _add_lines(body.decode("latin-1", "replace"), result)
        elif kind == _STRING and at <= link_end and version >> 4 == 1:
            result.add_link(body.decode("utf-16-le", "replace"))


def _add_lines(text: str, result: DocumentResult) -> None:
    for line in text.replace("\x0b", " ").split("\r"):
        if line != "*":  # stands for a date or a page number
            result.add_block(line)
