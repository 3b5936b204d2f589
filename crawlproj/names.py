"""Host names to addresses, off the event loop, static names first."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from ipaddress import ip_address

from crawlproj.guard import NO_ADDRESS, StaticNames

TIMEOUT_S = 10.0


class Resolver:
    """One pinned address per host: IPv4 before IPv6. A name without address gets a key of its own (`?name`)."""

    def __init__(self, names: StaticNames, threads: int = 16) -> None:
        self._names = names
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="resolve")

    def addresses(self, hosts: Iterable[str]) -> dict[str, str]:
        found = {host: self.known(host) for host in hosts}
        asked = {host: self._pool.submit(look_up, host) for host, address in found.items() if address is None}
        wait(asked.values(), TIMEOUT_S)
        for host, answer in asked.items():
            found[host] = answer.result() if answer.done() else None
        return {host: address or NO_ADDRESS + host for host, address in found.items()}

    def known(self, host: str) -> str | None:
        """The address of a static name or of a literal, without asking anyone."""
        if (static := self._names.address(host)) is not None:
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
    addresses = sorted((family != socket.AF_INET, str(where[0])) for family, _, _, _, where in answers)
    return addresses[0][1] if addresses else None
