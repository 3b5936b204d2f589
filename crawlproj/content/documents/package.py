"""Office files are zips full of XML. Both are read in small pieces and within bounds: bombs go off
in here.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any, Final

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content.documents.result import BadDocumentError, DocumentResult, LimitReachedError

MAX_UNPACKED: Final = 200_000_000
"""Bytes of XML in one document."""
_PIECE: Final = 65_536


class DoctypeError(Exception):
    """A part brings entities of its own, which no office program writes."""


class XmlTarget:
    """What a part is told to; lxml calls `close` at the end."""

    def doctype(self, *_: object) -> None:
        raise DoctypeError

    def start(self, tag: str, attrib: Any) -> None: ...

    def data(self, text: str) -> None: ...

    def end(self, tag: str) -> None: ...

    def close(self) -> None: ...


class Package:
    """The parts of an office document by name."""

    def __init__(self, body: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError):
            raise BadDocumentError("broken") from None
        self._room = MAX_UNPACKED
        self.names = sorted(self._zip.namelist(), key=_natural)

    def parse_part(self, name: str, target: XmlTarget) -> None:
        """Tell the target of each tag and text of a part. No tree is built, nothing is fetched. A
        part that is missing, broken or cut off gives what can be read.
        """
        # "internal": &amp; in attributes, of which lxml leaves &#38; otherwise. Other entities need
        # a DOCTYPE, which ends it.
        parser = etree.XMLParser(
            target=target,
            resolve_entities="internal",
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            recover=True,
        )
        try:
            with self._zip.open(name) as stream:
                while piece := stream.read(_PIECE):
                    self._room -= len(piece)
                    if self._room < 0:
                        raise LimitReachedError
                    parser.feed(piece)
            parser.close()
        except RuntimeError:
            raise BadDocumentError("encrypted") from None  # what zipfile says of a password
        except (
            DoctypeError,
            KeyError,
            zipfile.BadZipFile,
            etree.LxmlError,
            EOFError,
            NotImplementedError,
            ValueError,
            OSError,
        ):
            return


class ElementTexts(XmlTarget):
    """A target: the texts of some elements, by name."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._open = ""
        self.texts: dict[str, str] = {}

    def start(self, tag: str, attrib: Any) -> None:
        name = local_name(tag)
        self._open = name if name in self._names and name not in self.texts else ""

    def data(self, text: str) -> None:
        if self._open:
            self.texts[self._open] = (self.texts.get(self._open, "") + text)[:1_000]

    def end(self, tag: str) -> None:
        self._open = ""


def read_metadata(package: Package, name: str, found: DocumentResult) -> None:
    """Title and language as the document's own description has them."""
    facts = ElementTexts("title", "language")
    package.parse_part(name, facts)
    found.title = facts.texts.get("title", "")
    found.language = facts.texts.get("language", "")


def local_name(tag: str) -> str:
    """The name without its namespace: there are two namespaces of Office, and people who make up
    their own.
    """
    return tag.rpartition("}")[2]


def attribute_value(attrib: Any, name: str) -> str:
    """By its name without namespace."""
    return next((value for key, value in attrib.items() if local_name(key) == name), "")


def _natural(name: str) -> list[tuple[int, str]]:
    """Slide 2 comes before slide 10."""
    return [
        (int(part), "") if part.isascii() and part.isdigit() else (-1, part)
        for part in re.split(r"([0-9]{1,9})", name)
    ]
