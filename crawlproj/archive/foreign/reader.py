"""WARC (and ARC) files of other tools, read as exchanges: WARC/1.0, not packed, one gzip over all,
cut, damaged.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from crawlproj.archive.check import Problem, digest_matches, header_faults
from crawlproj.archive.exchange import Exchange, Original, Truncated
from crawlproj.archive.foreign.scanner import MAX_BLOCK, Scanner
from crawlproj.archive.foreign.streams import begins_compressed
from crawlproj.archive.gzip_members import MAGIC
from crawlproj.archive.records import compute_digest, plain_url
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.errors import ArchiveError
from crawlproj.http import heads
from crawlproj.http.encodings import decode_body

KINDS = ("response", "resource", "revisit")
BESIDE = ("request", "warcinfo", "metadata")
NO_PAGES = (b"HEAD ", b"OPTIONS ", b"TRACE ", b"CONNECT ")
OTHERS = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x5d\x2a\x4d\x18": "zstd",
    b"\x50\x2a\x4d\x18": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip (a WACZ holds its WARC files in archive/)",
}
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?(\r?\n)")

Tell = Callable[[Problem], None]


class UnreadableWarcError(ArchiveError):
    """Nothing can be read of a file, or not all of it."""


@dataclass(frozen=True, slots=True)
class ForeignExchange:
    """An exchange of another tool. One that is a revisit has no body; `refers_to` says of what, if
    the record does.
    """

    exchange: Exchange
    kind: str
    refers_to: Original | None
    record_id: str
    digest: str
    concurrent_to: str = ""
    """The id of the record that this one says it was written with."""
    refers_to_id: str = ""
    profile: str = ""
    offset: int = 0


def read_foreign(
    path: Path,
    report: Tell,
    max_block: int = MAX_BLOCK,
    on_skipped: Callable[[str], None] = lambda what: None,
) -> Iterator[ForeignExchange]:
    """All exchanges with http or https URLs; `tell` hears of what could not be read, `passed` of
    what is no page. UnreadableError if there is no record in it.
    """
    for found in _pairs(_exchanges(path, report, max_block, passed=on_skipped)):
        if found.exchange.request.startswith(NO_PAGES):
            on_skipped(f"answer to {found.exchange.request.partition(b' ')[0].decode()}")
        elif _lacks_body(found):
            on_skipped("answer without its body, as to HEAD")
        else:
            yield found


def iter_records(path: Path, report: Tell, max_block: int = MAX_BLOCK) -> Iterator[StoredRecord]:
    """Whole records; UnreadableError if there is none: then it says the first that is wrong."""
    count = 0
    first = ""
    held = list[Problem]()

    def told(offset: int, what: str) -> None:
        nonlocal first
        held.append(Problem(path.name, offset, what))
        if count or first:
            let_go()
        first = first or f" ({what})"

    def let_go() -> None:
        while held:
            report(held.pop(0))

    with _opened(path) as (file, packed):
        for stored in Scanner(
            file, packed, told, verify=verify_digests, max_block=max_block
        ).iter_records():
            count += 1
            let_go()
            try:
                _ = stored.at
            except (KeyError, ValueError):
                told(stored.offset, "a record without a date")
            else:
                yield stored
    if not count:
        raise UnreadableWarcError(f"{path.name} holds no whole record{first}")


def check_foreign(path: Path) -> Iterator[Problem]:
    """What is wrong in a file of another tool, as it would be imported, and in the headers of its
    records.
    """
    told: list[Problem] = []
    try:
        if path.exists() and not path.is_file():
            raise UnreadableWarcError(f"{path.name} is no file")
        for stored in iter_records(path, told.append):
            if "archive-length" not in stored.fields:
                told += [
                    Problem(path.name, stored.offset, what)
                    for what in [*header_faults(stored), *_misfits(stored)]
                ]
            yield from told
            told.clear()
    except UnreadableWarcError as error:
        told.append(Problem(path.name, 0, str(error).removeprefix(f"{path.name} ")))
    yield from told


def _misfits(stored: StoredRecord) -> list[str]:
    """Which of its digests are wrong: one is right, or it would not count as a record."""
    block = stored.fields.get("warc-block-digest", "")
    found = (
        []
        if digest_matches(stored.block, block) or stored.kind == "revisit"
        else ["the block digest is wrong"]
    )
    return found + (
        ["the payload digest is wrong"]
        if verify_digests(replace(stored, fields={**stored.fields, "warc-block-digest": ""}))
        is False
        else []
    )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, bool]]:
    """The file, and whether it is packed with gzip."""
    try:
        with path.open("rb", buffering=1 << 18) as file:
            start = file.read(8)
            for magic, name in OTHERS.items():
                if start.startswith(magic):
                    raise UnreadableWarcError(
                        f"{path.name} holds no whole record: it is packed with {name}; unpack it "
                        "first"
                    )
            if not start:
                raise UnreadableWarcError(f"{path.name} holds no whole record: it is empty")
            yield file, start.startswith(MAGIC) or begins_compressed(file)
    except OSError as error:
        raise UnreadableWarcError(
            f"{path.name} can't be read: {error.strerror or error}"
        ) from error


def verify_digests(stored: StoredRecord) -> bool | None:
    """Does a digest of it fit? None if it has none that can be judged. Tools differ in what they
    take for a payload.
    """
    block = stored.fields.get("warc-block-digest", "")
    payload = stored.digest
    if _known(block) and digest_matches(stored.block, block):
        return True
    if stored.kind == "revisit":
        return None
    if (
        not _known(payload)
        or stored.kind not in KINDS
        or {"warc-truncated", "warc-segment-number"} & stored.fields.keys()
    ):
        return False if _known(block) else None
    head, body = (
        heads.split_head(stored.block) if heads.is_http(stored.block) else (b"", stored.block)
    )
    return any(digest_matches(each, payload) for each in _payloads(head, body))


def _payloads(head: bytes, body: bytes) -> Iterator[bytes]:
    yield body
    plain = join_chunks(body) if _is_chunked(head) else body
    yield plain
    yield decode_body(plain, heads.get_header(head, "Content-Encoding"))


def _known(said: str) -> bool:
    return ":" in said and said.partition(":")[0].lower() in hashlib.algorithms_available


def _exchanges(
    path: Path, tell: Tell, max_block: int, passed: Callable[[str], None]
) -> Iterator[StoredRecord]:
    """Answers and requests of the web."""
    for stored in iter_records(path, tell, max_block):
        web = stored.url.lower().startswith(("http://", "https://"))
        if (
            stored.kind in ("response", "resource")
            and web
            and "warc-segment-number" in stored.fields
        ):
            tell(
                Problem(
                    path.name,
                    stored.offset,
                    f"{stored.url} is in segments, which are not joined: it is left out",
                )
            )
        elif stored.kind in ("request", *KINDS) and web:
            yield stored
        elif stored.kind not in BESIDE:
            passed(
                stored.kind
                if web or ":" not in stored.url
                else f"{stored.kind} of {stored.url.partition(':')[0][:20]}:"
            )


def _pairs(found: Iterator[StoredRecord]) -> Iterator[ForeignExchange]:
    """Answers with their requests, which are before or behind them."""
    pending: ForeignExchange | None = None
    request: StoredRecord | None = None
    for stored in found:
        if stored.kind == "request" and pending is not None and _belong(stored, pending):
            yield _with_request(pending, stored)
            pending = request = None
        elif stored.kind == "request":
            request = stored
        else:
            if pending is not None:
                yield pending
            pending = _foreign(stored)
            if request is not None and _belong(request, pending):
                yield _with_request(pending, request)
                pending = request = None
    if pending is not None:
        yield pending


def _lacks_body(found: ForeignExchange) -> bool:
    """Nobody kept the request, but it can only have been a HEAD."""
    old = found.exchange
    length = heads.get_header(found.exchange.head, "Content-Length")
    said = length.isdecimal() and int(length[:18]) > 0
    return (
        said
        and not old.body
        and not old.request
        and not old.truncated
        and found.kind == "response"
        and heads.parse_status(old.head) == 200
    )


def _foreign(stored: StoredRecord) -> ForeignExchange:
    is_http = heads.is_http(stored.block) and stored.kind in ("response", "revisit")
    head, body = heads.split_head(stored.block) if is_http else (b"", stored.block)
    while 100 <= heads.parse_status(head) < 200 and heads.is_http(body):
        head, body = heads.split_head(body)
    cut = (
        stored.fields.get("warc-truncated", "") if stored.kind != "revisit" else ""
    )  # wget says so of each
    if stored.kind != "revisit" and _is_chunked(head):
        body, early = _unframed(body)
        cut = cut or ("unspecified" if early else "")
    kind = stored.fields.get("content-type", "")
    exchange = Exchange(
        plain_url(stored.url),
        stored.at,
        head,
        body=body,
        address=stored.fields.get("warc-ip-address", ""),
        truncated=None
        if not cut
        else Truncated(cut)
        if cut in set(Truncated)
        else Truncated.UNSPECIFIED,
        content_type="" if is_http or kind.startswith("application/http") else kind,
    )
    said = stored.digest or ("" if stored.kind == "revisit" else compute_digest(body))
    beside, refers_id, profile = (
        stored.fields.get(f"warc-{name}", "") for name in ("concurrent-to", "refers-to", "profile")
    )
    return ForeignExchange(
        exchange,
        stored.kind,
        stored.refers_to,
        record_id=stored.id,
        digest=said,
        concurrent_to=beside,
        refers_to_id=refers_id,
        profile=profile,
        offset=stored.offset,
    )


def _is_chunked(head: bytes) -> bool:
    return heads.get_header(head, "Transfer-Encoding").lower().endswith("chunked")


def join_chunks(body: bytes) -> bytes:
    """A body without its chunks' frames; one that has none stays as it is, of one that is cut comes
    what is there.
    """
    return _unframed(body)[0]


def _unframed(body: bytes) -> tuple[bytes, bool]:
    """The same, and whether it is cut."""
    pieces: list[bytes] = []
    at = 0
    while found := _CHUNK.match(body, at):
        size = int(found[1], 16)
        start = found.end()
        if size == 0:
            return b"".join(pieces), False
        end = start + size
        after = body[start + size : start + size + 2]
        early = end > len(body)
        if not pieces and ((early and found[2] == b"\n") or (after and after[:1] not in b"\r\n")):
            break  # a text that starts with a number
        pieces.append(body[start:end])
        if early or not after:
            break
        at = end + (2 if after == b"\r\n" else after[:1] == b"\n")
    return (b"".join(pieces), True) if pieces else (body, False)


def _belong(request: StoredRecord, answer: ForeignExchange) -> bool:
    """By their ids, or (where a tool leaves them out) by their URLs."""
    if said := request.fields.get("warc-concurrent-to", ""):
        return said == answer.record_id
    if answer.concurrent_to and request.id:
        return answer.concurrent_to == request.id
    return plain_url(request.url) == answer.exchange.url


def _with_request(answer: ForeignExchange, request: StoredRecord) -> ForeignExchange:
    head, body = heads.split_head(request.block)
    return replace(answer, exchange=replace(answer.exchange, request=head, request_body=body))
