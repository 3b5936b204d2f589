"""Shares over hosts: neither hosts with new pages nor hosts with due revisits starve, however many
there are of the other kind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

from crawlproj.database.connection import Database
from crawlproj.frontier.base import Batch, CrawlSpec, Lane, NewUrl, Outcome, State, Want
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.revisit.shares import lease_limits

REVISITED = 10_000
FRESH = 100
LEASES = 50
WINDOW = 50
START = datetime(2026, 3, 1, tzinfo=UTC)
NUMBERS = count(1)


class Clock:
    now = START

    def __call__(self) -> datetime:
        return self.now


def url(host: str, page: int) -> NewUrl:
    return NewUrl(next(NUMBERS), f"http://{host}/{page}", host, depth=1)


def fill(frontier: PostgresFrontier) -> None:
    """10,000 hosts with one due page each, 100 hosts with new pages only."""
    old = [f"old{n}.test" for n in range(REVISITED)]
    new = [f"new{n}.test" for n in range(FRESH)]
    frontier.add(
        [url(host, 0) for host in old] + [url(host, page) for host in new for page in range(60)]
    )
    frontier.put_addresses({host: f"10.0.{n // 250}.{n % 250}" for n, host in enumerate(old + new)})
    frontier.db.run_script("update crawlproj.url set state = 'waiting', lane = 2, rank = 1, next_visit "
                       "= to_timestamp(1), visit = 1"
                       " where canonical like 'http://old%'")  # fmt: skip
    frontier.db.run_script("update crawlproj.crawl_host c set ready = null, revisit = 1 from "
                       "crawlproj.host h"
                       " where h.id = c.host and h.name like 'old%'")  # fmt: skip


def slots(frontier: PostgresFrontier, clock: Clock, turns: int) -> Iterator[str]:
    """What a worker with 50 leases fetches, one page of each server a turn."""
    kinds: dict[int, str] = {}
    wants: dict[int, Want] = {}
    for _ in range(turns):
        clock.now += timedelta(seconds=1)
        room, ranked = lease_limits(frontier.spec.shares, LEASES, list(kinds.values()))
        for lease in frontier.lease("worker", room, ranked):
            kinds[lease.server] = lease.kind
            wants[lease.server] = Want(lease.hosts[0].name, lease.server, lease.epoch, 1)
        tickets = frontier.due_tickets(list(wants.values()))
        yield from ("revisit" if ticket.lane is Lane.REVISIT else "new" for ticket in tickets)
        later = clock.now + timedelta(days=9)
        ends = [
            Outcome(t.id, t.visit, t.server, t.epoch, State.WAITING, clock.now, next_visit=later)
            for t in tickets
        ]
        frontier.commit(Batch(ends), "worker")
        empty = wants.keys() - {
            ticket.server for ticket in frontier.due_tickets(list(wants.values()))
        }
        frontier.release_servers("worker", sorted(empty))
        for server in empty:
            del kinds[server], wants[server]
        frontier.renew_leases("worker", sorted(wants))


def test_both_kinds_of_hosts_get_their_share_of_every_window(database: Database) -> None:
    clock = Clock()
    frontier = PostgresFrontier(database, CrawlSpec("shares"), clock)
    frontier.open()
    fill(frontier)
    window: deque[str] = deque(maxlen=WINDOW)
    seen = 0
    for kind in slots(frontier, clock, 60):
        window.append(kind)
        seen += 1
        if len(window) == WINDOW:
            for name in ("new", "revisit"):
                assert window.count(name) >= frontier.spec.shares[name] * WINDOW - 2, (
                    f"{name} starves after {seen} slots"
                )
    assert seen > 40 * LEASES * 0.9
