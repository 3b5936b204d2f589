"""Word 97 to 2003: the text lies in pieces, of one or two bytes per character; a table says in
which order.
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
_BYTES: Final = 0x4000_0000
_MARKS: Final = re.compile("([\x13\x14\x15\r\x07\x0b\x0c])")
_CONTROLS: Final = dict.fromkeys(number for number in range(32) if number != 9) | {0x1E: "-"}
"""Signs of pictures, notes and hyphens that are not shown; one hyphen is."""
_FIELD: Final = re.compile(r'\bHYPERLINK\s{1,9}"([^"]{1,4000})"')


def read_doc(main: bytes, tables: Mapping[str, bytes], found: DocumentResult) -> None:
    sign, version = struct.unpack_from("<HH", main)
    flags, place, size = (
        *struct.unpack_from("<H", main, 0x0A),
        *struct.unpack_from("<II", main, 0x1A2),
    )
    if sign != _SIGN or version < _FIRST_97:
        raise BadDocumentError("old")
    if flags & _ENCRYPTED:
        raise BadDocumentError("encrypted")
    table = tables.get("1Table" if flags & _TABLE_1 else "0Table", b"")
    _tell("".join(_pieces(main, table[place : place + size])), found)


def _pieces(main: bytes, table: bytes) -> Iterator[str]:
    at = 0
    room = 4 * MAX_TEXT
    while table[at : at + 1] == b"\x01":  # formats
        at += 3 + struct.unpack_from("<H", table, at + 1)[0]
    number = (struct.unpack_from("<I", table, at + 1)[0] - 4) // 12
    if table[at : at + 1] != b"\x02" or not 0 < number <= len(table) // 12:
        raise BadDocumentError("broken")
    at += 5
    borders = struct.unpack_from(f"<{number + 1}I", table, at)
    for index in range(number):
        place = struct.unpack_from("<I", table, at + 4 * (number + 1) + 8 * index + 2)[0]
        length = min(max(borders[index + 1] - borders[index], 0), room)
        room -= length
        if place & _BYTES:
            start = (place & ~_BYTES) // 2
            yield main[start : start + length].decode("cp1252", "replace")
        else:
            yield main[place : place + 2 * length].decode("utf-16-le", "replace")


def _tell(text: str, found: DocumentResult) -> None:
    """Paragraphs and the cells of tables are blocks; a field is a code, a mark, and what
    is shown.
    """
    shown: list[str] = []
    codes: list[list[str]] = []
    for part in _MARKS.split(text):
        if part == "\x13":
            codes.append([])
        elif part in ("\x14", "\x15"):
            for url in _FIELD.findall("".join(codes.pop())) if codes else ():
                found.add_link(url)
            if part == "\x14":  # what follows is shown, up to an end that is met without a code
                continue
        elif codes:
            codes[-1].append(part)
        elif part in ("\r", "\x07", "\x0c"):
            found.add_block("".join(shown))
            shown.clear()
        else:
            shown.append(" " if part == "\x0b" else part.translate(_CONTROLS))
    found.add_block("".join(shown))
