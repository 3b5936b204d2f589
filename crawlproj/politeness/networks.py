"""Addresses that many servers share: content delivery networks."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network


class SharedNetworks:
    """Addresses that many servers share: content delivery networks."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks: dict[tuple[int, int], set[int]] = {}
        for text in networks:
            network: IPv4Network | IPv6Network = ip_network(text)
            bits = network.max_prefixlen - network.prefixlen
            self._networks.setdefault((network.version, bits), set()).add(
                int(network.network_address) >> bits
            )

    def __contains__(self, address: str) -> bool:
        ip = ip_address(address.partition("%")[0])
        return any(
            ip.version == version and int(ip) >> bits in found
            for (version, bits), found in self._networks.items()
        )


def shipped_networks() -> list[str]:
    lines = (
        files("crawlproj").joinpath("politeness", "shared_networks.txt").read_text().splitlines()
    )
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
