"""docx, xlsx and pptx. Hyperlinks are in the relations of a part, in field codes and
in formulas.
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
    r"|ppt/(?:slides/slide|notesSlides/notesSlide)\d+\.xml|xl/(?:comments\d*|comments/comment\d+|drawings/drawing\d+)\.xml|(?:word|ppt|xl)/diagrams/data\d+\.xml",
    re.I,
)
_SHEET: Final = re.compile(r"xl/worksheets/[^/]+\.xml", re.I)
_FIELD: Final = re.compile(r'\bHYPERLINK\s{1,9}"([^"]{1,4000})"')
_FORMULA: Final = re.compile(r'\bHYPERLINK\(\s{0,9}"([^"]{1,4000})"', re.I)
_SIGNS: Final = {"tab": " ", "br": " ", "cr": " ", "ptab": " ", "noBreakHyphen": "-"}
_SKIPPED: Final = frozenset(("Fallback", "moveFrom"))
_PARAGRAPHS: Final = frozenset(("p", "comment"))


def read_ooxml(body: bytes, found: DocumentResult) -> None:
    package = Package(body)
    texts = sorted((name for name in package.names if _TEXTS.fullmatch(name)), key=_is_aside)
    sheets = [name for name in package.names if _SHEET.fullmatch(name)]
    if not texts and not sheets:
        raise BadDocumentError("unknown")
    read_metadata(package, "docProps/core.xml", found)
    shared = _Shared()
    if sheets:
        package.parse_part("xl/sharedStrings.xml", shared)
    for name in sheets:
        package.parse_part(name, _Sheet(_relations(package, name), found, shared.strings))
    for name in texts:
        package.parse_part(name, _Text(_relations(package, name), found))


def _is_aside(name: str) -> bool:
    """Notes, headers and comments come after the text itself."""
    return not name.lower().startswith(("word/document", "ppt/slides/"))


def _relations(package: Package, name: str) -> dict[str, str]:
    """Id -> URL of the links that lead out of the document."""
    folder, _, file = name.rpartition("/")
    relations = _Relations()
    package.parse_part(f"{folder}/_rels/{file}.rels", relations)
    return relations.urls


class _Relations(XmlTarget):
    def __init__(self) -> None:
        self.urls: dict[str, str] = {}

    def start(self, tag: str, attrib: Any) -> None:
        if attrib.get("Type", "").endswith("/hyperlink") and attrib.get("TargetMode") == "External":
            self.urls[attrib.get("Id", "")] = attrib.get("Target", "")


class _Text(XmlTarget):
    """Paragraphs of Word and PowerPoint: text counts inside of <t> only, what was deleted stands
    elsewhere. A text box stands inside of a paragraph, and for old readers a second time
    (Fallback); what was moved stands where it was, too (moveFrom).
    """

    def __init__(self, urls: dict[str, str], found: DocumentResult) -> None:
        self._urls = urls
        self._found = found
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
        elif name in ("hyperlink", "hlinkClick") and (
            url := self._urls.get(attribute_value(attrib, "id"))
        ):
            self._url = url
            self._anchor = []
        elif name == "fldSimple":
            self._field(attribute_value(attrib, "instr"))
        elif name == "rPr" and not self._found.language:
            self._found.language = attribute_value(attrib, "lang")
        elif name == "lang" and not self._found.language:
            self._found.language = attribute_value(attrib, "val")

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
            self._found.add_block("".join(self._text))
            self._text = self._around.pop()
        elif name in ("t", "instrText"):
            self._into = None
        elif name == "fldChar":
            self._field("".join(self._code))
            self._code.clear()
        # PowerPoint names the link inside of the run that it belongs to, Word puts it around the
        # runs.
        elif self._anchor is not None and (
            name == "hyperlink" or (name == "r" and tag.endswith("drawingml/2006/main}r"))
        ):
            self._close_link()
        elif name in _PARAGRAPHS:
            text = "".join(self._text)
            self._text = []
            self._found.add_block(text)

    def close(self) -> None:
        self._close_link()
        self._found.add_block("".join(self._text))

    def _field(self, code: str) -> None:
        for url in _FIELD.findall(code):
            self._found.add_link(url)

    def _close_link(self) -> None:
        if self._anchor is not None:
            self._found.add_link(self._url, "".join(self._anchor))
            self._anchor = None


class _Shared(XmlTarget):
    """The strings of all sheets of a workbook."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._parts: list[str] = []
        self._on = False
        self._room = 4 * MAX_TEXT

    def start(self, tag: str, attrib: Any) -> None:
        self._on = local_name(tag) == "t"

    def data(self, text: str) -> None:
        if self._on:
            self._parts.append(text)

    def end(self, tag: str) -> None:
        self._on = False
        if local_name(tag) == "si":
            text = "".join(self._parts)
            self._parts = []
            self._room -= len(text) + 50
            if self._room < 0:
                raise LimitReachedError
            self.strings.append(text)


class _Sheet(XmlTarget):
    """A row is a block."""

    def __init__(self, urls: dict[str, str], found: DocumentResult, strings: list[str]) -> None:
        self._urls = urls
        self._found = found
        self._strings = strings
        self._row: list[str] = []
        self._parts: list[str] = []
        self._kind = self._inside = ""

    def start(self, tag: str, attrib: Any) -> None:
        name = local_name(tag)
        self._inside = name if name in ("v", "t", "f") else ""
        if name == "c":
            self._kind = attrib.get("t", "n")
        elif name == "hyperlink" and (url := self._urls.get(attribute_value(attrib, "id"))):
            self._found.add_link(url, attribute_value(attrib, "display"))

    def data(self, text: str) -> None:
        if self._inside:
            self._parts.append(text)

    def end(self, tag: str) -> None:
        name = local_name(tag)
        if name in ("v", "t", "f"):
            text = "".join(self._parts)
            self._parts = []
            self._inside = ""
            if name == "f":
                for url in _FORMULA.findall(text):
                    self._found.add_link(url)
            else:
                self._row.append(self._value(text) if name == "v" else text)
        elif name == "row":
            row = " ".join(self._row)
            self._row = []
            self._found.add_block(row)

    def _value(self, text: str) -> str:
        if self._kind == "b":
            return "FALSE" if text == "0" else "TRUE"
        if self._kind != "s":
            return text
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
        return self._strings[number] if 0 <= number < len(self._strings) else ""
