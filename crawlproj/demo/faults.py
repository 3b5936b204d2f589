"""What servers do wrong on the wire, as data: the raw bytes of each fault and how it ends, and what
can be wrong with a robots.txt.
"""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from crawlproj.demo.model import DemoPage, Fault

MB = 1_000_000
HUGE_BYTES = 50 * MB
BOMB_BYTES = 128 * 1024 * 1024
LONG_AGO = -86_400.0
FILLER = b"<p>The demo web has very much to say about very little, and says it again.</p>\n" * 800
RULES = b"User-agent: *\nDisallow: /private/\n"


def response_head(
    status: str = "200 OK", type: str = "text/html; charset=utf-8", *more: str
) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {type}", "Connection: close", *more, "", "")
    return "\r\n".join(lines).encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _huge(type: str, first: bytes, filler: bytes) -> Callable[[], Iterator[bytes]]:
    def chunks() -> Iterator[bytes]:
        yield response_head("200 OK", type, f"Content-Length: {HUGE_BYTES}") + first
        left = HUGE_BYTES - len(first)
        for _ in range(left // len(filler)):
            yield filler
        yield filler[: left % len(filler)]

    return chunks


def _endless(type: str, first: bytes, filler: bytes) -> Callable[[], Iterator[bytes]]:
    def chunks() -> Iterator[bytes]:
        yield response_head("200 OK", type, "Transfer-Encoding: chunked") + _chunk(first)
        yield from itertools.repeat(_chunk(filler))

    return chunks


@cache
def gzip_bomb() -> bytes:
    """A gzip file of about 130 KB that decompresses to `BOMB_BYTES` of HTML blanks.

    It is made from one repeated deflate block.
    """
    block = b" " * (1024 * 1024)
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    compressed = compressor.compress(block) + compressor.flush(zlib.Z_FULL_FLUSH)
    times = BOMB_BYTES // len(block)
    crc = 0
    for _ in range(times):
        crc = zlib.crc32(block, crc)
    end = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    tail = crc.to_bytes(4, "little") + BOMB_BYTES.to_bytes(4, "little")
    return b"\x1f\x8b\x08\0\0\0\0\0\x02\xff" + compressed * times + end + tail


def _bomb(layers: int) -> Iterator[bytes]:
    body = gzip_bomb()
    for _ in range(layers - 1):
        body = gzip.compress(body, 9, mtime=0)
    encodings = ", ".join(["gzip"] * layers)
    head = response_head(
        "200 OK", "text/html", f"Content-Encoding: {encodings}", f"Content-Length: {len(body)}"
    )
    yield head + body


def _raw(*chunks: bytes) -> Callable[[], Iterable[bytes]]:
    return lambda: chunks


def _drip() -> Iterator[bytes]:
    data = response_head("200 OK", "text/html", "Content-Length: 2") + b"ok"
    for byte in data:
        yield bytes([byte])


def _endless_headers() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in itertools.count():
        yield b"X-Number-%d: %d\r\n" % (number, number) * 100


COMPRESSED_FILLER = gzip.compress(FILLER, mtime=0)
HALF = response_head("200 OK", "text/html", "Content-Length: 10000") + FILLER[:1000]
CHUNKED = response_head("200 OK", "text/html", "Transfer-Encoding: chunked")

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault("timeout", "takes the request and never responds", _raw(), end="hang"),
        Fault(
            "stall",
            "stops in the middle of the body and keeps the connection open",
            _raw(HALF),
            end="hang",
            status=200,
        ),
        Fault(
            "drip", "sends the response byte by byte", _drip, end="close", status=200, pause_s=0.2
        ),
        Fault("reset", "resets the connection instead of responding", _raw(), end="reset"),
        Fault(
            "reset-body",
            "resets the connection in the middle of the body",
            _raw(HALF),
            end="reset",
            status=200,
        ),
        Fault("no-answer", "closes the connection instead of responding", _raw()),
        Fault(
            "short", "closes before Content-Length is reached", _raw(HALF), end="close", status=200
        ),
        Fault(
            "long",
            "sends more than Content-Length says",
            _raw(response_head("200 OK", "text/html", "Content-Length: 100") + FILLER[:1000]),
            end="close",
            status=200,
        ),
        Fault(
            "length-bad",
            "Content-Length is no number",
            _raw(response_head("200 OK", "text/html", "Content-Length: many") + FILLER[:1000]),
            end="close",
            status=200,
        ),
        Fault(
            "length-twice",
            "two different Content-Length headers",
            _raw(
                response_head("200 OK", "text/html", "Content-Length: 10", "Content-Length: 20")
                + FILLER[:20]
            ),
            end="close",
            status=200,
        ),
        Fault(
            "chunk-bad",
            "a chunk size that is no number",
            _raw(CHUNKED, b"zz\r\nhello\r\n"),
            end="close",
            status=200,
        ),
        Fault(
            "chunk-cut",
            "closes before the last chunk",
            _raw(CHUNKED, _chunk(FILLER[:500])),
            end="close",
            status=200,
        ),
        Fault(
            "garbage", "bytes that are not HTTP", _raw(bytes(range(128, 256)) * 20 + b"\r\n\r\n")
        ),
        Fault(
            "endless",
            "a body without end",
            _endless("text/html", b"<html>", FILLER),
            end="close",
            status=200,
            pause_s=0.001,
        ),
        Fault(
            "endless-headers",
            "headers without end",
            _endless_headers,
            end="close",
            status=200,
            pause_s=0.001,
        ),
        Fault(
            "huge",
            "a page of 50 MB",
            _huge("text/html", b"<html><body>", FILLER),
            end="close",
            status=200,
        ),
        Fault(
            "bomb",
            "130 KB of gzip that decompress to 128 MB",
            lambda: _bomb(1),
            end="close",
            status=200,
        ),
        Fault(
            "bomb-twice",
            "1 KB, compressed twice, that decompresses to 128 MB",
            lambda: _bomb(2),
            end="close",
            status=200,
        ),
        Fault(
            "gzip-bad",
            "says gzip, but is not",
            _raw(
                response_head(
                    "200 OK", "text/html", "Content-Encoding: gzip", "Content-Length: 500"
                )
                + FILLER[:500]
            ),
            end="close",
            status=200,
        ),
        Fault(
            "gzip-cut",
            "gzip that ends in the middle",
            _raw(
                response_head(
                    "200 OK",
                    "text/html",
                    "Content-Encoding: gzip",
                    f"Content-Length: {len(COMPRESSED_FILLER) // 2}",
                )
                + COMPRESSED_FILLER[: len(COMPRESSED_FILLER) // 2]
            ),
            end="close",
            status=200,
        ),
        Fault(
            "encoding-unknown",
            "a Content-Encoding that nobody knows",
            _raw(
                response_head(
                    "200 OK", "text/html", "Content-Encoding: rot13", "Content-Length: 500"
                )
                + FILLER[:500]
            ),
            end="close",
            status=200,
        ),
        Fault(
            "headers-huge",
            "one header of 300 KB",
            _raw(
                response_head("200 OK", "text/html", "Content-Length: 2", "X-Big: " + "x" * 300_000)
                + b"ok"
            ),
            end="close",
            status=200,
        ),
        Fault(
            "headers-many",
            "5,000 headers",
            _raw(
                response_head(
                    "200 OK",
                    "text/html",
                    "Content-Length: 2",
                    *(f"X-{n}: {n}" for n in range(5000)),
                )
                + b"ok"
            ),
            end="close",
            status=200,
        ),
        Fault(
            "header-bad",
            "a header line without a colon",
            _raw(response_head("200 OK", "text/html", "Content-Length: 2", "what is this") + b"ok"),
            end="close",
            status=200,
        ),
    )
}

