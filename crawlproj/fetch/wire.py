"""What really went over the wire: the head of an answer byte by byte, the request as it was sent,
the body as it came.

aiohttp's parser gives headers in their order and case, but not the status line, odd spaces or line
ends, and refuses what browsers read. The bytes are there for a moment, when they are received;
keeping those of the head costs one look at the first piece of each answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
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
MAX_HEAD: Final = 1_000_000


class FramingError(Exception):
    """What came was no HTTP any more; `at` is the piece of it."""

    def __init__(self, why: str, at: bytes) -> None:
        super().__init__(why)
        self.data = at


@dataclass(slots=True)
class WireCapture:
    """`chunks` are the pieces of the body that have come: unpacked from their frames, but not from
    their Content-Encoding. `whole`: all that was wanted has come; `truncated`: that is not all
    there was.
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
        """Passes on what comes and keeps it, so that it is there if the rest never comes."""
        try:
            async for chunk in content.iter_any():
                self.chunks.append(chunk)
                yield chunk
        except aiohttp.ClientError as error:
            self.chunks += unread_chunks(content)
            if isinstance(error.__cause__, FramingError) and not any(self.chunks):
                self.chunks = [error.__cause__.data]
            raise


def unread_chunks(content: StreamReader) -> list[bytes]:
    """What has come and nobody will read: a stream that has failed says so first."""
    first, *rest = content._buffer or [b""]
    return [first[content._buffer_offset :], *rest]


def _may_be_http(word: bytes) -> bool:
    return any(known[: len(word)] == word[: len(known)] for known in RESPONSE_STARTS)


class CaptureProtocol(ResponseHandler):
    """aiohttp's end of a connection, which keeps the head of an answer, and passes it on when it is
    whole, in a form that the parser takes. `head` is all that has come, if that is no whole head;
    `rest` is what came behind one that was refused.
    """

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self.head = self.rest = self._interim = b""
        self._reads_head = self._bodiless = False
        self._left: int | None = None

    @property
    def received_head(self) -> bytes:
        """The head; if there is none, the 1xx that came in place of one, and what came
        behind it.
        """
        return self.head if not self._interim or is_http(self.head) else self._interim + self.head

    def is_connected(self) -> bool:
        """Whether it can be used. An idle connection on which something has come is out of step, or
        at its end: the next page would get the answer to another question. The event loop may not
        have seen it yet.
        """
        return super().is_connected() and not (self._is_idle and self._is_readable())

    @property
    def _is_idle(self) -> bool:
        return not self._reads_head and (self._payload is None or self._payload.is_eof())

    def _is_readable(self) -> bool:
        assert self.transport is not None
        end = poll()
        end.register(self.transport.get_extra_info("socket").fileno(), POLLIN)
        return bool(end.poll(0))

    def set_response_params(self, **params: Any) -> None:
        """A request is about to be sent. An answer that is here already is to no question
        of ours.
        """
        self.head = self.rest = self._interim = b""
        self._reads_head = True
        self._bodiless = params.get("skip_payload", False)
        self._left = None
        self._buffer.clear()
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        # What comes before there is a parser is kept by aiohttp and comes again; nothing at all
        # means that its parser may go on.
        if self._parser is None or not data:
            super().data_received(data)
        elif self._reads_head:
            self._read_head(data)
        else:
            self._pass_on(data)

    def _read_head(self, data: bytes) -> None:
        start = max(0, len(self.head) - 3)
        self.head = self.head + data if self.head else data
        while (end := _END.search(self.head, max(start, _LEAD(self.head).end()))) is not None:  # type: ignore[union-attr]
            if not _INTERIM(self.head):
                self._finish_head(end.end())
                return
            self._interim += self.head[: end.end()]
            self.head = self.head[end.end() :]
            start = 0
        if len(self.head) + len(self._interim) > MAX_HEAD:
            self._refuse("endless head")
        elif not _may_be_http(self.head.lstrip(b"\r\n")[:5].upper()):
            self._refuse("no HTTP")

    def _finish_head(self, end: int) -> None:
        """The head is whole. It goes to the parser on its own, or what is wrong in the body would
        spoil it, unless the length of the body is known and nothing can be wrong.
        """
        whole = self.head
        self._reads_head = False
        self.head = whole[:end]
        made = parse_framing(whole[:end])
        if made is None:
            self._refuse("no sound head")
        else:
            self._left = 0 if self._bodiless else made.length
            fits = made.is_unchanged and self._left is not None and len(whole) - end <= self._left
            if not fits and (
                not made.is_unchanged or self._left is not None
            ):  # mended, or more comes than it says
                self.force_close()
            if fits and self._left:
                self._left -= len(whole) - end
            super().data_received(whole if fits else made.head)
            if not fits and len(whole) > end and self._exception is None:
                self._pass_on(whole[end:])
                return
        if self._exception is not None:
            self.rest = whole[end:]

    def _pass_on(self, data: bytes) -> None:
        """The body, and no more. A server that goes on talking is not asked on this connection
        again.
        """
        over = self._left == 0 or self._is_idle
        if over or (self._left is not None and len(data) > self._left):
            self.force_close()
            data = b"" if over else data[: self._left]
        if self._left is not None:
            self._left -= len(data)
        if data:
            super().data_received(data)
        elif self.transport is not None:
            self.transport.close()
        if self._exception is not None:
            self._fail(FramingError(str(self._exception), data))

    def _fail(self, why: BaseException) -> None:
        """aiohttp leaves the reader of a body without an end waiting for it, or takes it
        for whole.
        """
        if self._payload is not None and not self._payload.is_eof():
            error = aiohttp.ClientPayloadError(str(why))
            error.__cause__ = why
            self._payload.set_exception(error)

    def connection_lost(self, exc: BaseException | None) -> None:
        if exc is not None:
            self._fail(exc)
        super().connection_lost(exc)

    def _refuse(self, why: str) -> None:
        self._reads_head = False
        if self.transport is not None:
            self.transport.close()
        self.set_exception(HttpProcessingError(code=400, message=why))


def install_capture(connector: aiohttp.BaseConnector | None) -> None:
    """Let a connector make such ends."""
    assert connector is not None
    make: Any = partial(CaptureProtocol, loop=connector._loop)
    connector._factory = make


def request_head(info: aiohttp.RequestInfo) -> bytes:
    """The head of a request as aiohttp wrote it (not through a proxy): made again of the same parts
    by the same function.
    """
    return bytes(_serialize_headers(f"{info.method} {info.url.raw_path_qs} HTTP/1.1", info.headers))  # type: ignore[arg-type]


def capture_wire(response: aiohttp.ClientResponse, end: object) -> WireCapture | None:
    """Of an answer whose head has come, or has failed to come, at that end of a connection; None if
    nobody listened.
    """
    return (
        WireCapture(
            request_head(response.request_info), end.received_head, [end.rest] if end.rest else []
        )
        if isinstance(end, CaptureProtocol)
        else None
    )
