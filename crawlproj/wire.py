"""What really went over the wire: the head of an answer byte by byte, the request as it was sent, the body as it came.

aiohttp's parser gives headers in their order and case, but not the status line, odd spaces or line ends. The bytes are there for a
moment, when they are received; keeping those of the head costs one look at the first piece of each answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import _serialize_headers

from crawlproj.archive.exchange import Truncated

_END: Final = re.compile(rb"\r?\n\r?\n")
_INTERIM: Final = re.compile(rb"HTTP/1\.[01] 1(?!01)[0-9][0-9]").match
MAX_HEAD: Final = 1_000_000
"""The parser gives up before."""


@dataclass(slots=True)
class Wire:
    """`chunks` are the pieces of the body that have come: unpacked from their frames, but not from their Content-Encoding. `whole`:
    all that was wanted has come; `truncated`: that is not all there was."""

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

    async def keep(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Passes them on and keeps them, so that they are there if the rest never comes."""
        async for chunk in chunks:
            self.chunks.append(chunk)
            yield chunk


class Tap(ResponseHandler):
    """aiohttp's end of a connection, which keeps the head of the answer. `head` is all that has come, if that is no whole head."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self.head = b""
        self._listens = False

    def set_response_params(self, **params: Any) -> None:
        """A request is about to be sent."""
        self.head, self._listens = b"", True
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        # What comes before there is a parser is kept by aiohttp and comes again.
        if self._listens and self._parser is not None:
            self._listen(data)
        super().data_received(data)

    def _listen(self, data: bytes) -> None:
        self.head += data
        while (end := _END.search(self.head)) is not None:
            if not _INTERIM(self.head):
                self.head, self._listens = self.head[: end.end()], False
                return
            self.head = self.head[end.end() :]
        self._listens = len(self.head) < MAX_HEAD


def tap(connector: aiohttp.BaseConnector | None) -> None:
    """Let a connector make such ends."""
    assert connector is not None
    make: Any = partial(Tap, loop=connector._loop)
    connector._factory = make


def sent(info: aiohttp.RequestInfo) -> bytes:
    """The head of a request as aiohttp wrote it (not through a proxy): made again of the same parts by the same function."""
    return bytes(_serialize_headers(f"{info.method} {info.url.raw_path_qs} HTTP/1.1", info.headers))  # type: ignore[arg-type]


def wire_of(response: aiohttp.ClientResponse, end: object) -> Wire | None:
    """Of an answer whose head has come, or has failed to come, at that end of a connection; None if nobody listened."""
    return Wire(sent(response.request_info), end.head) if isinstance(end, Tap) else None
