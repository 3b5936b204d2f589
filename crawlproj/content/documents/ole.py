"""Office 97 to 2003 (doc, xls, ppt): streams inside of a compound file.

What is older is recognized, but not read.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import olefile  # type: ignore[import-untyped]

from crawlproj.content.documents import doc, ppt, xls
from crawlproj.content.documents.result import BadDocumentError, DocumentResult


def read_ole(body: bytes, result: DocumentResult) -> None:
    """Read a compound file; which kind it is shows in the names of its streams."""
    try:
        # olefile raises only those errors after which nothing can be read.
        file = olefile.OleFileIO(body)
    except Exception:
        raise BadDocumentError("broken") from None
    names = {"/".join(path).lower() for path in file.listdir()}
    if "encryptedpackage" in names:
        raise BadDocumentError("encrypted")
    with suppress(Exception):
        result.title = _title(file.get_metadata())
    if "worddocument" in names:
        result.reader = "doc"
        tables = {
            name: read_stream(file, name) for name in ("0Table", "1Table") if name.lower() in names
        }
        doc.read_doc(read_stream(file, "WordDocument"), tables, result)
    elif "workbook" in names:
        result.reader = "xls"
        xls.read_xls(read_stream(file, "Workbook"), result)
    elif "powerpoint document" in names:
        result.reader = "ppt"
        if read_stream(file, "Current User")[12:16] == ppt.LOCKED:
            raise BadDocumentError("encrypted")
        ppt.read_ppt(read_stream(file, "PowerPoint Document"), result)
    elif "book" in names or "pp40" in names:
        raise BadDocumentError("old")
    else:
        raise BadDocumentError("unknown")


def read_stream(file: Any, name: str) -> bytes:
    """The bytes of a stream."""
    return bytes(file.openstream(name).read())


def _title(metadata: Any) -> str:
    title = metadata.title or ""
    if isinstance(title, str):
        return title
    page = metadata.codepage or 1252
    codec = f"cp{page & 0xFFFF}"
    if page in (65001, -535):  # as an unsigned and as a signed number
        codec = "utf-8"
    return str(title.decode(codec, "replace"))
