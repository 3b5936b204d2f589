"""WARC and ARC files of other tools, read as exchanges, whether WARC/1.0 or 1.1, compressed by
record, as a whole or not at all, cut or damaged.
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

PAGE_KINDS = ("response", "resource", "revisit")
SUPPORTING_KINDS = ("request", "warcinfo", "metadata")
NO_PAGE_METHODS = (b"HEAD ", b"OPTIONS ", b"TRACE ", b"CONNECT ")
OTHER_FORMATS = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x5d\x2a\x4d\x18": "zstd",
    b"\x50\x2a\x4d\x18": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip (a WACZ holds its WARC files in archive/)",
}
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?(\r?\n)")

ReportProblem = Callable[[Problem], None]


class UnreadableWarcError(ArchiveError):
    """A file can't be read, or there is no record in it."""


@dataclass(frozen=True, slots=True)
class ForeignExchange:
    """An exchange of another tool. A revisit has no body; `refers_to` is its original, if the
    record names it.
    """

    exchange: Exchange
    kind: str
    refers_to: Original | None
    record_id: str
    digest: str
    concurrent_to: str = ""
    """The id of the record (mostly the request) that this one says it was written with."""
    refers_to_id: str = ""
    profile: str = ""
    offset: int = 0


def read_foreign(
    path: Path,
    report: ReportProblem,
    max_block: int = MAX_BLOCK,
    on_skipped: Callable[[str], None] = lambda what: None,
) -> Iterator[ForeignExchange]:
    """All exchanges with http or https URLs; UnreadableWarcError if there is no record in the file.

    `report` is called with what could not be read, `on_skipped` with the kinds of what is no page.
    """
    records = _web_records(path, report, max_block, on_skipped=on_skipped)
    for found in _join_requests(records):
        if found.exchange.request.startswith(NO_PAGE_METHODS):
            on_skipped(f"answer to {found.exchange.request.partition(b' ')[0].decode()}")
        elif _lacks_body(found):
            on_skipped("answer without its body, as to HEAD")
        else:
            yield found


def iter_records(
    path: Path, report: ReportProblem, max_block: int = MAX_BLOCK
) -> Iterator[StoredRecord]:
    """All whole records; UnreadableWarcError, which names the first problem, if there is none."""
    count = 0
    first = ""
    held = list[Problem]()

    def hold_first(offset: int, what: str) -> None:
        """Report problems, but the first only with a second one or a record: else it is raised."""
        nonlocal first
        held.append(Problem(path.name, offset, what))
        if count or first:
            report_held()
        first = first or f" ({what})"

    def report_held() -> None:
        while held:
            report(held.pop(0))

    with _opened(path) as (file, compressed):
        scanner = Scanner(file, compressed, hold_first, verify=verify_digests, max_block=max_block)
        for stored in scanner.iter_records():
            count += 1
            report_held()
            try:
                _ = stored.at
            except (KeyError, ValueError):
                hold_first(stored.offset, "a record without a date")
            else:
                yield stored
    if not count:
        raise UnreadableWarcError(f"{path.name} holds no whole record{first}")


def check_foreign(path: Path) -> Iterator[Problem]:
    """What is wrong in a file of another tool: what an import would report, and wrong headers."""
    problems: list[Problem] = []
    try:
        if path.exists() and not path.is_file():
            raise UnreadableWarcError(f"{path.name} is no file")
        for stored in iter_records(path, problems.append):
            if "archive-length" not in stored.fields:
                for what in [*header_faults(stored), *_digest_faults(stored)]:
                    problems.append(Problem(path.name, stored.offset, what))
            yield from problems
            problems.clear()
    except UnreadableWarcError as error:
        problems.append(Problem(path.name, 0, str(error).removeprefix(f"{path.name} ")))
    yield from problems


def _digest_faults(stored: StoredRecord) -> list[str]:
    """Which of the digests are wrong; one is right, or it would not count as a record."""
    faults = list[str]()
    block_digest = stored.fields.get("warc-block-digest", "")
    if stored.kind != "revisit" and not digest_matches(stored.block, block_digest):
        faults.append("the block digest is wrong")
    without_block_digest = replace(stored, fields={**stored.fields, "warc-block-digest": ""})
    if verify_digests(without_block_digest) is False:
        faults.append("the payload digest is wrong")
    return faults


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, bool]]:
    """The file, and whether it is compressed with gzip."""
    try:
        with path.open("rb", buffering=1 << 18) as file:
            start = file.read(8)
            for magic, name in OTHER_FORMATS.items():
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
    """Whether one of the digests is right; None if none of them can be judged."""
    block_digest = stored.fields.get("warc-block-digest", "")
    has_block_digest = _is_known_digest(block_digest)
    if has_block_digest and digest_matches(stored.block, block_digest):
        return True
    if stored.kind == "revisit":
        return None
    is_partial = "warc-truncated" in stored.fields or "warc-segment-number" in stored.fields
    if is_partial or stored.kind not in PAGE_KINDS or not _is_known_digest(stored.digest):
        return False if has_block_digest else None
    return any(digest_matches(each, stored.digest) for each in _payloads(stored.block))


def _payloads(block: bytes) -> Iterator[bytes]:
    """What tools take for the payload of a block: its body with or without chunks and encoding."""
    head = b""
    body = block
    if heads.is_http(block):
        head, body = heads.split_head(block)
    yield body
    if _is_chunked(head):
        body = join_chunks(body)
    yield body
    yield decode_body(body, heads.get_header(head, "Content-Encoding"))


def _is_known_digest(digest: str) -> bool:
    algorithm, colon, _ = digest.partition(":")
    return bool(colon) and algorithm.lower() in hashlib.algorithms_available


