"""HTTP heads as the archive keeps them.

A head that is well formed is kept byte by byte. Readers of WARC files differ in what they make of
any other, and one that finds the end of a head elsewhere finds another payload, with another
digest. So lines that are no header become `X-Crawler-Line: ...`, empty ones go, control characters
become spaces, and a status line that readers refuse is replaced and kept as
`X-Crawler-Status-Line`. FastWARC gives up a file at a head of more than 32 KB, so the longest
headers are left out of such a head and counted in `X-Crawler-Omitted`. Heads that had to be changed
are in the metadata record as they came. The chunks of a body are joined when it is received, so
`Transfer-Encoding` becomes `X-Crawler-Transfer-Encoding`: a reader must not look for chunks again.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE = rb"[\t\x20-\x7e\x80-\xff]*"
_FIELDS = rb"(?:" + _TOKEN + rb":" + _VALUE + rb"\r\n)*\r\n"
_PLAIN_ANSWER = re.compile(rb"HTTP/1\.[01] [0-9]{3}(?: " + _VALUE + rb")?\r\n" + _FIELDS).fullmatch
_PLAIN_REQUEST = re.compile(
    rb"(?:GET|HEAD|POST|PUT|DELETE|TRACE|OPTIONS|CONNECT|PATCH) [^\r\n]+ HTTP/1\.[01]\r\n" + _FIELDS
).fullmatch
_READ_BY_ALL = re.compile(rb"HTTP/1\.[01] [0-9]{3}(?: |$)").match
_STATUS = re.compile(rb"[\r\n]*[^ \r\n]+ +([0-9]{3})(?![0-9])").match
STARTS = (b"HTTP/", b"ICY ", b"RTSP/")
"""What answers begin with, in capitals."""
_FIELD = re.compile(_TOKEN + rb"[ \t]*:").match
_CHUNKED = re.compile(rb"(?im)^(?=transfer-encoding[ \t]*:)")
_END = re.compile(rb"\r?\n[^\S\r\n]*\r?\n")
_VISIBLE = re.compile(rb"[!-~]").search
_LINE = re.compile(rb"[^\r\n]*(?:\r\n[ \t][^\r\n]*)*\r\n")
_NO_CONTROLS = bytes(code if code == 9 or 32 <= code != 127 else 32 for code in range(256))
_FOLD = re.compile(rb"\r?\n[ \t]+")
_RENAMED = b"x-crawler-transfer-encoding"
MAX_HEAD = 32_000


def is_http(head: bytes) -> bool:
    """Whether it starts as an answer does, perhaps after empty lines; some servers send a page and
    nothing else.
    """
    start = head.lstrip(b"\r\n")[:5].upper()
    return start.startswith(STARTS) and _STATUS(head) is not None


def is_plain(head: bytes) -> bool:
    """Whether it can be kept as it is."""
    return (
        len(head) <= MAX_HEAD
        and _PLAIN_ANSWER(head) is not None
        and (head.isascii() or _is_sayable(head))
    )


def _is_sayable(head: bytes) -> bool:
    """Whether pywb can say the reason again: it reads UTF-8 and writes Latin-1."""
    try:
        head.partition(b"\n")[0].decode().encode("latin-1")
    except UnicodeDecodeError:
        return True  # taken for Latin-1
    except UnicodeEncodeError:
        return False
    return True


def storable_response(head: bytes) -> bytes:
    """The head of an answer as it is stored."""
    if not is_plain(head):
        head = _shortened(_repaired(head))
    return _CHUNKED.sub(b"X-Crawler-", head) if b"transfer-" in head.lower() else head


def storable_request(head: bytes) -> bytes | None:
    """The head of a request as it is stored, without its longest headers if it is too long; None if
    readers would refuse it.
    """
    head = _shortened(head)
    return head if _PLAIN_REQUEST(head) else None


def strict_lines(head: bytes) -> list[bytes]:
    """Status line and headers without what is no header, each on one line, for a parser that is
    strict.
    """
    return [
        line
        for line in _FOLD.sub(b" ", _repaired(head)).split(b"\r\n")
        if line and not line.startswith(b"X-Crawler-")
    ]


def _repaired(head: bytes) -> bytes:
    """Lines that every reader takes for what they are."""
    status, *lines = [
        line.rstrip(b"\r").translate(_NO_CONTROLS) for line in head.lstrip(b"\r\n").split(b"\n")
    ]
    kept = [status]
    if not (_READ_BY_ALL(status) and _is_sayable(status)):
        found = _STATUS(status)
        kept = [
            b"HTTP/1.1 %b" % (found[1] if found else b"200"),
            b"X-Crawler-Status-Line: " + status,
        ]
    for line in lines:
        if _FIELD(line):
            name, _, value = line.partition(b":")
            kept.append(name.rstrip() + b":" + value)
        elif _VISIBLE(line):
            kept.append(
                line if line[:1] in b" \t" and len(kept) > 1 else b"X-Crawler-Line: " + line
            )
    return b"\r\n".join(kept) + b"\r\n\r\n"


def _shortened(head: bytes) -> bytes:
    """Without its longest headers, if it is too long."""
    if len(head) <= MAX_HEAD:
        return head
    status, *lines = _LINE.findall(head)[:-1]
    status = status[: MAX_HEAD // 2].rstrip() + b"\r\n"
    left = MAX_HEAD - len(status) - 50
    kept = set[int]()
    for number in sorted(range(len(lines)), key=lambda number: len(lines[number])):
        left -= len(lines[number])
        if left < 0:
            break
        kept.add(number)
    omitted = b"X-Crawler-Omitted: %d\r\n\r\n" % (len(lines) - len(kept))
    return b"".join(
        (status, *(line for number, line in enumerate(lines) if number in kept), omitted)
    )


def split_head(block: bytes) -> tuple[bytes, bytes]:
    """Head (with its empty line) and body of a stored block; all of it is head if there is no empty
    line.
    """
    end = _END.search(block)
    return (block, b"") if end is None else (block[: end.end()], block[end.end() :])


def parse_status(head: bytes) -> int:
    """The status of an answer; 0 if there is none."""
    found = _STATUS(head)
    return int(found[1]) if found else 0


def get_header(head: bytes, name: str) -> str:
    """The value of a header, of several the first; empty if it is missing."""
    found = _pattern(name).search(head)
    return _FOLD.sub(b" ", found[1]).strip().decode("utf-8", "replace") if found else ""


def parse_headers(head: bytes) -> list[tuple[bytes, bytes]]:
    """All headers of a stored answer, in their order, as the server sent them: those that were
    renamed have their own names.
    """
    found = []
    for line in _LINE.findall(head)[1:]:
        name, colon, value = line.partition(b":")
        if colon and not (own := name.lower().startswith(b"x-crawler-")):
            found.append((name.rstrip(), _FOLD.sub(b" ", value).strip()))
        elif colon and own and name.lower() == _RENAMED:
            found.append((name[len(b"x-crawler-") :], value.strip()))
    return found


@lru_cache(64)
def _pattern(name: str) -> re.Pattern[bytes]:
    return re.compile(
        rb"(?im)^" + re.escape(name.encode()) + rb"[ \t]*:([^\n]*(?:\n[ \t]+[^\n]+)*)"
    )
