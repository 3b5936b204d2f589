"""Office since 2007 (docx, xlsx, pptx).

Links are in the relations of a part, in field codes and in formulas.
"""

from __future__ import annotations

import re
from typing import Any, Final

from crawlproj.content.documents.package import (
    Package,
    XmlTarget,
    attribute_value,
    local_name,
    read_metadata,
)
from crawlproj.content.documents.result import (
    MAX_TEXT,
    BadDocumentError,
    DocumentResult,
    LimitReachedError,
)

_TEXTS: Final = re.compile(
    r"word/(?:document|document2|footnotes|endnotes|comments|header\d*|footer\d*)\.xml"
    r"|ppt/(?:slides/slide|notesSlides/notesSlide)\d+\.xml"
    r"|xl/(?:comments\d*|comments/comment\d+|drawings/drawing\d+)\.xml"
    r"|(?:word|ppt|xl)/diagrams/data\d+\.xml",
    re.I,
)
_SHEET: Final = re.compile(r"xl/worksheets/[^/]+\.xml", re.I)
_FIELD: Final = re.compile(r'\bHYPERLINK\s{1,9}"([^"]{1,4000})"')
_FORMULA: Final = re.compile(r'\bHYPERLINK\(\s{0,9}"([^"]{1,4000})"', re.I)
_SIGNS: Final = {"tab": " ", "br": " ", "cr": " ", "ptab": " ", "noBreakHyphen": "-"}
_SKIPPED: Final = frozenset(("Fallback", "moveFrom"))
_PARAGRAPHS: Final = frozenset(("p", "comment"))


def read_ooxml(body: bytes, result: DocumentResult) -> None:
    """Read a docx, xlsx or pptx file."""
    package = Package(body)
    texts = sorted((name for name in package.names if _TEXTS.fullmatch(name)), key=_is_aside)
    sheets = [name for name in package.names if _SHEET.fullmatch(name)]
    if not texts and not sheets:
        raise BadDocumentError("unknown")
    result.reader = "docx"
    if sheets:
        result.reader = "xlsx"
    elif any(name.lower().startswith("ppt/") for name in texts):
        result.reader = "pptx"
    read_metadata(package, "docProps/core.xml", result)
    shared = _Shared()
    if sheets:
        package.parse_part("xl/sharedStrings.xml", shared)
    for name in sheets:
        package.parse_part(name, _Sheet(_relations(package, name), result, shared.strings))
    for name in texts:
        package.parse_part(name, _Text(_relations(package, name), result))


def _is_aside(name: str) -> bool:
    """Whether a part comes after the text itself: notes, headers, comments."""
    return not name.lower().startswith(("word/document", "ppt/slides/"))


def _relations(package: Package, name: str) -> dict[str, str]:
    """The links of a part that lead out of the document: id -> URL."""
    folder, _, file = name.rpartition("/")
    relations = _Relations()
    package.parse_part(f"{folder}/_rels/{file}.rels", relations)
    return relations.urls


class _Relations(XmlTarget):
    """A target for the relations of a part."""

    def __init__(self) -> None:
        self.urls: dict[str, str] = {}

    def start(self, tag: str, attrib: Any) -> None:
        if attrib.get("Type", "").endswith("/hyperlink") and attrib.get("TargetMode") == "External":
            self.urls[attrib.get("Id", "")] = attrib.get("Target", "")


