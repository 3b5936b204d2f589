"""RTF: groups in braces, control words, and text in the code page of its font."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from typing import Final

from crawlproj.content.documents.result import DocumentResult

_TOKEN: Final = re.compile(
    rb"\\([A-Za-z]{1,32})(-?[0-9]{1,10})? "
    rb"?|\\'([0-9A-Fa-f]{2})|\\(.)|([{}])|[\r\n]+|([^\\{}\r\n]+)|\\",
    re.S,
)
_FIELD: Final = re.compile(r'\bHYPERLINK\s{1,9}"?([^"\s\\][^"\s]{0,3999})')
"""Without those that begin with an option: \\l is a place in the document."""
_BORDERS: Final = frozenset((b"par", b"sect", b"page", b"row", b"line"))
_SPACES: Final = frozenset((b"tab", b"cell", b"emspace", b"enspace"))
_SYMBOLS: Final = {
    b"emdash": "\u2014",
    b"endash": "\u2013",
    b"bullet": "\u2022",
    b"lquote": "\u2018",
    b"rquote": "\u2019",
    b"ldblquote": "\u201c",
    b"rdblquote": "\u201d",
}
_PLACES: Final = {
    b"fldinst": "field",
    b"title": "title",
    b"fonttbl": "fonts",
    b"footnote": "note",
    b"annotation": "note",
    b"shpinst": "shape",
    b"shptxt": "note",
}
"""Where the text of such a group goes: of notes and text boxes after everything else; what is said
of a shape is dropped.
"""
_SKIPPED: Final = frozenset(
    (
        b"colortbl",
        b"stylesheet",
        b"info",
        b"pict",
        b"object",
        b"themedata",
        b"colorschememapping",
        b"datastore",
        b"latentstyles",
        b"listtable",
        b"listoverridetable",
        b"rsidtbl",
        b"xmlnstbl",
        b"generator",
        b"filetbl",
        b"revtbl",
        b"fchars",
        b"lchars",
        b"shprslt",
    )
)
_CHARSETS: Final = {
    77: 10000,
    128: 932,
    129: 949,
    134: 936,
    136: 950,
    161: 1253,
    162: 1254,
    163: 1258,
    177: 1255,
    178: 1256,
    186: 1257,
    204: 1251,
    222: 874,
    238: 1250,
}
"""Charset of a font -> code page."""


@dataclass(frozen=True, slots=True)
class _Group:
    """What a brace saves and restores: where text goes, how it is coded, what follows a \\u and is
    for old readers.
    """

    into: str = "text"
    page: str = "cp1252"
    after: int = 1


class _Reader:
    def __init__(self, found: DocumentResult) -> None:
        self._found = found
        self._group = _Group()
        self._outer = list[_Group]()
        self._parts: dict[str, list[str]] = {"text": [], "field": [], "title": [], "note": []}
        self._notes: list[str] = []
        self._bytes = bytearray()
        self._skip = 0
        self._star = False
        self._default = "cp1252"
        self._fonts = dict[int, str]()
        self._font = 0

    def read_tokens(self, body: bytes) -> None:
        at = 0
        end = len(body)
        match = _TOKEN.match
        while at < end and (token := match(body, at)):
            at = token.end()
            word, number, coded, symbol, brace, text = token.groups()
            if word is not None:
                if word == b"bin" and number:
                    at += max(0, int(number))
                else:
                    self._word(word, int(number) if number else None)
            elif coded is not None:
                self._put_bytes(bytes((int(coded, 16),)))
            elif brace is not None:
                self._brace(brace)
            elif symbol is not None:
                self._symbol(symbol)
            elif text is not None:
                self._put_bytes(text)
        self._group = _Group()
        self._border()
        for note in self._notes:
            self._found.add_block(note)
        self._found.title = "".join(self._parts["title"])

    def _brace(self, brace: bytes) -> None:
        self._decode()
        self._star = False
        self._skip = 0
        if brace == b"{":
            if len(self._outer) < 10_000:
                self._outer.append(self._group)
        elif self._outer:
            if self._group.into == "note" != self._outer[-1].into:
                self._border()
            inner = self._group.into
            self._group = self._outer.pop()
            if inner == "field" != self._group.into:
                code = "".join(self._parts["field"])
                self._parts["field"] = []
                for url in _FIELD.findall(code):
                    self._found.add_link(url)

    def _word(self, word: bytes, number: int | None) -> None:
        self._decode()
        star = self._star
        self._star = False
        if word in _BORDERS:
            self._border()
        elif word in _SPACES:
            self._put(" ")
        elif word == b"u" and number is not None:
            self._put(chr(number & 0xFFFF))
            self._skip = self._group.after
        elif word in _SYMBOLS:
            self._put(_SYMBOLS[word])
        elif word in _PLACES:
            if word == b"title":  # the second one, if there are two, is in Unicode
                self._parts["title"] = []
            self._into(_PLACES[word])
        elif word in _SKIPPED or star:
            self._into("nothing")
        elif number is not None:
            self._set(word, number)

    def _set(self, word: bytes, number: int) -> None:
        if word == b"uc":
            self._group = replace(self._group, after=min(max(number, 0), 100))
        elif word == b"ansicpg":
            self._default = _codec(number)
            self._group = replace(self._group, page=self._default)
        elif word == b"f":
            self._font = number
            self._group = replace(self._group, page=self._fonts.get(number, self._default))
        elif (
            word == b"fcharset"
            and self._group.into == "fonts"
            and number in _CHARSETS
            and len(self._fonts) < 10_000
        ):
            self._fonts[self._font] = _codec(_CHARSETS[number])

    def _symbol(self, symbol: bytes) -> None:
        if symbol not in b"\\{}":
            self._decode()
        if symbol == b"*":
            self._star = True
        elif symbol == b"~":
            self._put("\xa0")
        elif symbol == b"_":
            self._put("-")
        elif symbol in b"\\{}":
            self._put_bytes(symbol)
        elif symbol in b"\r\n":
            self._border()

    def _into(self, name: str) -> None:
        if self._group.into != "nothing" or name == "title":
            self._group = replace(self._group, into=name)

    def _put_bytes(self, text: bytes) -> None:
        if self._skip:
            skipped = min(self._skip, len(text))
            self._skip = self._skip - skipped
            text = text[skipped:]
        self._bytes += text

    def _decode(self) -> None:
        if self._bytes:
            self._put(self._bytes.decode(self._group.page, "replace"))
            self._bytes.clear()

    def _put(self, text: str) -> None:
        if (parts := self._parts.get(self._group.into)) is not None:
            parts.append(text)

    def _border(self) -> None:
        self._decode()
        name = "note" if self._group.into == "note" else "text"
        text = "".join(self._parts[name])
        self._parts[name] = []
        # Characters beyond U+FFFF are written as two halves.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if name == "note":
            self._notes.append(text)
        else:
            self._found.add_block(text)


def _codec(page: int) -> str:
    name = {10000: "mac-roman", 65001: "utf-8"}.get(page, f"cp{page}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def read_rtf(body: bytes, found: DocumentResult) -> None:
    _Reader(found).read_tokens(body)
