"""The charset of text that nothing declares, guessed by its letters and its top-level domain.

The detector is the one of browsers. It sees only the words that hold bytes beyond ASCII: what it is
fed costs, and markup, scripts and English tell nothing. A browser's reader can correct a guess, so
there the domain may outweigh the letters; here it decides only between charsets that are alike, and
where there are few letters. Who is unsure says so.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from chardetng_py import EncodingDetector

MOST_FED: Final = 1_500
"""Bytes of words that are judged."""
MOST_PIECES: Final = 64
"""Pieces of the page in which words are looked for, so that the cost has an end."""
MOST_LOOKED_AT: Final = 65_536
"""Bytes that are searched for the few letters that tell charsets apart that are alike."""
_PIECE: Final = 512
_LONGEST_WORD: Final = 4_096
_BORDER: Final = re.compile(rb"[\t\n\r <>]")
_MARKUP: Final = b"\"#&'()*+-/:;<=>"
"""What stands between words, beside white space: bytes that are no part of a letter anywhere."""
_TO_SPACES: Final = bytes.maketrans(_MARKUP, b" " * len(_MARKUP))
_TOP_DOMAIN: Final = re.compile(r"[a-z0-9-]{1,63}")

_ASCII: Final = bytes(range(0x80))
_ASCII_LETTERS: Final = string.ascii_letters.encode()
_SIGNS: Final = (
    b"\x80\x82\x84\x85\x86\x87\x89\x8b\x91\x92\x93\x94\x95\x96\x97\x99\x9b"
    b"\xa0\xa7\xa9\xab\xad\xae\xb0\xb7\xbb"
)
"""Quotes, dashes, the euro, © and such, the same in most charsets of Windows: they tell nothing."""
_SILENT: Final = _ASCII + _SIGNS
_CONTROLS: Final = bytes(range(0x80, 0xA0))

_WESTERN: Final = "windows-1252"
_CENTRAL: Final = frozenset({"windows-1250", "iso-8859-2"})
_LATIN: Final = _CENTRAL | {
    _WESTERN,
    "windows-1254",
    "windows-1257",
    "windows-1258",
    "iso-8859-4",
}
_WINDOWS_OF_ISO: Final = {"iso-8859-2": "windows-1250", "iso-8859-7": "windows-1253"}
_ALIKE: Final = frozenset({*_WINDOWS_OF_ISO, *_WINDOWS_OF_ISO.values()})
_ISO_GREEK_ALPHA: Final = "Ά".encode("iso-8859-7")
_ISO_GREEK_APOSTROPHE: Final = re.compile(rb"\xa2(?<=[a-z\xdc-\xfe]\xa2)")
"""At the end of a word; in windows-1253 it would be the capital letter. All else is the same."""
_FEW_LETTERS: Final = 4
"""With fewer, a charset must be the domain's own."""
_ENOUGH_LETTERS: Final = 10
"""As many tell Latin charsets apart without help of the domain."""
_MANY_LETTERS: Final = 100
"""As many tell any two charsets apart."""
_HUNGARIAN: Final = "áéíóöőúüűÁÉÍÓÖŐÚÜŰ".encode("windows-1250")
_LONG_VOWELS: Final = "őűŐŰ".encode("windows-1250")
_UMLAUTS: Final = "öüÖÜ".encode("windows-1250")
_ACUTES: Final = "áéÁÉ".encode("windows-1250")
_UTF8_LETTER: Final = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)


def guess_charset(body: bytes, url: str = "") -> str | None:
    """Python's name for the charset of a body that is not valid UTF-8; None if nothing is certain.

    `url` is where the body comes from. UTF-8 with a few errors is UTF-8.
    """
    words = find_words(body)
    letters = words.translate(None, _SILENT)
    if not letters:
        return None
    if _is_nearly_utf8(words):
        return "utf-8"
    name = _guess_by_words(words, letters, top_domain(url))
    if name == _WESTERN and _is_hungarian(letters):
        return "windows-1250"
    if name == "iso-8859-2" and letters.decode(name) == letters.decode(_WESTERN, "replace"):
        return _WESTERN  # its Ť and ť would be quotation marks
    if name in _ALIKE:
        return _tell_apart(name, body[:MOST_LOOKED_AT])
    return name


