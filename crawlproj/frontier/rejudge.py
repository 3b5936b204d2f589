"""How the Postgres frontier judges URLs again when a robots.txt has changed: batch by batch, the
rules themselves being Python.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.urls.canonical import host_of

AT_ONCE = 10_000


def rejudge_forbidden(
    db: Database,
    origin: str,
    allows: Callable[[str], bool],
    queued: Callable[[Transaction, int, list[int]], None],
) -> dict[int, int]:
    """Crawl -> how many of its URLs are new again. `queued` is called with each crawl and its hosts
    that have more to offer.
    """
    revived: dict[int, int] = defaultdict(int)
    for ids in _allowed(db, f"{origin}/", allows):
        with db.transaction() as tx:
            hosts: dict[int, set[int]] = defaultdict(set)
            for crawl, host_id in tx.fetch_rows("allow_urls", ids=array_literal(ids)):
                hosts[crawl].add(host_id)
                revived[crawl] += 1
            for crawl in sorted(hosts):
                queued(tx, crawl, sorted(hosts[crawl]))
    return revived


def _allowed(db: Database, root: str, allows: Callable[[str], bool]) -> Iterator[list[int]]:
    """Ids of forbidden URLs below the root that are allowed now, some at a time."""
    first = -(2**63)
    name = host_of(root)
    while rows := db.fetch_rows("forbidden_urls", host=name, root=root, first=first, count=AT_ONCE):
        if ids := [key for key, url in rows if allows(url)]:
            yield ids
        if len(rows) < AT_ONCE:
            return
        first = rows[-1][0] + 1
