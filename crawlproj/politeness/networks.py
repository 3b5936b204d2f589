"""Networks whose addresses are shared by many sites, as those of content delivery networks."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network


class SharedNetworks:
    """Tells whether an address is in one of the networks, without trying each of them."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._prefixes: dict[tuple[int, int], set[int]] = {}
        """(IP version, bits after the prefix) -> prefixes."""
        for text in networks:
            network: IPv4Network | IPv6Network = ip_network(text)
            bits = network.max_prefixlen - network.prefixlen
            prefixes = self._prefixes.setdefault((network.version, bits), set())
            prefixes.add(int(network.network_address) >> bits)

    def __contains__(self, address: str) -> bool:
        ip = ip_address(address.partition("%")[0])
        return any(
            ip.version == version and int(ip) >> bits in prefixes
            for (version, bits), prefixes in self._prefixes.items()
        )


def shipped_networks() -> list[str]:
    """The networks in `shared_networks.txt`, which comes with crawlproj."""
    file = files("crawlproj").joinpath("politeness", "shared_networks.txt")
    lines = file.read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