def find_words(body: bytes) -> bytes:
    """The first words with letters beyond ASCII, with a space between two."""
    words: list[bytes] = []
    length = 0
    for piece in _find_pieces(body):
        for word in piece.translate(_TO_SPACES).split():
            if not word.isascii() and word.translate(None, _SILENT) and not _is_amount(word):
                words.append(word)
                length += len(word) + 1
        if length >= MOST_FED:
            break
    return b" ".join(words)[:MOST_FED]


def _is_amount(word: bytes) -> bool:
    """Whether the byte beyond ASCII is a sign, as in £40; elsewhere it would be a letter."""
    return len(word) == 1 or word[1:2].isdigit() or word[-2:-1].isdigit()


def top_domain(url: str) -> bytes | None:
    """The last label of the URL's host as the detector wants it; None if there is none."""
    host = url.partition("://")[2].partition("/")[0]
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal():
        host = name
    label = host.rpartition(".")[2].lower()
    if not _TOP_DOMAIN.fullmatch(label):
        return None  # the detector panics at what is no label
    return label.encode()


def _find_pieces(body: bytes) -> Iterator[bytes]:
    """Pieces of the body with letters beyond ASCII; only words of absurd length are cut."""
    start = count = 0
    while start < len(body) and count < MOST_PIECES:
        end = start + _PIECE
        if not body[start:end].isascii():
            border = _BORDER.search(body, end, end + _LONGEST_WORD)
            end = border.start() if border else end + _LONGEST_WORD
            piece = body[start:end]
            count += 1
            if piece.translate(None, _SILENT):
                yield piece
        start = end


def _guess_by_words(words: bytes, letters: bytes, domain: bytes | None) -> str | None:
    detector = EncodingDetector()
    detector.feed(words, last=False)
    anywhere: str = detector.guess(tld=None, allow_utf8=False).lower()
    here: str = detector.guess(tld=domain, allow_utf8=False).lower()
    enough = _MANY_LETTERS
    if anywhere in _LATIN and here in _LATIN:
        enough = _ENOUGH_LETTERS
    names = (anywhere, here) if len(letters) >= enough else (here, anywhere)
    for name in names:
        if name == _WESTERN:
            return name
        if name in _LATIN:
            if len(letters) >= _FEW_LETTERS or _is_usual(name, domain):
                return name
        elif _is_dense(words, name):
            return name
    return None


def _is_usual(name: str, domain: bytes | None) -> bool:
    """Whether it is the charset of most pages of the domain, or its like."""
    usual = _usual_charset(domain)
    return name == usual or (name in _CENTRAL and usual in _CENTRAL)


@lru_cache(maxsize=512)
def _usual_charset(domain: bytes | None) -> str:
    """What the detector says of a page without any letter."""
    name: str = EncodingDetector().guess(tld=domain, allow_utf8=False)
    return name.lower()


def _is_dense(words: bytes, name: str) -> bool:
    """Whether words are written in the letters of a charset that is not Latin.

    In `grün`, read as Greek or Japanese, most letters would still be ASCII.
    """
    if len(words.translate(None, _ASCII)) < _FEW_LETTERS:
        return False
    text = words.decode(name, "replace")
    ascii_part = text.encode("ascii", "ignore")
    beyond_ascii = len(text) - len(ascii_part)
    ascii_letters = len(ascii_part) - len(ascii_part.translate(None, _ASCII_LETTERS))
    return beyond_ascii * 2 >= ascii_letters


def _tell_apart(name: str, body: bytes) -> str:
    """The name or the one that is nearly the same: ISO has no letters where Windows has some."""
    if _has_any(body, _CONTROLS):
        return _WINDOWS_OF_ISO.get(name, name)
    if name == "windows-1253" and (_ISO_GREEK_ALPHA in body or _ISO_GREEK_APOSTROPHE.search(body)):
        return "iso-8859-7"
    return name


def _is_hungarian(letters: bytes) -> bool:
    """Whether it has all kinds of Hungarian vowels and hardly anything else.

    The detector takes Hungarian from other domains for something Western, with õ and û.
    """
    strangers = letters.translate(None, _HUNGARIAN)
    if len(strangers) * 20 > len(letters):
        return False
    return all(_has_any(letters, kind) for kind in (_LONG_VOWELS, _UMLAUTS, _ACUTES))


def _is_nearly_utf8(words: bytes) -> bool:
    beyond_ascii = words.translate(None, _ASCII)
    broken = _UTF8_LETTER.sub(b"", words).translate(None, _ASCII)
    return len(broken) * 5 <= len(beyond_ascii)


def _has_any(body: bytes, wanted: bytes) -> bool:
    return len(body.translate(None, wanted)) < len(body)
