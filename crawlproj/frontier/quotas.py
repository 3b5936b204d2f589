"""What the quotas leave room for: how many pages that were never read may still be handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlproj.frontier.base import CrawlSpec, Lane, Ticket, Want

NEVER_READ = frozenset({Lane.NEW, Lane.BACKFILL})


class PageQuota:
    """Gets smaller with each page that is let through. Whatever is held takes a place, since it may
    yet become a page.
    """

    def __init__(
        self, spec: CrawlSpec, spent: bool, pages: int, host_pages: Mapping[str, int]
    ) -> None:
        """`pages` and `host_pages` are what the crawl and its hosts have given so far."""
        self._spent = spent
        self._total = spec.pages - pages if spec.pages else None
        self._hosts = (
            {host: spec.host_pages - count for host, count in host_pages.items()}
            if spec.host_pages
            else {}
        )
        self._full = {host for host, left in self._hosts.items() if left <= 0}

    def admit_tickets(
        self, tickets: Sequence[Ticket], wants: Sequence[Want], held: int | None
    ) -> list[Ticket]:
        """The tickets without those that there is no room for, which stay where they are."""
        if self._total is not None:
            self._total -= sum(len(want.holding) for want in wants) if held is None else held
        for want in wants:
            if want.host in self._hosts:
                self._hosts[want.host] -= len(want.holding)
        return [ticket for ticket in tickets if self._admits(ticket)]

    def _admits(self, ticket: Ticket) -> bool:
        again = ticket.lane is Lane.RETRY and ticket.block_digest is None
        if ticket.lane not in NEVER_READ and not again:
            return True
        if self._spent or ticket.host in self._full:
            # Leases and outlook offer retries also when a quota is used up, so a worker would wait
            # for them without end.
            return again
        if (self._total is not None and self._total <= 0) or self._hosts.get(ticket.host, 1) <= 0:
            return False
        if self._total is not None:
            self._total -= 1
        if ticket.host in self._hosts:
            self._hosts[ticket.host] -= 1
        return True
