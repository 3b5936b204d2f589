"""The format of a document, by its bytes alone: servers are often wrong."""

from __future__ import annotations

from typing import Final, Literal

DocumentFormat = Literal["pdf", "office", "opendocument", "rtf", "compound", ""]

READER_VERSIONS: Final = {
    "pdf": 1,
    "docx": 1,
    "xlsx": 1,
    "pptx": 1,
    "odt": 1,
    "ods": 1,
    "odp": 1,
    "doc": 1,
    "xls": 1,
    "ppt": 1,
    "rtf": 1,
}
"""What reads each kind of document, and its version: higher when it gives another text."""
OPENDOCUMENT: Final = b"mimetypeapplication/vnd.oasis.opendocument."
_PDF_WITHIN: Final = 1024
"""How far into the file %PDF- may begin, as all readers of PDF allow."""


def document_format(body: bytes) -> DocumentFormat:
    """The format of a body; empty if it is none that we read.

    A zip is looked through for the file that every office document must have.
    """
    if b"%PDF-" in body[:_PDF_WITHIN]:
        return "pdf"
    if body.startswith(b"{\\rtf"):
        return "rtf"
    if body.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "compound"
    if not body.startswith(b"PK\x03\x04"):
        return ""
    if body[30:100].startswith(OPENDOCUMENT):
        return "opendocument"
    return "office" if b"[Content_Types].xml" in body else ""
