"""A town of small sites on loopback, each with its own name and address, for spiders as people write
them: pages, a sitemap, a feed, a table, a login, slow and missing pages. Each site notes what it was
asked and when. On the second day some things are new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

ITEMS = 6
SLOW_S = 0.2
ROBOTS = "User-agent: *\nDisallow: /private\n"
FIRST_ADDRESS = 31
SLACK_S = 0.06
"""A thread of the site may notice a request so much later than it came, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request, as the site saw it."""

    started: float
    ended: float
    method: str
    path: str
    status: int
    user_agent: str
    cookie: str


@dataclass
class Site:
    """`visits` are those since the last `clear`."""

    name: str
    address: str
    port: int = 0
    day: int = 1
    visits: list[Visit] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"http://{self.name}:{self.port}"

    @property
    def asked(self) -> list[str]:
        """Paths in order of the requests, without robots.txt; a POST says so."""
        visits = sorted(self.visits, key=lambda visit: visit.started)
        return [
            visit.path if visit.method == "GET" else f"{visit.method} {visit.path}"
            for visit in visits
            if visit.path != "/robots.txt"
        ]

    def items(self) -> range:
        """Numbers of the items that there are on this day."""
        return range(1, ITEMS + self.day)

    def page(self, path: str, cookie: str) -> tuple[str, str] | None:
        """Body and content type; None: there is no such page."""
        name, _, number = path.strip("/").partition("/")
        html = "text/html; charset=utf-8"
        if path == "/robots.txt":
            return ROBOTS, "text/plain"
        if path == "/":
            return self._front_page(), html
        if path == "/unchanging":
            return '<p class="old">as ever</p><a href="/item/1">one</a>', html
        if name == "page":
            following = f'<a class="next" href="/page/{int(number) + 1}">more</a>'
            quote = f'<div class="quote"><span>Words {number}</span>'
            author = f'<small>Ann {number}</small><a href="/author/{number}">about</a></div>'
            return quote + author + (following if int(number) < 3 else ""), html
        if name == "author":
            return f"<h3>Ann {number}</h3><em>born 19{number}0</em>", html
        if name == "item" and number.isdigit() and int(number) in self.items():
            price = f'<b class="price">{number}.50</b>'
            return f'<h1>Item {number}</h1>{price}<a href="/">home</a>', html
        if path == "/login":
            token = f'<input type="hidden" name="token" value="{time.monotonic_ns()}">'
            return f'<form method="post" action="/enter">{token}<input name="user"></form>', html
        if path == "/enter":
            return '<a href="/account/1">first</a><a href="/account/2">second</a>', html
        if name == "account":
            return f"<p>{'ann' if 'session=ann' in cookie else 'nobody'}</p>", html
        if path in ("/slow", "/private/x"):
            return "<p>there</p>", html
        return self._listing(path)

    def _front_page(self) -> str:
        links = "".join(f'<a class="item" href="/item/{n}">item {n}</a>' for n in self.items())
        return (
            f'<nav>{links}</nav><a href="/private/x">private</a>'
            f'<a href="http://elsewhere.test/item/1">elsewhere</a><a href="/slow">slow</a>'
        )

    def _listing(self, path: str) -> tuple[str, str] | None:
        """The same items as sitemap, as feed, as table."""
        urls = [(n, f"{self.base}/item/{n}") for n in self.items()]
        space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        if path == "/sitemap.xml":
            changed = f"<lastmod>2026-05-0{self.day}</lastmod>"
            inner = f"<sitemap><loc>{self.base}/sitemap-items.xml</loc>{changed}</sitemap>"
            return f"<sitemapindex {space}>{inner}</sitemapindex>", "application/xml"
        if path == "/sitemap-items.xml":
            rows = "".join(f"<url><loc>{url}</loc></url>" for _, url in urls)
            return f"<urlset {space}>{rows}</urlset>", "application/xml"
        if path == "/feed.xml":
            rows = "".join(
                f"<item><title>Item {n}</title><link>{url}</link></item>" for n, url in urls
            )
            text = f'<?xml version="1.0"?><rss version="2.0"><channel>{rows}</channel></rss>'
            return text, "application/rss+xml"
        if path == "/table.csv":
            return "id;name\n" + "".join(f"{n};Item {n}\n" for n, _ in urls), "text/csv"
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        started = time.monotonic()
        path = self.path.partition("?")[0]
        cookie = self.headers.get("Cookie") or ""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = self.site.page(path, cookie)
        status = 200 if found else 404
        body, kind = found or ("<p>missing</p>", "text/html")
        tag = f'"{md5(body.encode()).hexdigest()}"'
        if path == "/slow":
            time.sleep(SLOW_S)
        if self.headers.get("If-None-Match") == tag:
            status, body = 304, ""
        # Noted before it is sent: the next request may come at once.
        self.site.visits.append(
            Visit(
                started,
                time.monotonic(),
                self.command,
                self.path,
                status,
                self.headers.get("User-Agent") or "",
                cookie,
            )
        )
        self.send_response(status)
        if path == "/enter":
            self.send_header("Set-Cookie", "session=ann; Path=/")
        elif path != "/login":
            self.send_header("ETag", tag)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_GET

    def log_message(self, *_: Any) -> None: ...


class Town:
    def __init__(self, sites: dict[str, Site]) -> None:
        self.sites = sites

    @property
    def dns_hosts(self) -> dict[str, str]:
        return {site.name: site.address for site in self.sites.values()}

    def begin_day(self, day: int) -> None:
        """Something new on each site, and an empty log."""
        for site in self.sites.values():
            site.day = day
            site.visits.clear()


@contextmanager
def open_town(names: Sequence[str]) -> Iterator[Town]:
    sites: dict[str, Site] = {}
    with ExitStack() as stack:
        for number, name in enumerate(names, FIRST_ADDRESS):
            site = sites[name] = Site(f"{name}.test", f"127.0.0.{number}")
            handler = type("Handler", (_Handler,), {"site": site})
            server = ThreadingHTTPServer((site.address, 0), handler)
            site.port = server.server_port
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
        yield Town(sites)


def impolite_acts(site: Site, delay_s: float, agent: str) -> list[str]:
    """What the site has to complain about, in words."""
    seen = sorted(site.visits, key=lambda visit: visit.started)
    found = [f"{visit.path} is private" for visit in seen if visit.path.startswith("/private")]
    found += [f"asked by {visit.user_agent!r}" for visit in seen if visit.user_agent != agent]
    for before, after in pairwise(seen):
        if after.started < before.ended - SLACK_S:
            found.append(f"{after.path} was asked while {before.path} was under way")
        if after.started - before.started < delay_s - SLACK_S:
            gap = after.started - before.started
            found.append(f"{gap:.3f} s between {before.path} and {after.path}")
    return found
