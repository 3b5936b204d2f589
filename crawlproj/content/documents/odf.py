"""OpenDocument (odt, ods, odp): one content.xml with paragraphs, tables and links."""

from __future__ import annotations

from typing import Any, Final

from crawlproj.content.documents.formats import OPENDOCUMENT
from crawlproj.content.documents.package import (
    Package,
    XmlTarget,
    attribute_value,
    local_name,
    read_metadata,
)
from crawlproj.content.documents.result import BadDocumentError, DocumentResult

_SPACES: Final = frozenset(("s", "tab", "line-break"))
_SKIPPED: Final = frozenset(("tracked-changes", "forms", "note-citation", "page-number"))
_ASIDES: Final = frozenset(("note", "annotation"))


def read_odf(body: bytes, result: DocumentResult) -> None:
    """Read an OpenDocument file."""
    result.reader = _reader_of(body[30 + len(OPENDOCUMENT) : 100])
    package = Package(body)
    encryption = _EncryptionTarget()
    package.parse_part("META-INF/manifest.xml", encryption)
    if encryption.is_present:
        raise BadDocumentError("encrypted")
    if "content.xml" not in package.names:
        raise BadDocumentError("broken")
    read_metadata(package, "meta.xml", result)
    package.parse_part("content.xml", _Text(result))


def _reader_of(kind: bytes) -> str:
    if kind.startswith(b"spreadsheet"):
        return "ods"
    if kind.startswith(b"presentation"):
        return "odp"
    return "odt"


class _EncryptionTarget(XmlTarget):
    """A target for the manifest: does it say how to decrypt the rest?"""

    is_present = False

    def start(self, tag: str, attrib: Any) -> None:
        if local_name(tag) == "encryption-data":
            self.is_present = True


class _Text(XmlTarget):
    """A target for the text: a paragraph is a block, in a table a row.

    Notes and comments are inside of paragraphs and cells; their blocks come after those. `_around`
    keeps the text around an open note, and how deep in paragraphs and rows it was.
    """

    def __init__(self, result: DocumentResult) -> None:
        self._result = result
        self._text: list[str] = []
        self._around: list[tuple[list[str], int, int]] = []
        self._asides: list[str] = []
        self._paragraphs = 0
        self._rows = 0
        self._skip = 0
        self._link: tuple[str, int] | None = None

    def start(self, tag: str, attrib: Any) -> None:
        name = local_name(tag)
        if name in _SKIPPED:
            self._skip += 1
        elif name in _ASIDES:
            self._around.append((self._text, self._paragraphs, self._rows))
            self._text = []
            self._paragraphs = 0
            self._rows = 0
        elif name in ("p", "h"):
            self._paragraphs += 1
        elif name == "table-row":
            self._rows += 1
        elif name in _SPACES:
            self._text.append(" ")
        elif name == "a":
            # A document is a folder of its own: what is beside it is one step up.
            href = attribute_value(attrib, "href").removeprefix("../")
            self._link = (href, len(self._text))

    def data(self, text: str) -> None:
        if self._paragraphs and not self._skip:
            self._text.append(text)

    def end(self, tag: str) -> None:
        name = local_name(tag)
        if name in _SKIPPED:
            self._skip -= 1
        elif name in _ASIDES and self._around:
            self._end_block()
            self._text, self._paragraphs, self._rows = self._around.pop()
        elif name in ("p", "h"):
            self._paragraphs -= 1
            self._end_block()
        elif name == "table-row":
            self._rows -= 1
            self._end_block()
        elif name == "a" and self._link is not None:
            url, start = self._link
            self._link = None
            self._result.add_link(url, "".join(self._text[start:]))

    def close(self) -> None:
        self._rows = 0
        self._around = []
        self._end_block()

    def _end_block(self) -> None:
        """Add the text so far as a block; inside of a row it goes on after a space."""
        if self._rows:
            self._text.append(" ")
            return
        text = "".join(self._text)
        self._text.clear()
        if self._around:
            self._asides.append(text)
            return
        self._result.add_block(text)
        asides = self._asides
        self._asides = []
        for aside in asides:
            self._result.add_block(aside)
