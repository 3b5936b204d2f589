"""How long hostile pages of 10 MB hold the event loop, from the response to their links in the
frontier's filter: python -m benchmarks.big_pages [NAME...]

Prints for each page its longest slice in CPU time, the longest delay of a timer on the same loop, all
CPU time, the links that were taken and how much the peak of the memory grew. No page may hold the loop
for 200 ms.
"""

from __future__ import annotations

import asyncio
import gzip
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from scrapy.http import Request, Response

from crawlproj.content.slices import Slices
from crawlproj.fetch.pages import page_in_slices
from crawlproj.fetch.slices import run_slices
from crawlproj.frontier.base import Lane, State, Ticket
from crawlproj.frontier.clock import FrontierClock
from crawlproj.frontier.seen import SeenUrls
from crawlproj.items import Page
from crawlproj.scheduling.memory_tuning import freeze_startup_objects
from crawlproj.urls.scope import Scope

SIZE = 10_000_000
URL = "https://example.org/"
HTML = "text/html"
FAR_BASE = b"<base href='https://example.org/" + b"%2F" * 630 + b"/'>"
XML = "application/xml"
PLAIN = "text/plain"
JSON = "application/json"


def repeat(piece: bytes) -> bytes:
    return piece * (SIZE // len(piece))


def number(piece: bytes, count: int) -> bytes:
    return b"".join([piece % n for n in range(count)])


BODIES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "small tags": (HTML, lambda: repeat(b"<b>x</b>")),
    "paragraphs": (HTML, lambda: repeat(b"<p>a")),
    "650,000 links": (HTML, lambda: number(b"<a href=/%d>", 650_000)),
    "250,000 hosts": (HTML, lambda: number(b"<a href='//h%d.example.org/'>", 250_000)),
    "links and a long base": (HTML, lambda: FAR_BASE + number(b"<a href=(%d>", 600_000)),
    "small page, long base": (HTML, lambda: FAR_BASE + number(b"<a href=(%d>", 14_000)),
    "onclick": (HTML, lambda: repeat(b"<p onclick='" + b'open("a")' * 400 + b"'>")),
    "one text": (HTML, lambda: b"<p>" + repeat(b"word ")),
    "one text, not ASCII": (HTML, lambda: b"<p>" + repeat("wört\u200b ".encode())),
    "one word": (HTML, lambda: b"<p>" + repeat("ß".encode())),
    "one anchor": (HTML, lambda: b"<a href=x>" + repeat("wört ".encode())),
    "one attribute": (HTML, lambda: b"<p title='" + repeat(b"a") + b"'>x"),
    "one href": (HTML, lambda: b"<a href='http://a.b/" + repeat(b"a") + b"'>x"),
    "a million attributes": (HTML, lambda: b"<p " + number(b"a%d=1 ", 900_000) + b">x"),
    "empty attributes": (HTML, lambda: b"<p" + repeat(b" a") + b">x"),
    "quoted attributes": (HTML, lambda: b"<p " + repeat(b"a='>'") + b">x"),
    "many of 10,000 attributes": (HTML, lambda: repeat(b"<p" + number(b" a%d", 10_000) + b">x")),
    "nested": (HTML, lambda: b"<div>" * 100_000 + repeat(b"x")),
    "deep, 19,000 tags": (HTML, lambda: b"<b>" * 9_500 + b"</i>" * 9_500 + repeat(b"x")),
    "100 KB, deep": (HTML, lambda: b"<b>" * 10_000 + b"</i>" * 9_900),
    "comment": (HTML, lambda: b"<!--" + repeat(b"-a ")),
    "script": (HTML, lambda: b"<script>" + repeat(b"'/a/b/' ") + b"</script>"),
    "title": (HTML, lambda: b"<title>" + repeat(b"a ") + b"</title>"),
    "less than": (HTML, lambda: b"<p>" + repeat(b"< ")),
    "entities": (HTML, lambda: b"<p>" + repeat(b"&amp;&eacute; ")),
    "bad UTF-8": (HTML + "; charset=utf-8", lambda: b"<p>" + repeat(b"\xff\xfe\x80 ")),
    "EUC-JP junk": (HTML + "; charset=euc-jp", lambda: b"<p>" + repeat(b"\xff\xfe\x80 ")),
    "GB18030": (HTML + "; charset=gb18030", lambda: b"<p>" + repeat("漢字 ".encode("gb18030"))),
    "plain text": (PLAIN, lambda: repeat("wört ".encode())),
    "plain paragraphs": (PLAIN, lambda: repeat(b"a\n\n")),
    "plain URLs": (PLAIN, lambda: number(b"http://example.org/%d ", 400_000)),
    "plain colons": (PLAIN, lambda: repeat(b"http://")),
    "sitemap": (XML, lambda: b"<urlset>" + number(b"<url><loc>%d</loc></url>", 350_000)),
    "sitemap, gzip file": (
        XML,
        lambda: gzip.compress(b"<urlset>" + number(b"<url><loc>%d</loc></url>", 350_000), 1),
    ),
    "sitemap of nothing": (XML, lambda: b"<urlset>" + repeat(b"<url/>")),
    "XML tags": (XML, lambda: b"<rss>" + repeat(b"<a/>")),
    "one item": (XML, lambda: b"<rss><item>" + repeat(b"<a/>")),
    "deep RSS": (XML, lambda: b"<rss>" + repeat(b"<item><link>/a")),
    "RSS": (XML, lambda: b"<rss>" + number(b"<item><link>/%d</link></item>", 280_000)),
    "JSON feed": (
        JSON,
        lambda: (
            b'{"version": "jsonfeed.org/version/1", "items": [%s{}]}'
            % number(b'{"url":"/%d"},', 130_000)
        ),
    ),
    "JSON junk": (
        JSON,
        lambda: b'{"version": "jsonfeed.org/version/1", "items": [%s[]]}' % repeat(b"[],"),
    ),
}


