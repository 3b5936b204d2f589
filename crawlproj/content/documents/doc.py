"""Word 97 to 2003 (doc).

The text lies in pieces, of one or two bytes per character; a table says in which order.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from crawlproj.content.documents.result import MAX_TEXT, BadDocumentError, DocumentResult

_SIGN = 0xA5EC
_FIRST_97 = 0xC1
_ENCRYPTED = 0x0100
_TABLE_1 = 0x0200
_ONE_BYTE: Final = 0x4000_0000
"""Marks the offset of a piece with one byte per character; that offset is doubled."""
_MARKS: Final = re.compile("([\x13\x14\x15\r\x07\x0b\x0c])")
_CONTROLS: Final = dict.fromkeys(number for number in range(32) if number != 9) | {0x1E: "-"}
"""Signs of pictures, notes and hyphens that are not shown; one hyphen is."""
_FIELD: Final = re.compile(r'\bHYPERLINK\s{1,9}"([^"]{1,4000})"')


def read_doc(main: bytes, tables: Mapping[str, bytes], result: DocumentResult) -> None:
    """Read the stream WordDocument, with the streams 0Table and 1Table as far as there are."""
    sign, version = struct.unpack_from("<HH", main)
    (flags,) = struct.unpack_from("<H", main, 0x0A)
    offset, size = struct.unpack_from("<II", main, 0x1A2)
    if sign != _SIGN or version < _FIRST_97:
        raise BadDocumentError("old")
    if flags & _ENCRYPTED:
        raise BadDocumentError("encrypted")
    table = tables.get("1Table" if flags & _TABLE_1 else "0Table", b"")
    text = "".join(_pieces(main, table[offset : offset + size]))
    _read_text(text, result)


def _pieces(main: bytes, table: bytes) -> Iterator[str]:
    """The pieces of the text, in the order of the piece table."""
    at = 0
    characters_left = 4 * MAX_TEXT
    while table[at : at + 1] == b"\x01":  # formats, which come before the pieces
        at += 3 + struct.unpack_from("<H", table, at + 1)[0]
    number = (struct.unpack_from("<I", table, at + 1)[0] - 4) // 12
    if table[at : at + 1] != b"\x02" or not 0 < number <= len(table) // 12:
        raise BadDocumentError("broken")
    at += 5
    borders = struct.unpack_from(f"<{number + 1}I", table, at)
    for index in range(number):
        (offset,) = struct.unpack_from("<I", table, at + 4 * (number + 1) + 8 * index + 2)
        length = min(max(borders[index + 1] - borders[index], 0), characters_left)
        characters_left -= length
        if offset & _ONE_BYTE:
            start = (offset & ~_ONE_BYTE) // 2
            yield main[start : start + length].decode("cp1252", "replace")
        else:
            yield main[offset : offset + 2 * length].decode("utf-16-le", "replace")


def _read_text(text: str, result: DocumentResult) -> None:
    """Add blocks and links of the text: paragraphs and the cells of tables are blocks.

    A field is \\x13, its code, \\x14, what is shown, \\x15; the code may name a link.
    """
    shown: list[str] = []
    codes: list[list[str]] = []
    for part in _MARKS.split(text):
        if part == "\x13":
            codes.append([])
        elif part in ("\x14", "\x15"):
            # What follows \x14 is shown; its \x15 is then met without a code.
            if codes:
                for url in _FIELD.findall("".join(codes.pop())):
                    result.add_link(url)
        elif codes:
            codes[-1].append(part)
        elif part in ("\r", "\x07", "\x0c"):
            result.add_block("".join(shown))
            shown.clear()
        elif part == "\x0b":
            shown.append(" ")
        else:
            shown.append(part.translate(_CONTROLS))
    result.add_block("".join(shown))
