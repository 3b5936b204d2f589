"""Host names to servers, off the event loop and without ever holding anybody up."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from ipaddress import ip_address
from random import randrange

from crawlproj.politeness.guard import NO_ADDRESS, StaticNames
from crawlproj.politeness.networks import SharedNetworks

PATIENCE_S = 30.0
"""A look-up that takes longer counts as failed; its thread is left to itself. Those that wait for a
thread are not asked yet.
"""
THREADS = 64


def address_of(server: str) -> str:
    """The address in a server's key; empty for a name without one."""
    return "" if server.startswith(NO_ADDRESS) else server.partition(" ")[0]


class Resolver:
    """`submit` names, `finished` gives servers: one pinned address per host, IPv4 before IPv6. On
    shared networks the key is address and host; a name without address gets a key of its own
    (`?name`).
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
        return len(self._wanted)

    def submit(self, hosts: Iterable[str]) -> None:
        for host in hosts:
            address = self.known_address(host)
            if address is not None:
                self._found[host] = self.server_key(host, address)
            elif host not in self._wanted:
                self._wanted.add(host)
                self._waiting.append(host)
        self._start_lookups()

    def _start_lookups(self) -> None:
        """As many at once as there are threads, in any order: whoever came with a thousand dead
        names holds nobody up for long.
        """
        while self._waiting and len(self._running) < self._threads:
            place = randrange(len(self._waiting))
            self._waiting[place], self._waiting[-1] = self._waiting[-1], self._waiting[place]
            host = self._waiting.pop()
            self._running[host] = (time.monotonic(), self._pool.submit(look_up, host))

    def take_finished(self) -> dict[str, str]:
        now = time.monotonic()
        for host, (since, answer) in list(self._running.items()):
            if answer.done() or now - since > PATIENCE_S:
                del self._running[host]
                self._wanted.discard(host)
                self._found[host] = self.server_key(
                    host, answer.result() if answer.done() and not answer.cancelled() else None
                )
                answer.cancel()
        self._start_lookups()
        found = self._found
        self._found = {}
        return found

    def server_key(self, host: str, address: str | None) -> str:
        if address is None:
            return NO_ADDRESS + host
        return f"{address} {host}" if address in self._shared else address

    def known_address(self, host: str) -> str | None:
        """The address of a static name or of a literal, without asking anyone."""
        if (static := self._names.find_address(host)) is not None:
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
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    addresses = sorted(
        (family != socket.AF_INET, str(where[0])) for family, _, _, _, where in answers
    )
    return addresses[0][1] if addresses else None