def _web_records(
    path: Path, report: ReportProblem, max_block: int, on_skipped: Callable[[str], None]
) -> Iterator[StoredRecord]:
    """The responses and requests with http or https URLs."""
    for stored in iter_records(path, report, max_block):
        kind = stored.kind
        is_web = stored.url.lower().startswith(("http://", "https://"))
        is_segment = kind in ("response", "resource") and "warc-segment-number" in stored.fields
        if is_web and is_segment:
            what = f"{stored.url} is in segments, which are not joined: it is left out"
            report(Problem(path.name, stored.offset, what))
        elif is_web and (kind == "request" or kind in PAGE_KINDS):
            yield stored
        elif kind in SUPPORTING_KINDS:
            continue
        elif is_web or ":" not in stored.url:
            on_skipped(kind)
        else:
            scheme = stored.url.partition(":")[0]
            on_skipped(f"{kind} of {scheme[:20]}:")


def _join_requests(records: Iterator[StoredRecord]) -> Iterator[ForeignExchange]:
    """Exchanges of responses with their requests, which precede or follow them."""
    pending: ForeignExchange | None = None
    request: StoredRecord | None = None
    for stored in records:
        if stored.kind == "request" and pending is not None and _belong(stored, pending):
            yield _with_request(pending, stored)
            pending = None
            request = None
        elif stored.kind == "request":
            request = stored
        else:
            if pending is not None:
                yield pending
            pending = _to_exchange(stored)
            if request is not None and _belong(request, pending):
                yield _with_request(pending, request)
                pending = None
                request = None
    if pending is not None:
        yield pending


def _lacks_body(found: ForeignExchange) -> bool:
    """Whether it is a response to HEAD, although the request was not kept."""
    exchange = found.exchange
    if found.kind != "response" or exchange.body or exchange.request or exchange.truncated:
        return False
    length = heads.get_header(exchange.head, "Content-Length")
    if not length.isdecimal() or int(length[:18]) == 0:
        return False
    return heads.parse_status(exchange.head) == 200


def _to_exchange(stored: StoredRecord) -> ForeignExchange:
    """The exchange of a response, resource or revisit, without its request."""
    is_revisit = stored.kind == "revisit"
    is_http = stored.kind in ("response", "revisit") and heads.is_http(stored.block)
    head = b""
    body = stored.block
    if is_http:
        head, body = heads.split_head(stored.block)
    while 100 <= heads.parse_status(head) < 200 and heads.is_http(body):
        head, body = heads.split_head(body)
    truncated = None
    digest = stored.digest
    if not is_revisit:  # wget calls every revisit truncated
        truncated = _truncation(stored.fields.get("warc-truncated", ""))
        if _is_chunked(head):
            body, is_cut = _split_chunks(body)
            if is_cut and truncated is None:
                truncated = Truncated.UNSPECIFIED
        digest = digest or compute_digest(body)
    content_type = stored.fields.get("content-type", "")
    if is_http or content_type.startswith("application/http"):
        content_type = ""
    exchange = Exchange(
        plain_url(stored.url),
        stored.at,
        head,
        body=body,
        address=stored.fields.get("warc-ip-address", ""),
        truncated=truncated,
        content_type=content_type,
    )
    return ForeignExchange(
        exchange,
        stored.kind,
        stored.refers_to,
        record_id=stored.id,
        digest=digest,
        concurrent_to=stored.fields.get("warc-concurrent-to", ""),
        refers_to_id=stored.fields.get("warc-refers-to", ""),
        profile=stored.fields.get("warc-profile", ""),
        offset=stored.offset,
    )


def _truncation(text: str) -> Truncated | None:
    """The value of a WARC-Truncated field; unspecified if it is none of the standard's."""
    if not text:
        return None
    try:
        return Truncated(text)
    except ValueError:
        return Truncated.UNSPECIFIED


def _is_chunked(head: bytes) -> bool:
    return heads.get_header(head, "Transfer-Encoding").lower().endswith("chunked")


def join_chunks(body: bytes) -> bytes:
    """A body whose chunks are joined; one without chunks stays as it is."""
    return _split_chunks(body)[0]


def _split_chunks(body: bytes) -> tuple[bytes, bool]:
    """A body whose chunks are joined, and whether it is cut: then it is what is there."""
    pieces: list[bytes] = []
    position = 0
    while found := _CHUNK.match(body, position):
        size = int(found[1], 16)
        start = found.end()
        if size == 0:
            return b"".join(pieces), False
        end = start + size
        after = body[end : end + 2]
        is_cut = end > len(body)
        if not pieces:
            # A text that starts with a number may look like a chunk.
            ends_as_text = after and after[:1] not in b"\r\n"
            if ends_as_text or (is_cut and found[2] == b"\n"):
                return body, False
        pieces.append(body[start:end])
        if is_cut or not after:
            break
        position = end
        if after == b"\r\n":
            position += 2
        elif after[:1] == b"\n":
            position += 1
    if not pieces:
        return body, False
    return b"".join(pieces), True


def _belong(request: StoredRecord, response: ForeignExchange) -> bool:
    """Whether they belong together, by their ids or, where a tool leaves them out, their URLs."""
    concurrent_to = request.fields.get("warc-concurrent-to", "")
    if concurrent_to:
        return concurrent_to == response.record_id
    if response.concurrent_to and request.id:
        return response.concurrent_to == request.id
    return plain_url(request.url) == response.exchange.url


def _with_request(response: ForeignExchange, request: StoredRecord) -> ForeignExchange:
    head, body = heads.split_head(request.block)
    return replace(response, exchange=replace(response.exchange, request=head, request_body=body))
