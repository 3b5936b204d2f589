"""The reader process: documents in, JSON out, over its two pipes.

`reader_process` starts it. It imports nothing of Scrapy.
"""

from __future__ import annotations

import codecs
import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from crawlproj.content.documents import sandbox
from crawlproj.content.documents.formats import READER_VERSIONS, document_format
from crawlproj.content.documents.result import BadDocumentError, DocumentResult, LimitReachedError

HEAD: Final = struct.Struct("<Q")
"""The length of what follows, before each document and each reply."""

DocumentReadFunction: TypeAlias = Callable[[bytes, DocumentResult], None]

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


def load_readers() -> dict[str, DocumentReadFunction]:
    """The function that reads each format.

    Everything is loaded here, because in the sandbox no file can be opened.
    """
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


def read_document(body: bytes, readers: dict[str, DocumentReadFunction]) -> dict[str, Any]:
    """The reply to a document: its title, text and links, or {"failed": reason}.

    What was read before something went wrong is kept.
    """
    format_ = document_format(body)
    result = DocumentResult()
    try:
        if format_ not in readers:
            raise BadDocumentError("unknown")
        if format_ in READER_VERSIONS:
            result.reader = format_  # of the others their readers say which they are
        readers[format_](body, result)
    except BadDocumentError as error:
        return {"failed": str(error)}
    except MemoryError:
        return {"failed": "memory"}
    except LimitReachedError:
        result.cut = True
    except Exception:
        if not result.blocks:
            return {"failed": "broken"}
        result.cut = True
    if format_ != "pdf":  # whose reader has found them already
        result.add_text_urls()
    return result.as_values()


def main(memory: int, timeout_s: int, documents: int, parent: int) -> None:
    """Read so many documents at most, one after the other, until the pipe ends."""
    sandbox.die_with_parent(parent)
    incoming = os.dup(0)
    outgoing = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # what a library prints must not get into the replies
        os.dup2(nothing, number)
    sandbox.limit_resources(memory, timeout_s * documents)
    readers = load_readers()
    locked = sandbox.restrict_syscalls()
    _write(outgoing, {"locked": locked})
    while head := _read(incoming, HEAD.size):
        body = _read(incoming, HEAD.unpack(head)[0])
        # CPU time, not wall time: SIGPROF ends the process if it takes more.
        signal.setitimer(signal.ITIMER_PROF, timeout_s)
        reply = read_document(body, readers)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(outgoing, reply)
    sys.exit()


def _read(pipe: int, size: int) -> bytes:
    """Read so many bytes; the end of the pipe ends the process."""
    body = bytearray()
    while len(body) < size:
        piece = os.read(pipe, min(size - len(body), 1 << 20))
        if not piece:
            os._exit(0)
        body += piece
    return bytes(body)


def _write(pipe: int, reply: dict[str, Any]) -> None:
    text = json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace")
    left = memoryview(HEAD.pack(len(text)) + text)
    while left:
        left = left[os.write(pipe, left) :]
