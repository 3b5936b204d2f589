"""Heads of all kinds: what a strict parser gets, and how long the body is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp.client_proto import ResponseHandler
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.http.framing import parse_framing

OK = b"HTTP/1.1 200 OK\r\n"
END = b"\r\n\r\n"

SOUND = {
    "a length": (OK + b"Content-Length: 5" + END, 5),
    "a length with zeros": (OK + b"content-length:005" + END, 5),
    "chunks": (OK + b"Transfer-Encoding: chunked" + END, None),
    "neither": (OK + b"X: y" + END, None),
    "no header": (OK + b"\r\n", None),
    "204": (b"HTTP/1.1 204 No Content\r\nContent-Length: 5" + END, 0),
    "304": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5" + END, 0),
    "101": (b"HTTP/1.1 101 Switching\r\nUpgrade: x" + END, 0),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 5" + END, 5),
    "bytes that are not ASCII": (OK + b"X: caf\xe9\r\nContent-Length: 5" + END, 5),
}
MENDED = {
    "line feeds": (b"HTTP/1.1 200 OK\nContent-Length: 5\n\n", 5),
    "a line over two": (OK + b"X: a\r\n b\r\nContent-Length: 5" + END, 5),
    "a length on the next line": (OK + b"Content-Length:\r\n 5" + END, 5),
    "a carriage return": (OK + b"X: a\rContent-Length: 9\r\nContent-Length: 5" + END, 5),
    "NUL": (OK + b"X: a\0b\r\nContent-Length: 5" + END, 5),
    "NUL in a name": (OK + b"X\0: a\r\nContent-Length: 5" + END, 5),
    "no colon": (OK + b"what is this\r\nContent-Length: 5" + END, 5),
    "no name": (OK + b": a\r\nContent-Length: 5" + END, 5),
    "a blank before the colon": (OK + b"Content-Length : 5" + END, 5),
    "a blank in a name": (OK + b"X Y: a\r\nContent-Length: 5" + END, 5),
    "the same length twice": (OK + b"Content-Length: 5\r\nContent-Length: 5" + END, 5),
    "the same length in one line": (OK + b"Content-Length: 5, 5" + END, 5),
    "a length beside chunks": (OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked" + END, None),
    "two lengths beside chunks": (
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\nTransfer-Encoding: chunked" + END,
        None,
    ),
    "gzip, chunked": (OK + b"Transfer-Encoding: gzip, Chunked" + END, None),
    "a transfer that nobody knows": (
        OK + b"Transfer-Encoding: identity\r\nContent-Length: 5" + END,
        5,
    ),
    "a negative length": (OK + b"Content-Length: -5" + END, None),
    "a length with a sign": (OK + b"Content-Length: +5" + END, None),
    "a length in words": (OK + b"Content-Length: many" + END, None),
    "no length at all": (OK + b"Content-Length: " + END, None),
    "a length of 30 digits": (OK + b"Content-Length: " + b"9" * 30 + END, None),
    "a length in other digits": (OK + "Content-Length: ٣".encode() + END, None),
    "two blanks": (b"HTTP/1.1  200 OK\r\nContent-Length: 5" + END, 5),
    "HTTP/2": (b"HTTP/2 200\r\nContent-Length: 5" + END, 5),
    "HTTP/1.2": (b"HTTP/1.2 200 OK\r\nContent-Length: 5" + END, 5),
    "ICY": (b"ICY 200 OK\r\nContent-Length: 5" + END, 5),
    "RTSP": (b"RTSP/1.0 200 OK\r\nContent-Length: 5" + END, 5),
    "small letters": (b"http/1.1 200 ok\r\nContent-Length: 5" + END, 5),
    "empty lines first": (b"\r\n\n" + OK + b"Content-Length: 5" + END, 5),
    "a reason that pywb can't say": ("HTTP/1.1 200 日本\r\nContent-Length: 5\r\n\r\n".encode(), 5),
    "204, odd": (b"HTTP/1.1 204 No\0Content\r\nContent-Length: 5" + END, 0),
    "many headers": (
        OK
        + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 90) for n in range(900))
        + b"Content-Length: 5"
        + END,
        5,
    ),
}
REFUSED = {
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 6" + END,
    "two lengths in one line": OK + b"Content-Length: 5, 6" + END,
    "no status": b"HTTP/1.1\r\nContent-Length: 5" + END,
    "a number, but not in the status line": b"HTTP/1.1\r\nAge: 404" + END,
    "a status in letters": b"HTTP/1.1 2OO OK\r\nContent-Length: 5" + END,
    "a status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 5" + END,
    "no HTTP": b"<html>\r\n\r\n",
    "nothing": b"\r\n\r\n",
}


def parsed(head: bytes) -> Any:
    """The message that aiohttp makes of it; its error if it refuses."""

    async def feed() -> Any:
        end = ResponseHandler(asyncio.get_running_loop())
        end.set_response_params(
            max_line_size=65_536, max_field_size=65_536, max_headers=1_000, read_until_eof=True
        )
        end.data_received(head)
        return (await end.read())[0]

    return asyncio.run(feed())


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_head_stays_as_it_is(name: str) -> None:
    head, length = SOUND[name]
    found = parse_framing(head)
    assert found is not None and (found.head, found.length, found.is_unchanged) == (
        head,
        length,
        True,
    )
    assert parsed(found.head).code == int(head.split()[1])


@pytest.mark.parametrize("name", MENDED)
def test_an_odd_head_becomes_one_that_a_strict_parser_takes(name: str) -> None:
    head, length = MENDED[name]
    found = parse_framing(head)
    assert found is not None and (found.length, found.is_unchanged) == (length, False)
    message = parsed(found.head)
    assert message.code in (200, 204)
    assert message.headers.get("Content-Length") == (None if length is None else "5")
    assert message.chunked == (length is None and b"hunked" in head)


@pytest.mark.parametrize("name", REFUSED)
def test_what_nobody_can_read_is_refused(name: str) -> None:
    assert parse_framing(REFUSED[name]) is None


@given(
    st.from_regex(
        rb"(HTTP/1\.[01]|ICY|http/2) {1,2}[2-5][0-9][0-9]( [ -~\x80-\xff]*)?\r?\n([^\n]*\n)*\r?\n",
        fullmatch=True,
    )
)
def test_no_head_leads_to_one_that_the_parser_refuses(head: bytes) -> None:
    found = parse_framing(head)
    assert found is None or parsed(found.head).code == int(head.split()[1][:3])
