"""The download handler: Scrapy's aiohttp handler with the addresses of leased hosts, the guard at
the socket, and an end at shutdown.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from functools import lru_cache
from ipaddress import ip_address
from math import inf
from random import random
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler, _ClientResponse
from scrapy.exceptions import DownloadCancelledError, ResponseDataLossError
from scrapy.http import Headers
from scrapy.utils._download_handlers import make_response

from crawlproj.archive.exchange import Truncated
from crawlproj.config import config_of
from crawlproj.content.slices import BIG_BODY
from crawlproj.fetch.big_bodies import BigBodies
from crawlproj.fetch.pages import GuardError
from crawlproj.fetch.wire import MAX_HEAD, WireCapture, capture_wire, install_capture
from crawlproj.frontier.base import Ticket
from crawlproj.frontier.clock import FrontierClock
from crawlproj.http.limited_body import BodyDecompressor, first_bytes, most_received
from crawlproj.http.status import RETRYABLE, parse_retry_after
from crawlproj.items import RobotsTicket
from crawlproj.politeness.clocks import FetchTiming
from crawlproj.politeness.guard import Guard, StaticNames
from crawlproj.urls.canonical import canonical_url, host_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


KEEP_ALIVE_S = 1.0
"""Servers close idle connections after two seconds and more. One that we use at that moment would
fail for nothing.
"""
MAX_HEADER = 65_536
MAX_HEADERS = 1_000
"""As much as browsers take."""
PARTIAL = {"dataloss": Truncated.DISCONNECT, "download_stopped": Truncated.UNSPECIFIED}
"""Flags that Scrapy gives to responses whose body is not whole."""
SLOW_S = 0.05
"""Of responses that seem to take longer, the system is asked how long they really took."""
TCP_INFO_BYTES = 56
LAST_DATA_SENT = 44
LAST_DATA_RECEIVED = 52
"""Offsets in Linux' `struct tcp_info`: milliseconds since data was sent, and received."""
CLOCK_TICK_S = 0.004
"""So exact these are."""
CAUTION = 2
"""A server may have worked for so many times as long as we have seen of it."""
ABORT = object()
"""Signal: end all downloads now."""


class LeasedHosts(Protocol):
    """What the network asks of the worker that a crawler runs."""

    def leased_address(self, host: str) -> str | None:
        """The address that a leased host is pinned to; None if it is not leased."""

    def note_sent(self, host: str) -> None:
        """A request to this host has just left."""

    def note_response(self, ticket: Ticket | RobotsTicket, timing: FetchTiming) -> None:
        """What came back, or that nothing did: the clocks are set by it."""

    def note_extra(self, url: str, status: int, timing: FetchTiming) -> None:
        """The same of a request without a ticket."""

    @property
    def clock(self) -> FrontierClock:
        """The frontier's time."""

    @property
    def big_bodies(self) -> BigBodies:
        """Where big bodies wait for room."""


def server_time_s(transport: asyncio.Transport | None) -> float | None:
    """How long the server took at most for the last response of a connection, by the system's own
    measure; None if it does not say.

    The event loop may be late to notice that a response has come, and would then blame the server.
    The server may still have been busy with what had come here already.
    """
    connection: socket.socket | None = None
    if transport is not None:
        connection = transport.get_extra_info("socket")
    if connection is None or sys.platform != "linux":
        return None
    try:
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    except (OSError, ValueError):
        return None
    if len(facts) < TCP_INFO_BYTES:
        return None
    sent_ms: int = struct.unpack_from("=I", facts, LAST_DATA_SENT)[0]
    received_ms: int = struct.unpack_from("=I", facts, LAST_DATA_RECEIVED)[0]
    return CAUTION * max(0.0, (sent_ms - received_ms) / 1_000) + CLOCK_TICK_S


def leased_hosts_of(crawler: Crawler) -> LeasedHosts:
    """The worker that a crawler runs. `scheduler.worker_of` is above this room."""
    worker: LeasedHosts = crawler.engine.scheduler.worker  # type: ignore[union-attr]
    return worker


class PinnedResolver(AbstractResolver):
    """Gives the address that a leased host is pinned to, and no other. For other hosts it asks the
    static names, then the system's resolver in a thread.
    """

    def __init__(self, names: StaticNames, crawler: Crawler) -> None:
        self._names = names
        self._crawler = crawler
        self._system = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = leased_hosts_of(self._crawler).leased_address(host)
        if address is None:
            address = self._names.find_address(host)
        if address == "":
            raise OSError(f"{host} has no address")
        if address is None:
            return await self._system.resolve(host, port, family)
        pinned_family = socket.AF_INET
        if ":" in address:
            pinned_family = socket.AF_INET6
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=pinned_family,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None:
        await self._system.close()


_address = lru_cache(maxsize=10_000)(ip_address)


