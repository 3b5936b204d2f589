"""Domains with endless host names: which of the new ones are let in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crawlproj.frontier.base import Lane, NewUrl
from crawlproj.urls.domains import registered_domain


def is_found(url: NewUrl) -> bool:
    """Found by a link, not given by a person."""
    return url.depth > 0 and url.lane is not Lane.URGENT


def surplus_hosts(names: Iterable[str], counts: Mapping[str, int], limit: int) -> set[str]:
    """Those of the new names that are too many, the domain itself aside. `counts`: how many names
    below each domain are known.
    """
    left = {name: limit - count for name, count in counts.items()}
    refused = set()
    for name in sorted(names):
        above = registered_domain(name)
        if name == above:
            continue
        left[above] = left.get(above, limit) - 1
        if left[above] < 0:
            refused.add(name)
    return refused