class _Text(XmlTarget):
    """A target for paragraphs of Word and PowerPoint, each of which is a block.

    Text counts inside of <t> only; deleted text is in other elements. A text box is inside of a
    paragraph, and for old programs a second time (Fallback); moved text is also where it was
    (moveFrom).
    """

    def __init__(self, urls: dict[str, str], result: DocumentResult) -> None:
        self._urls = urls
        self._result = result
        self._text: list[str] = []
        self._code: list[str] = []
        self._into: list[str] | None = None
        self._anchor: list[str] | None = None
        self._url = ""
        self._around: list[list[str]] = []
        self._skip = 0

    def start(self, tag: str, attrib: Any) -> None:
        name = local_name(tag)
        if self._skip or name in _SKIPPED:
            self._skip += 1
        elif name == "txbxContent":
            self._around.append(self._text)
            self._text = []
        elif name == "t":
            self._into = self._text
        elif name == "instrText":
            self._into = self._code
        elif name in _SIGNS:
            self._text.append(_SIGNS[name])
        elif name in ("hyperlink", "hlinkClick"):
            url = self._urls.get(attribute_value(attrib, "id"))
            if url:
                self._url = url
                self._anchor = []
        elif name == "fldSimple":
            self._add_field_links(attribute_value(attrib, "instr"))
        elif name == "rPr" and not self._result.language:
            self._result.language = attribute_value(attrib, "lang")
        elif name == "lang" and not self._result.language:
            self._result.language = attribute_value(attrib, "val")

    def data(self, text: str) -> None:
        if self._into is not None:
            self._into.append(text)
            if self._anchor is not None and self._into is self._text:
                self._anchor.append(text)

    def end(self, tag: str) -> None:
        name = local_name(tag)
        if self._skip:
            self._skip -= 1
        elif name == "txbxContent":
            self._result.add_block("".join(self._text))
            self._text = self._around.pop()
        elif name in ("t", "instrText"):
            self._into = None
        elif name == "fldChar":
            self._add_field_links("".join(self._code))
            self._code.clear()
        elif name == "hyperlink" or tag.endswith("drawingml/2006/main}r"):
            # Word puts the link around its runs, PowerPoint inside of the run that it belongs to.
            self._close_link()
        elif name in _PARAGRAPHS:
            text = "".join(self._text)
            self._text = []
            self._result.add_block(text)

    def close(self) -> None:
        self._close_link()
        self._result.add_block("".join(self._text))

    def _add_field_links(self, code: str) -> None:
        for url in _FIELD.findall(code):
            self._result.add_link(url)

    def _close_link(self) -> None:
        if self._anchor is not None:
            self._result.add_link(self._url, "".join(self._anchor))
            self._anchor = None


class _Shared(XmlTarget):
    """A target for the strings that all sheets of a workbook share."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._parts: list[str] = []
        self._in_text = False
        self._characters_left = 4 * MAX_TEXT

    def start(self, tag: str, attrib: Any) -> None:
        self._in_text = local_name(tag) == "t"

    def data(self, text: str) -> None:
        if self._in_text:
            self._parts.append(text)

    def end(self, tag: str) -> None:
        self._in_text = False
        if local_name(tag) == "si":
            text = "".join(self._parts)
            self._parts = []
            self._characters_left -= len(text) + 50  # a string costs memory beside its characters
            if self._characters_left < 0:
                raise LimitReachedError
            self.strings.append(text)


class _Sheet(XmlTarget):
    """A target for the cells of a sheet; a row is a block."""

    def __init__(self, urls: dict[str, str], result: DocumentResult, strings: list[str]) -> None:
        self._urls = urls
        self._result = result
        self._strings = strings
        self._row: list[str] = []
        self._parts: list[str] = []
        self._cell_type = ""
        self._in_text = False

    def start(self, tag: str, attrib: Any) -> None:
        name = local_name(tag)
        self._in_text = name in ("v", "t", "f")
        if name == "c":
            self._cell_type = attrib.get("t", "n")
        elif name == "hyperlink":
            url = self._urls.get(attribute_value(attrib, "id"))
            if url:
                self._result.add_link(url, attribute_value(attrib, "display"))

    def data(self, text: str) -> None:
        if self._in_text:
            self._parts.append(text)

    def end(self, tag: str) -> None:
        name = local_name(tag)
        if name in ("v", "t", "f"):
            text = "".join(self._parts)
            self._parts = []
            self._in_text = False
            if name == "f":
                for url in _FORMULA.findall(text):
                    self._result.add_link(url)
            elif name == "v":
                self._row.append(self._cell_value(text))
            else:
                self._row.append(text)
        elif name == "row":
            row = " ".join(self._row)
            self._row = []
            self._result.add_block(row)

    def _cell_value(self, text: str) -> str:
        if self._cell_type == "b":
            return "FALSE" if text == "0" else "TRUE"
        if self._cell_type != "s":
            return text
        if text.isascii() and text.isdigit() and len(text) < 10:
            number = int(text)
            if number < len(self._strings):
                return self._strings[number]
        return ""
