"""The middleware that decompresses: at once if it is quick, otherwise beside everything else."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler

from crawlproj.content.html import parse_page
from crawlproj.fetch.pages import RefusedError
from middlewares.unpacking import UnpackingMiddleware
from tests.support.spam import gzip_spam

PAGE = b"<html><p>Some text of a page.</p></html>"
MB = 1_000_000
LIMIT = 10 * MB
REQUEST = Request("http://example.org/")


def unpack(body: bytes, *encodings: str, status: int = 200) -> Any:
    crawler = get_crawler(settings_dict={"DOWNLOAD_MAXSIZE": LIMIT})
    headers = {"Content-Type": "text/html", "Content-Encoding": list(encodings)}
    response = Response(REQUEST.url, status=status, headers=headers, body=body)  # type: ignore[arg-type]
    return UnpackingMiddleware.from_crawler(crawler).process_response(REQUEST, response)


def test_an_ordinary_page_is_decompressed_at_once() -> None:
    found = unpack(gzip.compress(PAGE), "gzip")
    assert isinstance(found, HtmlResponse) and found.body == PAGE
    assert "Content-Encoding" not in found.headers
    assert unpack(PAGE, "gzip").body == PAGE
    assert unpack(b"", "br").body == b""
    assert unpack(zlib.compress(gzip.compress(PAGE)), "gzip", "deflate").body == PAGE
    unknown = unpack(gzip.compress(PAGE), "rot13", "gzip")
    assert (unknown.body, unknown.headers["Content-Encoding"]) == (PAGE, b"rot13")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("label", ["windows-1251", "gb2312", "utf-16"])
def test_spiders_read_utf_8_under_a_false_label_as_we_do(label: str, packed: bool) -> None:
    body = f"<meta charset={label}><h1>Příliš žluťoučký kůň</h1>".encode()
    for kind in ("text/html", f"text/html; charset={label}"):
        headers = {"Content-Type": kind}
        response: Response = HtmlResponse(REQUEST.url, headers=headers, body=body)
        if packed:
            headers["Content-Encoding"] = "gzip"
            response = Response(REQUEST.url, headers=headers, body=gzip.compress(body))
        crawler = get_crawler()
        middleware = UnpackingMiddleware.from_crawler(crawler)
        found: Any = middleware.process_response(REQUEST, response)
        assert found.css("h1::text").get() == "Příliš žluťoučký kůň"
        assert found.encoding == parse_page(body, REQUEST.url, label).charset == "utf-8"


def test_a_true_label_is_left_to_scrapy() -> None:
    for body, label in ((b"<p>plain", "koi8-r"), ("<h1>мир".encode("koi8-r"), "koi8-r")):
        headers = {"Content-Type": f"text/html; charset={label}"}
        response = HtmlResponse(REQUEST.url, headers=headers, body=body)
        middleware = UnpackingMiddleware.from_crawler(get_crawler())
        assert middleware.process_response(REQUEST, response) is response


@pytest.mark.parametrize(
    ("body", "encodings", "reason"),
    [
        (b"x" * 100, ["gzip"] * 2_000, "decompression: more than 5 encodings"),
        (b"x" * 100, [", ".join(["br"] * 6)], "decompression: more than 5 encodings"),
        (gzip.compress(bytes(LIMIT + 1)), ["gzip"], "decompression"),
        (gzip.compress(gzip.compress(bytes(LIMIT + 1))), ["gzip", "gzip"], "decompression"),
    ],
    ids=["lines", "one line", "a bomb", "a bomb in a layer"],
)
def test_what_costs_too_much_is_refused(body: bytes, encodings: list[str], reason: str) -> None:
    async def run() -> None:
        with pytest.raises(RefusedError) as refusal:
            await unpack(body, *encodings)
        assert refusal.value.reason == reason

    asyncio.run(run())


def test_a_broken_body_fails_as_a_page_but_not_as_an_error() -> None:
    broken = gzip.compress(PAGE)[:10]
    with pytest.raises(zlib.error):
        unpack(broken, "gzip")
    assert unpack(broken, "gzip", status=404).status == 404


def test_everything_else_goes_on_while_a_body_takes_long() -> None:
    """12 KB around 4 MB that keep the decoder busy for a while and give nothing."""
    rounds = 0

    async def count_rounds() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    async def run() -> None:
        counting = asyncio.create_task(count_rounds())
        slow = unpack(gzip.compress(gzip_spam(4 * MB) + gzip.compress(PAGE)), "gzip", "gzip")
        with pytest.raises((zlib.error, RefusedError)):
            await slow
        counting.cancel()

    asyncio.run(run())
    assert rounds >= 5
