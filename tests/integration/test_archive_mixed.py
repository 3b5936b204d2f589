"""A web with everything that an archive may stumble over, crawled twice: other libraries accept
every file and every digest.

300 pages; ARCHIVE_PAGES=3000 for more.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.integration.test_archive_crawl import answers, readable, sound
from tests.support.crawling import run_crawl
from tests.support.replayable import PACKERS
from tests.support.wayback import installed
from tests.support.webs import make_due

pytestmark = pytest.mark.proof

PAGES = int(os.environ.get("ARCHIVE_PAGES", "300"))
KINDS = (
    "plain",
    "gzip",
    "br",
    "zstd",
    "deflate",
    "chunked",
    "chunked-gzip",
    "moved",
    "missing",
    "failing",
    "big",
    "short",
    "etag",
    "head-odd",
    "head-long",
    "cut-chunks",
    "lying-gzip",
    "empty",
    "cp1251",
    "same",
)
TOO_BIG = 300_000


class Mixed(BaseHTTPRequestHandler):
    """Page N is of kind N; every page links to ten others."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.strip("/")
        if not name.isdecimal():
            self.answer(
                200 if not name else 404,
                {},
                b"".join(b"<a href=/%d>%d</a> " % (n, n) for n in range(PAGES)),
            )
            return
        number = int(name)
        getattr(self, "do_" + KINDS[number % len(KINDS)].replace("-", "_"), self.do_plain)(number)

    def body(self, number: int) -> bytes:
        return f"<title>{number}</title><p>{f'Page {number}. ' * (1 + number % 400)}</p>".encode()

    def answer(
        self, status: int, headers: dict[str, str], body: bytes, length: int | None = None
    ) -> None:
        self.send_response(status)
        kinds = {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(body) if length is None else length),
        }
        for key, value in (
            {**kinds, **headers} if "Transfer-Encoding" not in headers else headers
        ).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def do_plain(self, number: int) -> None:
        kind = KINDS[number % len(KINDS)]
        packed = PACKERS[kind](self.body(number)) if kind in PACKERS else self.body(number)
        self.answer(200, {"Content-Encoding": kind} if kind in PACKERS else {}, packed)

    def do_chunked(self, number: int, packing: str = "", end: bytes = b"0\r\n\r\n") -> None:
        body = PACKERS[packing](self.body(number)) if packing else self.body(number)
        chunks = b"".join(
            b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:10], body[10:]) if part
        )
        more = {"Content-Encoding": packing} if packing else {}
        self.answer(
            200, {"Content-Type": "text/html", "Transfer-Encoding": "chunked", **more}, chunks + end
        )

    def do_chunked_gzip(self, number: int) -> None:
        self.do_chunked(number, "gzip")

    def do_cut_chunks(self, number: int) -> None:
        self.do_chunked(number, end=b"ffff\r\nshort")
        self.close_connection = True

    def do_moved(self, number: int) -> None:
        self.answer(
            (301, 302, 307, 308)[number // len(KINDS) % 4], {"Location": f"/{number - 7}"}, b""
        )

    def do_missing(self, number: int) -> None:
        self.answer(404, {}, b"<p>missing %d</p>" % number)

    def do_failing(self, number: int) -> None:
        self.answer(500, {}, b"<p>failing %d</p>" % number)

    def do_big(self, number: int) -> None:
        self.answer(200, {}, self.body(number) + b"x" * TOO_BIG)

    def do_short(self, number: int) -> None:
        self.answer(200, {}, self.body(number), len(self.body(number)) + 1000)
        self.close_connection = True

    def do_etag(self, number: int) -> None:
        if self.headers.get("If-None-Match"):
            self.send_response(304)
            self.end_headers()
        else:
            self.answer(200, {"ETag": f'"{number}"'}, self.body(number))

    def do_head_odd(self, number: int) -> None:
        body = self.body(number)
        lines = b"X-Latin: gr\xf6\xdfe\r\nX-Fold: a\r\n b\r\nX-Space : c\r\nX-Empty:\r\n"
        self.wfile.write(
            b"HTTP/1.1 200\r\nContent-Type: text/html\r\n%sContent-Length: %d\r\n\r\n%s"
            % (lines, len(body), body)
        )

    def do_head_long(self, number: int) -> None:
        self.answer(200, {f"X-{n}": "y" * 900 for n in range(50)}, self.body(number))

    def do_lying_gzip(self, number: int) -> None:
        self.answer(200, {"Content-Encoding": "gzip"}, self.body(number))

    def do_empty(self, number: int) -> None:
        self.answer(200, {}, b"")

    def do_cp1251(self, number: int) -> None:
        self.answer(
            200,
            {"Content-Type": "text/html; charset=windows-1251"},
            "<p>Страница</p>".encode("cp1251") + self.body(number),
        )

    def do_same(self, number: int) -> None:
        self.answer(200, {}, b"<p>the same on many pages</p>")

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def mixed() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mixed)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients hang up on purpose
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def crawl(base: str, database_url: str, folder: Path) -> Counter[str]:
    settings = {
        "DATABASE_URL": database_url,
        "FRONTIER_FLUSH": 0.2,
        "CRAWL_PATIENCE": 0,
        "FRONTIER_RETRY_DELAY": "1h",
        "REVISIT_INTERVAL": "1h",
        "DOWNLOAD_MAXSIZE": TOO_BIG,
        "POLITENESS_MAX_DELAY": 0,
        "POLITENESS_PAUSE_AFTER": 0,
    }
    result = run_crawl(["site", "-a", f"seeds={base}/"], settings, folder, 580)
    assert result.code == 0, result.stderr
    return Counter({name: value for name, value in result.stats.items() if isinstance(value, int)})


def unmodified_warcio(path: Path) -> None:
    """In an environment where warcio has the brotli that it was written for."""
    program = installed().with_name("warcio")
    done = subprocess.run([program, "check", path], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stdout.strip(), (
        path.name,
        done.stdout[-500:],
        done.stderr[-500:],
    )


def told(path: Path) -> Counter[str]:
    """Records by kind, as FastWARC reads them, which leaves out any whose digest it finds wrong."""
    with path.open("rb") as file:
        found = ArchiveIterator(file, record_types=WarcRecordType.any_type, verify_digests=True)
        return Counter(record.headers["WARC-Type"] for record in found)


def test_other_libraries_accept_a_crawl_of_everything(
    mixed: str, database_url: str, tmp_path: Path
) -> None:
    first = crawl(mixed, database_url, tmp_path)
    make_due(database_url)
    second = crawl(mixed, database_url, tmp_path)
    archive = sound(tmp_path / "warc")
    exchanges = answers(archive)
    assert exchanges.total() == first["warc/exchanges"] + second["warc/exchanges"]
    assert (
        len({url.rpartition("/")[2] for url in exchanges if url.rpartition("/")[2].isdecimal()})
        == PAGES
    )
    assert readable(database_url, archive) > PAGES // 3
    kinds: Counter[str] = Counter()
    for path in archive.closed_files():
        unmodified_warcio(path)
        kinds += told(path)
    ours = Counter(record.kind for _, record in archive.iter_records())
    assert kinds == ours
    assert ours["revisit"] > PAGES // 4 and ours["response"] > PAGES
    cut = Counter(
        record.fields["warc-truncated"]
        for _, record in archive.iter_records()
        if "warc-truncated" in record.fields
    )
    assert {"length", "disconnect"} <= cut.keys()
    size = sum(path.stat().st_size for path in archive.closed_files())
    print(f"{exchanges.total()} exchanges, {dict(ours)}, cut: {dict(cut)}, {size / 1e6:.1f} MB")
