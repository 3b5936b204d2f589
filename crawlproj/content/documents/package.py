"""Office files as packages: zips full of XML.

Both are read in small pieces and within bounds: this is where decompression bombs are stopped.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any, Final

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content.documents.result import BadDocumentError, DocumentResult, LimitReachedError

MAX_DECOMPRESSED: Final = 200_000_000
"""Bytes of XML that are read of one document."""
_PIECE: Final = 65_536


class DoctypeError(Exception):
    """A part brings entities of its own, which no office program writes."""


class XmlTarget:
    """What lxml calls while it reads a part, and `close` at the end."""

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
        self._bytes_left = MAX_DECOMPRESSED
        self.names = sorted(self._zip.namelist(), key=_natural_order)

    def parse_part(self, name: str, target: XmlTarget) -> None:
        """Call the target for each tag and text of a part; no tree is built, nothing is fetched.

        A part that is missing, broken or cut off gives what can be read.
        """
        # "internal" is for &amp; in attributes, of which lxml leaves &#38; otherwise. Other
        # entities need a DOCTYPE, at which `doctype` raises.
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
                    self._bytes_left -= len(piece)
                    if self._bytes_left < 0:
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
    """A target for the texts of some elements, by name."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._open = ""
        self.texts: dict[str, str] = {}

    def start(self, tag: str, attrib: Any) -> None:
        name = local_name(tag)
        self._open = ""
        if name in self._names and name not in self.texts:
            self._open = name

    def data(self, text: str) -> None:
        if self._open:
            self.texts[self._open] = (self.texts.get(self._open, "") + text)[:1_000]

    def end(self, tag: str) -> None:
        self._open = ""


def read_metadata(package: Package, name: str, result: DocumentResult) -> None:
    """Read title and language from the part with the document's own description."""
    metadata = ElementTexts("title", "language")
    package.parse_part(name, metadata)
    result.title = metadata.texts.get("title", "")
    result.language = metadata.texts.get("language", "")


def local_name(tag: str) -> str:
    """The name without its namespace: Office has two, and some programs make up their own."""
    return tag.rpartition("}")[2]


def attribute_value(attrib: Any, name: str) -> str:
    """The value of an attribute by its name without namespace; empty if there is none."""
    for key, value in attrib.items():
        if local_name(key) == name:
            return str(value)
    return ""


def _natural_order(name: str) -> list[tuple[int, str]]:
    """A sort key by which slide 2 comes before slide 10."""
    key = []
    for part in re.split(r"([0-9]{1,9})", name):
        if part.isascii() and part.isdigit():
            key.append((int(part), ""))
        else:
            key.append((-1, part))
    return key
