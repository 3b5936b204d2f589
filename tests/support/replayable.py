"""A small web on loopback with pages of all kinds that a replay may get wrong. Each says something
of its own.
"""

from __future__ import annotations

import gzip
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote

import brotli  # type: ignore[import-untyped]

from crawlproj.http.encodings import zstd

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress,
}  # fmt: skip
LIKED = ("zstd", "br", "gzip")
"""What the server prefers, if it is accepted."""
Answer = tuple[int, dict[str, str], bytes]


def png(width: int, height: int) -> bytes:
    rows = b"".join(b"\0" + bytes((200, 30, 30)) * width for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def html(text: str, more: str = "", charset: str = "utf-8") -> bytes:
    links = "".join(
        f'<a href="{path}">{name}</a> ' for name, path in (("start", "/"), ("plain", "/plain"))
    )
    page = f"<!doctype html><title>{text[:20]}</title>{more}<h1>{text}</h1><p>{text * 3}</p><p>{links}</p>"
    return page.encode(charset)


SCRIPT = (
    "<p id=x></p><script>document.getElementById('x').textContent = 'six times seven is ' + 6 * "
    "7;</script>"
    "<script src=/made.js></script>"
)
PAGES: dict[str, Answer] = {
    "/plain": (200, {}, html("A plain page.")),
    "/gzip": (200, {"Content-Encoding": "gzip"}, html("Packed with gzip.")),
    "/deflate": (200, {"Content-Encoding": "deflate"}, html("Packed with deflate.")),
    "/br": (200, {"Content-Encoding": "br"}, html("Packed with brotli.")),
    "/negotiated": (
        200,
        {"Content-Encoding": "?"},
        html("Packed with what the client likes best."),
    ),
    "/zstd": (
        200,
        {"Content-Encoding": "zstd"},
        html("Packed with zstd, whatever the client likes."),
    ),
    "/chunked": (200, {"Transfer-Encoding": "chunked"}, html("It came in chunks.")),
    "/chunked-gzip": (
        200,
        {"Transfer-Encoding": "chunked", "Content-Encoding": "gzip"},
        html("Packed, and in chunks."),
    ),
    "/cp1251": (
        200,
        {"Content-Type": "text/html; charset=windows-1251"},
        html("Страница на русском.", charset="windows-1251"),
    ),
    "/shift_jis": (
        200,
        {"Content-Type": "text/html"},
        html("日本語のページ。", "<meta charset=shift_jis>", "shift_jis"),
    ),
    "/script": (200, {}, html("Text made by scripts:", SCRIPT)),
    "/made.js": (
        200,
        {"Content-Type": "text/javascript"},
        b"setTimeout(() => document.body.append('and this by a file'), 50)",
    ),
    "/picture": (
        200,
        {},
        html("With a picture.", "<link rel=stylesheet href=/style.css><img src=/red.png alt=red>"),
    ),
    "/style.css": (
        200,
        {"Content-Type": "text/css"},
        b"body { color: rgb(1, 2, 150); background: #eef }",
    ),
    "/red.png": (200, {"Content-Type": "image/png"}, png(60, 40)),
    "/framed": (200, {}, html("With a frame.", "<iframe src=/inner width=400 height=80></iframe>")),
    "/inner": (200, {}, html("The text inside the frame.")),
    "/moved": (302, {"Location": "/plain?from=moved"}, b""),
    "/plain?from=moved": (200, {}, html("Behind a redirect.")),
    "/gone": (410, {}, html("This page is gone, says the server.")),
    "/search?b=2&a=1": (200, {}, html("Found by a query.")),
    "/search?a=1&b=2": (200, {}, html("Found by a query.")),
    "/größe/страница": (200, {}, html("A path that is not ASCII: größe.")),
    "/copy": (200, {}, html("The same on two URLs.")),
    "/odd-head": (
        200,
        {"Not a name": "x", "X-Twice ": "y"},
        html("Its head is odd, the page is fine."),
    ),
    "/refresh": (
        200,
        {},
        b'<!doctype html><meta http-equiv=refresh content="0; '
        b'url=/refreshed"><p>Wait a moment.</p>',
    ),
    "/refreshed": (200, {}, html("Where a refresh leads.")),
}


class Kinds(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    accepted: dict[str, str]

    def do_GET(self) -> None:
        path = unquote(self.path)
        self.accepted[path] = self.headers.get("Accept-Encoding", "")
        known = PAGES | {"/": (200, {}, html("Start.", index()))}
        status, headers, body = known.get(path, (404, {}, b""))
        headers = {"Content-Type": "text/html; charset=utf-8", **headers}
        if (packing := headers.get("Content-Encoding")) is not None:
            if packing == "?":
                packing = headers["Content-Encoding"] = next(
                    (name for name in LIKED if name in self.accepted[path]), "gzip"
                )
            body = PACKERS[packing](body)
        if "Transfer-Encoding" in headers:
            body = (
                b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:50], body[50:]))
                + b"0\r\n\r\n"
            )
        else:
            headers["Content-Length"] = str(len(body))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


def index() -> str:
    return "".join(f'<a href="{quote(path, safe="/?=&")}">{path}</a><br>' for path in PAGES)


@contextmanager
def serving() -> Iterator[tuple[str, dict[str, str]]]:
    """Its URL, and what each path was asked with."""

    class Own(Kinds):
        accepted: dict[str, str] = {}  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", Own.accepted
    finally:
        server.shutdown()
        server.server_close()
