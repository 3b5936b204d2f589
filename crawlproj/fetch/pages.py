"""Every exchange, failure or refusal becomes one Page here."""

from __future__ import annotations

import asyncio
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
from crawlproj.content.document import DEFAULT_LIMITS, Block, Document, Link, LinkLimits
from crawlproj.content.entry_dates import parse_entry_date
from crawlproj.content.html import MAX_BODY, parse_in_slices
from crawlproj.content.robots_directives import parse_robots_headers
from crawlproj.content.slices import BIG_BODY, MANY_LINKS, Slices, run_at_once
from crawlproj.fetch.requests import may_be_sitemap
from crawlproj.fetch.wire import FramingError, HeadLimitError, WireLimitError
from crawlproj.frontier.clock import FrontierClock
from crawlproj.http.encodings import decode_body_steps
from crawlproj.items import Page, RobotsTicket
from crawlproj.politeness.log_reader import CACHED

_GZIP = b"\x1f\x8b"
MAX_WORK_S = 0.15
"""Time for decompressing a file: the event loop waits for it. 10 MB take half of it."""
LOOKED_AT = 100
"""Entries of a sitemap among which one of a news sitemap is looked for."""
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
        "cache-control",
        "expires",
    )
)
"""The headers that a Page has: their key in Scrapy's Headers, and their name there."""


class RefusedError(IgnoreRequest):
    """One of our own middlewares does not let the request pass; `reason` goes into the Page."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class GuardError(OSError):
    """A connection to an address that may not be asked."""


REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (GuardError, "guard"),
    (WireLimitError, "too big"),
    (HeadLimitError, "bad answer"),
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
"""Modules whose errors mean that a body can't be decompressed."""


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, deepest last."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = getattr(error, "os_error", None) or error.__cause__ or error.__context__


def reason_of(error: BaseException) -> str:
    """Why there is no response, in a few words; the first (up to a colon) is one of a small set."""
    if isinstance(error, RefusedError):
        return error.reason
    if isinstance(error, IgnoreRequest):
        if "decompressed" in str(error):
            return "decompression"
        return f"ignored: {error}"
    if isinstance(error, asyncio.CancelledError):
        return "shutdown"
    if isinstance(error, DownloadCancelledError):
        if str(error) == "shutdown":
            return "shutdown"
        return "too big"
    chain = list(error_chain(error))
    for kind, reason in REASONS:
        for cause in chain:
            if isinstance(cause, kind):
                if isinstance(cause, HeadLimitError):
                    return f"{reason}: {cause.message}"
                if kind is GuardError:
                    return f"guard: {cause}"
                return reason
    if any(_is_compression_error(cause) for cause in chain):
        return "bad answer"
    return f"error: {type(error).__name__}: {error}"


def _is_compression_error(error: BaseException) -> bool:
    if isinstance(error, EOFError):
        return True
    module = type(error).__module__.lstrip("_").partition(".")[0]
    return module in COMPRESSION_MODULES


def error_text(failure: Failure) -> str:
    """Type and text of an error, for people."""
    return f"{type(failure.value).__name__}: {failure.getErrorMessage()}"


def page_of_failure(failure: Failure, clock: FrontierClock) -> Page:
    """A Page without a response; or with one, if Scrapy calls the response an error."""
    error = failure.value
    request = failure.request  # type: ignore[attr-defined]  # Scrapy puts it there
    assert error is not None
    if isinstance(error, HttpError):
        return page_of_response(error.response, request, clock)
    return unread_page(request, clock, reason_of(error))


def unread_page(request: Request, clock: FrontierClock, reason: str) -> Page:
    """A Page of which nothing is used; that it was asked, and what came, is kept all the same."""
    started_s, ended_s = _times_of(request, clock)
    return Page(
        request.meta["ticket"],
        request.url,
        0,
        at=clock.now(),
        reason=reason,
        started_s=started_s,
        ended_s=ended_s,
        answered=request.meta.get("answered"),
        retry_after_s=request.meta.get("retry_after_s"),
        took_s=request.meta.get("took_s"),
        wire=request.meta.get("wire"),
    )


def page_of_response(response: Response, request: Request, clock: FrontierClock) -> Page:
    """A Page with what came, without a pause: for robots.txt and errors, which are not parsed."""
    return run_at_once(page_in_slices(response, request, clock))


