"""Excel 97 to 2003 (xls, BIFF8).

A stream of records. Strings are shared by all sheets, and may be split between two records.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final

from crawlproj.content.documents.result import MAX_TEXT, BadDocumentError, DocumentResult

_BOF = 0x809
_PASSWORD = 0x2F
_CONTINUE: Final = b"\x3c\0"
_STRINGS = 0xFC
_LABEL = 0x204
_SHARED = 0xFD
_NUMBER = 0x203
_RK = 0x27E
_MANY_RK = 0xBD
_RESULT = 0x207
_LINK = 0x1B8
_FORMULA = 0x06
_BOOL = 0x205
_CELLS: Final = frozenset((_LABEL, _SHARED, _NUMBER, _RK, _MANY_RK, _RESULT, _FORMULA, _BOOL))
_BOOLS: Final = ("FALSE", "TRUE")
_URL_MONIKER: Final = bytes.fromhex("e0c9ea79f9bace118c8200aa004ba90b")
"""The id before the URL of a link."""
_FILE_MONIKER: Final = bytes.fromhex("0303000000000000c000000000000046")
"""The id before the path of a link to a file, which is how links without a host are written."""


def read_xls(stream: bytes, result: DocumentResult) -> None:
    """Read the stream Workbook; a row is a block."""
    strings: list[str] = []
    row = -1
    cells: list[str] = []
    for kind, body, parts in _records(stream):
        if kind == _PASSWORD:
            raise BadDocumentError("encrypted")
        if kind == _BOF and struct.unpack_from("<H", body)[0] < 0x600:
            raise BadDocumentError("old")
        if kind == _STRINGS:
            strings = list(_shared_strings(parts))
        elif kind == _LINK:
            _add_link(body, result)
        elif kind in _CELLS:
            # A text that is the result of a formula follows that, and has no row number.
            if kind != _RESULT:
                (cell_row,) = struct.unpack_from("<H", body)
                if cell_row != row:
                    result.add_block(" ".join(cells))
                    row = cell_row
                    cells = []
            cells += _cell_values(kind, body, strings)
        elif kind == _BOF:
            result.add_block(" ".join(cells))
            row = -1
            cells = []
    result.add_block(" ".join(cells))


def _records(stream: bytes) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """The kind and body of each record; and the parts of a body that other records continue."""
    at = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        body = stream[at + 4 : at + 4 + size]
        at += 4 + size
        parts = [body]
        while kind == _STRINGS and stream[at : at + 2] == _CONTINUE and at + 4 <= len(stream):
            (size,) = struct.unpack_from("<H", stream, at + 2)
            parts.append(stream[at + 4 : at + 4 + size])
            at += 4 + size
        yield kind, body, parts


def _cell_values(kind: int, body: bytes, strings: list[str]) -> list[str]:
    """What the cells of a record show; several for `_MANY_RK`, none for errors."""
    if kind == _SHARED:
        (number,) = struct.unpack_from("<I", body, 6)
        return strings[number : number + 1]
    if kind == _NUMBER:
        (value,) = struct.unpack_from("<d", body, 6)
        return [f"{value:.15g}"]
    if kind == _RK:
        return [_read_rk(body, 6)]
    if kind == _MANY_RK:
        return [_read_rk(body, at) for at in range(6, len(body) - 5, 6)]
    if kind == _LABEL:
        return [_read_text(body[6:])]
    if kind == _RESULT:
        return [_read_text(body)]
    if kind == _BOOL:
        is_error = body[7]
        if is_error:
            return []
        return [_BOOLS[body[6] & 1]]
    return _formula_value(body[6:14])


def _formula_value(value: bytes) -> list[str]:
    """The number or truth of a formula; none if it is an error, or a text, which comes next."""
    if value[6:] != b"\xff\xff":
        (number,) = struct.unpack("<d", value)
        return [f"{number:.15g}"]
    if value[0] == 1:
        return [_BOOLS[value[2] & 1]]
    return []


def _read_rk(body: bytes, at: int) -> str:
    """A number in 30 bits: the upper half of a float, or a whole number, perhaps times 100."""
    (value,) = struct.unpack_from("<I", body, at)
    number: float
    if value & 2:
        number = value >> 2
        if value & 0x8000_0000:
            number -= 1 << 30
    else:
        (number,) = struct.unpack("<d", struct.pack("<Q", (value & ~3) << 32))
    if value & 1:
        number /= 100
    return f"{number:.15g}"


def _read_text(body: bytes) -> str:
    length, flags = struct.unpack_from("<HB", body)
    return body[3:].decode(_text_codec(flags), "replace")[:length]


def _text_codec(flags: int) -> str:
    return "utf-16-le" if flags & 1 else "latin-1"


def _add_link(body: bytes, result: DocumentResult) -> None:
    url_at = body.find(_URL_MONIKER)
    file_at = body.find(_FILE_MONIKER)
    if url_at >= 0:
        url_at += len(_URL_MONIKER)
        (size,) = struct.unpack_from("<I", body, url_at)
        url = body[url_at + 4 : url_at + 4 + min(size, 8000)].decode("utf-16-le", "replace")
        result.add_link(url.partition("\0")[0])
    elif file_at >= 0:
        file_at += len(_FILE_MONIKER)
        up, size = struct.unpack_from("<HI", body, file_at)
        path = body[file_at + 6 : file_at + 6 + min(size, 4000)].decode("cp1252", "replace")
        path = path.partition("\0")[0]
        if not re.match(r"[A-Za-z]:|[\\/]", path):
            result.add_link("../" * min(up, 20) + path.replace("\\", "/"))


def _shared_strings(parts: list[bytes]) -> Iterator[str]:
    table = _StringTable(parts)
    characters_left = 4 * MAX_TEXT
    table.take_bytes(4)
    (number,) = struct.unpack("<I", table.take_bytes(4))
    for _ in range(min(number, characters_left)):
        head = table.take_bytes(3)
        if len(head) < 3 or characters_left < 0:
            return
        length, flags = struct.unpack("<HB", head)
        formatting_size = 0
        if flags & 8:
            (runs,) = struct.unpack("<H", table.take_bytes(2))
            formatting_size += 4 * runs
        if flags & 4:
            (extra,) = struct.unpack("<I", table.take_bytes(4))
            formatting_size += extra
        text = table.take_characters(length, flags)
        table.take_bytes(formatting_size)
        characters_left -= length + 50  # a string costs memory beside its characters
        yield text


class _StringTable:
    """The table of shared strings, read on from one part to the next.

    Where a part goes on with characters, it says again how wide they are.
    """

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts
        self._part = 0
        self._at = 0

    def take_bytes(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        taken = bytearray()
        while len(taken) < size and self._part < len(self._parts):
            piece = self._parts[self._part][self._at : self._at + size - len(taken)]
            taken += piece
            self._at += len(piece)
            if len(taken) < size:
                self._part += 1
                self._at = 0
        return bytes(taken)

    def take_characters(self, length: int, flags: int) -> str:
        """The next characters, perhaps fewer; `flags` say how wide they are."""
        text = ""
        while self._part < len(self._parts):
            width = 2 if flags & 1 else 1
            body = self._parts[self._part]
            piece = body[self._at : self._at + width * (length - len(text))]
            self._at += len(piece)
            text += piece.decode(_text_codec(flags), "replace")
            if len(text) >= length or self._part + 1 >= len(self._parts):
                break
            self._part += 1
            self._at = 1
            next_part = self._parts[self._part]
            flags = next_part[0] if next_part else 0
        return text
