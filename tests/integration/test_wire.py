"""What the download handler keeps is what really went over the wire, to the byte."""

from __future__ import annotations

import asyncio
import gzip
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from crawlproj.fetch.wire import WireCapture, capture_wire, install_capture
from tests.support.crawling import run_crawl
from tests.support.wiring import read_wires

PAGE = b"<title>Fine</title><p>A page that a browser shows.</p>"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(PAGE)
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-TYPE:text/html\r\nTransfer-Encoding:  "
    b"chunked\r\nContent-Encoding: gzip\r\n\r\n"
)
PACKED = gzip.compress(PAGE, mtime=0)
CLOSE = b"Connection: close\r\n\r\n"

ANSWERS = {
    "/robots.txt": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b""),
    "/plain": (PLAIN, PAGE),
    "/odd": (
        b"HTTP/1.1 200\r\ncOnTeNt-TyPe:  text/html  \r\nX-Twice: 1\r\nX-Twice: 2\r\nX-Bytes: "
        b"caf\xe9\r\n" + CLOSE,
        PAGE,
    ),
    "/line-feeds": (b"HTTP/1.0 200 Fine by me\nContent-Type: text/html\n\n", PAGE),
    "/no-reason": (b"HTTP/1.1 404\r\n" + CLOSE, PAGE),
    "/error": (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\n", b"busy"),
    "/moved": (b"HTTP/1.1 301 Moved\r\nLocation: /plain\r\nContent-Length: 0\r\n\r\n", b""),
}
"""Head and body."""


class Raw(socketserver.StreamRequestHandler):
    """Keeps requests byte by byte and answers with bytes."""

    disable_nagle_algorithm = True

    seen: dict[str, bytes] = {}  # noqa: RUF012
    was_read = threading.Event()
    was_sent = threading.Event()

    def handle(self) -> None:
        while line := self.rfile.readline():
            data = line
            while (field := self.rfile.readline()).strip():
                data += field
            path = line.split()[1].decode()
            self.seen[path] = data + b"\r\n"
            if not self.answer(path):
                return

    def answer(self, path: str) -> bool:
        if path == "/slow":
            for byte in PLAIN + PAGE:
                self.wfile.write(bytes([byte]))
                time.sleep(0.0005)
            return True
        if path == "/chunked":
            half = len(PACKED) // 2
            self.wfile.write(
                CHUNKED
                + b"%x;a=b\r\n%b\r\n%x\r\n%b\r\n"
                % (half, PACKED[:half], len(PACKED) - half, PACKED[half:])
            )
            self.wfile.write(b"0\r\nX-Trailer: yes\r\n\r\n")
            return True
        if "-then-" in path:
            whole = (
                PLAIN + PAGE if "plain" in path else CHUNKED + b"%x\r\n%b\r\n" % (len(PAGE), PAGE)
            )
            last = b"" if "plain" in path else b"0\r\n\r\n"
            forged = PLAIN.replace(b"200", b"404") + PAGE
            self.wfile.write(whole if "now" in path else whole + last)
            if "later" in path:
                self.was_read.wait()
            self.wfile.write(last + forged if "now" in path else forged)
            self.was_sent.set()
            return True
        if path == "/hints":
            self.wfile.write(
                b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
                + PLAIN
                + PAGE
            )
            return True
        raw = {
            "/no-head": b"<p>no head at all</p>\n\n",
            "/half-head": b"HTTP/1.1 200 OK\r\nContent-",
            "/cut": PLAIN + PAGE[:20],
        }
        self.wfile.write(raw[path] if path in raw else b"".join(ANSWERS[path]))
        return path not in raw and b"Length" in ANSWERS[path][0]


