"""What the archive costs: `python benchmarks/archive.py [PAGES]`.

CPU per page of 50 KB, size against gzip -6, memory, random reads. Pages are articles from the
folder ARTICLES (cut to 50 KB each, all different), else made-up ones. CPU is that of the whole
process, with the writer's thread, from the first page to the closed file, without the making of the
pages.
"""

from __future__ import annotations

import os
import random
import sys
import time
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from gzip import decompress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from crawlproj.archive import Archive
from crawlproj.archive.exchange import Exchange, PageMetadata
from crawlproj.archive.index_merge import merge_indexes
from crawlproj.archive.records import build_records
from crawlproj.archive.writer import DEFAULT_OPTIONS, WarcWriter, WriterOptions

ARTICLES = Path(
    os.environ.get("ARTICLES", Path(__file__).resolve().parents[2] / "shared/data/articles")
)
SIZE = 50_000
READS = 10_000
START = datetime(2026, 1, 1, tzinfo=UTC)
HEAD = (
    b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nServer: nginx\r\nContent-Type: "
    b"text/html; charset=utf-8\r\n"
)
HEAD += b'Content-Length: %d\r\nETag: "%x"\r\n'
HEAD += b"Cache-Control: max-age=60\r\nVary: Accept-Encoding\r\n\r\n"
REQUEST = (
    b"GET /%d HTTP/1.1\r\nHost: example.org\r\nUser-Agent: crawlproj "
    b"(+https://example.org/bot)\r\nAccept-Encoding: gzip\r\n\r\n"
)
LINKS = tuple(
    (f"https://example.org/news/2026/07/some-words-{number}.html", "a") for number in range(60)
)


def bodies() -> list[bytes]:
    """Some pages of 50 KB."""
    if ARTICLES.exists():
        found = [decompress(path.read_bytes()) for path in sorted(ARTICLES.glob("html/*.gz"))]
        return [body[:SIZE] for body in found if len(body) >= SIZE][:60]
    print("the shared articles are absent: made pages")
    words = [f"word{number * number % 9973}" for number in range(4_000)]
    chance = random.Random(1)
    lines = [
        f'<p class="text">{" ".join(chance.choices(words, k=12))} <a '
        f'href="/{words[n]}">{words[n]}</a></p>'
        for n in range(900)
    ]
    return ["\n".join(chance.choices(lines, k=600)).encode()[:SIZE] for _ in range(40)]


def exchange(number: int, some: list[bytes]) -> Exchange:
    body = b"<!-- %d -->" % number + some[number % len(some)]
    return Exchange(
        f"https://example.org/{number}",
        START + timedelta(seconds=number),
        HEAD % (len(body), number),
        body=body,
        request=REQUEST % number,
        address="192.0.2.1",
        elapsed_s=0.12,
        metadata=PageMetadata("A title of a page", LINKS),
    )


def written(
    folder: Path, count: int, some: list[bytes], shape: WriterOptions = DEFAULT_OPTIONS
) -> tuple[float, int]:
    """CPU in ms per page, and bytes of the files."""
    writer = WarcWriter(folder, "bench", "w", info={}, options=shape)
    made = 0.0
    begun = time.process_time()
    for number in range(count):
        start = time.thread_time()
        each = exchange(number, some)
        made += time.thread_time() - start
        writer.put(each)
        if number % 100 == 99:
            writer.flush().result()
    writer.close()
    spent = time.process_time() - begun - made
    return spent / count * 1000, sum(path.stat().st_size for path in folder.glob("*.warc.gz"))


def gzip_6(count: int, some: list[bytes]) -> int:
    """Bytes of the same records with gzip -6."""
    return sum(
        len(zlib.compress(each.data, 6, 31))
        for n in range(count)
        for each in build_records(exchange(n, some), None, "<urn:uuid:x>")
    )


def warcio_ms(count: int, some: list[bytes]) -> float:
    """CPU of warcio for the same exchanges, without metadata."""
    writer = WARCWriter(BytesIO(), gzip=True, warc_version="1.1")
    begun = time.process_time()
    for number in range(count):
        each = exchange(number, some)
        headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        response = writer.create_warc_record(
            each.url, "response", payload=BytesIO(each.body), http_headers=headers
        )
        headers = StatusAndHeaders(
            "GET / HTTP/1.1", [("Host", "example.org")], is_http_request=True
        )
        request = writer.create_warc_record(each.url, "request", http_headers=headers)
        writer.write_request_response_pair(request, response)
    return (time.process_time() - begun) / count * 1000


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def reads(folder: Path, count: int) -> Iterator[tuple[float, float]]:
    """Time and CPU of each read, in ms."""
    archive = Archive(folder)
    chance = random.Random(7)
    for _ in range(READS):
        number = chance.randrange(count)
        start = time.perf_counter()
        cpu = time.thread_time()
        found = archive.get(f"https://example.org/{number}", START + timedelta(seconds=number))
        assert found is not None and len(found.content) > 1000
        yield (time.perf_counter() - start) * 1000, (time.thread_time() - cpu) * 1000


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    some = bodies()
    with TemporaryDirectory(prefix="bench-archive-") as name:
        folder = Path(name)
        written(folder / "warm", 300, some)
        before = resident_mb()
        halves = []
        memory = [before]
        for half in (1, 2):
            halves.append(
                written(
                    folder / f"half{half}",
                    count // 2,
                    some,
                    shape=WriterOptions(max_bytes=50_000_000),
                )
            )
            memory.append(resident_mb())
        few = min(count, 600)
        _, size = written(folder / "size", few, some)
        ours = sum(ms for ms, _ in halves) / 2
        theirs = warcio_ms(few, some)
        print(
            f"{ours:.3f} ms CPU per page of 50 KB (response, request, metadata); warcio: "
            f"{theirs:.3f} ms"
        )
        print(f"{size / gzip_6(few, some):.3f} of the size with gzip -6")
        print(
            "{:.0f} MB before, {:.0f} MB after a half, {:.0f} MB after all of".format(*memory),
            count,
            "pages",
        )
        start = time.process_time()
        merge_indexes(folder / "half1")
        print(f"{(time.process_time() - start) * 1000:.0f} ms to merge the index")
        for _ in reads(folder / "half1", count // 2):
            pass  # all that is read is in memory now
        for kind, times in zip(
            ("", " of CPU"),
            map(sorted, zip(*reads(folder / "half1", count // 2), strict=True)),
            strict=True,
        ):
            middle = times[READS // 2]
            late = times[READS * 95 // 100]
            print(
                f"{READS} reads by URL and time: median {middle:.2f} ms{kind}, p95 {late:.2f} "
                f"ms{kind}"
            )


if __name__ == "__main__":
    main()
