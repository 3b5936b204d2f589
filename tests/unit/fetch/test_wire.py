"""What one exchange may take from the wire, byte by byte: heads before the head, frames of chunks,
trailers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp.streams import StreamReader

from crawlproj.fetch.wire import (
    MAX_CHUNKS,
    MAX_HEAD,
    MAX_INTERIM,
    MAX_LEAD,
    MAX_TINY_CHUNKS,
    TINY_CHUNK,
    CaptureProtocol,
    HeadLimitError,
    WireCapture,
    WireLimitError,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LIMIT = 50_000


class Connection(asyncio.Transport):
    """A connection that only says whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Exchange:
    """A server that sends, and what is kept of it."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.connection = Connection()
        self.protocol = CaptureProtocol(asyncio.get_running_loop(), lambda: limit)
        self.protocol.connection_made(self.connection)
        self.taken = 0
        self.begin()

    def begin(self) -> None:
        self.protocol.set_response_params(
            max_line_size=65_536, max_field_size=65_536, max_headers=1_000, auto_decompress=False
        )

    def send(self, data: bytes, size: int = 1_000) -> None:
        """Send pieces of that size, until the other side hangs up."""
        for start in range(0, len(data), size):
            if self.connection.closed:
                return
            piece = data[start : start + size]
            self.protocol.data_received(piece)
            self.taken += len(piece)

    async def receive(self) -> StreamReader:
        _, payload = await self.protocol.read()  # type: ignore[no-untyped-call]
        assert isinstance(payload, StreamReader)
        return payload


def run(do: Callable[[], Any]) -> Any:
    return asyncio.run(do())


@pytest.mark.parametrize(
    "flood",
    [
        b"1;" + b"x" * 60 + b"\r\na\r\n",
        b"1\r\na\r\n",
        b"0" * 10 + b"1\r\na\r\n",
        b"1" + b" " * 50 + b"\r\na\r\n",
    ],
    ids=["extensions", "chunks of a byte", "zeros", "blanks"],
)
def test_frames_of_chunks_count_as_bytes_of_the_wire(flood: bytes) -> None:
    """What came before is kept."""

    async def do() -> None:
        exchange = Exchange()
        exchange.send(CHUNKED)
        wire = WireCapture(b"", exchange.protocol.received_head)
        payload = await exchange.receive()
        received = asyncio.ensure_future(read_body(wire, payload))
        for _ in range(1_000):
            if exchange.connection.closed:
                break
            exchange.send(flood * 50)
            await asyncio.sleep(0)
        error = (await asyncio.gather(received, return_exceptions=True))[0]
        if isinstance(error.__cause__, WireLimitError):
            assert LIMIT < exchange.taken <= LIMIT + 1_000
        else:  # aiohttp takes no chunk like this
            assert exchange.taken < LIMIT
        assert exchange.connection.closed
        assert wire.head == CHUNKED and set(wire.body) <= set(b"a")
        if flood.startswith(b"1\r\n"):
            assert len(wire.body) > LIMIT // 6 - 200

    run(do)


async def read_body(wire: WireCapture, payload: StreamReader) -> None:
    async for _ in wire.record_body(payload):
        pass


def test_a_body_within_the_limit_is_whole_and_the_next_exchange_counts_anew() -> None:
    async def do() -> None:
        response = CHUNKED + b"3e8\r\n" + b"a" * 1_000 + b"\r\n" + b"0\r\n\r\n"
        exchange = Exchange(limit=len(response))
        for _ in range(3):
            exchange.begin()
            exchange.send(response, 100)
            assert await (await exchange.receive()).read() == b"a" * 1_000
            assert not exchange.connection.closed

    run(do)


@pytest.mark.parametrize("head", [b"ICY 100\n\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_only_some_dozens_of_interim_responses_are_taken(head: bytes) -> None:
    async def do() -> None:
        exchange = Exchange(limit=1_000_000)
        exchange.send(head * MAX_INTERIM + OK, 10_000)
        assert await (await exchange.receive()).read() == b"ok"
        for size in (7, 100_000):
            exchange = Exchange(limit=1_000_000)
            exchange.send(head * 20_000, size)
            assert exchange.connection.closed
            assert exchange.taken <= len(head) * (MAX_INTERIM + 1) + size
            with pytest.raises(HeadLimitError, match="too many interim responses"):
                await exchange.receive()
            assert exchange.protocol.received_head.startswith(head * MAX_INTERIM)

    run(do)


@pytest.mark.parametrize(
    ("start", "more", "most"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", MAX_HEAD),
        (b"HTTP/1.1 200 OK\r\n", b"X: x\r\n", MAX_HEAD),
        (b"", b"\r\n", MAX_LEAD),
    ],
    ids=["a line", "lines", "empty lines"],
)
def test_a_head_without_an_end_is_left(start: bytes, more: bytes, most: int) -> None:
    async def do() -> None:
        exchange = Exchange(limit=10_000_000)
        exchange.send(start + more * 500_000, 997)
        assert exchange.connection.closed and most < exchange.taken < most + 2_000
        with pytest.raises(aiohttp.http_exceptions.HttpProcessingError):
            await exchange.receive()

    run(do)


def test_a_head_that_comes_byte_by_byte_is_not_copied_each_time() -> None:
    async def do() -> None:
        exchange = Exchange(limit=10_000_000)
        head = b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000
        exchange.send(head, 1)
        first = exchange.protocol.head
        exchange.send(b"x" * 1_000, 1)
        assert exchange.protocol.head is first and len(first) == len(head) + 1_000
        exchange.send(b"\r\nContent-Length: 2\r\n\r\nok", 1)
        assert await (await exchange.receive()).read() == b"ok"

    run(do)


def test_a_body_that_comes_byte_by_byte_does_not_become_as_many_pieces() -> None:
    async def do() -> None:
        exchange = Exchange(limit=10_000_000)
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n")
        wire = WireCapture(b"", b"")
        received = asyncio.ensure_future(read_body(wire, await exchange.receive()))
        for number in range(9_000):
            exchange.send(b"%d" % (number % 10))
            await asyncio.sleep(0)
        await received
        assert wire.body == b"0123456789" * 900 and len(wire.chunks) <= MAX_CHUNKS + 1

    run(do)


@pytest.mark.parametrize("size", [1, TINY_CHUNK + 1])
def test_very_many_tiny_chunks_end_the_exchange(size: int) -> None:
    async def do() -> None:
        exchange = Exchange(limit=float("inf"))
        exchange.send(CHUNKED)
        wire = WireCapture(b"", exchange.protocol.received_head)
        payload = await exchange.receive()
        received = asyncio.ensure_future(read_body(wire, payload))
        chunks = (b"%x\r\n" % size + b"a" * size + b"\r\n") * MAX_TINY_CHUNKS * 3 + b"0\r\n\r\n"
        exchange.send(chunks, size=256 * 1024)  # as much as the event loop gives at once
        error = (await asyncio.gather(received, return_exceptions=True))[0]
        if size > TINY_CHUNK:
            assert error is None
            assert len(wire.body) == 3 * MAX_TINY_CHUNKS * size
        else:
            assert isinstance(error.__cause__, WireLimitError)
            assert exchange.connection.closed
            assert MAX_TINY_CHUNKS < len(wire.body) < 1.5 * MAX_TINY_CHUNKS

    run(do)
