"""The demo web on loopback: HTTP/1.1 with keep-alive, in a thread of its own.

with DemoServer("tiny", clock=FrozenClock()) as demo:
    demo.url("one", "/"), demo.port, demo.web.truth_at(demo.now()), demo.log.records()
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import socket
import threading
import time
from pathlib import Path

from crawlproj.demo.clock import Clock
from crawlproj.demo.log import AccessLog
from crawlproj.demo.model import DemoRequest, DemoResponse, Profile
from crawlproj.demo.profiles import dns_hosts, find_profile, loopback_addresses
from crawlproj.demo.web import Web
from crawlproj.demo.wire import MAX_HEAD_BYTES, DemoConnection, format_response

LOOPBACK = "127.0.0.1"
TRIES = 20
BACKLOG = 1024


class PortInUse(OSError):
    """Another program listens on the port that the demo web is to use."""


def bind_sockets(
    wanted: tuple[str, ...], port: int, first: str = LOOPBACK
) -> dict[str, socket.socket]:
    """A listening socket per loopback address, all on one port (0: any free one), by address.

    Addresses that this machine does not have (127.0.0.2 on some systems) are left out: their hosts
    are served on the `first`, 127.0.0.1. Nothing but loopback is ever bound.
    """
    for _ in range(TRIES):
        found: dict[str, socket.socket] = {}
        try:
            _listen(found, first, port)
            chosen = found[first].getsockname()[1]
            for address in wanted:
                if address != first:
                    _listen(found, address, chosen)
            return found
        except (OSError, ValueError) as error:
            for sock in found.values():
                sock.close()
            if port or not isinstance(error, PortInUse):
                raise
    raise PortInUse(errno.EADDRINUSE, f"no port is free on all of {', '.join(wanted)}")


def _listen(found: dict[str, socket.socket], address: str, port: int) -> None:
    if not (address.startswith("127.") or address == "::1"):
        raise ValueError(f"the demo web is served on loopback only, not on {address}")
    family = socket.AF_INET
    if ":" in address:
        family = socket.AF_INET6
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                error.errno,
                f"port {port} on {address} is in use; stop what uses it or choose another",
            ) from None
        if error.errno != errno.EADDRNOTAVAIL or address == LOOPBACK:
            raise
        return
    found[address] = sock


class BusyHost:
    """A host that gives 429 to each `every`-th request, and to all that come before the wait is
    over.
    """

    def __init__(self, every: int, wait_s: int) -> None:
        self._every = every
        self._wait_s = wait_s
        self._seen = 0
        self._until = 0.0

    def refuse_request(self, now: float) -> DemoResponse | None:
        if now < self._until:
            return self._too_many_requests(self._until - now)
        self._seen += 1
        if self._seen % self._every:
            return None
        self._until = now + self._wait_s
        return self._too_many_requests(self._wait_s)

    def _too_many_requests(self, left_s: float) -> DemoResponse:
        return DemoResponse(
            429,
            (("Retry-After", str(-int(-left_s // 1))), ("Content-Type", "text/plain")),
            b"Too many requests.\n",
        )


class DemoServer:
    """Serves a profile until the `with` block ends.

    `clock` gives the web's time, `t0` its first moment (default: the clock's time at the start),
    `speed` makes its articles appear and change faster. `address`: all hosts are on this one, so
    that several webs can have the same port.
    """

    def __init__(
        self,
        web: Profile | str = "demo",
        *,
        clock: Clock | None = None,
        t0: float | None = None,
        speed: float = 1.0,
        seed: int = 1,
        port: int = 0,
        log_path: Path | None = None,
        address: str = "",
    ) -> None:
        if isinstance(web, str):
            web = find_profile(web)
        self.profile: Profile = web
        self.now: Clock = clock or time.time
        if t0 is None:
            t0 = self.now()
        first = address or LOOPBACK
        addresses = loopback_addresses(self.profile)
        if address:
            addresses = (address,)
        self._sockets = bind_sockets(addresses, port, first)
        self.port: int = self._sockets[first].getsockname()[1]
        self.web = Web(self.profile, seed=seed, t0=t0, speed=speed, port=self.port)
        self.log = AccessLog(log_path)
        self.dns_hosts = dns_hosts(self.profile)
        for host, address in self.dns_hosts.items():
            if address not in self._sockets:
                self.dns_hosts[host] = first
        self._busy = {
            spec.host: BusyHost(spec.busy_every, spec.retry_after_s)
            for spec in self.profile.hosts
            if spec.busy_every
        }
        self._tasks: set[asyncio.Task[object]] = set()
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="demo-web", daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()

    def url(self, name: str, path: str = "/") -> str:
        return self.web.url(name, path)

    def __enter__(self) -> DemoServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self.log.close()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self.serve())
        finally:
            self._loop.close()

    async def serve(self) -> None:
        """Serve until `stop`; then all connections are cut, and responses under way are logged."""
        servers = [
            await asyncio.start_server(self._connected, sock=sock, limit=MAX_HEAD_BYTES)
            for sock in self._sockets.values()
        ]
        self._ready.set()
        await self._stop.wait()
        for server in servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop(self) -> None:
        """End `serve`; only from the thread of its loop."""
        self._stop.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = DemoConnection(reader, writer, next(self._numbers))
        try:
            while await self._exchange(connection):
                pass
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            await connection.close()

    async def _exchange(self, connection: DemoConnection) -> bool:
        """Serve one request; False: the connection ends here."""
        received = await connection.read_request()
        if received is None:
            return False
        request, keep_alive = received
        started = connection.arrival_time()
        sent = 0
        response = self._response_to(request)
        begun = False
        try:
            if response.latency_s:
                await asyncio.sleep(response.latency_s)
            if response.fault is None or response.fault.is_finite:
                begun = True
                self.log.begin_response()
            if response.fault:
                keep_alive = False
                sent = await connection.play_fault(response.fault)
            else:
                data = format_response(response, request.method, keep_alive)
                await connection.send(data)
                sent = len(data)
        finally:
            record = connection.make_record(request, response, started, sent=sent)
            self.log.add(record, begun=begun)
        return keep_alive

    def _response_to(self, request: DemoRequest) -> DemoResponse:
        busy = self._busy.get(request.host.partition(":")[0].lower())
        if busy and not request.target.startswith("/robots.txt"):
            refusal = busy.refuse_request(time.monotonic())
            if refusal:
                return refusal
        return self.web.response_to(request, self.now())
