"""Servers that send without end, and documents that take their reader's time: each costs its own
host, and an honest one beside them is crawled as if it were alone.
"""

from __future__ import annotations

import gzip
import re
import socketserver
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crawlproj.archive import Archive
from crawlproj.demo.files import make_pdf
from tests.support import documents as make
from tests.support.crawling import Result, run_crawl
from tests.support.spam import gzip_spam
from tests.support.webs import rows

MAX_SIZE = 1_000_000
BUFFERS = 14_000_000
"""What the kernel may take of a connection before anybody reads it, generously."""
PAGES = 25
SLOW_DOCUMENTS = 12
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = HTML + b"Transfer-Encoding: chunked\r\n\r\n"


def whole(body: bytes, *lines: bytes, kind: bytes = b"text/html", status: bytes = b"200") -> bytes:
    head = (b"HTTP/1.1 " + status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body))
    return b"\r\n".join((*head, *lines)) + b"\r\n\r\n" + body


def encoded(body: bytes, encoding: str, kind: bytes = b"text/html") -> bytes:
    return whole(body, b"Content-Encoding: " + encoding.encode(), kind=kind)


def endless(start: bytes, more: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield start
        more_than_enough = more * (100_000 // len(more) + 1)
        while True:
            yield more_than_enough

    return pieces


def dripping() -> Iterator[bytes]:
    yield HTML + b"Content-Length: 1000000\r\n\r\n"
    while True:
        time.sleep(0.1)
        yield b"x"


FLOODS: dict[str, tuple[Callable[[], Iterator[bytes]], str]] = {
    "extensions": (endless(CHUNKED, b"1;" + b"x" * 70 + b"\r\na\r\n"), "too big"),
    "small-chunks": (endless(CHUNKED, b"1\r\na\r\n"), "too big"),
    "long-body": (endless(HTML + b"\r\n", b"x" * 1_000), "too big"),
    "continue": (
        endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        "bad answer: too many interim responses",
    ),
    "icy": (endless(b"", b"ICY 100\n\n"), "bad answer: too many interim responses"),
    "endless-head": (endless(HTML, b"X-Header: 1\r\n"), "bad answer: endless head"),
    "trailers": (endless(CHUNKED + b"1\r\na\r\n0\r\n", b"X-Trailer: 1\r\n"), "bad answer"),
    "drip": (dripping, "timeout"),
}
"""What is sent without end, and what such a page ends as."""
BODIES: dict[str, tuple[bytes, str]] = {
    "layers": (encoded(b"x" * 5_000, ",".join(["gzip"] * 2_000)), "decompression: more than 5 enc"),
    "bomb": (
        encoded(gzip.compress(gzip.compress(bytes(5_000_000))), "gzip, gzip"),
        "decompression",
    ),
    "spam": (encoded(gzip.compress(gzip_spam(900_000)), "gzip, gzip"), "bad answer"),
}
"""What is sent once."""
HOME = b"<title>Home</title>"
SLOW = make.slow_pdf().replace(b"\n", b"\n%" + b" " * 900_000 + b"\n", 1)


class Web:
    """Each host has its own address. `sent`: bytes by path, `asked`: times by host and path."""

    def __init__(self) -> None:
        self.sent = Counter[str]()
        self.asked: dict[str, list[str]] = defaultdict(list)

    def response(self, host: str, path: str) -> Iterator[bytes]:
        name = host.partition(".")[0]
        if name == "honest":
            yield self._honest_page(path)
        elif path == "/robots.txt" and name == "robots-bomb":
            yield encoded(gzip.compress(gzip.compress(b"") * 200_000, 9), "gzip, gzip")
        elif path == "/robots.txt" and name == "robots-flood":
            yield from endless(CHUNKED, b"1;" + b"x" * 70 + b"\r\n#\r\n")()
        elif path == "/robots.txt":
            yield whole(b"", status=b"404")
        elif name in FLOODS:
            yield from FLOODS[name][0]()
        elif name in BODIES:
            yield BODIES[name][0]
        elif name.startswith("slow"):
            # The comment makes each of them another one.
            body = gzip.compress(SLOW + b"\n%" + name.encode())
            yield encoded(body, "gzip", b"application/pdf")
        else:
            yield whole(HOME)

    def _honest_page(self, path: str) -> bytes:
        if path == "/paper":
            return whole(make_pdf("A paper", "Some words", ""), kind=b"application/pdf")
        number = path.strip("/") or "0"
        if not number.isdigit() or int(number) >= PAGES:
            return whole(b"", status=b"404")
        links = f"<a href=/{int(number) + 1}>next</a><a href=/paper>paper</a>"
        return whole(f"<title>Page {number}</title>{links}".encode())


@contextmanager
def serving(addresses: int) -> Iterator[tuple[Web, int]]:
    web = Web()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                while request := self._read_request():
                    path = request[0].split()[1].decode()
                    hosts = [line for line in request if line.lower().startswith(b"host:")]
                    host = hosts[0].split()[1].decode().partition(":")[0]
                    web.asked[host].append(path)
                    for piece in web.response(host, path):
                        self.connection.sendall(piece)
                        web.sent[host] += len(piece)

        def _read_request(self) -> list[bytes]:
            lines = [self.rfile.readline()]
            while lines[-1].strip():
                lines.append(self.rfile.readline())
            return [line for line in lines if line.strip()]

    servers = []
    port = 0
    for number in range(1, addresses + 1):
        server = socketserver.ThreadingTCPServer((f"127.0.0.{number}", port), Handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients hang up
        port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
    try:
        yield web, port
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def crawl(port: int, hosts: list[str], database_url: str, folder: Path) -> Result:
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
        "FRONTIER_RETRY_DELAY": "1h",
        "DOWNLOAD_MAXSIZE": MAX_SIZE,
        "DOWNLOAD_TIMEOUT": 4,
        "DOCUMENTS_TIMEOUT": "1s",
        "DOCUMENTS_MAX_WAITING": "2MB",
        "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 2_000_000,
        "DNS_HOSTS": {host: f"127.0.0.{number}" for number, host in enumerate(hosts, 1)},
    }
    seeds = "seeds=" + ",".join(f"http://{host}:{port}/" for host in hosts)
    result = run_crawl(["site", "-a", seeds], settings, folder, 120)
    assert result.code == 0 and "Traceback" not in result.stderr + result.log, (
        result.stderr + result.log
    )
    return result


def test_floods_and_slow_documents_cost_nobody_else(database_url: str, tmp_path: Path) -> None:
    slow = [f"slow{number}" for number in range(SLOW_DOCUMENTS)]
    names = ["honest", *slow, "robots-bomb", "robots-flood", *FLOODS, *BODIES]
    hosts = [f"{name}.test" for name in names]
    with serving(len(hosts)) as (web, port):
        result = crawl(port, hosts, database_url, tmp_path)
    # The honest host: every page once, its document read, and all of it before the reader was
    # through with more than a few of those of others.
    assert Counter(web.asked["honest.test"]) == Counter(
        ["/robots.txt", "/", "/paper", *(f"/{number}" for number in range(1, PAGES + 1))]
    )
    log = result.log
    last_page = log.index(f"http://honest.test:{port}/{PAGES}")
    timeouts = [found.start() for found in re.finditer(r"Document not read \(timeout\)", log)]
    assert sum(at < last_page for at in timeouts) <= 4  # it was all twelve
    # Documents: those that had no room are not lost.
    stats = result.stats
    assert stats["documents/read"] == 1
    assert 3 <= stats["documents/timeout"] <= 4
    assert stats["documents/timeout"] + stats["documents/no_room"] == SLOW_DOCUMENTS
    found = {url.split("/")[2].partition(".")[0]: row for url, row in rows(database_url).items()}
    assert {found[name].why for name in slow} == {"document: timeout", "document: no_room"}
    assert all((found[name].state, found[name].tries) == ("waiting", 1) for name in slow)
    # Floods: each ends as it should, and little of it was taken.
    ends = {name: why for name, (_, why) in (FLOODS | BODIES).items()}
    assert {name: found[name].why for name in ends} == ends | {
        "layers": "decompression: more than 5 encodings"
    }
    assert {name for name in FLOODS if web.sent[f"{name}.test"] > MAX_SIZE + BUFFERS} == set()
    assert web.sent["robots-flood.test"] <= MAX_SIZE + BUFFERS
    assert "/" in web.asked["robots-bomb.test"] and "/" not in web.asked["robots-flood.test"]
    # What came of them is in the archive.
    kept = {
        record.url.split("/")[2].partition(".")[0]: len(record.block)
        for _, record in Archive(tmp_path / "warc").iter_records()
        if record.kind in ("response", "resource") and not record.url.endswith("robots.txt")
    }
    assert kept.keys() >= {*FLOODS, *BODIES, *slow, "honest"}
    assert max(kept.values()) < 2 * MAX_SIZE
