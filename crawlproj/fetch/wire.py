"""What really went over the wire: the head of a response byte by byte, the request as it was sent,
the body as it came.

aiohttp's parser gives headers in their order and case, but not the status line, odd spaces or line
ends, and refuses what browsers read. The bytes are there for a moment, when they are received;
keeping those of the head costs one look at the first piece of each response.

Here is also the place where all bytes of an exchange are counted. A body has a limit of its own,
but around it there may be any number of others: interim heads, extensions of chunks, trailers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from select import POLLIN, poll
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_writer import _serialize_headers
from aiohttp.streams import StreamReader

from crawlproj.archive.exchange import Truncated
from crawlproj.http.framing import parse_framing
from crawlproj.http.heads import RESPONSE_STARTS, is_http

_END: Final = re.compile(rb"\n\r{0,2}\n")
_LEAD: Final = re.compile(rb"[\r\n]*").match
_INTERIM: Final = re.compile(
    rb"[\r\n]*(?:HTTP/|ICY|RTSP/)[^ \r\n]* +1(?!01)[0-9][0-9](?![0-9])", re.IGNORECASE
).match
MAX_HEAD: Final = 262_144
"""Bytes of a head and the 1xx responses before it, as in browsers."""
MAX_INTERIM: Final = 32
"""1xx responses before the head."""
MAX_CHUNKS: Final = 1_000
"""Pieces of a body, which may come byte by byte, before they are joined: each takes memory."""
MAX_TINY_CHUNKS: Final = 10_000
TINY_CHUNK: Final = 16
"""So many chunks of a Transfer-Encoding are taken, more only if they have so many bytes each on the
average: a chunk of one byte costs as much as one of a thousand, and 10 MB hold 1.7 million.
"""
FEED_BYTES: Final = 16_384
"""Given to the parser at once where chunks are counted."""
MAX_LEAD: Final = 1_000
"""Line ends before the head."""


class FramingError(Exception):
    """What came is not HTTP; `data` is the piece that the parser refused."""

    def __init__(self, why: str, data: bytes) -> None:
        super().__init__(why)
        self.data = data


class WireLimitError(Exception):
    """More has come than an exchange may take from the wire."""


class HeadLimitError(HttpProcessingError):
    """A head without an end, or too many before it."""


@dataclass(slots=True)
class WireCapture:
    """One request and its response as they went over the wire.

    `chunks` are the pieces of the body that have come: without the frames of a Transfer-Encoding,
    but still in their Content-Encoding. `whole`: all that was wanted has come; `truncated`: that is
    not all there was.
    """

    request: bytes
    head: bytes
    chunks: list[bytes] = field(default_factory=list)
    request_body: bytes = b""
    address: str = ""
    whole: bool = False
    truncated: Truncated | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    async def record_body(self, content: StreamReader) -> AsyncIterator[bytes]:
        """Pass on what comes and keep it, so that it is there if the rest never comes."""
        try:
            async for chunk in content.iter_any():
                self.chunks.append(chunk)
                if len(self.chunks) > MAX_CHUNKS:
                    self.chunks = [self.body]
                yield chunk
        except aiohttp.ClientError as error:
            self.chunks += unread_chunks(content)
            if isinstance(error.__cause__, FramingError) and not any(self.chunks):
                self.chunks = [error.__cause__.data]
            raise


def unread_chunks(content: StreamReader) -> list[bytes]:
    """What a stream has received that nobody will read: once it has failed, reading raises."""
    first, *rest = content._buffer or [b""]
    return [first[content._buffer_offset :], *rest]


def _may_be_http(word: bytes) -> bool:
    return any(known[: len(word)] == word[: len(known)] for known in RESPONSE_STARTS)


class CaptureProtocol(ResponseHandler):
    """aiohttp's protocol of a connection, which also keeps the head of a response, and passes it on
    when it is whole, in a form that the parser takes.

    `head` is all that has come, if that is no whole head; `rest` is what came behind one that was
    refused. `get_limit` says how many bytes the exchange that begins may take from the wire.
    """

    def __init__(self, loop: Any, get_limit: Callable[[], float] = lambda: inf) -> None:
        super().__init__(loop)
        self.head: bytes | bytearray = b""
        self.rest = b""
        self._get_limit = get_limit
        self._bytes_allowed = inf
        """How many more bytes may come of this exchange."""
        self._interim = b""
        """The 1xx responses that came before the head."""
        self._interim_heads = 0
        self._reads_head = False
        self._bodiless = False
        self._left: int | None = None
        """The bytes of the body that are still to come; None if that is not known."""
        self._chunks = 0
        """The pieces that the parser has made of a body whose length is not known."""

    @property
    def received_head(self) -> bytes:
        """The head; if there is none, the 1xx that came in place of one, and what came behind
        it.
        """
        head = bytes(self.head)
        if self._interim and not is_http(head):
            return self._interim + head
        return head

    def is_connected(self) -> bool:
        """Whether it can be used. An idle connection on which something has come is out of step, or
        at its end: the next page would get the response to another request. The event loop may not
        have seen it yet.
        """
        return super().is_connected() and not (self._is_idle and self._is_readable())

    @property
    def _is_idle(self) -> bool:
        return not self._reads_head and (self._payload is None or self._payload.is_eof())

    def _is_readable(self) -> bool:
        assert self.transport is not None
        poller = poll()
        poller.register(self.transport.get_extra_info("socket").fileno(), POLLIN)
        return bool(poller.poll(0))

    def set_response_params(self, **params: Any) -> None:
        """Begin anew: a request is about to be sent. A response that is here already belongs to no
        request of ours.
        """
        self.head = b""
        self.rest = b""
        self._bytes_allowed = self._get_limit()
        self._interim = b""
        self._interim_heads = 0
        self._reads_head = True
        self._bodiless = params.get("skip_payload", False)
        self._left = None
        self._chunks = 0
        self._buffer.clear()
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Take in what has come: of a head, or of a body."""
        # What comes before there is a parser is kept by aiohttp and comes again; nothing at all
        # means that its parser may go on.
        if self._parser is None or not data:
            super().data_received(data)
            return
        self._bytes_allowed -= len(data)
        if self._reads_head:
            self._read_head(data)
        elif self._bytes_allowed < 0 and not self._is_idle:
            self._fail(WireLimitError("too many bytes on the wire"))
            self.force_close()
            self._close_transport()
        else:
            self._pass_on(data)

    def _read_head(self, data: bytes) -> None:
        start = max(0, len(self.head) - 3)
        if not self.head:
            self.head = data
        else:
            if not isinstance(self.head, bytearray):
                self.head = bytearray(self.head)  # it may come byte by byte
            self.head += data
        lead = _lead_bytes(self.head)
        end = _head_end(self.head, max(start, lead))
        while end is not None:
            if not _INTERIM(self.head):
                self._finish_head(end)
                return
            self._interim += self.head[:end]
            self._interim_heads += 1
            self.head = bytes(self.head[end:])
            if self._interim_heads > MAX_INTERIM:
                self._refuse(HeadLimitError(message="too many interim responses"))
                return
            lead = _lead_bytes(self.head)
            end = _head_end(self.head, lead)
        if len(self.head) + len(self._interim) > MAX_HEAD:
            self._refuse(HeadLimitError(message="endless head"))
        elif lead > MAX_LEAD or not _may_be_http(bytes(self.head[lead : lead + 5]).upper()):
            self._refuse(HttpProcessingError(code=400, message="no HTTP"))

    def _finish_head(self, end: int) -> None:
        """Pass on a head that is whole.

        It goes to the parser on its own, or what is wrong in the body would spoil it, unless the
        length of the body is known and nothing can be wrong.
        """
        received = bytes(self.head)
        body_bytes = len(received) - end
        self._reads_head = False
        self.head = received[:end]
        framing = parse_framing(self.head)
        if framing is None:
            self._refuse(HttpProcessingError(code=400, message="no sound head"))
            self._keep_refused(received, end)
            return
        self._left = framing.length
        if self._bodiless:
            self._left = 0
        if framing.is_unchanged and self._left is not None and body_bytes <= self._left:
            self._left -= body_bytes
            super().data_received(received)
            self._keep_refused(received, end)
            return
        if not framing.is_unchanged or self._left is not None:
            # The head was mended, or more has come than it says.
            self.force_close()
        super().data_received(framing.head)
        if body_bytes and self._exception is None:
            self._pass_on(received[end:])
        else:
            self._keep_refused(received, end)

    def _keep_refused(self, received: bytes, end: int) -> None:
        if self._exception is not None:
            self.rest = received[end:]

    def _pass_on(self, data: bytes) -> None:
        """Pass on the body, and no more. A server that goes on talking is not asked on this
        connection again.
        """
        if self._left == 0 or self._is_idle:
            self.force_close()
            data = b""
        elif self._left is not None and len(data) > self._left:
            self.force_close()
            data = data[: self._left]
        if self._left is not None:
            self._left -= len(data)
        if not data:
            self._close_transport()
        elif self._left is None:
            self._feed_chunks(data)
        else:
            super().data_received(data)
        if self._exception is not None:
            self._fail(FramingError(str(self._exception), data))

    def _feed_chunks(self, data: bytes) -> None:
        """Pass on a body that may come in chunks, unless these are very many and tiny."""
        for start in range(0, len(data), FEED_BYTES):
            payload = self._payload
            if start and (self._is_idle or self._exception is not None):
                self.force_close()
                return
            pieces = len(payload._buffer) if payload is not None else 0
            super().data_received(data[start : start + FEED_BYTES])
            if payload is None:
                continue
            self._chunks += len(payload._buffer) - pieces
            is_tiny = payload.total_bytes < self._chunks * TINY_CHUNK
            if is_tiny and self._chunks > MAX_TINY_CHUNKS:
                self._fail(WireLimitError("too many tiny chunks"))
                self.force_close()
                self._close_transport()
                return

    def _fail(self, cause: BaseException) -> None:
        """End a body that has no end with an error: aiohttp would leave its reader waiting, or take
        it for whole.
        """
        if self._payload is not None and not self._payload.is_eof():
            error = aiohttp.ClientPayloadError(str(cause))
            error.__cause__ = cause
            self._payload.set_exception(error)

    def connection_lost(self, exc: BaseException | None) -> None:
        if exc is not None:
            self._fail(exc)
        super().connection_lost(exc)

    def _refuse(self, error: HttpProcessingError) -> None:
        self._reads_head = False
        self._close_transport()
        self.set_exception(error)

    def _close_transport(self) -> None:
        if self.transport is not None:
            self.transport.close()


