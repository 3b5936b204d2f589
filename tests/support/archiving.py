"""Exchanges of all kinds, and what other libraries say about the files that are made of them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import BufferedReader  # type: ignore[import-untyped]
from warcio.cli import main as warcio_main  # type: ignore[import-untyped]

from crawlproj.archive.exchange import Exchange, Original, PageMetadata, RecordLocation, Truncated
from crawlproj.archive.writer import DEFAULT_OPTIONS, WarcWriter, WriterOptions
from crawlproj.http import encodings

# warcio 1.8 sets an attribute on brotli's decompressor, which brotli 1.2 does not allow; digests
# are of the packed bytes anyway.
BufferedReader.DECOMPRESSORS.pop("br", None)

START = datetime(2026, 3, 4, 5, 6, 7, 89_012, tzinfo=UTC)
PAGE = (
    b"<!doctype html><title>A page</title><p>"
    + b"All work and no play makes Jack a dull boy. " * 40
)
REQUEST = (
    b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nUser-Agent: crawlproj\r\nAccept-Encoding: "
    b"gzip\r\n\r\n"
)


def head(*lines: str, status: str = "200 OK", kind: str = "text/html; charset=utf-8") -> bytes:
    return "".join(
        f"{line}\r\n" for line in (f"HTTP/1.1 {status}", f"Content-Type: {kind}", *lines, "")
    ).encode("latin-1")


def exchange(
    number: int = 0, body: bytes = PAGE, top: bytes | None = None, **more: Any
) -> Exchange:
    url = more.pop("url", f"https://example.org/page/{number}")
    at = more.pop("at", START + timedelta(seconds=number))
    defaults: dict[str, Any] = {"request": REQUEST, "address": "192.0.2.7", "elapsed_s": 0.25}
    return Exchange(url, at, head() if top is None else top, body, **{**defaults, **more})


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress,
    "zstd": encodings.zstd.compress,
}  # fmt: skip

BAD_HEADS = {
    "a header over two lines": b"HTTP/1.1 200 OK\r\nX-Long: one\r\n "
    b"two\r\n\tthree\r\nContent-Type: text/html\r\n\r\n",
    "line feeds only": b"HTTP/1.1 200 OK\nContent-Type: text/html\nX: y\n\n",
    "mixed line ends": b"HTTP/1.1 200 OK\r\nA: b\nContent-Type: text/html\r\n\r\n",
    "a carriage return in a value": b"HTTP/1.1 200 OK\r\nA: b\rc\r\nContent-Type: "
    b"text/html\r\n\r\n",
    "an empty line of spaces": b"HTTP/1.1 200 OK\r\nA: b\r\n \t \r\nContent-Type: "
    b"text/html\r\n\r\n",
    "an empty line of odd blanks": b"HTTP/1.1 200 OK\r\nA: b\r\n\x0b\x0c\x1c\xa0\r\nContent-Type: "
    b"text/html\r\n\r\n",
    "NULs": b"HTTP/1.1 200 OK\r\nA: b\x00c\x00\r\nContent-Type: text/html\r\n\r\n",
    "not ASCII": "HTTP/1.1 200 Schön\r\nA: größe\r\nContent-Type: text/html\r\n\r\n".encode(),
    "latin-1": "HTTP/1.1 200 Schön\r\nA: größe\r\nContent-Type: text/html\r\n\r\n".encode(
        "latin-1"
    ),
    "64 KB": b"HTTP/1.1 200 OK\r\nA: " + b"x" * 65_536 + b"\r\nContent-Type: text/html\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n"
    + b"".join(b"A%d: b\r\n" % n for n in range(1000))
    + b"\r\n",
    "a megabyte of headers": b"HTTP/1.1 200 OK\r\n"
    + b"".join(b"A%d: %s\r\n" % (n, b"b" * n) for n in range(1500))
    + b"\r\n",
    "a long reason": b"HTTP/1.1 200 " + b"OK" * 40_000 + b"\r\nA: b\r\n\r\n",
    "no reason": b"HTTP/1.1 200\r\nContent-Type: text/html\r\n\r\n",
    "an empty reason": b"HTTP/1.1 200 \r\nContent-Type: text/html\r\n\r\n",
    "no headers": b"HTTP/1.1 200 OK\r\n\r\n",
    "no empty line": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n",
    "another version": b"HTTP/2 200\r\nContent-Type: text/html\r\n\r\n",
    "an old radio": b"ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n",
    "a space before the colon": b"HTTP/1.1 200 OK\r\nContent-Type : text/html\r\n\r\n",
    "a line without a colon": b"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Type: text/html\r\n\r\n",
    "a line that starts with a colon": b"HTTP/1.1 200 OK\r\n: x\r\nContent-Type: text/html\r\n\r\n",
    "a fold right after the status": b"HTTP/1.1 200 OK\r\n folded\r\nContent-Type: "
    b"text/html\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a lying length": b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n",
    "chunks that were joined": b"HTTP/1.1 200 OK\r\ntransfer-ENCODING: chunked\r\nContent-Type: "
    b"text/html\r\n\r\n",
    "packed, it says": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
    "packed thrice, it says": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br, zstd, wrong\r\n\r\n",
}


def all_kinds() -> list[tuple[Exchange, Original | None]]:
    """One exchange of each kind that a crawl meets."""
    metadata = PageMetadata(
        "A page\r\nwith breaks",
        (("https://example.org/ü b", "a"), ("https://example.org/x.png", "img"), ("x:y", "odd")),
    )
    found = [
        exchange(0, metadata=metadata),
        exchange(1, b""),
        exchange(2, top=head("Location: /x", status="301 Moved"), body=b""),
    ]
    found.append(exchange(3, b"gone", head(status="404 Not Found"), elapsed_s=None, request=b""))
    found.append(exchange(4, PAGE[:100], truncated=Truncated.LENGTH, address="2001:db8::1%eth0"))
    found.append(exchange(5, request=REQUEST.replace(b"GET", b"POST"), request_body=b"a=b&c=d"))
    found.append(
        exchange(
            6,
            request=b"BREW / HTTP/1.1\r\n\r\n",
            address="nonsense",
            url="https://example.org/ä b\r\nX: y",
        )
    )
    found += [
        exchange(10 + n, pack(PAGE), head(f"Content-Encoding: {name}"))
        for n, (name, pack) in enumerate(PACKED.items())
    ]
    found += [exchange(30 + n, top=top) for n, top in enumerate(BAD_HEADS.values())]
    found += [exchange(80, b"<p>no head at all</p>", b""), exchange(81, PAGE, b"<html>\r\n\r\n")]
    return [(each, None) for each in found]


def write(
    folder: Path,
    exchanges: Sequence[tuple[Exchange, Original | None]],
    shape: WriterOptions = DEFAULT_OPTIONS,
) -> list[RecordLocation]:
    """Write them, close, and say where they are."""
    writer = WarcWriter(folder, "test", "w1", {"operator": "a test"}, shape)
    receipts = [writer.put(each, original) for each, original in exchanges]
    writer.flush().result(60)
    writer.close()
    assert not [receipt.error for receipt in receipts if receipt.error]
    return [receipt.record_location for receipt in receipts if receipt.record_location is not None]


def accepted(path: Path) -> int:
    """Other libraries read the file to its end and agree with all its digests; returns the number
    of records.
    """
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        try:
            code = warcio_main(["check", "-v", str(path)])
        except SystemExit as ended:
            code = ended.code
    said = out.getvalue()
    assert not code and "digest failed" not in said and "WARNING:" not in said, said
    count = digests = 0
    with path.open("rb") as file:
        for record in FastIterator(file, record_types=WarcRecordType.any_type, parse_http=False):
            count += 1
            assert record.verify_block_digest(), dict(record.headers)
    with path.open("rb") as file:
        for record in FastIterator(file, record_types=WarcRecordType.response):
            digests += 1
            assert record.verify_payload_digest(), dict(record.headers)
    with path.open("rb") as file:
        ours = [record.rec_type for record in ArchiveIterator(file)]
    assert count == len(ours)
    assert digests == ours.count("response")
    return count