def page_in_slices(
    response: Response,
    request: Request,
    clock: FrontierClock,
    agents: tuple[str, ...] = ("robots",),
    limits: LinkLimits = DEFAULT_LIMITS,
) -> Slices[Page]:
    """A Page with what came; an ordinary one takes one slice.

    `agents`: whom its robots directives may address; `limits`: how many links are taken.
    """
    ticket = request.meta["ticket"]
    headers = _kept_headers(response)
    started_s, ended_s = _times_of(request, clock)
    page = Page(
        ticket,
        response.url,
        response.status,
        at=clock.now(),
        started_s=started_s,
        ended_s=ended_s,
        content_type=headers.get("content-type", ""),
        headers=headers,
        body=response.body,
        address=str(response.ip_address or ""),
        answered=request.meta.get("answered"),
        retry_after_s=request.meta.get("retry_after_s"),
        took_s=request.meta.get("took_s"),
        wire=request.meta.get("wire"),
    )
    if started_s is None and CACHED in response.flags:
        page.reason = CACHED
    if page.status == 304 or 200 <= page.status < 300:
        tags = [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
        page.directives = parse_robots_headers(tags, agents)
    if 200 <= page.status < 300 and not isinstance(ticket, RobotsTicket):
        page.body_digest = sha256(page.body).digest()[:16]
        limit = feeds.MAX_SITEMAP if may_be_sitemap(ticket) else MAX_BODY
        body = yield from decompress_in_slices(page.body, limit)
        declared = ""
        if body is page.body:
            declared = page.content_type
        page.kind = feeds.sniff_kind(body, declared)
        is_same = page.body_digest == ticket.body_digest
        # The same bytes are read again where the header does not say noindex, or not as before:
        # it may be a meta element that did.
        if not is_same or page.noindex != ticket.noindex:
            page.document = yield from document_in_slices(page, body, agents, limits)
            if page.document is not None:
                page.directives |= page.document.robots
                if is_same and page.noindex == ticket.noindex:
                    page.document = None
    return page


def _kept_headers(response: Response) -> dict[str, str]:
    kept = {}
    for key, name in KEPT_HEADERS:
        values = dict.get(response.headers, key)
        if values and values[-1]:
            kept[name] = _text(values[-1])
    return kept


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def decompress_body(body: bytes) -> bytes:
    """As `decompress_in_slices`, without a pause."""
    return run_at_once(decompress_in_slices(body))


def decompress_in_slices(body: bytes, limit: int = MAX_BODY) -> Slices[bytes]:
    """The content of a file that is a gzip file itself, as sitemaps often are; whatever can't be
    decompressed, or takes too long, stays as it is. Of what is longer one byte more comes out.
    """
    if not body.startswith(_GZIP):
        return body
    work_s = MAX_WORK_S * max(1.0, limit / MAX_BODY)
    limit += 1
    decoded = yield from decode_body_steps(body, "gzip", limit, max_work_s=work_s)
    if decoded.startswith(_GZIP):
        # Packed by a program that did not know that it was packed.
        again = yield from decode_body_steps(decoded, "gzip", limit, max_work_s=work_s)
        return again or decoded
    return decoded or body


def document_of(page: Page, body: bytes, agents: tuple[str, ...]) -> Document | None:
    """As `document_in_slices`, without a pause."""
    return run_at_once(document_in_slices(page, body, agents, DEFAULT_LIMITS))


def document_in_slices(
    page: Page, body: bytes, agents: tuple[str, ...], limits: LinkLimits
) -> Slices[Document | None]:
    """Links and text, if it is something that can be parsed in this process; PDF and such are read
    by `documents`.
    """
    kind = page.kind
    if kind not in ("html", "text", "feed", "sitemap"):
        return None
    if len(body) > BIG_BODY:
        yield  # so that nothing of it is made before it is its turn
    charset = http_content_type_encoding(page.content_type)
    if kind in ("feed", "sitemap"):
        limits = limits._replace(links=max(limits.links, feeds.MAX_ENTRIES))
        found = yield from feeds.parse_entries_in_slices(body, page.url, charset, limits)
        document = yield from _document_of_entries(page, found)
        return document
    content_type = page.content_type
    if kind == "text":
        content_type = "text/plain"
    document = yield from parse_in_slices(
        body, page.url, charset, content_type=content_type, agents=agents, limits=limits
    )
    return document


def _document_of_entries(page: Page, found: feeds.FeedEntries) -> Slices[Document]:
    links = []
    blocks = []
    listed = {}
    published = {}
    newest = None
    for number, entry in enumerate(found.entries, 1):
        title = entry.title[:200]
        if entry.kind == "feed":
            links.append(Link(entry.url, "feed", title))
        else:
            links.append(Link(entry.url, "sitemap", title))
        if entry.date and entry.kind != "alternate":
            listed[entry.url] = entry.date
            if entry.published:
                published[entry.url] = entry.published
            at = parse_entry_date(entry.published or entry.date, page.at)
            if at is not None and (newest is None or at > newest):
                newest = at
        blocks.append(Block(" ".join(filter(None, (entry.url, entry.title, entry.date)))))
        if number % MANY_LINKS == 0:
            yield
    document = Document(
        page.url, page.url, links=links, blocks=blocks, cut=found.cut, too_many_links=found.too_many
    )
    document.listed = listed
    document.published = published
    document.newest = newest
    document.list_kind = _list_kind(page, found.entries)
    yield from document.find_digest_in_slices()
    return document


def _list_kind(page: Page, entries: list[feeds.FeedEntry]) -> str:
    """What list it is, by what most likely all of its entries are."""
    if page.kind == "feed" or not entries:
        return page.kind
    if entries[0].kind == "sitemapindex":
        return "sitemap index"
    if any(entry.news for entry in entries[:LOOKED_AT]):
        return "news sitemap"
    return page.kind


def _times_of(request: Request, clock: FrontierClock) -> tuple[float | None, float | None]:
    """When the download handler began and ended; None if it was never asked."""
    started = request.meta.get("started")
    ended = request.meta.get("ended")
    if started is None or ended is None:
        return None, None
    return clock.earliest_unix(started), clock.earliest_unix(ended)
