"""The figures of `scrapy status --hosts`: what a crawl knows of each of its hosts.

Sorted and limited in SQL. Nothing is stored per host and state, so the URLs are counted: all of
them once for an order by states, else only those of the hosts that are shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from crawlproj.config import Config
from crawlproj.database.arrays import array_literal
from crawlproj.database.queries import Queries
from crawlproj.frontier.base import RobotsRow, State
from crawlproj.reports.facts import capped_crawl_delay_s, kept_delay_s

STORED_ORDERS = ("name", "pages", "bytes", "failures", "next_allowed")
"""Orders by what is stored with a host."""
COUNTED_ORDERS = (
    "known",
    *(state.value for state in State),
    "fetched",
    "documents",
    "due_now",
    "next_due",
    "response_ms",
)
"""Orders for which all URLs of a crawl are counted."""
ORDERS = (*STORED_ORDERS, *COUNTED_ORDERS)
DEFAULT_ORDER = "pages"


class _HostRow(NamedTuple):
    """The columns of query `status_by_host`."""

    name: str
    states: dict[str, int]
    fetched: int
    documents: int
    due_now: int
    next_due: datetime | None
    response_ms: float | None
    pages: int
    bytes: int
    failures: int
    next_allowed: datetime | None
    reason: str
    server: str | None
    leased: bool


def host_figures(
    db: Queries, config: Config, crawl: str, now: datetime, *, order: str, limit: int
) -> dict[str, dict[str, Any]]:
    """The figures of the first `limit` hosts of a crawl in this order, by name: names from A to Z,
    times from the soonest on, numbers from the largest down.
    """
    hosts = None
    if order in STORED_ORDERS:
        found = db.fetch_rows("status_first_hosts", crawl=crawl, sort=order, count=limit)
        hosts = array_literal(host for (host,) in found)
    rows = db.fetch_rows(
        "status_by_host", crawl=crawl, now=now, hosts=hosts, sort=order, count=limit
    )
    known = [_HostRow(*row) for row in rows]
    robots_rows = _robots_by_host(db, [host.name for host in known])
    kept_s = kept_delay_s(db, crawl, config)
    figures = {}
    for host in known:
        delay_s = max(kept_s, capped_crawl_delay_s(robots_rows[host.name], config))
        figures[host.name] = _figures(host, delay_s)
    return figures


def _robots_by_host(db: Queries, names: Sequence[str]) -> dict[str, list[RobotsRow]]:
    found: dict[str, list[RobotsRow]] = defaultdict(list)
    for columns in db.fetch_rows("status_host_robots", hosts=list(names)):
        row = RobotsRow(*columns)
        found[row.host].append(row)
    return found


def _figures(host: _HostRow, delay_s: float) -> dict[str, Any]:
    states = {state.value: host.states.get(state.value, 0) for state in State}
    response_ms = None
    if host.response_ms is not None:
        response_ms = round(host.response_ms, 1)
    return {
        "urls": {
            "known": sum(states.values()),
            **states,
            "fetched": host.fetched,
            "documents": host.documents,
        },
        "due_now": host.due_now,
        "next_due": host.next_due,
        "next_allowed": host.next_allowed,
        "reason": host.reason,
        "delay_s": delay_s,
        "pages": host.pages,
        "bytes": host.bytes,
        "response_ms": response_ms,
        "failures": host.failures,
        "server": host.server,
        "leased": host.leased,
    }
