"""The charset of a body: which characters its bytes mean. There is always one, never an error.

The order is the browser's: byte order mark, HTTP header, meta element, then the bytes themselves.
Labels lie, so one counts only while the bytes do not contradict it.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Final

from w3lib.encoding import resolve_encoding

from crawlproj.content.slices import BIG_BODY, Slices

UTF8: Final = "utf-8"
FALLBACK: Final = "cp1252"

_BOMS: Final = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META: Final = re.compile(
    rb"""<meta\b[^>]{0,500}?charset\s*=\s*["']?\s*([\w:.-]{1,40})"""
    rb"""|<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]{1,40})""",
    re.I,
)
_COMMENT: Final = re.compile(rb"<!--.*?(?:-->|$)", re.S)

# fmt: off
_SAME_ON_THE_WEB: Final = (
    "utf-8", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "cp866", "cp874", "gb18030", "euc_jp",
    "iso2022_jp", "cp932", "cp949", "mac-roman", "mac-cyrillic", "big5hkscs", "cp1250", "cp1251",
    "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "iso8859-2", "iso8859-3",
    "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-10", "iso8859-13",
    "iso8859-14", "iso8859-15", "iso8859-16",
)
# fmt: on
_WEB_CODECS: Final = {
    **{name: name for name in _SAME_ON_THE_WEB},
    "ascii": FALLBACK,
    "iso8859-1": FALLBACK,
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
    "utf-8-sig": UTF8,
}
"""Python's name of a codec -> the codec that the web uses for it. Labels of others are ignored."""
_MAGIC: Final = (
    b"\x89PNG",
    b"GIF87a",
    b"GIF89a",
    b"\xff\xd8\xff",
    b"%PDF-",
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    b"OggS",
    b"ID3\x03",
    b"ID3\x04",
    b"\x7fELF",
    b"wOFF",
    b"wOF2",
    b"7z\xbc\xaf",
    b"Rar!\x1a",
    b"BZh9",
    b"\xfd7zXZ",
    b"\xd0\xcf\x11\xe0",
    b"\x28\xb5\x2f\xfd",
    b"{\\rtf",
)
MOST_JUDGED: Final = 1_000_000
"""Bytes of a page by which it is judged whether it is broken UTF-8 or something else."""
_BEYOND_ASCII: Final = bytes(range(0x80, 0x100))
_TEXT_BYTES: Final = bytes((*range(0x20, 0x7F), *range(0x80, 0x100), 0x09, 0x0A, 0x0C, 0x0D, 0x1B))


def looks_binary(body: bytes) -> bool:
    """Whether this is a picture, an archive, a program, whatever the server calls it.

    Only the first KB counts.
    """
    if body.startswith(_MAGIC):
        return True
    if body.startswith(b"RIFF") and body[8:12] in (b"WEBP", b"WAVE", b"AVI "):
        return True
    head = body[:1024]
    not_text = len(head.translate(None, _TEXT_BYTES))
    if not_text * 20 <= len(head):
        return False
    return not head.startswith((b"\xff\xfe", b"\xfe\xff")) and _find_utf16(head) is None


