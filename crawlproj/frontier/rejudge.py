"""The Postgres frontier judges URLs again when a robots.txt has changed: in batches, since its
rules are Python, not SQL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database, Transaction
from crawlproj.urls.canonical import host_of

BATCH_SIZE = 10_000
LOWEST_ID = -(2**63)


def revive_allowed(
    db: Database,
    origin: str,
    allows: Callable[[str], bool],
    on_queued: Callable[[Transaction, int, list[int]], None],
) -> dict[int, int]:
    """Crawl -> how many of its URLs are new again. `on_queued` is called with each crawl and its
    hosts that have more to offer, inside the transaction that queued it.
    """
    revived: dict[int, int] = defaultdict(int)
    for ids in _allowed_ids(db, f"{origin}/", allows):
        with db.transaction() as tx:
            hosts: dict[int, set[int]] = defaultdict(set)
            for crawl, host_id in tx.fetch_rows("allow_urls", ids=array_literal(ids)):
                hosts[crawl].add(host_id)
                revived[crawl] += 1
            for crawl in sorted(hosts):
                on_queued(tx, crawl, sorted(hosts[crawl]))
    return revived


def _allowed_ids(db: Database, root: str, allows: Callable[[str], bool]) -> Iterator[list[int]]:
    """Ids of forbidden URLs below the root that are allowed now, batch by batch."""
    first = LOWEST_ID
    name = host_of(root)
    while True:
        rows = db.fetch_rows("forbidden_urls", host=name, root=root, first=first, count=BATCH_SIZE)
        allowed = [id_ for id_, url in rows if allows(url)]
        if allowed:
            yield allowed
        if len(rows) < BATCH_SIZE:
            return
        last_id, _ = rows[-1]
        first = last_id + 1
