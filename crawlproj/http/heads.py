"""HTTP heads as the archive stores them.

A well-formed head is stored byte by byte. Readers of WARC files disagree about any other, and one
that finds the end of a head elsewhere finds another payload, with another digest. So a line that is
no header becomes `X-Crawler-Line: ...`, empty lines are dropped, control characters become spaces,
and a status line that readers reject is replaced and stored as `X-Crawler-Status-Line`. FastWARC
gives up a file at a head of more than 32 KB, so the longest headers of such a head are left out and
counted in `X-Crawler-Omitted`. The metadata record has a changed head as it was received. The
chunks of a body are joined when it is received, so `Transfer-Encoding` becomes
`X-Crawler-Transfer-Encoding`: a reader must not look for chunks again.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE = rb"[\t\x20-\x7e\x80-\xff]*"
_FIELDS = rb"(?:" + _TOKEN + rb":" + _VALUE + rb"\r\n)*\r\n"
_PLAIN_RESPONSE = re.compile(
    rb"HTTP/1\.[01] [0-9]{3}(?: " + _VALUE + rb")?\r\n" + _FIELDS
).fullmatch
_PLAIN_REQUEST = re.compile(
    rb"(?:GET|HEAD|POST|PUT|DELETE|TRACE|OPTIONS|CONNECT|PATCH) [^\r\n]+ HTTP/1\.[01]\r\n" + _FIELDS
).fullmatch
_ACCEPTED_STATUS_LINE = re.compile(rb"HTTP/1\.[01] [0-9]{3}(?: |$)").match
_STATUS = re.compile(rb"[\r\n]*[^ \r\n]+ +([0-9]{3})(?![0-9])").match
RESPONSE_STARTS = (b"HTTP/", b"ICY ", b"RTSP/")
"""What responses begin with, in capitals."""
_HEADER = re.compile(_TOKEN + rb"[ \t]*:").match
_CHUNKED = re.compile(rb"(?im)^(?=transfer-encoding[ \t]*:)")
_END = re.compile(rb"\r?\n[^\S\r\n]*\r?\n")
_VISIBLE = re.compile(rb"[!-~]").search
_NO_CONTROLS = bytes(code if code == 9 or 32 <= code != 127 else 32 for code in range(256))
_FOLD = re.compile(rb"\r?\n[ \t]+")
_OURS = b"x-crawler-"
_RENAMED = b"x-crawler-transfer-encoding"
MAX_HEAD = 32_000


def is_http(head: bytes) -> bool:
    """Whether it starts like a response, perhaps after empty lines; some servers send no head."""
    start = head.lstrip(b"\r\n")[:5].upper()
    return start.startswith(RESPONSE_STARTS) and _STATUS(head) is not None


def is_plain(head: bytes) -> bool:
    """Whether a response's head can be stored as it is."""
    if len(head) > MAX_HEAD or _PLAIN_RESPONSE(head) is None:
        return False
    return head.isascii() or _has_replayable_reason(head)


def _has_replayable_reason(head: bytes) -> bool:
    """Whether pywb can replay the reason phrase, which it reads as UTF-8 and writes as Latin-1."""
    status_line = head.partition(b"\n")[0]
    try:
        status_line.decode().encode("latin-1")
    except UnicodeDecodeError:
        return True  # pywb falls back to Latin-1
    except UnicodeEncodeError:
        return False
    return True


def storable_response(head: bytes) -> bytes:
    """The head of a response as it is stored."""
    if not is_plain(head):
        head = _shortened(_repaired(head))
    if b"transfer-" in head.lower():
        head = _CHUNKED.sub(b"X-Crawler-", head)
    return head


def storable_request(head: bytes) -> bytes | None:
    """The head of a request as it is stored; None if readers would reject it."""
    head = _shortened(head)
    if _PLAIN_REQUEST(head) is None:
        return None
    return head


def strict_lines(head: bytes) -> list[bytes]:
    """The status line and the headers, each on one line, as a strict parser accepts them."""
    lines = _FOLD.sub(b" ", _repaired(head)).split(b"\r\n")
    return [line for line in lines if line and not line.startswith(b"X-Crawler-")]