def to_utf8(body: bytes, label: str | None = None) -> tuple[bytes, str]:
    """The body as valid UTF-8 without byte order mark and NULs, and the charset it was in.

    `label` is the charset of the HTTP header.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return _recode(body[len(mark) :], name), web_name(name)
    valid = body.isascii() or _is_valid(body)
    name = _choose_codec(body, label, valid)
    if name == UTF8 and valid:
        return _remove_nuls(body), UTF8
    return _recode(body, name), web_name(name)


def to_utf8_in_slices(body: bytes, label: str | None = None) -> Slices[tuple[bytes, str]]:
    """As `to_utf8`, in slices if the body is big."""
    if len(body) <= BIG_BODY:
        return to_utf8(body, label)
    for mark, name in _BOMS:
        if body.startswith(mark):
            text = yield from _recode_in_slices(body[len(mark) :], name)
            return text, web_name(name)
    valid = body.isascii() or _is_valid(body)
    yield
    name = _choose_codec(body, label, valid)
    yield
    if name == UTF8 and valid:
        return _remove_nuls(body), UTF8
    text = yield from _recode_in_slices(body, name)
    return text, web_name(name)


def _remove_nuls(body: bytes) -> bytes:
    if b"\0" in body:
        return body.translate(None, b"\0")  # `replace` takes ten times as long for millions
    return body


def web_name(codec: str) -> str:
    """The name of a codec as the web writes it."""
    return codec.replace("cp125", "windows-125").replace("iso8859", "iso-8859").replace("_", "-")


@lru_cache(maxsize=512)
def find_codec(label: str) -> str | None:
    """The codec that the web means by a label (by iso-8859-1 it means cp1252); None if unknown."""
    name = resolve_encoding(label.strip().strip("\"'"))
    if not name:
        return None
    try:
        return _WEB_CODECS.get(codecs.lookup(name).name)
    except (LookupError, ValueError):
        return None


def _choose_codec(body: bytes, label: str | None, valid: bool) -> str:
    """The codec to read the body with; `valid` says that the body is valid UTF-8."""
    named = _named_codec(body, label)
    if named is None or named.startswith("utf-16"):
        utf16 = _find_utf16(body[:1024])
        if utf16 is not None:
            return utf16
        named = None
    elif named not in (UTF8, FALLBACK):
        if valid and not _is_valid(body, named):
            return UTF8
        return named
    if valid or (named == UTF8 and _mostly_utf8(body)):
        return UTF8
    return FALLBACK


def _named_codec(body: bytes, label: str | None) -> str | None:
    """The codec that the header or else the page itself names; None if neither does."""
    if label:
        named = find_codec(label)
        if named is not None:
            return named
    named = _meta_codec(body)
    if named is not None and named.startswith("utf-16"):
        return UTF8  # a meta element that could be read as ASCII is no UTF-16
    return named


def _meta_codec(body: bytes) -> str | None:
    head = body[:1024]
    if b"<!--" in head:
        head = _COMMENT.sub(b"", head)
    found = _META.search(head)
    if not found:
        return None
    return find_codec((found[1] or found[2]).decode("ascii", "replace"))


def _is_valid(body: bytes, name: str = UTF8) -> bool:
    try:
        body.decode(name)
    except ValueError:
        return False
    return True


def _mostly_utf8(body: bytes) -> bool:
    """Whether it is UTF-8 with a few errors (cut in the middle, one stray byte)."""
    body = body[:MOST_JUDGED]
    text = body.decode(UTF8, "replace")
    broken = text.count("\ufffd")
    beyond_ascii = len(body) - len(body.translate(None, _BEYOND_ASCII))
    return broken * 2 <= beyond_ascii - broken


def _find_utf16(head: bytes) -> str | None:
    """The codec of UTF-16 without a mark, which shows as a NUL in every other byte; or None."""
    even = head[::2].count(0)
    odd = head[1::2].count(0)
    if len(head) < 4 or max(even, odd) * 10 < len(head) * 3 or min(even, odd) * 10 > len(head):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _recode(body: bytes, name: str) -> bytes:
    return body.decode(name, "replace").replace("\0", "").encode(UTF8, "replace")


def _recode_in_slices(body: bytes, name: str) -> Slices[bytes]:
    if name == "iso2022_jp":
        # Its decoder for pieces fails where one is cut within a broken escape.
        return _recode(body, name)
    decoder = codecs.getincrementaldecoder(name)("replace")
    pieces = []
    for start in range(0, len(body), BIG_BODY):
        end = start + BIG_BODY
        text = decoder.decode(body[start:end], end >= len(body))
        pieces.append(text.replace("\0", "").encode(UTF8, "replace"))
        yield
    return b"".join(pieces)
