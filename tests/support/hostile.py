"""A server that answers with whatever bytes a case has, and notes what it was asked and what it
sent.
"""

from __future__ import annotations

import gzip
import socket
import socketserver
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import brotli  # type: ignore[import-untyped]

from crawlproj.http.encodings import zstd

End = Literal["keep", "close", "reset", "hang"]
PAGE = (
    b"<!doctype html><title>Fine</title><p>A page that a browser shows, with some text to be "
    b"read by people.</p>"
)
TYPE = b"Content-Type: text/html; charset=utf-8"
BIG = b"<p>" + b"big " * 20_000
RESET = struct.pack("ii", 1, 0)  # SO_LINGER 0: a close is a reset


@dataclass(frozen=True, slots=True)
class Case:
    """What is sent, piece by piece with pauses, and how it ends; then what must come of it: state,
    status and reason of the URL, the body that is kept, why it is not whole, and the kind of
    record.
    """

    pieces: tuple[bytes, ...]
    end: End = "keep"
    state: str = "waiting"
    status: int = 200
    why: str = ""
    body: bytes = PAGE
    truncated: str | None = None
    kind: str = "response"

    @property
    def sent(self) -> bytes:
        return b"".join(self.pieces)


def head(*lines: bytes, status: bytes = b"HTTP/1.1 200 OK", kind: bytes = TYPE) -> bytes:
    return b"\r\n".join((status, kind, *lines)) + b"\r\n\r\n"


