"""Excel 97 to 2003 (BIFF8): a row of records; strings are shared, and may be parted between two
records.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final

from crawlproj.content.documents.result import MAX_TEXT, BadDocumentError, DocumentResult

_BOF = 0x809
_PASSWORD = 0x2F
_CONTINUE = 0x3C
_STRINGS = 0xFC
_LABEL = 0x204
_SHARED = 0xFD
_NUMBER = 0x203
_RK = 0x27E
_MANY = 0xBD
_RESULT = 0x207
_LINK = 0x1B8
_FORMULA = 0x06
_BOOL = 0x205
_CELLS: Final = frozenset((_LABEL, _SHARED, _NUMBER, _RK, _MANY, _RESULT, _FORMULA, _BOOL))
_BOOLS: Final = ("FALSE", "TRUE")
_MONIKER: Final = bytes.fromhex("e0c9ea79f9bace118c8200aa004ba90b")
"""How a link begins that is a URL."""
_FILE: Final = bytes.fromhex("0303000000000000c000000000000046")
"""... and one to a file, which is how links without a host are written."""


def read_xls(stream: bytes, found: DocumentResult) -> None:
    strings: list[str] = []
    row = -1
    cells = list[str]()
    for kind, body, parts in _records(stream):
        if kind == _PASSWORD:
            raise BadDocumentError("encrypted")
        if kind == _BOF and struct.unpack_from("<H", body)[0] < 0x600:
            raise BadDocumentError("old")
        if kind == _STRINGS:
            strings = list(_strings(parts))
        elif kind == _LINK:
            _link(body, found)
        elif kind in _CELLS:
            # A text as the result of a formula has no place of its own: it follows the formula.
            if kind != _RESULT and struct.unpack_from("<H", body)[0] != row:
                found.add_block(" ".join(cells))
                row = struct.unpack_from("<H", body)[0]
                cells = []
            cells += _values(kind, body, strings)
        elif kind == _BOF:
            found.add_block(" ".join(cells))
            row = -1
            cells = []
    found.add_block(" ".join(cells))


def _records(stream: bytes) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Kind and body of each record, and its body with those that continue it."""
    at = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        body = stream[at + 4 : at + 4 + size]
        at += 4 + size
        parts = [body]
        while kind == _STRINGS and stream[at : at + 2] == b"\x3c\0" and at + 4 <= len(stream):
            size = struct.unpack_from("<H", stream, at + 2)[0]
            parts.append(stream[at + 4 : at + 4 + size])
            at += 4 + size
        yield kind, body, parts


def _values(kind: int, body: bytes, strings: list[str]) -> list[str]:
    if kind == _SHARED:
        number = struct.unpack_from("<I", body, 6)[0]
        return [strings[number]] if number < len(strings) else []
    if kind == _NUMBER:
        return [f"{struct.unpack_from('<d', body, 6)[0]:.15g}"]
    if kind == _RK:
        return [_rk(struct.unpack_from("<I", body, 6)[0])]
    if kind == _MANY:
        return [_rk(struct.unpack_from("<I", body, at)[0]) for at in range(6, len(body) - 5, 6)]
    if kind in (_LABEL, _RESULT):
        return [_text(body[6:] if kind == _LABEL else body)]
    if kind == _BOOL:
        return [] if body[7] else [_BOOLS[body[6] & 1]]
    return _result(body[6:14])


def _result(result: bytes) -> list[str]:
    """Of a formula: a number, a truth; nothing if it is a text, which comes next, or an error."""
    if result[6:] != b"\xff\xff":
        return [f"{struct.unpack('<d', result)[0]:.15g}"]
    return [_BOOLS[result[2] & 1]] if result[0] == 1 else []


def _rk(value: int) -> str:
    """A number in 30 bits: the upper half of a float, or a whole number, perhaps times 100."""
    if value & 2:
        number: float = (value >> 2) - (1 << 30 if value & 0x8000_0000 else 0)
    else:
        number = struct.unpack("<d", struct.pack("<Q", (value & ~3) << 32))[0]
    return f"{number / 100 if value & 1 else number:.15g}"


def _text(body: bytes) -> str:
    length, wide = struct.unpack_from("<HB", body)
    return body[3:].decode("utf-16-le" if wide & 1 else "latin-1", "replace")[:length]


def _link(body: bytes, found: DocumentResult) -> None:
    at = body.find(_MONIKER) + len(_MONIKER)
    file = body.find(_FILE) + len(_FILE)
    if at < len(_MONIKER) <= file:
        up, size = struct.unpack_from("<HI", body, file)
        path = (
            body[file + 6 : file + 6 + min(size, 4000)]
            .decode("cp1252", "replace")
            .partition("\0")[0]
        )
        if not re.match(r"[A-Za-z]:|[\\/]", path):
            found.add_link("../" * min(up, 20) + path.replace("\\", "/"))
    elif at >= len(_MONIKER):
        size = struct.unpack_from("<I", body, at)[0]
        found.add_link(
            body[at + 4 : at + 4 + min(size, 8000)]
            .decode("utf-16-le", "replace")
            .partition("\0")[0]
        )


def _strings(parts: list[bytes]) -> Iterator[str]:
    table = _Table(parts)
    room = 4 * MAX_TEXT
    table.take_bytes(4)
    number = struct.unpack("<I", table.take_bytes(4))[0]
    for _ in range(min(number, room)):
        head = table.take_bytes(3)
        if len(head) < 3 or room < 0:
            return
        length, flags = struct.unpack("<HB", head)
        runs = struct.unpack("<H", table.take_bytes(2))[0] if flags & 8 else 0
        extra = struct.unpack("<I", table.take_bytes(4))[0] if flags & 4 else 0
        text = table.take_characters(length, flags & 1)
        table.take_bytes(4 * runs + extra)
        room -= length + 50
        yield text


class _Table:
    """Reads on from one part to the next. Characters that go on there say again how wide
    they are.
    """

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts
        self._part = 0
        self._at = 0

    def take_bytes(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size and self._part < len(self._parts):
            piece = self._parts[self._part][self._at : self._at + size - len(found)]
            found += piece
            self._at += len(piece)
            if len(found) < size:
                self._part = self._part + 1
                self._at = 0
        return bytes(found)

    def take_characters(self, length: int, wide: int) -> str:
        text = ""
        while self._part < len(self._parts):
            width = 2 if wide & 1 else 1
            body = self._parts[self._part]
            piece = body[self._at : self._at + width * (length - len(text))]
            self._at += len(piece)
            text += piece.decode("utf-16-le" if width == 2 else "latin-1", "replace")
            if len(text) >= length or self._part + 1 >= len(self._parts):
                break
            self._part = self._part + 1
            self._at = 1
            wide = self._parts[self._part][0] if self._parts[self._part] else 0
        return text