def guarded_socket(guard: Guard) -> Any:
    """A function that makes the sockets of all connections, after the name was resolved: no name
    and no redirect gets around the guard.
    """

    def make_socket(info: tuple[Any, ...]) -> socket.socket:
        family, kind, proto, _, where = info
        refusal = guard.refusal_reason(str(where[0]))
        if refusal:
            raise GuardError(refusal)
        return socket.socket(family, kind, proto)

    return make_socket


_current_request: ContextVar[Request] = ContextVar("current_request")
"""What is being downloaded in this task."""


def host_asked(request: Request) -> str:
    """The host that a request goes to, by the name under which it is leased."""
    ticket = request.meta.get("ticket")
    if ticket is not None:
        name: str = ticket.host
        return name
    return host_of(canonical_url(request.url) or request.url)


def response_class(crawler: Crawler, archived: bool) -> type[_ClientResponse]:
    """Scrapy's response class, which also notes when the request has left, perhaps later than
    planned, and, if it is archived, keeps what came over the wire, also if that is no whole head.
    """

    class Timed(_ClientResponse):
        wire: WireCapture | None = None
        transport: asyncio.Transport | None = None

        async def start(self, connection: Connection) -> aiohttp.ClientResponse:
            protocol = connection.protocol
            self.transport = connection.transport
            if self._writer is None:
                self._note_sent()
            else:  # its body is being written
                self._writer.add_done_callback(self._note_sent)
            try:
                return await super().start(connection)
            finally:
                if archived:
                    self._capture(protocol)

        def _note_sent(self, _: object = None) -> None:
            """The event loop writes at the end of its round: in the next one the request has left
            for sure.
            """
            note_sent = leased_hosts_of(crawler).note_sent
            asyncio.get_running_loop().call_soon(note_sent, host_asked(_current_request.get()))

        def _capture(self, protocol: object) -> None:
            wire = capture_wire(self, protocol)
            if wire is None:
                return
            request = _current_request.get()
            wire.request_body = request.body
            if self._peername:
                wire.address = str(self._peername[0])
            request.meta["wire"] = wire
            self.wire = wire

    return Timed


class BareRequest(aiohttp.ClientRequest):
    """aiohttp's request, for which an empty body is none: so a GET says no Content-Length, as in
    browsers, and no task is made to write nothing.
    """

    def __init__(self, method: str, url: Any, *, data: Any = None, **options: Any) -> None:
        super().__init__(method, url, data=data or None, **options)


