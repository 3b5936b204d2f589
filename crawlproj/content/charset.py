"""The charset of a body: which characters its bytes mean. There is always one, never an error.

The order is the browser's: byte order mark, HTTP header, meta element, then the bytes themselves.
Labels lie, so one counts only while the bytes do not contradict it. There we are stricter than a
browser, which believes every label it knows: what is valid UTF-8 with letters beyond ASCII is
UTF-8, whatever is declared. A reader who sees nonsense asks its author; what we store is nonsense
for good. What declares nothing and is not UTF-8 is guessed (`charset_guess`).

Charsets have the names of the web's Encoding Standard, in lower case: `euc-kr`, `windows-1252`.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from functools import lru_cache
from typing import Final

from w3lib.encoding import resolve_encoding

from crawlproj.content.charset_guess import guess_charset
from crawlproj.content.slices import BIG_BODY, Slices

UTF8: Final = "utf-8"
FALLBACK: Final = "windows-1252"
UTF16: Final = frozenset({"utf-16le", "utf-16be"})

_BOMS: Final = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)
_META: Final = re.compile(
    rb"""<meta\b[^>]{0,500}?charset\s*=\s*["']?\s*([\w:.-]{1,40})"""
    rb"""|<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]{1,40})""",
    re.I,
)
_COMMENT: Final = re.compile(rb"<!--.*?(?:-->|$)", re.S)

_CODECS: Final = {
    "utf-8": "utf-8",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "big5": "big5hkscs",
    "euc-jp": "euc_jp",
    "euc-kr": "cp949",
    "gb18030": "gb18030",
    "gbk": "gb18030",
    "ibm866": "cp866",
    "iso-2022-jp": "iso2022_jp",
    "iso-8859-8-i": "iso8859-8",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "macintosh": "mac-roman",
    "shift_jis": "cp932",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (*range(2, 9), 10, 13, 14, 15, 16)},
    **{f"windows-125{part}": f"cp125{part}" for part in range(9)},
}
"""The charsets of the web -> Python's codec for each, which may know a few characters more."""
_LABELS: Final = """
big5: big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp: cseucpkdfmtjapanese x-euc-jp
euc-kr: cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601
    windows-949
gbk: chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
ibm866: 866 cp866 csibm866
iso-2022-jp: csiso2022jp
iso-8859-2: csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3: csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4: csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5: csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6: arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e
    iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7: csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7
    iso_8859-7:1987 sun_eu_greek
iso-8859-8: csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598
    iso_8859-8 iso_8859-8:1988 visual
iso-8859-8-i: csiso88598i logical
iso-8859-10: csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13: iso8859-13 iso885913
iso-8859-14: iso8859-14 iso885914
iso-8859-15: csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
koi8-r: cskoi8r koi koi8 koi8_r
koi8-u: koi8-ru
macintosh: csmacintosh mac x-mac-roman
shift_jis: csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
utf-16be: unicodefffe
utf-16le: csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
windows-874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250: cp1250 x-cp1250
windows-1251: cp1251 x-cp1251
windows-1252: ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1
    iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252
windows-1253: cp1253 x-cp1253
windows-1254: cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9
    iso_8859-9:1989 l5 latin5 x-cp1254
windows-1255: cp1255 x-cp1255
windows-1256: cp1256 x-cp1256
windows-1257: cp1257 x-cp1257
windows-1258: cp1258 x-cp1258
x-mac-cyrillic: x-mac-ukrainian
"""
"""The labels of the Encoding Standard, beside the names themselves."""


def _read_labels() -> dict[str, str]:
    """Label -> the name of its charset."""
    names = {name: name for name in _CODECS}
    name = ""
    for word in _LABELS.split():
        if word.endswith(":"):
            name = word[:-1]
        else:
            names[word] = name
    return names


_NAMES: Final = _read_labels()
_NAMES_OF_CODECS: Final = {codec: name for name, codec in reversed(_CODECS.items())}
_CHANCE: Final = frozenset(
    {"big5", "euc-jp", "euc-kr", "gb18030", "gbk", "shift_jis", "windows-874"}
)
"""Charsets in which a few words may be valid UTF-8 by chance; texts in the others never are."""
SURE_WEIGHT: Final = 5
"""Different characters beyond ASCII, those of three bytes and more counted twice, that are no
chance. Of 170,000 short texts in Chinese, Japanese, Korean and Thai (the messages of a Linux
system, each alone in its old charset) 200 are valid UTF-8, with a weight of 4 at most.
"""
_BETWEEN_LETTERS: Final = re.compile(
    rb"[A-Za-z](?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2})[A-Za-z]"
)
"""As in `gr\xc3\xbcn`: of these 170,000 texts it is in 2, and in none that is valid UTF-8."""
_ASCII: Final = bytes(range(0x80))
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


