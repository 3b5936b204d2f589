"""How long the body of an answer is, and its head as a strict parser takes it.

Servers get heads wrong in many ways that browsers read all the same: a line without a colon, blanks
before it, NULs, two equal lengths, a length beside chunks, a version or a status line of their own.
aiohttp's parser refuses such an answer as a whole, so it gets the head in a form that it takes.
What came is kept as it came, see wire.py.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from crawlproj.http import heads

_FRAMING: Final = re.compile(
    rb"\n(content-length|transfer-encoding):[\t ]*([^\r\n]*)", re.IGNORECASE
)
_EMPTY: Final = frozenset({101, 204, 304})
"""Answers with these have no body, whatever their heads say."""
_DIGITS: Final = 18
"""More would not be a number of 64 bits."""


class Framing(NamedTuple):
    """`length` None: the body ends with its last chunk, or with the connection. `sound`: the head
    is as it came.
    """

    head: bytes
    length: int | None
    sound: bool = True


def parse_framing(head: bytes) -> Framing | None:
    """Of a whole head with its empty line; None if nobody can say what it means."""
    if heads.is_plain(head):
        found = _FRAMING.findall(head)
        if head[9:12] in (b"204", b"304", b"101"):
            return Framing(head, 0)
        if not found:
            return Framing(head, None)
        if len(found) == 1:
            name, value = found[0]
            if len(name) == len("content-length") and _is_number(value):
                return Framing(head, int(value))
            if value.lower() == b"chunked":
                return Framing(head, None)
    return _mended(head) if heads.is_http(head) else None


def _is_number(value: bytes) -> bool:
    return value.isdigit() and len(value) <= _DIGITS


def _mended(head: bytes) -> Framing | None:
    """Chunks go before lengths; lengths that are no numbers, and ways of transfer that nobody
    knows, count for nothing.
    """
    status, *fields = heads.strict_lines(head)
    lengths = list[bytes]()
    codings = list[bytes]()
    kept = [status]
    for field in fields:
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length":
            lengths += value.split(b",")
        elif name.lower() == b"transfer-encoding":
            codings += value.lower().split(b",")
        else:
            kept.append(field)
    numbers = {int(each) for each in map(bytes.strip, lengths) if _is_number(each)}
    length = None
    if codings and codings[-1].strip() == b"chunked":
        kept.append(b"Transfer-Encoding: chunked")
    elif len(numbers) > 1:
        return None
    elif numbers:
        length = numbers.pop()
        kept.append(b"Content-Length: %d" % length)
    return Framing(
        b"\r\n".join([*kept, b"", b""]),
        0 if heads.parse_status(head) in _EMPTY else length,
        sound=False,
    )
