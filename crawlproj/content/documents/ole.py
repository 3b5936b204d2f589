"""doc, xls and ppt of Office 97 to 2003: streams inside of a compound file. What is older is told
apart, but not read.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import olefile  # type: ignore[import-untyped]

from crawlproj.content.documents import doc, ppt, xls
from crawlproj.content.documents.result import BadDocumentError, DocumentResult


def read_ole(body: bytes, found: DocumentResult) -> None:
    try:
        # Errors of the structure are raised where nothing can be read, and lived with otherwise.
        file = olefile.OleFileIO(body)
    except Exception:
        raise BadDocumentError("broken") from None
    names = {"/".join(path).lower() for path in file.listdir()}
    if "encryptedpackage" in names:
        raise BadDocumentError("encrypted")
    with suppress(Exception):
        found.title = _title(file.get_metadata())
    if "worddocument" in names:
        table = {
            name: read_stream(file, name) for name in ("0Table", "1Table") if name.lower() in names
        }
        doc.read_doc(read_stream(file, "WordDocument"), table, found)
    elif "workbook" in names:
        xls.read_xls(read_stream(file, "Workbook"), found)
    elif "powerpoint document" in names:
        if read_stream(file, "Current User")[12:16] == ppt.LOCKED:
            raise BadDocumentError("encrypted")
        ppt.read_ppt(read_stream(file, "PowerPoint Document"), found)
    else:
        raise BadDocumentError("old" if "book" in names or "pp40" in names else "unknown")


def read_stream(file: Any, name: str) -> bytes:
    return bytes(file.openstream(name).read())


def _title(metadata: Any) -> str:
    title = metadata.title or ""
    page = metadata.codepage or 1252
    codec = "utf-8" if page in (65001, -535) else f"cp{page & 0xFFFF}"
    return title if isinstance(title, str) else title.decode(codec, "replace")