def to_utf8(
    body: bytes, label: str | None = None, url: str = "", guess: bool = True
) -> tuple[bytes, str]:
    """The body as valid UTF-8 without byte order mark and NULs, and the charset it was in.

    `label` is the charset of the HTTP header. `url` is where the body comes from: its top-level
    domain helps where the charset must be guessed. Who looks for markup alone needs no `guess`.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return _recode(body[len(mark) :], name), name
    valid = body.isascii() or _is_valid(body)
    chosen = _choose_charset(body, label, valid)
    if chosen is None and guess:
        chosen = _guess_name(body, url)
    name = chosen or FALLBACK
    if name == UTF8 and valid:
        return _remove_nuls(body), UTF8
    return _recode(body, name), name


def to_utf8_in_slices(
    body: bytes, label: str | None = None, url: str = ""
) -> Slices[tuple[bytes, str]]:
    """As `to_utf8`, in slices if the body is big."""
    if len(body) <= BIG_BODY:
        return to_utf8(body, label, url)
    for mark, name in _BOMS:
        if body.startswith(mark):
            text = yield from _recode_in_slices(body[len(mark) :], name)
            return text, name
    valid = body.isascii() or _is_valid(body)
    yield
    name = _choose_charset(body, label, valid) or _guess_name(body, url) or FALLBACK
    yield
    if name == UTF8 and valid:
        return _remove_nuls(body), UTF8
    text = yield from _recode_in_slices(body, name)
    return text, name


def _remove_nuls(body: bytes) -> bytes:
    if b"\0" in body:
        return body.translate(None, b"\0")  # `replace` takes ten times as long for millions
    return body


def is_mislabelled_utf8(body: bytes, label: str | None) -> bool:
    """Whether the body is UTF-8 although its header, or else the page itself, says otherwise.

    Cheap for what is ASCII or says that it is UTF-8, which is nearly everything.
    """
    declared = _declared_charset(body, label)
    if declared == UTF8 or (body.isascii() and declared not in UTF16):
        return False
    if declared is None and b"charset" not in body[1024:4096].lower():
        return False  # (Scrapy believes a meta element further down than the web does.)
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or not _is_valid(body):
        return False
    return _choose_charset(body, label, valid=True) == UTF8


@lru_cache(maxsize=512)
def find_charset(label: str) -> str | None:
    """The charset that the web means by a label (by iso-8859-1 it means windows-1252); None if
    unknown.
    """
    label = label.strip().strip("\"'").lower()
    if label in _NAMES:
        return _NAMES[label]
    codec = resolve_encoding(label)  # the web does not know it, but Python may: cp932
    if not codec:
        return None
    try:
        codec = codecs.lookup(codec).name
    except (LookupError, ValueError):
        return None
    return _NAMES_OF_CODECS.get(codec)


def load_codecs() -> None:
    """Load all of Python's codecs that a body may need: for a process that cannot do so later."""
    for codec in _CODECS.values():
        codecs.getincrementaldecoder(codec)("replace").decode(b"\xa4\xa4", True)
    for name in _CODECS:  # the guess calls them by these, and some are codecs of their own
        with suppress(LookupError):
            codecs.lookup(name)


def _choose_charset(body: bytes, label: str | None, valid: bool) -> str | None:
    """The charset to read the body with, None if that must be guessed; `valid` says that the body
    is valid UTF-8.
    """
    named = _named_charset(body, label)
    if named is None or named in UTF16:
        utf16 = _find_utf16(body[:1024])
        if utf16 is not None:
            return utf16
        named = None
    elif named not in (UTF8, FALLBACK):
        if valid and (_is_no_chance(body, named) or not _is_valid(body, named)):
            return UTF8
        return named
    if valid or (named == UTF8 and _mostly_utf8(body)):
        return UTF8
    return FALLBACK if named == FALLBACK else None


def _guess_name(body: bytes, url: str) -> str | None:
    guessed = guess_charset(body, url)
    return find_charset(guessed) if guessed else None


def _is_no_chance(body: bytes, named: str) -> bool:
    """Whether a body that is valid UTF-8 is so on purpose, although it is said to be `named`."""
    if body.isascii():
        return False
    if named not in _CHANCE:
        return True
    beyond_ascii = body[:MOST_JUDGED].translate(None, _ASCII)
    characters = set(beyond_ascii[:1000].decode(UTF8, "ignore"))
    weight = sum(2 if character > "\u07ff" else 1 for character in characters)
    return weight >= SURE_WEIGHT or bool(_BETWEEN_LETTERS.search(body, 0, MOST_JUDGED))


def _named_charset(body: bytes, label: str | None) -> str | None:
    """The charset that the header or else the page itself names; None if neither does."""
    named = _declared_charset(body, label)
    if named in UTF16 and not (label and find_charset(label)):
        return UTF8  # a meta element that could be read as ASCII is no UTF-16
    return named


def _declared_charset(body: bytes, label: str | None) -> str | None:
    return (find_charset(label) if label else None) or _meta_charset(body)


def _meta_charset(body: bytes) -> str | None:
    head = body[:1024]
    if b"<!--" in head:
        head = _COMMENT.sub(b"", head)
    found = _META.search(head)
    if not found:
        return None
    return find_charset((found[1] or found[2]).decode("ascii", "replace"))


def _is_valid(body: bytes, name: str = UTF8) -> bool:
    try:
        body.decode(_CODECS[name])
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
    """The charset of UTF-16 without a mark, which shows as a NUL in every other byte; or None."""
    even = head[::2].count(0)
    odd = head[1::2].count(0)
    if len(head) < 4 or max(even, odd) * 10 < len(head) * 3 or min(even, odd) * 10 > len(head):
        return None
    return "utf-16le" if odd > even else "utf-16be"


def _recode(body: bytes, name: str) -> bytes:
    return body.decode(_CODECS[name], "replace").replace("\0", "").encode(UTF8, "replace")


def _recode_in_slices(body: bytes, name: str) -> Slices[bytes]:
    if name == "iso-2022-jp":
        # Its decoder for pieces fails where one is cut within a broken escape.
        return _recode(body, name)
    decoder = codecs.getincrementaldecoder(_CODECS[name])("replace")
    pieces = []
    for start in range(0, len(body), BIG_BODY):
        end = start + BIG_BODY
        text = decoder.decode(body[start:end], end >= len(body))
        pieces.append(text.replace("\0", "").encode(UTF8, "replace"))
        yield
    return b"".join(pieces)
