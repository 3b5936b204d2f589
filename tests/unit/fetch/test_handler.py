"""The download handler, as far as it can be seen without a network."""

from __future__ import annotations

import asyncio
import time

import pytest
from scrapy import Request

from crawlproj.fetch.handler import host_asked, server_time_s
from crawlproj.frontier.base import Lane, State, Ticket


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://[::1]:8080/a", "[::1]"),
        ("http://Example.ORG./a", "example.org"),
        ("https://example.org:8443/", "example.org"),
    ],
)
def test_pauses_are_those_of_the_host_as_it_is_leased(url: str, host: str) -> None:
    ticket = Ticket(1, url, host, 1, 1, 0, Lane.NEW, State.NEW)
    assert host_asked(Request(url, meta={"ticket": ticket})) == host
    assert host_asked(Request(url)) == host


def test_a_loop_that_is_late_does_not_make_a_server_slow() -> None:
    """The system knows when the answer came, however late we look."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"hello\n")
        await writer.drain()
        await reader.read()

    async def ask() -> float | None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET\n")
        await reader.readline()
        time.sleep(0.6)
        took_s = server_time_s(writer.transport)  # type: ignore[arg-type]
        writer.close()
        server.close()
        return took_s

    took_s = asyncio.run(ask())
    assert took_s is not None and took_s < 0.5
    assert server_time_s(None) is None
