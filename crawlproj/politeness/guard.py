"""The guard refuses addresses that are not public, unless the user allows them."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

NO_ADDRESS = "?"
"""First letter of the server key of a name that could not be resolved."""

NAT64 = IPv6Network("64:ff9b::/96")
NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")


@dataclass(frozen=True, slots=True)
class Guard:
    """Which addresses may be asked. Without a contact for webmasters only this machine."""

    allow_private: bool = False
    has_contact: bool = False

    @lru_cache(maxsize=10_000)  # noqa: B019  # there is one guard
    def refusal_reason(self, address: str) -> str:
        """Why an address may not be asked; empty if it may."""
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return ""
        if isinstance(ip, IPv6Address):
            ip = _embedded_ipv4(ip)
        if not self.allow_private and (not ip.is_global or ip in NAT64_LOCAL):
            return "private address"
        if ip.is_multicast or ip.is_unspecified:
            return "not a host"
        if not self.has_contact and not ip.is_loopback:
            return "no ROBOT_CONTACT"
        return ""


def _embedded_ipv4(ip: IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 one stands for; if it is none of those, the same."""
    if ip in NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    embedded = ip.ipv4_mapped or ip.sixtofour
    if embedded is not None:
        return embedded
    if ip.teredo is not None:
        _server, client = ip.teredo
        return client
    return ip


class StaticNames:
    """Addresses by DNS_HOSTS: exact names come first, then wildcards, the longest first."""

    def __init__(self, names: dict[str, str]) -> None:
        self._exact = {name.lower(): address for name, address in names.items() if "*" not in name}
        self._wildcards = [
            (name.lower(), address) for name, address in names.items() if "*" in name
        ]
        self._wildcards.sort(key=lambda pair: len(pair[0]), reverse=True)

    def find_address(self, host: str) -> str | None:
        found = self._exact.get(host)
        if found:
            return found
        for pattern, address in self._wildcards:
            if fnmatchcase(host, pattern):
                return address
        return None
