"""Domains with endless host names (wildcard DNS): which new hosts are let in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crawlproj.frontier.base import Lane, NewUrl
from crawlproj.urls.domains import registered_domain


def is_found(url: NewUrl) -> bool:
    """Whether a URL was found by a link, not given by a person."""
    return url.depth > 0 and url.lane is not Lane.URGENT


def surplus_hosts(names: Iterable[str], counts: Mapping[str, int], limit: int) -> set[str]:
    """Those of the new host names that are too many below their domain. `counts`: how many names
    below each domain are known. The domain itself is always let in.
    """
    left = {domain: limit - count for domain, count in counts.items()}
    refused = set()
    for name in sorted(names):
        domain = registered_domain(name)
        if name == domain:
            continue
        left[domain] = left.get(domain, limit) - 1
        if left[domain] < 0:
            refused.add(name)
    return refused
