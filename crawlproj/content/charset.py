"""Which characters do these bytes mean? Always an answer, never an error.

The order is the browser's: byte order mark, HTTP header, meta element, then the bytes themselves.
Labels lie, so one counts only while the bytes do not contradict it.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Final

from w3lib.encoding import resolve_encoding

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

# Python's name of a codec -> the codec the web uses for it. What is missing here is not decoded by
# label.
_WEB: Final = {
    **{
        name: name
        for name in (
            "utf-8",
            "utf-16-le",
            "utf-16-be",
            "koi8-r",
            "koi8-u",
            "cp866",
            "cp874",
            "gb18030",
        )
    },
    **{
        name: name
        for name in (
            "euc_jp",
            "iso2022_jp",
            "cp932",
            "cp949",
            "mac-roman",
            "mac-cyrillic",
            "big5hkscs",
        )
    },
    **{f"cp125{n}": f"cp125{n}" for n in range(9)},
    **{f"iso8859-{n}": f"iso8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
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
_TEXT_BYTES: Final = bytes((*range(0x20, 0x7F), *range(0x80, 0x100), 0x09, 0x0A, 0x0C, 0x0D, 0x1B))


def looks_binary(body: bytes) -> bool:
    """Is this a picture, an archive, a program, whatever the server calls it? Looks at the first KB
    only.
    """
    if body.startswith(_MAGIC) or (
        body.startswith(b"RIFF") and body[8:12] in (b"WEBP", b"WAVE", b"AVI ")
    ):
        return True
    head = body[:1024]
    strange = len(head.translate(None, _TEXT_BYTES))
    return (
        strange * 20 > len(head)
        and not head.startswith((b"\xff\xfe", b"\xfe\xff"))
        and _utf16(head) is None
    )


def to_utf8(body: bytes, label: str | None = None) -> tuple[bytes, str]:
    """The body as valid UTF-8 without byte order mark and NULs, and the charset it was in; `label`
    is the header's.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return _recoded(body[len(mark) :], name), web_name(name)
    valid = body.isascii() or _valid(body)
    name = _chosen(body, label, valid)
    if name == UTF8 and valid:
        return body.replace(b"\0", b"") if b"\0" in body else body, UTF8
    return _recoded(body, name), web_name(name)


def web_name(codec: str) -> str:
    """The name of a codec as the web writes it."""
    return codec.replace("cp125", "windows-125").replace("iso8859", "iso-8859").replace("_", "-")


@lru_cache(maxsize=512)
def find_codec(label: str) -> str | None:
    """The codec behind a label as the web understands it (iso-8859-1 is windows-1252), None if it
    has none.
    """
    name = resolve_encoding(label.strip().strip("\"'"))
    try:
        return _WEB.get(codecs.lookup(name).name) if name else None
    except (LookupError, ValueError):
        return None


def _chosen(body: bytes, label: str | None, valid: bool) -> str:
    """The codec to read the body with; `valid` says that UTF-8 is one."""
    named = find_codec(label) if label else None
    if named is None and (meta := _meta(body)):
        # A meta element that could be read as ASCII is no UTF-16.
        named = UTF8 if meta.startswith("utf-16") else meta
    if named is None or named.startswith("utf-16"):
        named = _utf16(body[:1024])
    elif named not in (UTF8, FALLBACK):
        return UTF8 if valid and not _valid(body, named) else named
    if named not in (None, UTF8, FALLBACK):
        return named or UTF8
    if valid or (named == UTF8 and _mostly_utf8(body)):
        return UTF8
    return FALLBACK


def _meta(body: bytes) -> str | None:
    head = body[:1024]
    found = _META.search(_COMMENT.sub(b"", head) if b"<!--" in head else head)
    return find_codec((found[1] or found[2]).decode("ascii", "replace")) if found else None


def _valid(body: bytes, name: str = UTF8) -> bool:
    try:
        body.decode(name)
    except ValueError:
        return False
    return True


def _mostly_utf8(body: bytes) -> bool:
    """Broken here and there (cut in the middle, one stray byte), against no UTF-8 at all."""
    text = body.decode(UTF8, "replace")
    broken = text.count("\ufffd")
    return broken * 2 <= len(body) - len(body.translate(None, bytes(range(0x80, 0x100)))) - broken


def _utf16(head: bytes) -> str | None:
    """UTF-16 without a mark shows as a NUL in every other byte."""
    even = head[::2].count(0)
    odd = head[1::2].count(0)
    if len(head) < 4 or max(even, odd) * 10 < len(head) * 3 or min(even, odd) * 10 > len(head):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _recoded(body: bytes, name: str) -> bytes:
    return body.decode(name, "replace").replace("\0", "").encode(UTF8, "replace")