def ok(*lines: bytes, body: bytes = PAGE, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return head(*lines, b"Content-Length: %d" % len(body), status=status) + body


def chunked(*pieces: bytes, last: bytes = b"0\r\n\r\n", size: bytes = b"%x\r\n") -> bytes:
    return (
        head(b"Transfer-Encoding: chunked")
        + b"".join(size % len(piece) + piece + b"\r\n" for piece in pieces)
        + last
    )


def packed(encoding: bytes, body: bytes, line: bytes = b"HTTP/1.1 200 OK", **more: Any) -> Case:
    return Case((ok(b"Content-Encoding: " + encoding, body=body, status=line),), body=body, **more)


def bad(*pieces: bytes, body: bytes = b"", end: End = "close", **more: Any) -> Case:
    return Case(
        pieces,
        end,
        **{
            "state": "retry",
            "status": 0,
            "why": "bad answer",
            "truncated": "unspecified",
            "body": body,
            **more,
        },
    )


def cut(*pieces: bytes, body: bytes = PAGE, end: End = "close", why: str = "cut off") -> Case:
    return bad(*pieces, body=body, end=end, why=why, truncated="disconnect")


def plain(encoding: bytes) -> Case:
    return packed(encoding, PAGE)


MOVED = b"HTTP/1.1 301 Moved\r\nLocation: /target"
GZIP = gzip.compress(PAGE, mtime=0)
HALF = head(b"Content-Length: 5000") + PAGE

CASES: dict[str, Case] = {
    "plain": Case((ok(),)),
    "target": Case((ok(),)),
    # Heads
    "fold": Case((ok(b"X-Fold: a\r\n b\r\n\tc"),)),
    "fold-first": Case((b"HTTP/1.1 200 OK\r\n folded\r\n" + ok().partition(b"\r\n")[2],)),
    "bare-cr": Case((ok(b"X-Cr: a\rSet-Cookie: x=1"),)),
    "bare-lf": Case((ok(b"X-Lf: a\nX-Next: b"),)),
    "lf-only": Case((ok().replace(b"\r\n", b"\n"),)),
    "cr-cr-lf": Case((ok().replace(b"\r\n", b"\r\r\n"),)),
    "cr-cr-lf-split": Case(
        (
            ok().partition(b"\r\n\r\n")[0].replace(b"\r\n", b"\r\r\n") + b"\r\r\n\r",
            b"\r",
            b"\n" + PAGE,
        )
    ),
    "nul-value": Case((ok(b"X-Nul: a\0b"),)),
    "nul-name": Case((ok(b"X-N\0ul: a"),)),
    "no-colon": Case((ok(b"what is this"),)),
    "no-name": Case((ok(b": nameless"),)),
    "space-colon": Case((ok(b"X-Space : a"),)),
    "utf8-name": Case((ok("X-Größe: a".encode()),)),
    "latin-value": Case((ok(b"X-L: caf\xe9"),)),
    "head-64k": Case((ok(b"X-Big: " + b"x" * 65_000),)),
    "head-80k": bad(ok(b"X-Big: " + b"x" * 80_000), body=PAGE),
    "headers-990": Case((ok(*(b"X-%d: 1" % n for n in range(990))),)),
    "headers-1100": bad(ok(*(b"X-%d: 1" % n for n in range(1100))), body=PAGE),
    "cookies": Case(
        (
            ok(
                b"Set-Cookie: a=b; Path=/",
                b'Set-Cookie: c="d;e"',
                b"Set-Cookie: \xff=\xfe",
                b"Set-Cookie: =x",
            ),
        )
    ),
    # Status lines
    "no-reason": Case((ok(status=b"HTTP/1.1 200"),)),
    "two-spaces": Case((ok(status=b"HTTP/1.1  200 OK"),)),
    "http-2": Case((ok(status=b"HTTP/2 200"),)),
    "icy": Case((ok(status=b"ICY 200 OK"),)),
    "lower": Case((ok(status=b"http/1.1 200 ok"),)),
    "reason-utf8": Case((ok(status="HTTP/1.1 200 日本".encode()),)),
    "reason-60k": Case((ok(status=b"HTTP/1.1 200 " + b"OK" * 30_000),)),
    "leading-lines": Case((b"\r\n\r\n" + ok(),)),
    "status-999": Case(
        (ok(status=b"HTTP/1.1 999 Odd"),), state="dead", status=999, why="status 999"
    ),
    "status-2000": bad(ok(status=b"HTTP/1.1 2000 Odd"), kind="resource"),
    "status-1000": bad(ok(status=b"HTTP/1.1 1000 Odd"), kind="resource"),
    "no-status": bad(ok(status=b"HTTP/1.1"), kind="resource"),
    "no-status-but-a-number": bad(
        ok(b"Server: x", status=b"HTTP/1.1\r\nAge: 404"), kind="resource"
    ),
    "early-hints": Case((b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n", ok())),
    "early-hints-lower": Case((b"http/1.1 103 early\r\n\r\n", ok())),
    "early-hints-two-spaces": Case((b"HTTP/1.1  103 Early\n\n", ok())),
    "early-hints-http-2": Case((b"HTTP/2 103\r\n\r\n", ok())),
    "hints-and-junk": bad(b"HTTP/1.1 103 Early Hints\r\n\r\n", b"no answer\r\nat all\r\n\r\n"),
    "only-hints": cut(b"HTTP/1.1 103 Early Hints\r\n\r\n", body=b""),
    "switching": Case(
        (head(status=b"HTTP/1.1 101 Switching") + b"junk",),
        state="dead",
        status=101,
        why="status 101",
        body=b"",
    ),
    # Lengths
    "length-twice": Case((ok(b"Content-Length: %d" % len(PAGE)),)),
    "lengths-differ": bad(ok(b"Content-Length: 5"), body=PAGE),
    "length-beside-chunks": Case((chunked(PAGE).replace(b"\r\nT", b"\r\nContent-Length: 5\r\nT"),)),
    "length-words": Case((head(b"Content-Length: many") + PAGE,), "close"),
    "length-negative": Case((head(b"Content-Length: -5") + PAGE,), "close"),
    "length-huge": Case((head(b"Content-Length: " + b"9" * 30) + PAGE,), "close"),
    "length-short": Case((head(b"Content-Length: 20") + PAGE,), body=PAGE[:20]),
    "length-zero": Case((head(b"Content-Length: 0") + PAGE,), body=b""),
    "length-long": cut(HALF),
    "junk-behind": Case((ok() + b"junk behind the body",)),
    "second-answer": Case((ok() + ok(body=b"<p>forged</p>"),)),
    "body-of-204": Case((ok(status=b"HTTP/1.1 204 No Content"),), status=204, body=b""),
    "body-of-304": Case(
        (ok(status=b"HTTP/1.1 304 Same"),), state="retry", status=304, why="status 304", body=b""
    ),
    "too-big": bad(head() + BIG, body=BIG, state="dead", why="too big", truncated="length"),
    # Chunks
    "chunk-extensions": Case((chunked(PAGE[:10], PAGE[10:], size=b'%x;a=b;c="d"\r\n'),)),
    "chunk-trailers": Case((chunked(PAGE, last=b"0\r\nX-Trailer: yes\r\n\r\n"),)),
    "chunk-zeros": Case((chunked(PAGE, size=b"0000%x\r\n"),)),
    "chunk-bad": bad(chunked(PAGE, last=b"zz\r\nhello\r\n"), body=PAGE),
    "chunk-bad-later": bad(chunked(PAGE, last=b""), b"zz\r\nhello\r\n", body=PAGE, end="hang"),
    "chunk-none": bad(head(b"Transfer-Encoding: chunked") + PAGE, body=PAGE),
    "chunk-over": bad(
        head(b"Transfer-Encoding: chunked") + b"f" * 18 + b"\r\n" + PAGE,
        body=b"f" * 18 + b"\r\n" + PAGE,
    ),
    "chunk-no-last": cut(chunked(PAGE, last=b"")),
    # Ends
    "reset-head": cut(b"HTTP/1.1 200 OK\r\nContent-", b"", body=b"", end="reset", why="reset"),
    "reset-body": cut(HALF, b"", end="reset", why="reset"),
    "reset-without-length": cut(head() + PAGE, b"", end="reset", why="reset"),
    "half-head": cut(b"HTTP/1.1 200 OK\r\nContent-Type: te", body=b""),
    "hang-head": bad(
        b"HTTP/1.1 200 OK\r\nContent-Type: te", end="hang", why="timeout", truncated="time"
    ),
    "hang-body": bad(HALF, body=PAGE, end="hang", why="timeout", truncated="time"),
    # No HTTP
    "old-html": bad(PAGE, kind="resource"),
    "old-lines": bad(b"<html>\r\n\r\n" + PAGE, kind="resource"),
    "old-binary": bad(bytes(range(256)) * 20, kind="resource"),
    "banner": bad(b"SSH-2.0-OpenSSH_9.6\r\n", kind="resource", end="hang"),
    # Packed, or said to be
    "gzip": packed(b"gzip", GZIP),
    "gzip-twice": packed(b"gzip, gzip", gzip.compress(GZIP, mtime=0)),
    "gzip-twice-said": packed(b"gzip, gzip", GZIP),
    "gzip-not": plain(b"gzip"),
    "br-not": plain(b"br"),
    "deflate-not": plain(b"deflate"),
    "zstd-not": plain(b"zstd"),
    "unknown": plain(b"foo"),
    "br-and-junk": packed(b"br", brotli.compress(PAGE) + b"\r\n"),
    "br-broken": packed(
        b"br",
        brotli.compress(PAGE)[:20] + b"\xff\0" * 15,
        state="retry",
        status=0,
        why="bad answer",
    ),
    "gzip-head-only": packed(b"gzip", GZIP[:10], state="retry", status=0, why="bad answer"),
    "gzip-and-junk": packed(b"gzip", GZIP + b"junk"),
    "gzip-members": packed(b"gzip", GZIP + gzip.compress(b"<p>second</p>", mtime=0)),
    "zstd-frames": packed(b"zstd", zstd.compress(PAGE) + zstd.compress(b"<p>second</p>")),
    "deflate-raw": packed(b"deflate", zlib.compress(PAGE)[2:-4]),
    "moved-gzip-not": packed(b"gzip", PAGE, MOVED, state="moved", status=301, why="redirect 301"),
    "missing-gzip-not": packed(
        b"gzip", PAGE, b"HTTP/1.1 404 No", state="gone", status=404, why="status 404"
    ),
}
NOTHING: dict[str, End] = {
    "close-at-once": "close",
    "reset-at-once": "reset",
    "hang-at-once": "hang",
}
"""Answers of no byte at all."""


@dataclass(slots=True)
class Asked:
    name: str
    request: bytes
    at: float
    sent: bytes = b""


@dataclass(slots=True)
class Hostile:
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    notes: Hostile

    def handle(self) -> None:
        with suppress(OSError):
            while (request := self._request()) and self._answer(request):
                pass

    def _request(self) -> bytes:
        lines = [self.rfile.readline()]
        while lines[-1].strip():
            lines.append(self.rfile.readline())
        return b"".join(lines)

    def _answer(self, request: bytes) -> bool:
        note = Asked(request.split(b" ")[1].decode().strip("/"), request, time.time())
        self.notes.asked.append(note)
        case = CASES.get(note.name, Case((ok(status=b"HTTP/1.1 404 Not Found"),)))
        end = NOTHING.get(note.name, case.end)
        for piece in () if note.name in NOTHING else case.pieces:
            self.wfile.write(piece)
            note.sent += piece
            if len(case.pieces) > 1:
                time.sleep(0.1)
        if end == "hang":
            self.notes.done.wait()
        elif end == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.connection.close()
        elif end == "close":
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.recv(1)
        return end == "keep"


@contextmanager
def serving() -> Iterator[Hostile]:
    notes = Hostile()
    made = type("Own", (Handler,), {"notes": notes})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), made) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients hang up on purpose
        notes.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield notes
        finally:
            notes.done.set()
            server.shutdown()