def _repaired(head: bytes) -> bytes:
    """A head whose lines all readers understand in the same way."""
    status_line, *lines = [
        line.rstrip(b"\r").translate(_NO_CONTROLS) for line in head.lstrip(b"\r\n").split(b"\n")
    ]
    if _ACCEPTED_STATUS_LINE(status_line) and _has_replayable_reason(status_line):
        kept = [status_line]
    else:
        found = _STATUS(status_line)
        status = b"200" if found is None else found[1]
        kept = [b"HTTP/1.1 " + status, b"X-Crawler-Status-Line: " + status_line]
    for line in lines:
        if _HEADER(line):
            name, _, value = line.partition(b":")
            kept.append(name.rstrip() + b":" + value)
        elif not _VISIBLE(line):
            continue
        elif line[:1] in b" \t" and len(kept) > 1:
            kept.append(line)  # it continues the header above
        else:
            kept.append(b"X-Crawler-Line: " + line)
    return b"\r\n".join(kept) + b"\r\n\r\n"


def _shortened(head: bytes) -> bytes:
    """The head, without its longest headers if it is too long."""
    if len(head) <= MAX_HEAD:
        return head
    first_line, *lines = _whole_lines(head)[:-1]
    first_line = first_line[: MAX_HEAD // 2].rstrip() + b"\r\n"
    bytes_left = MAX_HEAD - len(first_line) - 50
    kept = set[int]()
    for number in sorted(range(len(lines)), key=lambda number: len(lines[number])):
        bytes_left -= len(lines[number])
        if bytes_left < 0:
            break
        kept.add(number)
    omitted = b"X-Crawler-Omitted: %d\r\n\r\n" % (len(lines) - len(kept))
    kept_lines = [line for number, line in enumerate(lines) if number in kept]
    return b"".join([first_line, *kept_lines, omitted])


def _whole_lines(head: bytes) -> list[bytes]:
    """The lines of a head, with their ends, each with those that continue it.

    What stands before a lone CR or LF is left out.
    """
    lines: list[list[bytes]] = []
    for line in head.split(b"\r\n")[:-1]:
        start = max(line.rfind(b"\r"), line.rfind(b"\n")) + 1
        if lines and not start and line[:1] in (b" ", b"\t"):
            lines[-1].append(line)
        else:
            lines.append([line[start:]])
    return [b"\r\n".join(parts) + b"\r\n" for parts in lines]


def split_head(block: bytes) -> tuple[bytes, bytes]:
    """Head (with its empty line) and body of a block; without an empty line all of it is head."""
    found = _END.search(block)
    if found is None:
        return block, b""
    end = found.end()
    return block[:end], block[end:]


def parse_status(head: bytes) -> int:
    """The status of a response; 0 if there is none."""
    found = _STATUS(head)
    if found is None:
        return 0
    return int(found[1])


def get_header(head: bytes, name: str) -> str:
    """The value of a header, of several the first; empty if it is missing."""
    found = _pattern(name).search(head)
    if found is None:
        return ""
    return _FOLD.sub(b" ", found[1]).strip().decode("utf-8", "replace")


def parse_headers(head: bytes) -> list[tuple[bytes, bytes]]:
    """All headers of a stored response, in their order and by the names that the server sent."""
    found = []
    for line in _whole_lines(head)[1:]:
        name, colon, value = line.partition(b":")
        if not colon:
            continue
        lower_name = name.lower()
        if lower_name == _RENAMED:
            found.append((name[len(_OURS) :], value.strip()))
        elif not lower_name.startswith(_OURS):
            found.append((name.rstrip(), _FOLD.sub(b" ", value).strip()))
    return found


@lru_cache(64)
def _pattern(name: str) -> re.Pattern[bytes]:
    """A header of this name, with the lines that continue it."""
    return re.compile(
        rb"(?im)^" + re.escape(name.encode()) + rb"[ \t]*:([^\n]*(?:\n[ \t]+[^\n]+)*)"
    )