def read_page(content_type: str, body: bytes) -> Slices[tuple[Page, int]]:
    """From the response until the links are sorted; the Page and the number of new URLs."""
    scope = Scope()
    scope.add_seeds([URL])
    seen = SeenUrls("bench", scope, 70_000)
    ticket = Ticket(1, URL, "example.org", 1, 1, 0, Lane.NEW, State.NEW)
    request = Request(URL, meta={"ticket": ticket})
    response = Response(URL, headers={"Content-Type": content_type}, body=body, request=request)
    clock = FrontierClock(datetime.now(UTC), time.monotonic(), time.monotonic())
    page = yield from page_in_slices(response, request, clock)
    document = page.document
    if document is None:
        return page, 0
    yield
    _, urls = yield from seen.classify_in_slices(ticket, document.links)
    assert document.block_digest
    return page, len(urls)


def timed(slices: Slices[tuple[Page, int]], times: list[float]) -> Slices[tuple[Page, int]]:
    """The same slices; how long each took is noted."""
    while True:
        started = time.thread_time()
        try:
            next(slices)
        except StopIteration as end:
            times.append(time.thread_time() - started)
            result: tuple[Page, int] = end.value
            return result
        times.append(time.thread_time() - started)
        yield


async def longest_delay(slices: Slices[tuple[Page, int]]) -> tuple[float, tuple[Page, int]]:
    """The longest that anything else on the loop had to wait; and the result."""
    longest = 0.0

    async def probe() -> None:
        nonlocal longest
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - started - 0.001)

    task = asyncio.get_running_loop().create_task(probe())
    await asyncio.sleep(0.01)
    result = await run_slices(slices)
    await asyncio.sleep(0.01)
    task.cancel()
    return longest, result


def main() -> None:
    freeze_startup_objects()
    print(f"{'page':28} {'slice ms':>9} {'delay ms':>9} {'all s':>7} {'links':>7} {'peak +MB':>9}")
    for name, (content_type, make_body) in BODIES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        body = make_body()
        times: list[float] = []
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        slices = timed(read_page(content_type, body), times)
        delay_s, (page, _) = asyncio.run(longest_delay(slices))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        document = page.document
        links = len(document.links) if document else 0
        marks = ""
        if document is not None:
            marks = " cut" * document.cut + " too many" * document.too_many_links
        print(
            f"{name:28} {max(times) * 1000:9.1f} {delay_s * 1000:9.1f} {sum(times):7.2f}"
            f" {links:7} {grown:9.0f}{marks}",
            flush=True,
        )


if __name__ == "__main__":
    main()
