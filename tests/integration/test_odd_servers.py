"""Answers that no standard foresees but browsers accept, and servers with habits of their own."""

from __future__ import annotations

import gzip
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crawling import run_crawl
from tests.support.webs import rows

pytestmark = pytest.mark.proof

SETTINGS = {
    "FRONTIER_FLUSH": 0.2,
    "CRAWL_PATIENCE": 0,
    "REVISIT_INTERVAL": "1h",
    "FRONTIER_RETRY_DELAY": "1h",
}
PAGE = b"<title>Fine</title><p>A page that a browser shows.</p>"


def head(*lines: bytes, status: bytes = b"200 OK", body: bytes = PAGE) -> bytes:
    fields = (
        b"HTTP/1.1 " + status,
        b"Content-Type: text/html",
        b"Content-Length: %d" % len(body),
        *lines,
    )
    return b"\r\n".join(fields) + b"\r\n\r\n" + body


class Odd(socketserver.StreamRequestHandler):
    """Raw answers by path."""

    seen: list[str] = []  # noqa: RUF012

    def handle(self) -> None:
        while line := self.rfile.readline():
            path = line.split()[1]
            host = b""
            while (field := self.rfile.readline()).strip():
                if field.lower().startswith(b"host:"):
                    host = field.split(b":", 1)[1].strip()
            self.seen.append(path.decode())
            self.wfile.write(self.answer(path, host))

    def answer(self, path: bytes, host: bytes) -> bytes:
        packed = gzip.compress(
            b"<urlset><url><loc>http://%s/from-sitemap</loc></url></urlset>" % host
        )
        answers = {
            b"/robots.txt": head(body=b"User-agent: *\nSitemap: http://%s/map.xml.gz" % host),
            b"/map.xml.gz": head(body=packed).replace(b"text/html", b"application/x-gzip"),
            b"/binary-header": head(b"X-Name: caf\xe9"),
            b"/huge-header": head(b"Content-Security-Policy: " + b"x" * 20_000),
            b"/many-headers": head(*(b"X-%d: 1" % n for n in range(300))),
            b"/moved": head("Location: /né".encode(), status=b"301 Moved"),
            b"/order": head(b"X-Robots-Tag: nofollow", body=b'<a href="/not-followed">x</a>'),
            b"/unasked-304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
        }
        return answers.get(path, head())


@pytest.fixture
def base() -> Iterator[str]:
    Odd.seen = []
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Odd) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_odd_answers_are_read_as_browsers_read_them(
    base: str, database_url: str, tmp_path: Path
) -> None:
    paths = ("/binary-header", "/huge-header", "/many-headers", "/moved", "/order", "/unasked-304")
    seeds = "seeds=" + ",".join(base + path for path in paths)
    result = run_crawl(["site", "-a", seeds], {**SETTINGS, "DATABASE_URL": database_url}, tmp_path)
    assert result.code == 0, result.stderr + result.log
    found = {
        url.removeprefix(base): (row.state, row.status) for url, row in rows(database_url).items()
    }
    assert found == {
        "/binary-header": ("waiting", 200),
        "/huge-header": ("waiting", 200),
        "/many-headers": ("waiting", 200),
        "/moved": ("moved", 301),
        "/n%C3%A9": ("waiting", 200),
        "/order": ("waiting", 200),
        "/unasked-304": ("retry", 304),
        "/map.xml.gz": ("waiting", 200),
        "/from-sitemap": ("waiting", 200),
    }


def test_a_lease_that_comes_to_its_deadline_between_renewals_goes_on(
    base: str, database_url: str, tmp_path: Path
) -> None:
    """With a time-out that is nearly as long as the lease, little of each lease is left to hand
    out.
    """
    settings = {
        **SETTINGS,
        "DATABASE_URL": database_url,
        "FRONTIER_LEASE": "6s",
        "DOWNLOAD_TIMEOUT": 5.5,
        "POLITENESS_DELAY": 0.4,
    }
    seeds = "seeds=" + ",".join(f"{base}/{n}" for n in range(12))
    result = run_crawl(["site", "-a", seeds], settings, tmp_path)
    assert result.stats["finish_reason"] == "finished"
    assert sum(row.state == "waiting" for row in rows(database_url).values()) == 14


def test_the_limit_of_pages_is_kept_exactly(base: str, database_url: str, tmp_path: Path) -> None:
    hosts = {f"h{n}.test": "127.0.0.1" for n in range(12)}
    port = base.rpartition(":")[2]
    seeds = "seeds=" + ",".join(f"http://{host}:{port}/{n}" for host in hosts for n in range(5))
    limits = {"FRONTIER_PAGES": 23, "DNS_HOSTS": hosts, "DATABASE_URL": database_url}
    result = run_crawl(["site", "-a", seeds], {**SETTINGS, **limits}, tmp_path)
    assert result.stats["pages/first"] == 23


def test_robots_txt_does_not_count_for_closespider_pagecount(
    base: str, database_url: str, tmp_path: Path
) -> None:
    seeds = "seeds=" + ",".join(f"{base}/{n}" for n in range(9))
    settings = {**SETTINGS, "DATABASE_URL": database_url, "CLOSESPIDER_PAGECOUNT": 4}
    result = run_crawl(["site", "-a", seeds], settings, tmp_path)
    assert result.stats["finish_reason"] == "closespider_pagecount"
    assert result.stats["pages/first"] == 4