class GuardedHandler(AiohttpDownloadHandler):
    """Scrapy's handler, with a session of our own."""

    experimental: ClassVar[bool] = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._crawler = crawler
        config = config_of(crawler)
        self._user_agent = config.user_agent.encode()
        self._session.detach()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                local_addr=self._bind_address,
                limit=self._pool_size_total,
                limit_per_host=self._pool_size_per_host,
                resolver=PinnedResolver(StaticNames(dict(config.dns_hosts)), crawler),
                socket_factory=guarded_socket(config.guard),
                use_dns_cache=False,
                keepalive_timeout=KEEP_ALIVE_S,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            request_class=BareRequest,
            response_class=response_class(crawler, config.warc is not None),
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
            max_headers=MAX_HEADERS,
        )
        install_capture(self._session.connector, self._wire_limit)
        # A second try that nobody planned would come without a pause; another try is the frontier's
        # to make.
        self._session._retry_connection = False
        self._running: set[asyncio.Timeout] = set()
        crawler.signals.connect(self.abort_downloads, signal=ABORT)

    def _wire_limit(self) -> float:
        """How many bytes the current request may bring: its body, as large as it may be, and as
        much around it as a head may have.
        """
        meta = _current_request.get().meta
        wanted: int | None = meta.get("read_at_most")
        if wanted is not None:
            return most_received(wanted) + MAX_HEAD
        return (meta.get("download_maxsize", self._default_maxsize) or inf) + MAX_HEAD

    @staticmethod
    def _extract_headers(response: _ClientResponse) -> Headers:
        """The headers in the bytes that came: not all of them are UTF-8."""
        return Headers(response.raw_headers)

    def _request_headers(self, request: Request) -> Headers:  # type: ignore[override]
        """A copy of the headers, as Scrapy's own does it, but their names are right already.

        Who asks is always said: no request and no middleware asks in another name.
        """
        headers = Headers()
        dict.update(headers, request.headers)
        dict.pop(headers, b"Proxy-Authorization", None)
        dict.__setitem__(headers, b"User-Agent", [self._user_agent])
        return headers

    @staticmethod
    def _build_base_response_args(
        response: _ClientResponse, request: Request, headers: Headers
    ) -> Any:
        """What is known of a response when its head has come."""
        version = response.version
        peer = response._peername
        tls = response._ssl_object
        assert peer is not None
        certificate = None
        if tls is not None:
            certificate = tls.getpeercert(binary_form=True)
        protocol = "HTTP/1.1"
        if version:
            protocol = f"HTTP/{version.major}.{version.minor}"
        return {
            "status": response.status,
            "url": request.url,
            "headers": headers,
            "certificate": certificate,
            "ip_address": _address(peer[0]),
            "protocol": protocol,
        }

    def _iter_body_chunks(  # type: ignore[override]
        self, response: _ClientResponse
    ) -> AsyncIterator[bytes]:
        wire: WireCapture | None = getattr(response, "wire", None)
        chunks: AsyncIterator[bytes] = response.content.iter_any()
        if wire is not None:
            chunks = wire.record_body(response.content)
        length = response.content_length
        if length is not None and length <= BIG_BODY:
            return chunks
        return self._hold_big_body(chunks)

    async def _hold_big_body(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass a body on; if it is a big one, only when there is room for it."""
        ticket = _current_request.get().meta.get("ticket")
        received = 0
        async for chunk in chunks:
            received += len(chunk)
            if received > BIG_BODY and isinstance(ticket, Ticket):
                await leased_hosts_of(self._crawler).big_bodies.enter(ticket, received)
            yield chunk

    async def download_request(self, request: Request) -> Response:
        limit = asyncio.timeout(None)
        token = _current_request.set(request)
        self._running.add(limit)
        request.meta["started"] = time.monotonic()
        request.meta.pop("took_s", None)
        response = None
        try:
            async with limit:
                response = await super().download_request(request)
                return response
        except TimeoutError:
            raise DownloadCancelledError("shutdown") from None
        finally:
            self._note_end(request, response)
            self._running.discard(limit)
            _current_request.reset(token)

    def _note_end(self, request: Request, response: Response | None) -> None:
        """Set the clocks here at the network: whatever middlewares make of it, it was asked."""
        ended = time.monotonic()
        request.meta["ended"] = ended
        worker = leased_hosts_of(self._crawler)
        status = 0
        retry_after_s = None
        if response is not None:
            status = response.status
        failed = status == 0 or status in RETRYABLE
        if failed and response is not None:
            header = response.headers.get("Retry-After") or b""
            retry_after_s = parse_retry_after(header.decode("latin-1"), worker.clock.now())
        took_s = None
        if response is not None:
            took_s = request.meta.get("took_s")
        timing = FetchTiming(
            request.meta["started"],
            ended,
            failed,
            retry_after_s=retry_after_s,
            jitter=random(),
            took_s=took_s,
        )
        request.meta["took_s"] = took_s
        request.meta["answered"] = status
        request.meta["retry_after_s"] = retry_after_s
        ticket = request.meta.get("ticket")
        if ticket is None:
            worker.note_extra(request.url, status, timing)
        else:
            worker.note_response(ticket, timing)

    async def _read_response(self, response: _ClientResponse, request: Request) -> Response:
        """Read the body, or its first bytes if the request says `read_at_most` in its meta."""
        limit = request.meta.get("read_at_most")
        if limit is not None:
            return await self._read_first_bytes(response, request, limit)
        whole = await self._read_whole(response, request)
        elapsed_s = time.monotonic() - request.meta["started"]
        if elapsed_s > SLOW_S:
            took_s = server_time_s(getattr(response, "transport", None))
            if took_s is not None and took_s < elapsed_s:
                request.meta["took_s"] = took_s
        return whole

    async def _read_whole(self, response: _ClientResponse, request: Request) -> Response:
        whole = await super()._read_response(response, request)
        wire: WireCapture | None = getattr(response, "wire", None)
        if wire is not None:
            wire.whole = True
            wire.chunks = [whole.body]  # so that the same bytes are in memory once
            for flag, kind in PARTIAL.items():
                if flag in whole.flags:
                    wire.truncated = kind
                    break
        return whole

    async def _read_first_bytes(
        self, response: _ClientResponse, request: Request, limit: int
    ) -> Response:
        """Read so much of the body, decompressed, and hang up after it: so a file that is huge,
        endless or a bomb is used as far as it is wanted.
        """
        wire: WireCapture | None = getattr(response, "wire", None)
        headers = self._extract_headers(response)
        encoding = headers.to_unicode_dict().get("Content-Encoding", "")
        decompressor = BodyDecompressor.from_header(encoding)
        try:
            body, cut = await first_bytes(self._iter_body_chunks(response), limit, decompressor)
        except aiohttp.ClientPayloadError as error:
            raise ResponseDataLossError(str(error)) from error
        flags = None
        if cut:
            flags = ["cut"]
            response.close()
        if wire is not None:
            wire.whole = True
            if cut:
                wire.truncated = Truncated.LENGTH
        if decompressor is not None:
            headers.pop("Content-Encoding", None)
        known = self._build_base_response_args(response, request, headers)
        return make_response(**known, body=body, flags=flags)

    def abort_downloads(self) -> int:
        """End all downloads now; they come out as "shutdown" and their URLs stay due."""
        now = asyncio.get_running_loop().time()
        for limit in self._running:
            limit.reschedule(now)
        return len(self._running)
