"""Bodies are decompressed within limits: of layers, of bytes (DOWNLOAD_MAXSIZE) and of time.

It takes the place of Scrapy's own middleware, which knows only the second, and does all at once.
Here a body that takes longer gives the event loop back from time to time. And what is UTF-8 under
a false label is read as UTF-8 by spiders, as it is by us.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Generator
from itertools import count
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.http import TextResponse
from scrapy.responsetypes import responsetypes

from crawlproj.content.charset import is_mislabelled_utf8
from crawlproj.content.slices import BIG_BODY
from crawlproj.fetch.pages import RefusedError
from crawlproj.frontier.base import Ticket
from crawlproj.http.encodings import (
    MAX_BYTES,
    MAX_WORK_S,
    Decoded,
    DecodingLimitError,
    decode_steps,
    is_compressed,
)
from crawlproj.scheduling.scheduler import worker_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

FREE_STEPS = 64
"""So many steps, of OUTPUT_BYTES each at most, a body is decompressed without room of its own."""
SLICE_S = 0.02
"""So long a body is decompressed without a break; nearly all are done within it."""


class UnpackingMiddleware(HttpCompressionMiddleware):
    def __init__(self, *, crawler: Crawler) -> None:
        super().__init__(crawler=crawler)
        self._crawler = crawler
        self._slow_bodies = asyncio.Lock()
        """One at a time, so that the memory they take is that of one."""

    def process_response(  # type: ignore[override]
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response | Awaitable[Response]:
        """Decompress a body; one that was never compressed is read as it is.

        If it is compressed, but broken from its start, a page has no content and fails; a redirect
        or an error is what its status says.
        """
        values = response.headers.getlist("Content-Encoding")
        if not values or request.method == "HEAD":
            return self._with_true_encoding(response)
        encoding = b",".join(values).decode("latin-1")
        limit = request.meta.get("download_maxsize", self._max_size) or MAX_BYTES
        steps = decode_steps(response.body, encoding, limit)
        decoded = _run_slice(steps, FREE_STEPS)
        if decoded is None:
            return self._decode_slowly(steps, request, response, encoding=encoding)
        return self._decoded_response(response, encoding, decoded)

    async def _decode_slowly(
        self,
        steps: Generator[None, None, Decoded],
        request: Request,
        response: Response,
        encoding: str,
    ) -> Response:
        """Decode the rest when there is room for it, with the event loop in between."""
        ticket = request.meta.get("ticket")
        room = request.meta.get("download_maxsize", self._max_size) or BIG_BODY
        if isinstance(ticket, Ticket):
            await worker_of(self._crawler).big_bodies.enter(ticket, room)
        decoded = None
        work_s = SLICE_S
        async with self._slow_bodies:
            while decoded is None:
                await asyncio.sleep(0)
                before_s = time.thread_time()
                decoded = _run_slice(steps)
                work_s += time.thread_time() - before_s
                if work_s > MAX_WORK_S:
                    raise RefusedError("decompression: too slow")
        return self._decoded_response(response, encoding, decoded)

    def _decoded_response(self, response: Response, encoding: str, decoded: Decoded) -> Response:
        body = decoded.body
        is_page = 200 <= response.status < 300
        if is_page and not decoded.is_sound and (not body or is_compressed(body, encoding)):
            raise zlib.error("the body is not what Content-Encoding says")
        if decoded.unknown:
            response.headers["Content-Encoding"] = ", ".join(decoded.unknown)
        else:
            del response.headers["Content-Encoding"]
        if self.stats:
            self.stats.inc_value("httpcompression/response_bytes", len(body))
            self.stats.inc_value("httpcompression/response_count")
        kind = responsetypes.from_args(headers=response.headers, url=response.url, body=body)
        if issubclass(kind, TextResponse):
            response = response.replace(cls=kind, body=body, encoding=None)
            return self._with_true_encoding(response)
        return response.replace(cls=kind, body=body)

    def _with_true_encoding(self, response: Response) -> Response:
        """The response; if it is UTF-8 under a false label, with the encoding that it is in."""
        if not isinstance(response, TextResponse):
            return response
        if not is_mislabelled_utf8(response.body, response._headers_encoding()):
            return response
        if self.stats:
            self.stats.inc_value("charset/mislabelled")
        return response.replace(encoding="utf-8")


def _run_slice(
    steps: Generator[None, None, Decoded], max_steps: int | None = None
) -> Decoded | None:
    """Decode for a short while, or a few steps; None if it is not done then."""
    end_s = time.perf_counter() + SLICE_S
    try:
        for number in count():
            if number == max_steps or time.perf_counter() >= end_s:
                break
            next(steps)
    except StopIteration as end:
        decoded: Decoded = end.value
        return decoded
    except DecodingLimitError as error:
        raise RefusedError(f"decompression: {error}".rstrip(": ")) from None
    return None
