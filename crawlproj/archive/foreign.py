"""WARC (and ARC) files of other tools, read as exchanges: WARC/1.0, not packed, one gzip over all, cut, damaged."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]

from crawlproj.archive import heads
from crawlproj.archive.check import Problem
from crawlproj.archive.exchange import Exchange, Original, Truncated
from crawlproj.archive.members import GZIP, MAGIC, PIECE, BrokenError, member, next_member
from crawlproj.archive.records import digest
from crawlproj.archive.stored import Stored
from crawlproj.errors import ArchiveError

KINDS = ("response", "resource", "revisit")
MAX_BLOCK, MAX_HEADER = 256 << 20, 1 << 20
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


@dataclass(frozen=True, slots=True)
class Foreign:
    """An exchange of another tool. One that is a revisit has no body; `refers_to` says of what, if the record does."""

    exchange: Exchange
    kind: str
    refers_to: Original | None
    record_id: str
    digest: str


def read_foreign(path: Path, tell: Callable[[Problem], None], max_block: int = MAX_BLOCK) -> Iterator[Foreign]:
    """All exchanges with http or https URLs; `tell` hears of what could not be read. ArchiveError if none is in it."""
    pending: Foreign | None = None
    request: Stored | None = None
    for stored in _records(path, tell, max_block):
        if stored.kind == "request" and pending is not None and _belong(stored, pending):
            yield _asked(pending, stored)
            pending = request = None
        elif stored.kind == "request":
            request = stored
        elif stored.kind in KINDS and stored.url.lower().startswith(("http://", "https://")):
            if pending is not None:
                yield pending
            pending = _foreign(stored)
            if request is not None and _belong(request, pending):
                yield _asked(pending, request)
                pending = request = None
    if pending is not None:
        yield pending


def _records(path: Path, tell: Callable[[Problem], None], max_block: int) -> Iterator[Stored]:
    """Whole records; ArchiveError if there is none."""
    count = 0
    with _opened(path) as file:
        packed = not isinstance(file, gzip.GzipFile) and file.read(len(MAGIC)) == MAGIC
        file.seek(0)
        streams = _unpacked(file, path.name, tell, max_block) if packed else [(0, file)]
        for offset, stream in streams:
            for stored in _from(stream, offset, path.name, tell, max_block):
                count += 1
                yield stored
    if not count:
        raise ArchiveError(f"{path.name} holds no whole record")


def _unpacked(file: BinaryIO, name: str, tell: Callable[[Problem], None], max_block: int) -> Iterator[tuple[int, BinaryIO]]:
    """Each member alone. After a damaged place it goes on with the next that is whole."""
    offset, limit = 0, max_block + MAX_HEADER
    while True:
        try:
            found = member(file, offset, limit)
        except BrokenError as error:
            tell(Problem(name, offset, error.why))
            found = next_member(file, offset + 1, limit)
        if found is None:
            return
        yield found.offset, BytesIO(found.data)
        offset = found.offset + found.length


def _from(stream: BinaryIO, base: int, name: str, tell: Callable[[Problem], None], max_block: int) -> Iterator[Stored]:
    found = ArchiveIterator(stream, no_record_parse=True, arc2warc=True)
    try:
        while True:
            with redirect_stderr(StringIO()) as said:  # warcio speaks to the screen
                record = next(found, None)
            if "WARNING" in said.getvalue():
                tell(Problem(name, base + found.offset, "the record before it does not end where it says"))
            if record is None:
                return
            stored = _stored(record, base + found.offset, name, tell, max_block)
            if stored is not None:
                yield stored
    except (ArchiveLoadFailed, OSError, EOFError, ValueError) as error:
        tell(Problem(name, base + found.offset, f"no record: {' '.join(str(error).split())[:200]}"))


def _opened(path: Path) -> BinaryIO:
    """The file; a gzip of many records in one member is unpacked as a whole."""
    file = path.open("rb")
    if not _begins(file):
        return file
    try:
        with redirect_stderr(StringIO()):  # warcio speaks to the screen
            records = iter(ArchiveIterator(file, no_record_parse=True))
            for _ in range(2):
                next(records, None)
    except ArchiveLoadFailed as error:
        if "non-chunked" in str(error).lower():
            file.close()
            return cast("BinaryIO", gzip.open(path))
    except (OSError, EOFError, ValueError):
        pass  # it is said where it is read
    file.seek(0)
    return file


def _begins(file: BinaryIO) -> bool:
    """Is there a header of some sensible length? warcio would look for its end up to the end of the file, at any cost."""
    head = file.read(PIECE)
    if head.startswith(MAGIC):
        with suppress(zlib.error):
            head = zlib.decompressobj(GZIP).decompress(head, MAX_HEADER)
    file.seek(0)
    return b"\r\n\r\n" in head or b"\n\n" in head


def _stored(record: Any, offset: int, name: str, tell: Callable[[Problem], None], max_block: int) -> Stored | None:
    """One whole record, else None, and it is told."""
    block = _read(record.raw_stream, max_block + 1)
    if len(block) > max_block:
        tell(Problem(name, offset, f"more than {max_block} bytes in one record"))
        return None
    said = record.rec_headers.get_header("Content-Length") or ""
    if not said.strip().isdecimal() or record.length is None or len(block) < record.length:
        tell(Problem(name, offset, "the record is cut"))
        return None
    fields = {key.lower(): value for key, value in record.rec_headers.headers}
    stored = Stored(fields, block, offset)
    try:
        _ = stored.at
    except (KeyError, ValueError):
        tell(Problem(name, offset, "a record without a date"))
        return None
    return stored


def _read(stream: Any, limit: int) -> bytes:
    """Its reads are short."""
    pieces, left = [], limit
    while left > 0 and (piece := stream.read(min(left, PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _foreign(stored: Stored) -> Foreign:
    is_http = heads.is_http(stored.block) and stored.kind in ("response", "revisit")
    head, body = heads.split(stored.block) if is_http else (b"", stored.block)
    if heads.field(head, "Transfer-Encoding").lower() == "chunked":
        body = joined(body)
    cut = stored.fields.get("warc-truncated", "")
    exchange = Exchange(
        stored.url, stored.at, head, body, address=stored.fields.get("warc-ip-address", ""),
        truncated=None if not cut else Truncated(cut) if cut in set(Truncated) else Truncated.UNSPECIFIED,
    )  # fmt: skip
    return Foreign(exchange, stored.kind, stored.refers_to, stored.id, stored.digest or digest(body))


def joined(body: bytes) -> bytes:
    """A body without its chunks' frames; one that has none stays as it is, of one that is cut comes what is there."""
    pieces: list[bytes] = []
    at = 0
    while found := _CHUNK.match(body, at):
        size, start = int(found[1], 16), found.end()
        if size == 0:
            return b"".join(pieces)
        pieces.append(body[start : start + size])
        at = start + size
        at += 2 if body[at : at + 2] == b"\r\n" else body[at : at + 1] == b"\n"
    return b"".join(pieces) if pieces else body


def _belong(request: Stored, answer: Foreign) -> bool:
    """By their ids, or (where a tool leaves them out) by their URLs."""
    said = request.fields.get("warc-concurrent-to", "")
    return said == answer.record_id if said else request.url == answer.exchange.url


def _asked(answer: Foreign, request: Stored) -> Foreign:
    head, body = heads.split(request.block)
    old = answer.exchange
    exchange = Exchange(old.url, old.at, old.head, old.body, head, body, old.address, truncated=old.truncated)
    return Foreign(exchange, answer.kind, answer.refers_to, answer.record_id, answer.digest)
