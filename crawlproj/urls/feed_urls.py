"""Addresses that are those of feeds, as far as an address can tell."""

from __future__ import annotations

import re
from typing import Final

from crawlproj.urls.canonical import host_of
from crawlproj.urls.domains import registered_domain

_SERVICE: Final = re.compile(
    r"https?://(?:feeds?\.|rss\.|feeds\d\.|[a-z0-9-]{1,40}\.)?"
    r"(?:feedburner|feedpress|feedblitz|feedity|rss)\.(?:com|me|app|net|io)/."
)
_HOST: Final = re.compile(r"https?://(?:feeds?|rss|atom)\d?\.")
_PATH: Final = re.compile(
    r"[/._-](?:rss|atom|rdf|feeds?)(?:\.(?:xml|rdf|json|php|aspx?))?/?(?:\?[^#]*)?$", re.I
)


def looks_like_feed(url: str, page: str) -> bool:
    """Whether a link to another host, found on `page`, may be a feed of that page's site: it has
    the address of a feed, at a service for feeds or on another host of the site.
    """
    if _SERVICE.match(url):
        return True
    if not (_HOST.match(url) or _PATH.search(url)):
        return False
    return registered_domain(host_of(url)) == registered_domain(host_of(page))
