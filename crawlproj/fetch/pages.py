"""Every exchange, failure or refusal as one Page."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from hashlib import sha256

from aiohttp import (
    ClientConnectorDNSError,
    ClientConnectorSSLError,
    ClientSSLError,
    ServerDisconnectedError,
)
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Request, Response
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure
from w3lib.encoding import http_content_type_encoding

from crawlproj.content import feeds
from crawlproj.content.document import Block, Document, Link
from crawlproj.content.html import MAX_BODY, parse_page
from crawlproj.content.robots_directives import NO_DIRECTIVES, parse_robots_headers
from crawlproj.fetch.wire import FramingError
from crawlproj.frontier.clock import FrontierClock
from crawlproj.items import Page, RobotsTicket

KEPT_HEADERS = tuple(
    (name.title().encode(), name)
    for name in (
        "location",
        "etag",
        "last-modified",
        "retry-after",
        "content-type",
        "x-robots-tag",
        "content-language",
        "link",
    )
)
"""As Scrapy's Headers are keyed, and as a Page says them."""


class RefusedError(IgnoreRequest):
    """One of our own middlewares does not let the request pass; `reason` goes into the Page."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class GuardError(OSError):
    """A connection to an address that may not be asked."""


REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (GuardError, "guard"),
    (DownloadTimeoutError, "timeout"),
    (ClientConnectorDNSError, "dns"),
    (CannotResolveHostError, "dns"),
    (ClientConnectorSSLError, "ssl"),
    (ClientSSLError, "ssl"),
    (ConnectionRefusedError, "refused"),
    (ConnectionResetError, "reset"),
    (UnsupportedURLSchemeError, "scheme"),
    (DownloadConnectionRefusedError, "unreachable"),
    (FramingError, "bad answer"),
    (ResponseDataLossError, "cut off"),
    (ServerDisconnectedError, "cut off"),
    (DownloadFailedError, "bad answer"),
)

COMPRESSION_MODULES = frozenset({"zlib", "gzip", "brotli", "zstandard", "backports", "compression"})
"""Modules whose errors mean that a body can't be unpacked."""


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, deepest last."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = getattr(error, "os_error", None) or error.__cause__ or error.__context__


def reason_of(error: BaseException) -> str:
    """Why there is no answer, in a few words whose first (up to a colon) is one of a small set."""
    if isinstance(error, RefusedError):
        return error.reason
    if isinstance(error, IgnoreRequest):
        return "decompression" if "decompressed" in str(error) else f"ignored: {error}"
    if isinstance(error, asyncio.CancelledError):
        return "shutdown"
    if isinstance(error, DownloadCancelledError):
        return "shutdown" if str(error) == "shutdown" else "too big"
    chain = list(error_chain(error))
    for kind, reason in REASONS:
        for cause in chain:
            if isinstance(cause, kind):
                return f"guard: {cause}" if kind is GuardError else reason
    packed = any(
        isinstance(cause, EOFError)
        or type(cause).__module__.lstrip("_").partition(".")[0] in COMPRESSION_MODULES
        for cause in chain
    )
    return "bad answer" if packed else f"error: {type(error).__name__}: {error}"


def error_text(failure: Failure) -> str:
    """Type and text of an error, for people."""
    return f"{type(failure.value).__name__}: {failure.getErrorMessage()}"


def page_of_failure(failure: Failure, times: FrontierClock) -> Page:
    """A Page without answer; or with one, if Scrapy calls the answer an error."""
    error = failure.value
    request = failure.request  # type: ignore[attr-defined]  # Scrapy puts it there
    assert error is not None
    if isinstance(error, HttpError):
        return page_of_response(error.response, request, times)
    started_s, ended_s = _when(request, times)
    wire = request.meta.get("wire")
    return Page(
        request.meta["ticket"],
        request.url,
        0,
        at=times.now(),
        reason=reason_of(error),
        started_s=started_s,
        ended_s=ended_s,
        wire=wire,
    )


def page_of_response(
    response: Response,
    request: Request,
    times: FrontierClock,
    agents: tuple[str, ...] = ("robots",),
) -> Page:
    ticket = request.meta["ticket"]
    headers = {
        name: _text(values[-1])
        for key, name in KEPT_HEADERS
        if (values := dict.get(response.headers, key)) and values[-1]
    }
    started_s, ended_s = _when(request, times)
    page = Page(
        ticket,
        response.url,
        response.status,
        at=times.now(),
        started_s=started_s,
        ended_s=ended_s,
        content_type=headers.get("content-type", ""),
        headers=headers,
        body=response.body,
        address=str(response.ip_address or ""),
        wire=request.meta.get("wire"),
    )
    if page.status == 304 or 200 <= page.status < 300:
        page.directives = parse_robots_headers(
            [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")], agents
        )
    if 200 <= page.status < 300 and not isinstance(ticket, RobotsTicket):
        page.body_digest = sha256(page.body).digest()[:16]
        readable = decompress_body(page.body)
        page.kind = feeds.sniff_kind(readable, page.content_type if readable is page.body else "")
        if page.body_digest != ticket.body_digest:
            page.document = document_of(page, readable, agents)
            page.directives |= page.document.robots if page.document is not None else NO_DIRECTIVES
    return page


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def decompress_body(body: bytes) -> bytes:
    """The inside of a file that is packed itself, as sitemaps often are; whatever can't be unpacked
    stays as it is.
    """
    if not body.startswith(b"\x1f\x8b"):
        return body
    try:
        return zlib.decompressobj(zlib.MAX_WBITS + 16).decompress(body, MAX_BODY)
    except zlib.error:
        return body


def document_of(page: Page, body: bytes, agents: tuple[str, ...]) -> Document | None:
    """Links and text, if it is something that can be read here and now; a document is read
    elsewhere, see middlewares/pages.py.
    """
    kind = page.kind
    charset = http_content_type_encoding(page.content_type)
    if kind in ("html", "text"):
        return parse_page(
            body,
            page.url,
            charset,
            content_type=page.content_type if kind == "html" else "text/plain",
            agents=agents,
        )
    if kind not in ("feed", "sitemap"):
        return None
    entries = feeds.parse_entries(body, page.url, charset)
    links = [
        Link(entry.url, "feed" if entry.kind == "feed" else "sitemap", entry.title[:200])
        for entry in entries
    ]
    blocks = [
        Block(" ".join(filter(None, (entry.url, entry.title, entry.date)))) for entry in entries
    ]
    return Document(page.url, page.url, links=links, blocks=blocks)


def _when(request: Request, times: FrontierClock) -> tuple[float | None, float | None]:
    """When the politeness middleware let it pass, and when it saw what came back."""
    started = request.meta.get("started")
    ended = request.meta.get("ended")
    return (
        (None, None)
        if started is None or ended is None
        else (times.earliest_unix(started), times.earliest_unix(ended))
    )
