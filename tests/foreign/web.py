"""A small shop on loopback: pages, a sitemap, a login with a cookie, redirects. It notes what it
was asked.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ITEMS = 12
LISTS = 3
ROBOTS = "User-agent: *\nDisallow: /private\nSitemap: {base}/sitemap.xml\n"
MOVED = {
    "/start": (302, "/"),
    "/old": (301, "/item/1"),
    "/away": (302, "/item/2"),
    "/login": (303, "/hello"),
    "/round": (302, "/about"),
    "/about": (302, "/round"),
    "/off": (302, "http://localhost:{port}/item/3"),
}


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: Counter[str]
    base: str

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.asked[" ".join(filter(None, (self.command, self.path, form)))] += 1
        status, where = MOVED.get(path, (200, ""))
        body, kind = self.page(path)
        self.send_response(status if body or where else 404)
        if where:
            self.send_header("Location", where.format(port=self.base.rpartition(":")[2]))
        if path == "/login":
            self.send_header("Set-Cookie", "session=ann; Path=/")
        self.send_header("X-Cookie", self.headers.get("Cookie") or "none")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_GET

    def page(self, path: str) -> tuple[str, str]:
        name, _, number = path[1:].partition("/")
        if path == "/robots.txt":
            return ROBOTS.format(base=self.base), "text/plain"
        if path == "/sitemap.xml":
            urls = "".join(f"<url><loc>{self.base}/item/{n}</loc></url>" for n in range(ITEMS))
            return (
                f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>',
                "application/xml",
            )
        if path == "/":
            return "".join(
                f'<a href="/list/{n}">list</a>' for n in range(LISTS)
            ) + '<a href="/private/item/x">no</a>', "text/html"
        if name == "list":
            links = "".join(
                f'<a href="/item/{n}">item</a>'
                for n in range(ITEMS)
                if n % LISTS in (int(number), 0)
            )
            return (
                links
                + '<a href="http://elsewhere.test/item/1">other</a><a href="/list/0">again</a>',
                "text/html",
            )
        if name == "item":
            return (
                f'<h1>Item {number}</h1><a href="/item/{(int(number) + 1) % ITEMS}">next</a>',
                "text/html",
            )
        return ("hello", "text/html") if name in ("hello", "account") else ("", "text/html")

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def serving() -> Iterator[type[Shop]]:
    """The running shop: its `base` URL, and what it was `asked` how often."""

    class Own(Shop):
        asked: Counter[str] = Counter()  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    Own.base = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Own
    finally:
        server.shutdown()
        server.server_close()
