"""A worker without a network, for measurements.

It leases, takes URLs, and ends their visits as if it had read a page, with links old and new.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b

from crawlproj.frontier.base import (
    Batch,
    Committed,
    Content,
    Frontier,
    Lease,
    Links,
    NewUrl,
    Outcome,
    Pause,
    State,
    Ticket,
    Want,
)
from crawlproj.frontier.seen import depth_score
from crawlproj.urls.canonical import origin_of, url_key

ENDS = (*[State.WAITING] * 17, State.RETRY, State.GONE, State.MOVED)
DUE = {
    State.WAITING: timedelta(days=7),
    State.RETRY: timedelta(minutes=5),
    State.GONE: timedelta(days=14),
}


@dataclass(slots=True)
class Round:
    """The worker and what it holds.

    `turn` is what the database thread does all the time: ends of visits with their links in one
    commit; `refill` gets new URLs for the hosts.
    """

    frontier: Frontier
    worker: str = "round"
    links: int = 8
    fresh: int = 2
    """URLs per page that nobody knows yet."""
    seed: int = 1
    chance: random.Random = field(init=False)
    leases: dict[int, Lease] = field(default_factory=dict)
    tickets: list[Ticket] = field(default_factory=list)
    pages: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def lease(self, servers: int, unprepared: int | None = 4) -> list[Lease]:
        found = self.frontier.lease(self.worker, servers, unprepared=unprepared)
        self.leases |= {lease.server: lease for lease in found}
        return found

    def wants(self, count: int) -> list[Want]:
        holding: dict[str, set[int]] = {}
        for ticket in self.tickets:
            holding.setdefault(ticket.host, set()).add(ticket.id)
        held = [(host.name, lease) for lease in self.leases.values() for host in lease.hosts]
        return [
            Want(name, x.server, x.epoch, count=count, holding=frozenset(holding.get(name, ())))
            for name, x in held
        ]

    def refill(self, count: int = 8) -> list[Ticket]:
        found = self.frontier.due_tickets(self.wants(count))
        self.tickets += found
        return found

    def release(self) -> None:
        self.frontier.release_servers(self.worker, list(self.leases))
        self.leases.clear()
        self.tickets.clear()

    def turn(self, pages: int, now: datetime) -> Committed:
        """End so many visits, or all that are held."""
        taken = self.tickets[:pages]
        self.tickets = self.tickets[pages:]
        outcomes = [self._outcome(ticket, now) for ticket in taken]
        clocks = {ticket.host: Pause(now + timedelta(seconds=2)) for ticket in taken}
        rests = {ticket.server: Pause(now) for ticket in taken}
        self.pages += len(taken)
        return self.frontier.commit(
            Batch(outcomes, self._urls(taken), (), clocks=clocks, server_clocks=rests), self.worker
        )

    def _outcome(self, ticket: Ticket, now: datetime) -> Outcome:
        state = self.chance.choice(ENDS)
        due = now + DUE[state] * self.chance.uniform(0.8, 1.2) if state in DUE else None
        if state is not State.WAITING:
            return Outcome(
                ticket.id,
                ticket.visit,
                ticket.server,
                epoch=ticket.epoch,
                state=state,
                at=now,
                status=503,
                next_visit=due,
            )
        body, block = (
            blake2b(f"{kind} {ticket.id} {ticket.visit}".encode(), digest_size=16).digest()
            for kind in ("body", "block")
        )
        known = tuple(self.chance.choice((ticket.id, ticket.id ^ n)) for n in range(self.links))
        links = Links(
            known,
            ("a",) * self.links,
            ("Read more",) * self.links,
            other=("https://elsewhere.example/",),
            other_kinds=("img",),
            other_texts=("",),
        )
        content = Content(
            body,
            block,
            "A title of a page",
            content_type="text/html",
            charset="utf-8",
            language="en",
            length=20_000,
            links=links,
        )
        return Outcome(
            ticket.id,
            ticket.visit,
            ticket.server,
            epoch=ticket.epoch,
            state=state,
            at=now,
            status=200,
            next_visit=due,
            interval_s=604_800.0,
            changed=True,
            etag='"abc"',
            elapsed_s=0.2,
            received=20_000,
            depth=ticket.depth,
            content=content,
        )

    def _urls(self, tickets: Sequence[Ticket]) -> list[NewUrl]:
        """URLs found on the pages: new ones, and for each page one known, its host's first page."""
        crawl = self.frontier.spec.name
        found = []
        for ticket in tickets:
            root = origin_of(ticket.url)
            depth = ticket.depth + 1
            paths = [
                "/",
                *(
                    f"/found/{ticket.id & 0xFFFFFFFF:x}/{ticket.visit}-{n}.html"
                    for n in range(self.fresh)
                ),
            ]
            urls = [root + path for path in paths]
            found += [
                NewUrl(
                    url_key(crawl, url),
                    url,
                    ticket.host,
                    depth=depth,
                    score=depth_score(depth),
                    parent=ticket.id,
                )
                for url in urls
            ]
        return found
