"""The servers of host names, looked up by threads, so that nobody ever waits for a name."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping
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
NO_SUCH_NAME = "there is no such name"
NO_DNS = "no DNS server answers"
ABSENT = frozenset(
    {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME), socket.EAI_FAMILY}
)
"""What the system says of names that do not exist, or have no address."""
REMEMBERED = 1_000
SHOWN_NAMES = 5


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
        self._running: dict[str, tuple[float, Future[str]]] = {}
        self.failures: dict[str, str] = {}
        """Why names have no address, of the last thousand."""
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
            self._running[host] = (time.monotonic(), self._pool.submit(resolve_name, host))

    def take_finished(self) -> dict[str, str]:
        """Take out what was found since the last call: host -> key of its server."""
        now = time.monotonic()
        for host, (since, lookup) in list(self._running.items()):
            if not lookup.done() and now - since <= PATIENCE_S:
                continue
            del self._running[host]
            self._wanted.discard(host)
            self._found[host] = self.server_key(host, self._address_found(host, lookup))
            lookup.cancel()
        self._start_lookups()
        found = self._found
        self._found = {}
        return found

    def _address_found(self, host: str, lookup: Future[str]) -> str | None:
        why = NO_DNS
        if lookup.done() and not lookup.cancelled():
            try:
                address = lookup.result()
            except ResolveError as error:
                why = str(error)
            else:
                self.failures.pop(host, None)
                return address
        self.failures.pop(host, None)
        self.failures[host] = why
        if len(self.failures) > REMEMBERED:
            del self.failures[next(iter(self.failures))]
        return None

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


class ResolveError(Exception):
    """A name that has no address, and why in words."""


def look_up(host: str) -> str | None:
    """The address of a name, or None."""
    try:
        return resolve_name(host)
    except ResolveError:
        return None


def resolve_name(host: str) -> str:
    """Ask the system for the address of a name; always the same one of several."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise ResolveError(NO_SUCH_NAME) from None
    except OSError as error:
        if error.errno in ABSENT:
            raise ResolveError(NO_SUCH_NAME) from None
        raise ResolveError(NO_DNS) from None
    addresses = [(family != socket.AF_INET, str(where[0])) for family, _, _, _, where in found]
    if not addresses:
        raise ResolveError(NO_SUCH_NAME)
    _, address = min(addresses)
    return address


def describe_failures(failures: Mapping[str, str]) -> str:
    """Which names have no address and why, in one line: name -> why."""
    parts = []
    for why in sorted(set(failures.values())):
        names = sorted(name for name, reason in failures.items() if reason == why)
        text = ", ".join(names[:SHOWN_NAMES])
        if len(names) > SHOWN_NAMES:
            text += f" and {len(names) - SHOWN_NAMES:,} more"
        verb = "does not resolve" if len(names) == 1 else "do not resolve"
        advice = ""
        if why == NO_DNS:
            advice = ": is this machine connected?"
        parts.append(f"{text} {verb} ({why}{advice})")
    return "; ".join(parts)
