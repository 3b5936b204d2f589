"""Hostile pages of some MB beside an honest host: they hold nobody up, and what may be taken of them
is taken.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.crawling import run_crawl
from tests.support.webs import rows

SIZE = 4_000_000
HONEST_PAGES = 20
HTML = "text/html; charset=utf-8"
LINKS = 5_000


def number(piece: bytes, count: int) -> bytes:
    return b"".join([piece % n for n in range(count)])


PAGES = {
    "tags.test": (HTML, b"<p>first " + b"<b>x</b>" * (SIZE // 8)),
    "links.test": (HTML, number(b"<a href=/%d>", 250_000)),
    "hosts.test": (HTML, number(b"<a href='http://h%d.hosts.test/'>", 100_000)),
    "base.test": (
        HTML,
        b"<base href='/" + b"%2F" * 630 + b"/'>" + number(b"<a href=%d>", 150_000),
    ),
    "map.test": ("application/xml", b"<urlset>" + number(b"<url><loc>/%d</loc></url>", 20_000)),
    "text.test": (HTML, b"<p>" + "wört ".encode() * (SIZE // 6)),
}
"""What the first page of each host is. All other pages of theirs are short."""


@contextmanager
def serving(asked: dict[str, list[float]]) -> Iterator[int]:
    """The hosts on loopback; notes when each was asked for a page."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host = self.headers["Host"].partition(":")[0]
            status = 404 if self.path == "/robots.txt" else 200
            content_type, body = HTML, b"<p>short"
            if self.path == "/" and host in PAGES:
                content_type, body = PAGES[host]
            elif host == "honest.test":
                body = number(b"<a href=/%d>page</a>", HONEST_PAGES)
            if status == 200:
                asked[host].append(time.monotonic())
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_pages_of_some_mb_hold_nobody_up(database_url: str, tmp_path: Path) -> None:
    asked: dict[str, list[float]] = defaultdict(list)
    with serving(asked) as port:
        hosts = [*PAGES, "honest.test"]
        settings = {
            "DATABASE_URL": database_url,
            "DNS_HOSTS": {"*.test": "127.0.0.1"},
            "EXTENSIONS": {"tests.support.lag.LoopLag": 0, "tests.support.offline.Peak": 1},
            "SPIDER_MODULES": "tests.spiders",
            "CRAWL_PATIENCE": 0,
            "FRONTIER_FLUSH": 0.2,
            "FRONTIER_HOST_PAGES": HONEST_PAGES + 1,
            "FRONTIER_DOMAIN_HOSTS": 5,
            "POLITENESS_PAUSE_AFTER": 0,
            "LINKS_PER_PAGE": LINKS,
            "LINKS_CHARACTERS": 2_000_000,
        }
        seeds = ",".join(f"http://{host}:{port}/" for host in hosts)
        result = run_crawl(["failing_site", "-a", f"seeds={seeds}"], settings, tmp_path, 120)
    stats = result.stats
    assert result.code == 0, result.stderr
    assert len(asked["honest.test"]) == HONEST_PAGES + 1
    assert stats["lag/largest_s"] < 1.0
    assert stats["peak"] < 400_000_000
    found = rows(database_url, "failing_site")
    for host in hosts:
        assert found[f"http://{host}:{port}/"].state == "waiting"
    # The callback has failed for tags: it is read all the same.
    assert stats["spider_exceptions/count"] >= 1
    # Tags and links have more elements than are read; hosts and base only too many links, and a
    # sitemap may have more of them.
    assert stats["pages/cut"] == 2
    assert stats["links/too_many"] == 3
    children = Counter(url.split("/")[2].partition(":")[0] for url in found)
    # All are short but those of base, of 1,900 characters each.
    assert children["links.test"] == LINKS + 1
    assert children["map.test"] == 20_000 + 1
    assert 1_000 < children["base.test"] < 1_100
    assert sum(host.endswith(".hosts.test") for host in children) == 5