def _lead_bytes(data: bytes | bytearray) -> int:
    """How many line ends come before the head."""
    lead = _LEAD(data)
    assert lead is not None  # it matches also what begins with no line end
    return lead.end()


def _head_end(data: bytes | bytearray, start: int) -> int | None:
    """Where a head ends: behind its empty line, which is looked for from `start` on."""
    end = _END.search(data, start)
    if end is None:
        return None
    return end.end()


def install_capture(
    connector: aiohttp.BaseConnector | None, get_limit: Callable[[], float] = lambda: inf
) -> None:
    """Let a connector make its connections with a CaptureProtocol. `get_limit` is called in the
    task of a request that is about to be sent, and says how many bytes its exchange may take.
    """
    assert connector is not None
    make_protocol: Any = partial(CaptureProtocol, loop=connector._loop, get_limit=get_limit)
    connector._factory = make_protocol


def request_head(info: aiohttp.RequestInfo) -> bytes:
    """The head of a request as aiohttp wrote it (not through a proxy): made again of the same parts
    by the same function.
    """
    request_line = f"{info.method} {info.url.raw_path_qs} HTTP/1.1"
    return bytes(_serialize_headers(request_line, info.headers))  # type: ignore[arg-type]


def capture_wire(response: aiohttp.ClientResponse, protocol: object) -> WireCapture | None:
    """The exchange of a response whose head has come, or has failed to come; None if the connection
    is not captured.
    """
    if not isinstance(protocol, CaptureProtocol):
        return None
    wire = WireCapture(request_head(response.request_info), protocol.received_head)
    if protocol.rest:
        wire.chunks.append(protocol.rest)
    return wire
