"""What is left to do in a crawl, found out without looking at all of its hosts."""

from __future__ import annotations

from datetime import datetime
from math import inf

from crawlproj.database.connection import Database
from crawlproj.frontier.base import MAX_READY, Outlook


def read_outlook(db: Database, crawl: int, worker: str, now: datetime, spent: bool) -> Outlook:
    """The answer of `Frontier.outlook`. Hosts that rest are looked at one by one only if no other
    host is ready.
    """
    args = {"crawl": crawl, "now": now, "worker": worker, "spent": spent}
    ready: dict[int, datetime] = dict(db.fetch_rows("outlook_ready", **args))
    soonest = min(ready.values(), default=None)
    if soonest is None or soonest > now:
        if len(ready) >= MAX_READY and db.fetch_value("outlook_able", **args):
            soonest = now
        else:
            latest = db.fetch_value("outlook_retry", crawl=crawl, now=now, worker=worker)
            if latest is None:
                latest = inf
            soonest = db.fetch_value("outlook_later", latest=latest, **args)
    return Outlook(
        ready=min(len(ready), MAX_READY),
        soonest=soonest,
        next_visit=db.fetch_value("outlook_visit", crawl=crawl),
        leased_elsewhere=db.fetch_value("outlook_elsewhere", **args),
        spent=spent,
    )
