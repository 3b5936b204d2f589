"""What is left to do in a crawl, found out without looking at all of its hosts."""

from __future__ import annotations

from datetime import datetime
from math import inf

from crawlproj.database.connection import Database
from crawlproj.frontier.base import MAX_READY, Outlook


def read_outlook(db: Database, crawl: int, worker: str, now: datetime, spent: bool) -> Outlook:
    """As `Frontier.outlook`. Hosts that rest are looked at one by one only if there is no other."""
    place = {"crawl": crawl, "now": now, "worker": worker, "spent": spent}
    ready = dict(db.fetch_rows("outlook_ready", **place))
    soonest: datetime | None = min(ready.values(), default=None)
    if (
        (soonest is None or soonest > now)
        and len(ready) >= MAX_READY
        and db.fetch_value("outlook_able", **place)
    ):
        soonest = now
    elif soonest is None or soonest > now:
        free = db.fetch_value("outlook_retry", crawl=crawl, now=now, worker=worker)
        soonest = db.fetch_value("outlook_later", latest=inf if free is None else free, **place)
    elsewhere = db.fetch_value("outlook_elsewhere", **place)
    return Outlook(
        min(len(ready), MAX_READY),
        soonest,
        db.fetch_value("outlook_visit", crawl=crawl),
        leased_elsewhere=elsewhere,
        spent=spent,
    )