@pytest.fixture
def base() -> Iterator[str]:
    Raw.seen = {}
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Raw) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Kept(aiohttp.ClientResponse):
    wire: WireCapture | None = None

    async def start(self, connection: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        end = connection.protocol
        await super().start(connection)
        self.wire = capture_wire(self, end)
        return self


async def fetched(
    base: str, *paths: str, meanwhile: Callable[[], object] = lambda: None
) -> list[WireCapture]:
    connector = aiohttp.TCPConnector(limit=1)
    found = []
    async with aiohttp.ClientSession(
        connector=connector, response_class=Kept, auto_decompress=False
    ) as session:
        install_capture(connector)
        for path in paths:
            async with session.get(base + path, allow_redirects=False) as response:
                assert isinstance(response, Kept)
                assert response.wire is not None
                async for _ in response.wire.record_body(response.content):
                    pass
                found.append(response.wire)
            meanwhile()  # the event loop sees nothing of it
    return found


def test_heads_are_kept_to_the_byte(base: str) -> None:
    paths = [*ANSWERS, "/slow", "/hints", "/chunked"]
    wires = dict(zip(paths, asyncio.run(fetched(base, *paths)), strict=True))
    wanted = {
        **ANSWERS,
        "/slow": (PLAIN, PAGE),
        "/hints": (PLAIN, PAGE),
        "/chunked": (CHUNKED, PACKED),
    }
    assert {path: (wire.head, wire.body) for path, wire in wires.items()} == wanted
    assert {path: wire.request for path, wire in wires.items()} == Raw.seen


@pytest.mark.parametrize("name", ["/plain-then", "/chunked-then"])
def test_an_answer_that_nobody_asked_for_is_no_answer_to_the_next_request(
    base: str, name: str
) -> None:
    """It comes behind another, with its end or a moment later, when the connection is idle and the
    event loop busy.
    """

    def until_it_has_come() -> None:
        Raw.was_read.set()
        Raw.was_sent.wait()

    for pause in ("now", "later"):
        Raw.was_read = threading.Event()
        Raw.was_sent = threading.Event()
        first, second = asyncio.run(
            fetched(base, f"{name}-{pause}", "/plain", meanwhile=until_it_has_come)
        )
        assert first.body == PAGE
        assert (second.head, second.body) == (PLAIN, PAGE)


def test_a_crawl_keeps_what_went_over_the_wire(
    base: str, database_url: str, tmp_path: Path
) -> None:
    paths = [*list(ANSWERS)[1:], "/slow", "/hints", "/chunked", "/no-head", "/half-head", "/cut"]
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
        "REVISIT_INTERVAL": "1h",
        "FRONTIER_RETRY_DELAY": "1h",
        "WARC_ENABLED": True,
        "STATS_CLASS": "tests.support.wiring.WireStats",
        "WIRE_FILE": tmp_path / "wires",
    }
    result = run_crawl(
        ["site", "-a", "seeds=" + ",".join(base + path for path in paths)], settings, tmp_path
    )
    assert result.code == 0, result.stderr + result.log
    wires = read_wires(tmp_path / "wires")
    assert set(wires) == set(Raw.seen)
    wanted = {
        **ANSWERS,
        "/slow": (PLAIN, PAGE),
        "/hints": (PLAIN, PAGE),
        "/chunked": (CHUNKED, PACKED),
        "/cut": (PLAIN, PAGE[:20]),
        "/no-head": (b"<p>no head at all</p>\n\n", b""),
        "/half-head": (b"HTTP/1.1 200 OK\r\nContent-", b""),
    }
    assert {path: wire and wire[1:] for path, wire in wires.items()} == wanted
    assert {path: wire and wire[0] for path, wire in wires.items()} == Raw.seen
    assert not any(
        b"content-" in asked.lower() for asked in Raw.seen.values()
    )  # a GET has no body, and says nothing of one


def test_nothing_is_kept_without_an_archive(base: str, database_url: str, tmp_path: Path) -> None:
    settings = {
        "DATABASE_URL": database_url,
        "CRAWL_PATIENCE": 0,
        "STATS_CLASS": "tests.support.wiring.WireStats",
        "WARC_ENABLED": False,
    }
    run_crawl(
        ["site", "-a", f"seeds={base}/plain"],
        {**settings, "WIRE_FILE": tmp_path / "wires"},
        tmp_path,
    )
    assert read_wires(tmp_path / "wires") == {"/robots.txt": None, "/plain": None}
