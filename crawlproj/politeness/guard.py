"""What may be fetched at all: public web addresses, and nothing else unless the user says so."""

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
    """`refusal` names why an address may not be asked, or is empty."""

    allow_private: bool = False
    has_contact: bool = False

    @lru_cache(maxsize=10_000)  # noqa: B019  # there is one guard
    def refusal_reason(self, address: str) -> str:
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return ""
        if isinstance(ip, IPv6Address):
            ip = _inside(ip)
        if not self.allow_private and (not ip.is_global or ip in NAT64_LOCAL):
            return "private address"
        if ip.is_multicast or ip.is_unspecified:
            return "not a host"
        if not self.has_contact and not ip.is_loopback:
            return "no ROBOT_CONTACT"
        return ""


def _inside(ip: IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 one stands for, if it does."""
    if ip in NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else ip)


class StaticNames:
    """DNS_HOSTS: exact names first, then wildcards, longest first."""

    def __init__(self, names: dict[str, str]) -> None:
        self._exact = {name.lower(): address for name, address in names.items() if "*" not in name}
        self._wild = sorted(
            ((n.lower(), a) for n, a in names.items() if "*" in n), key=lambda pair: -len(pair[0])
        )

    def find_address(self, host: str) -> str | None:
        found = self._exact.get(host)
        return found or next(
            (address for pattern, address in self._wild if fnmatchcase(host, pattern)), None
        )
