"""PDF, read by PDFium: its text, the links of annotations, and URLs in the text."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as raw  # type: ignore[import-untyped]

from crawlproj.content.documents.result import BadDocumentError, DocumentResult, LimitReachedError

MAX_PAGES: Final = 2_000
MAX_PAGE_LINKS: Final = 1_000
_HYPHENS: Final = ("\x02", "\ufffe", "\xad")
"""How PDFium marks a word that is parted at the end of a line."""
_JOINED: Final = re.compile("[\x02\ufffe](?![\r\n])")
"""... which it mostly joins to the next line by itself."""
_ENDS: Final = (".", "!", "?", ":", ".\u201d", '."')
_SMALL: Final = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R
/Resources<</Font<</F 5 0 R>>>>/Annots[6 0 R]>>endobj
4 0 obj<</Length 35>>stream
BT /F 9 Tf 9 9 Td (http://a.b) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
6 0 obj<</Type/Annot/Subtype/Link/Rect[0 0 99 99]/A<</S/URI/URI(http://a.b)>>>>endobj
trailer<</Root 1 0 R>>
"""


def warm_up() -> None:
    """Make PDFium load what it loads at first use: in the sandbox no file can be opened."""
    read_pdf(_SMALL, DocumentResult())


def read_pdf(body: bytes, result: DocumentResult) -> None:
    """Read a PDF file, page by page."""
    try:
        document = pdfium.PdfDocument(body)
    except pdfium.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise BadDocumentError("encrypted") from None
        raise BadDocumentError("broken") from None
    result.title = document.get_metadata_value("Title")
    result.language = _utf16(partial(raw.FPDFCatalog_GetLanguage, document))
    number = len(document)
    for index in range(min(number, MAX_PAGES)):
        try:
            page = document[index]
            text = page.get_textpage()
        except pdfium.PdfiumError:
            continue  # a page that is broken; others may not be
        _add_annotation_links(page, text, document, result=result)
        _add_text_links(text, result)
        for paragraph in split_paragraphs(text.get_text_bounded()):
            result.add_block(paragraph)
        text.close()
        page.close()
    if number > MAX_PAGES:
        raise LimitReachedError


def split_paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a text, of which PDF knows only the lines.

    A line that ends a sentence well before the margin ends a paragraph.
    """
    lines = [line.strip() for line in _JOINED.sub("", text).splitlines()]
    margin = 0.8 * max(map(len, lines), default=0)
    part: list[str] = []
    for line in lines:
        hyphenated = bool(part) and part[-1].endswith(_HYPHENS)
        if hyphenated:
            part[-1] = part[-1][:-1] + line
        else:
            part.append(line)
        heading = len(part) == 1 and not hyphenated
        if not line or (len(line) < margin and (line.endswith(_ENDS) or heading)):
            yield " ".join(part)
            part = []
    if part:
        yield " ".join(part)


def _add_annotation_links(page: Any, text: Any, document: Any, result: DocumentResult) -> None:
    position = ctypes.c_int(0)
    link = raw.FPDF_LINK()
    box = raw.FS_RECTF()
    for _ in range(MAX_PAGE_LINKS):
        if not raw.FPDFLink_Enumerate(page, position, link):
            break
        action = raw.FPDFLink_GetAction(link)
        if not action:
            continue
        url = _uri(document, action)
        if not url:
            continue
        anchor = ""
        if raw.FPDFLink_GetAnnotRect(link, box):
            anchor = text.get_text_bounded(box.left, box.bottom, box.right, top=box.top)
        result.add_link(url, anchor)


def _add_text_links(text: Any, result: DocumentResult) -> None:
    links = raw.FPDFLink_LoadWebLinks(text)
    if not links:
        return
    for index in range(min(raw.FPDFLink_CountWebLinks(links), MAX_PAGE_LINKS)):
        result.add_link(_utf16(partial(raw.FPDFLink_GetURL, links, index)), kind="text")
    raw.FPDFLink_CloseWebLinks(links)


def _uri(document: Any, action: Any) -> str:
    size = raw.FPDFAction_GetURIPath(document, action, None, 0)
    if not 1 < size <= 10_000:
        return ""
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFAction_GetURIPath(document, action, buffer, size)
    return buffer.value.decode("utf-8", "replace")


def _utf16(call: Callable[[Any, int], int]) -> str:
    """The text that PDFium writes into a buffer.

    Some calls count bytes and some characters: the buffer is big enough for both.
    """
    size = call(None, 0)
    if not 0 < size <= 20_000:
        return ""
    buffer = (ctypes.c_ushort * size)()
    call(buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").partition("\0")[0]
