"""A small web for spiders of every kind: feeds, tables, forms, charsets, packings, redirects,
errors. It notes all.
"""

from __future__ import annotations

import gzip
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import brotli  # type: ignore[import-untyped]

from crawlproj.http import encodings
from tests.support.archiving import raw_deflate

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw": raw_deflate,
    "br": brotli.compress,
    "zstd": encodings.zstd.compress,
}
CHARSETS = {
    "header-1251": ("text/html; charset=windows-1251", "<p>Привет</p>".encode("windows-1251")),
    "meta-sjis": ("text/html", "<meta charset=shift_jis><p>こんにちは</p>".encode("shift_jis")),
    "bom-utf16": ("text/html", b"\xff\xfe" + "<p>žluťoučký</p>".encode("utf-16-le")),
    "latin": ("text/html", "<p>déjà vu à la carte</p>".encode("latin-1")),
    "gb18030": ("text/html; charset=gb2312", "<p>汉字</p>".encode("gb18030")),
}
MOVED = {
    "/old": (301, "/older"),
    "/older": (302, "/item/1?from=old"),
    "/moved": (303, "/item/2?from=moved"),
    "/circle": (302, "/circle"),
}


def page(text: str, *links: str) -> bytes:
    return (f"<p>{text}</p>" + "".join(f"<a href='{link}'>{link}</a>" for link in links)).encode()


def listed(count: int, base: str) -> dict[str, tuple[str, bytes]]:
    """What is read by machines."""
    items = "".join(f"<item><id>{n}</id><name>Name {n}</name></item>" for n in range(count))
    urls = "".join(f"<url><loc>{base}/item/{n}</loc></url>" for n in range(count))
    return {
        "/feed.xml": ("application/xml", f"<items>{items}</items>".encode()),
        "/table.csv": (
            "text/csv",
            "\n".join(["id,name", *(f"{n},Name {n}" for n in range(count))]).encode(),
        ),
        "/sitemap.xml.gz": (
            "application/gzip",
            gzip.compress(f"<urlset {NS}>{urls}</urlset>".encode()),
        ),
        "/sitemaps.xml": (
            "text/xml",
            f"<sitemapindex {NS}><sitemap><loc>{base}/sitemap.xml.gz</loc></sitemap></sitemapindex>".encode(),
        ),
        "/data.json": ("application/json", b'{"next": "/item/3", "n": 7}'),
    }


class Zoo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: Counter[str]
    base: str
    version = 0

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.asked[" ".join(filter(None, (self.command, self.path, form)))] += 1
        name, _, number = path[1:].partition("/")
        if path in MOVED:
            self.answer(MOVED[path][0], b"", Location=MOVED[path][1])
        elif name == "packed":
            packed = PACKERS[number](page(f"packed as {number}"))
            self.answer(
                200, packed, **{"Content-Encoding": "deflate" if number == "raw" else number}
            )
        elif name == "charset":
            self.answer(200, CHARSETS[number][1], kind=CHARSETS[number][0])
        elif name == "error":
            self.answer(int(number), page(f"error {number}"))
        elif path == "/search":
            self.answer(200, page(f"results for {form or query}", "/item/4"))
        elif path == "/cut":
            self.answer(200, page("cut off"), missing=500)
        else:
            self.plain(path, name, number)

    do_POST = do_HEAD = do_GET

    def plain(self, path: str, name: str, number: str) -> None:
        found = listed(6, self.base).get(path)
        if found is not None:
            self.answer(200, found[1], kind=found[0])
        elif path == "/":
            self.answer(
                200,
                page("home", *(f"/item/{n}" for n in range(6)), "/old", "/list/0", "/error/404"),
            )
        elif name == "list":
            self.answer(
                200,
                page(
                    f"list {number}",
                    *(f"/item/{n}" for n in range(6)),
                    f"/list/{(int(number) + 1) % 3}",
                ),
            )
        elif name == "item":
            self.answer(200, page(f"item {number}, version {self.version if number == '0' else 0}"))
        else:
            self.answer(404, page("nothing here"))

    def answer(
        self,
        status: int,
        body: bytes,
        kind: str = "text/html; charset=utf-8",
        missing: int = 0,
        **headers: str,
    ) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body) + missing),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")
        self.close_connection = self.close_connection or bool(missing)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving() -> Iterator[type[Zoo]]:
    """The running web: its `base` URL, what it was `asked` how often, and the `version` of what
    changes in it.
    """

    class Own(Zoo):
        asked: Counter[str] = Counter()  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    Own.base = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Own
    finally:
        server.shutdown()
        server.server_close()
