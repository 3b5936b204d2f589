"""The process that reads documents: bytes in, JSON out, over its two pipes. Started by `desk`,
imports nothing of Scrapy's.
"""

from __future__ import annotations

import codecs
import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

from crawlproj.content.documents import sandbox
from crawlproj.content.documents.formats import document_format
from crawlproj.content.documents.result import BadDocumentError, DocumentResult, LimitReachedError

HEAD: Final = struct.Struct("<Q")
"""Before each document and each answer: its length."""

CODECS: Final = (
    "cp437",
    "cp874",
    "cp932",
    "cp936",
    "cp949",
    "cp950",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp1257",
    "cp1258",
    "latin-1",
    "mac-roman",
    "utf-8",
    "utf-16",
    "utf-16-le",
)


def load_readers() -> dict[str, Callable[[bytes, DocumentResult], None]]:
    """By format. Everything is loaded here, because no file can be opened later on."""
    from crawlproj.content.documents import odf, ole, ooxml, pdf, rtf

    for codec in CODECS:
        codecs.lookup(codecs.lookup(codec).name)
    pdf.warm_up()
    return {
        "compound": ole.read_ole,
        "pdf": pdf.read_pdf,
        "office": ooxml.read_ooxml,
        "opendocument": odf.read_odf,
        "rtf": rtf.read_rtf,
    }


def read_document(
    body: bytes, by_format: dict[str, Callable[[bytes, DocumentResult], None]]
) -> dict[str, Any]:
    """What the document says, or {"failed": reason}. What was found before something went wrong is
    kept.
    """
    kind = document_format(body)
    found = DocumentResult()
    try:
        if kind not in by_format:
            raise BadDocumentError("unknown")
        by_format[kind](body, found)
    except BadDocumentError as error:
        return {"failed": str(error)}
    except MemoryError:
        return {"failed": "memory"}
    except LimitReachedError:
        found.cut = True
    except Exception:
        if not found.blocks:
            return {"failed": "broken"}
        found.cut = True
    if kind != "pdf":
        found.add_text_urls()
    return found.as_values()


def main(memory: int, timeout_s: int, documents: int, parent: int) -> None:
    sandbox.die_with_parent(parent)
    incoming = os.dup(0)
    outgoing = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # whatever a library prints must not get into the answers
        os.dup2(nothing, number)
    sandbox.limit_resources(memory, timeout_s * documents)
    by_format = load_readers()
    locked = sandbox.restrict_syscalls()
    _write(outgoing, {"locked": locked})
    while head := _read(incoming, HEAD.size):
        body = _read(incoming, HEAD.unpack(head)[0])
        signal.setitimer(
            signal.ITIMER_PROF, timeout_s
        )  # time on the CPU; what is over it ends the process
        answer = read_document(body, by_format)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(outgoing, answer)
    sys.exit()


def _read(pipe: int, size: int) -> bytes:
    """So many bytes; the end of the pipe is the end of the process."""
    body = bytearray()
    while len(body) < size:
        piece = os.read(pipe, min(size - len(body), 1 << 20))
        if not piece:
            os._exit(0)
        body += piece
    return bytes(body)


def _write(pipe: int, answer: dict[str, Any]) -> None:
    text = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    left = memoryview(HEAD.pack(len(text)) + text)
    while left:
        left = left[os.write(pipe, left) :]
