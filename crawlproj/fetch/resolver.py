"""The servers of host names, looked up by threads, so that nobody ever waits for a name."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from ipaddress import ip_address
from random import randrange

from crawlproj.politeness.guard import NO_ADDRESS, StaticNames, plain_address
from crawlproj.politeness.networks import SharedNetworks

PATIENCE_S = 30.0
"""A look-up that takes longer counts as failed; its thread is left to itself. The time that a name
waits for a thread does not count.
"""
THREADS = 64


def address_of(server: str) -> str:
    """The address in a server's key; empty for a name without one."""
    if server.startswith(NO_ADDRESS):
        return ""
    return server.partition(" ")[0]


class Resolver:
    """`submit` takes names, `take_finished` gives the keys of their servers.

    A key is one pinned address per host, IPv4 before IPv6; on shared networks it is address and
    host; a name without an address gets a key of its own (`?name`).
    """

    def __init__(
        self, names: StaticNames, shared: SharedNetworks | None = None, threads: int = THREADS
    ) -> None:
        self._names = names
        self._shared = shared or SharedNetworks(())
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="resolve")
        self._threads = threads
        self._waiting: list[str] = []
        self._wanted: set[str] = set()
        self._running: dict[str, tuple[float, Future[str | None]]] = {}
        self._found: dict[str, str] = {}

    @property
    def pending(self) -> int:
        """How many names are being looked up, or wait for it."""
        return len(self._wanted)

    def submit(self, hosts: Iterable[str]) -> None:
        """Look these names up; what is known without asking is there at once."""
        for host in hosts:
            address = self.known_address(host)
            if address is not None:
                self._found[host] = self.server_key(host, address)
            elif host not in self._wanted:
                self._wanted.add(host)
                self._waiting.append(host)
        self._start_lookups()

    def _start_lookups(self) -> None:
        """Start as many look-ups as there are threads, in any order: whoever came with a thousand
        dead names holds nobody up for long.
        """
        while self._waiting and len(self._running) < self._threads:
            chosen = randrange(len(self._waiting))
            host = self._waiting[chosen]
            self._waiting[chosen] = self._waiting[-1]
            self._waiting.pop()
            self._running[host] = (time.monotonic(), self._pool.submit(look_up, host))

    def take_finished(self) -> dict[str, str]:
        """Take out what was found since the last call: host -> key of its server."""
        now = time.monotonic()
        for host, (since, lookup) in list(self._running.items()):
            if not lookup.done() and now - since <= PATIENCE_S:
                continue
            del self._running[host]
            self._wanted.discard(host)
            address = None
            if lookup.done() and not lookup.cancelled():
                address = lookup.result()
            self._found[host] = self.server_key(host, address)
            lookup.cancel()
        self._start_lookups()
        found = self._found
        self._found = {}
        return found

    def server_key(self, host: str, address: str | None) -> str:
        """The key of the server that a host is on."""
        if address is None:
            return NO_ADDRESS + host
        address = plain_address(address)
        if address in self._shared:
            return f"{address} {host}"
        return address

    def known_address(self, host: str) -> str | None:
        """The address of a static name or of a literal, without asking anyone."""
        static = self._names.find_address(host)
        if static is not None:
            return static
        literal = host.strip("[]")
        try:
            ip_address(literal)
        except ValueError:
            return None
        return literal

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def look_up(host: str) -> str | None:
    """Ask the system for the address of a name; always the same one of several."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    addresses = [(family != socket.AF_INET, str(where[0])) for family, _, _, _, where in found]
    if not addresses:
        return None
    _, address = min(addresses)
    return address
