"""Domains with endless host names (wildcard DNS): which new hosts are let in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from crawlproj.frontier.base import Lane, LeftOutHost, NewUrl
from crawlproj.urls.domains import registered_domain
from crawlproj.urls.scope import is_below


def is_found(url: NewUrl) -> bool:
    """Whether a URL was found by a link, not given by a person."""
    return url.depth > 0 and url.lane is not Lane.URGENT


def limited_hosts(names: set[str], open_domains: frozenset[str]) -> set[str]:
    """The names that are not below a domain which the crawl was told to take as a whole."""
    if not open_domains:
        return names
    return {name for name in names if not is_below(name, open_domains)}


def left_out_hosts(urls: Iterable[NewUrl], names: set[str]) -> Iterator[LeftOutHost]:
    """Those of the names that are too many, with their first URL of these."""
    noted: set[str] = set()
    for url in urls:
        if url.host in names and url.host not in noted and is_found(url):
            noted.add(url.host)
            yield LeftOutHost(url.host, url.url, "domain hosts")


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