ROBOTS: dict[str, Fault | DemoPage] = {
    "404": DemoPage("error", LONG_AGO, status=404, body=lambda: b"no such file\n"),
    "401": DemoPage("error", LONG_AGO, status=401, body=lambda: b"who are you?\n"),
    "500": DemoPage("error", LONG_AGO, status=500, body=lambda: b"oops\n"),
    "503": DemoPage("error", LONG_AGO, status=503, body=lambda: b"later\n"),
    "html": DemoPage(
        "robots",
        LONG_AGO,
        body=lambda: b"<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>\n",
    ),
    "empty": DemoPage("robots", LONG_AGO, type="text/plain"),
    "bom": DemoPage("robots", LONG_AGO, body=lambda: b"\xef\xbb\xbf" + RULES, type="text/plain"),
    "binary": DemoPage("robots", LONG_AGO, body=lambda: bytes(range(256)) * 8, type="text/plain"),
    "huge": Fault(
        "robots-huge",
        "rules, then 50 MB of comments",
        _huge("text/plain", RULES, b"# more\n" * 9000),
        end="close",
        status=200,
    ),
    "endless": Fault(
        "robots-endless",
        "rules, then comments without end",
        _endless("text/plain", RULES, b"# more\n" * 900),
        end="close",
        status=200,
        pause_s=0.001,
    ),
    "slow": Fault(
        "robots-slow",
        "responds after 2 seconds",
        lambda: (b"", response_head("200 OK", "text/plain") + RULES),
        end="close",
        status=200,
        pause_s=2.0,
    ),
    "timeout": Fault("robots-timeout", "never responds", _raw(), end="hang"),
    "reset": Fault("robots-reset", "resets the connection", _raw(), end="reset"),
    "redirect": DemoPage("redirect", LONG_AGO, status=301, location="/robots-real.txt"),
    "loop": DemoPage("redirect", LONG_AGO, status=302, location="/robots.txt"),
}
ROBOTS_KEEP_AWAY = frozenset({"500", "503", "timeout", "reset"})
"""With these, RFC 9309 says: as if everything were forbidden."""
ROBOTS_WITH_RULES = frozenset({"bom", "huge", "endless", "slow", "redirect"})
"""With these, `/private/` is forbidden."""
