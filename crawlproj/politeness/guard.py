"""The guard refuses addresses that are not public, unless the user allows them, and ports that are
never for the web.

What is public is said by tables of our own, after IANA's registries of special-purpose addresses:
those of Python's `ipaddress` differ from one version to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

NO_ADDRESS = "?"
"""First letter of the server key of a name that could not be resolved."""

NO_HOSTS_4 = tuple(map(IPv4Network, ("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4")))
"""This network, multicast, reserved and broadcast: no host has such an address."""
NO_HOSTS_6 = tuple(map(IPv6Network, ("::/128", "ff00::/8")))
SPECIAL_4 = tuple(
    map(
        IPv4Network,
        (
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by the customers of a provider
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # IETF's protocols
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
        ),
    )
)
PUBLIC_6 = IPv6Network("2000::/3")
"""All that IANA gives out for hosts of the internet; the special ones among them are excepted."""
SPECIAL_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # IETF's protocols, Teredo among them
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
LOOPBACK_4 = IPv4Network("127.0.0.0/8")
LOOPBACK_6 = IPv6Address("::1")
MAPPED = IPv6Network("::ffff:0:0/96")
NAT64 = IPv6Network("64:ff9b::/96")
SIX_TO_FOUR = IPv6Network("2002::/16")
ISATAP = frozenset({0x00005EFE, 0x02005EFE})
"""The first half of an interface's number, before the IPv4 address at the other end of a tunnel."""

BAD_PORTS = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
})  # fmt: skip
"""The bad ports of the Fetch standard, which browsers refuse: whoever answers there speaks another
protocol, such as mail, and might take a request for commands.
"""


@dataclass(frozen=True, slots=True)
class Guard:
    """Which addresses may be asked. Without a contact for webmasters only this machine."""

    allow_private: bool = False
    has_contact: bool = False

    @lru_cache(maxsize=10_000)  # noqa: B019  # there is one guard
    def refusal_reason(self, address: str) -> str:
        """Why an address may not be asked; empty if it may, or if there is none."""
        if not address:
            return ""
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return "not an address"
        if ip in MAPPED:  # the same as the IPv4 address, also for the network
            ip = _last_32_bits(ip)
        tunnelled = _embedded_ipv4(ip)
        if not self.allow_private and not all(map(_is_public, (ip, *tunnelled))):
            return "private address"
        if any(map(_is_no_host, (ip, *tunnelled))):
            return "not a host"
        if not self.has_contact and not _is_loopback(ip):
            return "no ROBOT_CONTACT"
        return ""


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in NO_HOSTS_4 + SPECIAL_4)
    if ip in NAT64:
        return True
    return ip in PUBLIC_6 and not any(ip in network for network in SPECIAL_6)


def _is_no_host(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv4Address):
        return any(ip in network for network in NO_HOSTS_4)
    return any(ip in network for network in NO_HOSTS_6)


def _is_loopback(ip: IPv4Address | IPv6Address) -> bool:
    return ip == LOOPBACK_6 or ip in LOOPBACK_4


def _embedded_ipv4(ip: IPv4Address | IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that a gateway may make of an IPv6 one: they must be allowed too.

    Forms that are refused as a whole, such as Teredo's, need not be looked into.
    """
    if isinstance(ip, IPv4Address):
        return ()
    if ip in NAT64 or (int(ip) >> 32) & 0xFFFFFFFF in ISATAP:
        return (_last_32_bits(ip),)
    if ip in SIX_TO_FOUR:
        return (IPv4Address((int(ip) >> 80) & 0xFFFFFFFF),)
    return ()


def _last_32_bits(ip: IPv4Address | IPv6Address) -> IPv4Address:
    return IPv4Address(int(ip) & 0xFFFFFFFF)


def plain_address(address: str) -> str:
    """The address in its only form: an IPv4 address that is written as an IPv6 one is the same
    server.
    """
    if ":" not in address:
        return address
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if ip in MAPPED:
        return str(_last_32_bits(ip))
    return address


def bad_port(url: str) -> int | None:
    """The port of a web address, if it is one that is never for the web."""
    host = url.split("/", 3)[2]
    _, colon, port = host.rpartition(":")
    if colon and port.isdecimal() and int(port) in BAD_PORTS:
        return int(port)
    return None


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
