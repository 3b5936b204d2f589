"""A small news site for tests: articles with all that such pages have, and other pages beside them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.copies import article

NAV = (
    "<header><nav><ul>"
    + "".join(f"<li><a href='/{name}'>{name.title()}</a></li>" for name in ("world", "sport"))
    + "</ul></nav></header>"
)
FOOTER = "<footer><p>All rights reserved by the Weekly.</p></footer>"


def news_article(
    number: int,
    *,
    title: str = "",
    canonical: str = "",
    paragraphs: list[str] | None = None,
    json_ld: bool = True,
    head: str = "",
    links: str = "",
) -> str:
    """The page of an article."""
    title = title or f"Gardeners of village {number} rebuilt their old bridge"
    data = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": title,
        "datePublished": f"2026-11-{number % 28 + 1:02}T08:30:00+01:00",
        "author": [{"@type": "Person", "name": f"Vera Marsh {number}"}],
        "articleSection": "World",
    }
    script = f'<script type="application/ld+json">{json.dumps(data)}</script>' if json_ld else ""
    link = f'<link rel="canonical" href="{canonical}">' if canonical else ""
    body = "".join(f"<p>{text}</p>" for text in paragraphs or article(number, 6))
    return (
        f"<html lang=en><head><title>{title} | The Weekly</title>{link}{script}{head}</head><body>"
        f"{NAV}<main><article><h1>{title}</h1>{body}</article></main>{links}{FOOTER}</body></html>"
    )


def listing(urls: Mapping[str, str], title: str = "Latest news") -> str:
    """A page of links."""
    items = "".join(f"<li><h2><a href='{url}'>{text}</a></h2></li>" for url, text in urls.items())
    return (
        f"<html lang=en><head><title>{title} | The Weekly</title></head><body>{NAV}<main>"
        f"<h1>{title}</h1><ul>{items}</ul></main>{FOOTER}</body></html>"
    )


class NewsWeb:
    """Pages by path, which may be changed at any time. `asked` counts requests by path,
    `asked_at` has when each came, and its host; `paths` has the path of each, in order. `moved`:
    paths that have moved for good, and where to.
    """

    def __init__(self, pages: Mapping[str, str]) -> None:
        self.pages = dict(pages)
        self.moved: dict[str, str] = {}
        self.asked: Counter[str] = Counter()
        self.paths: list[str] = []
        self.asked_at: list[tuple[float, str]] = []
        self.base = ""


@contextmanager
def serve_news(pages: Mapping[str, str]) -> Iterator[NewsWeb]:
    """Serve pages; `{base}` in them is the site's own address."""
    web = NewsWeb(pages)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.asked[self.path] += 1
            web.paths.append(self.path)
            web.asked_at.append((time.time(), self.headers["Host"].partition(":")[0]))
            page = web.pages.get(self.path)
            if self.path in web.moved:
                self.send_response(301)
                self.send_header("Location", web.moved[self.path])
            else:
                self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((page or "").replace("{base}", web.base).encode())

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.base = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
