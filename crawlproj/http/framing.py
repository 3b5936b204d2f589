"""How long the body of a response is, and its head in a form that a strict parser accepts.

Servers get heads wrong in many ways that browsers tolerate: a line without a colon, blanks before
one, NULs, two equal lengths, a length and chunks at once, an odd version or status line. aiohttp's
parser rejects such a response as a whole, so it gets a repaired head. The head as received is kept
all the same, see fetch/wire.py.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from crawlproj.http import heads

_FRAMING: Final = re.compile(
    rb"\n(content-length|transfer-encoding):[\t ]*([^\r\n]*)", re.IGNORECASE
)
_EMPTY: Final = frozenset({101, 204, 304})
"""Responses with these statuses have no body, whatever their heads say."""
_MAX_DIGITS: Final = 18
"""A number with more digits might not fit into 64 bits."""


class Framing(NamedTuple):
    """The head for the parser, and the length of the body.

    `length` is None if the body ends with its last chunk or with the connection. `is_unchanged`:
    the head is as it was received.
    """

    head: bytes
    length: int | None
    is_unchanged: bool = True


def parse_framing(head: bytes) -> Framing | None:
    """The framing of a response with this whole head (with its empty line); None if it has none."""
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
    if not heads.is_http(head):
        return None
    return _repaired_framing(head)


def _is_number(value: bytes) -> bool:
    return value.isdigit() and len(value) <= _MAX_DIGITS


def _repaired_framing(head: bytes) -> Framing | None:
    """The framing of a head that is not plain; None if it names two different lengths.

    Chunks take precedence over lengths. Lengths that are no numbers and unknown transfer codings
    are ignored.
    """
    status_line, *header_lines = heads.strict_lines(head)
    lengths = list[bytes]()
    codings = list[bytes]()
    kept = [status_line]
    for line in header_lines:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            lengths += value.split(b",")
        elif name.lower() == b"transfer-encoding":
            codings += value.lower().split(b",")
        else:
            kept.append(line)
    numbers = {int(each) for each in map(bytes.strip, lengths) if _is_number(each)}
    length = None
    if codings and codings[-1].strip() == b"chunked":
        kept.append(b"Transfer-Encoding: chunked")
    elif len(numbers) > 1:
        return None
    elif numbers:
        length = numbers.pop()
        kept.append(b"Content-Length: %d" % length)
    if heads.parse_status(head) in _EMPTY:
        length = 0
    return Framing(b"\r\n".join([*kept, b"", b""]), length, is_unchanged=False)
