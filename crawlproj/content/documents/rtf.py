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
"""Without those that begin with an option: \\l leads into the document itself."""
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
_DESTINATIONS: Final = {
    b"fldinst": "field",
    b"title": "title",
    b"fonttbl": "fonts",
    b"footnote": "note",
    b"annotation": "note",
    b"shpinst": "shape",
    b"shptxt": "note",
}
"""Where the text of such a group goes: notes and text boxes come after everything else; what
describes a shape is dropped.
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
    """What a brace saves and restores.

    Where text goes, its codec, and how many bytes for old programs follow a \\u.
    """

    into: str = "text"
    codec: str = "cp1252"
    skipped_after_u: int = 1


class _Reader:
    """A reader that goes through the tokens of one file.

    `_parts` are the texts since the last border, by where they go; `_bytes` is text that is not
    decoded yet; `_skip` counts bytes that a \\u has made superfluous.
    """

    def __init__(self, result: DocumentResult) -> None:
        self._result = result
        self._group = _Group()
        self._outer = list[_Group]()
        self._parts: dict[str, list[str]] = {"text": [], "field": [], "title": [], "note": []}
        self._notes: list[str] = []
        self._bytes = bytearray()
        self._skip = 0
        self._star = False
        self._default_codec = "cp1252"
        self._font_codecs = dict[int, str]()
        self._font = 0

    def read_tokens(self, body: bytes) -> None:
        """Read the whole file."""
        at = 0
        end = len(body)
        match = _TOKEN.match
        while at < end and (token := match(body, at)):
            at = token.end()
            word, number, hex_digits, symbol, brace, text = token.groups()
            if word is not None:
                if not number:
                    self._handle_word(word, None)
                elif word == b"bin":
                    at += max(0, int(number))
                else:
                    self._handle_word(word, int(number))
            elif hex_digits is not None:
                self._put_bytes(bytes((int(hex_digits, 16),)))
            elif brace is not None:
                self._handle_brace(brace)
            elif symbol is not None:
                self._handle_symbol(symbol)
            elif text is not None:
                self._put_bytes(text)
        self._group = _Group()
        self._end_block()
        for note in self._notes:
            self._result.add_block(note)
        self._result.title = "".join(self._parts["title"])

    def _handle_brace(self, brace: bytes) -> None:
        self._decode()
        self._star = False
        self._skip = 0
        if brace == b"{":
            if len(self._outer) < 10_000:
                self._outer.append(self._group)
        elif self._outer:
            inner = self._group.into
            if inner == "note" and self._outer[-1].into != "note":
                self._end_block()
            self._group = self._outer.pop()
            if inner == "field" and self._group.into != "field":
                code = "".join(self._parts["field"])
                self._parts["field"] = []
                for url in _FIELD.findall(code):
                    self._result.add_link(url)

    def _handle_word(self, word: bytes, number: int | None) -> None:
        self._decode()
        star = self._star
        self._star = False
        if word in _BORDERS:
            self._end_block()
        elif word in _SPACES:
            self._put(" ")
        elif word == b"u" and number is not None:
            self._put(chr(number & 0xFFFF))
            self._skip = self._group.skipped_after_u
        elif word in _SYMBOLS:
            self._put(_SYMBOLS[word])
        elif word in _DESTINATIONS:
            if word == b"title":  # the second one, if there are two, is in Unicode
                self._parts["title"] = []
            self._direct_text(_DESTINATIONS[word])
        elif word in _SKIPPED or star:
            self._direct_text("nothing")
        elif number is not None:
            self._change_group(word, number)

    def _change_group(self, word: bytes, number: int) -> None:
        if word == b"uc":
            self._group = replace(self._group, skipped_after_u=min(max(number, 0), 100))
        elif word == b"ansicpg":
            self._default_codec = _page_codec(number)
            self._group = replace(self._group, codec=self._default_codec)
        elif word == b"f":
            self._font = number
            codec = self._font_codecs.get(number, self._default_codec)
            self._group = replace(self._group, codec=codec)
        elif word == b"fcharset" and self._group.into == "fonts":
            self._set_font_charset(number)

    def _set_font_charset(self, charset: int) -> None:
        if charset in _CHARSETS and len(self._font_codecs) < 10_000:
            self._font_codecs[self._font] = _page_codec(_CHARSETS[charset])

    def _handle_symbol(self, symbol: bytes) -> None:
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
            self._end_block()

    def _direct_text(self, name: str) -> None:
        """Have the text of this group go there; what is dropped stays so, but for the title."""
        if self._group.into != "nothing" or name == "title":
            self._group = replace(self._group, into=name)

    def _put_bytes(self, text: bytes) -> None:
        if self._skip:
            skipped = min(self._skip, len(text))
            self._skip -= skipped
            text = text[skipped:]
        self._bytes += text

    def _decode(self) -> None:
        if self._bytes:
            self._put(self._bytes.decode(self._group.codec, "replace"))
            self._bytes.clear()

    def _put(self, text: str) -> None:
        parts = self._parts.get(self._group.into)
        if parts is not None:
            parts.append(text)

    def _end_block(self) -> None:
        self._decode()
        name = "text"
        if self._group.into == "note":
            name = "note"
        text = "".join(self._parts[name])
        self._parts[name] = []
        # Characters beyond U+FFFF are written as two halves.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if name == "note":
            self._notes.append(text)
        else:
            self._result.add_block(text)


def _page_codec(page: int) -> str:
    """Python's codec of a code page; cp1252 for one that it lacks."""
    name = {10000: "mac-roman", 65001: "utf-8"}.get(page, f"cp{page}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def read_rtf(body: bytes, result: DocumentResult) -> None:
    """Read an RTF file."""
    _Reader(result).read_tokens(body)
