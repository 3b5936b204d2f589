"""Quotas of pages: how many URLs that were never read may still be handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlproj.frontier.base import CrawlSpec, Lane, Ticket, Want

NEVER_READ = frozenset({Lane.NEW, Lane.BACKFILL})


class PageQuota:
    """What the quotas of a crawl and its hosts leave; less with each ticket that is let through.
    Tickets that a worker holds count too, since they may yet become pages.
    """

    def __init__(
        self, spec: CrawlSpec, spent: bool, pages: int, host_pages: Mapping[str, int]
    ) -> None:
        """`pages` and `host_pages` are what the crawl and its hosts have given so far."""
        self._spent = spent
        self._total: int | None = None
        self._hosts: dict[str, int] = {}
        if spec.pages:
            self._total = spec.pages - pages
        if spec.host_pages:
            self._hosts = {host: spec.host_pages - count for host, count in host_pages.items()}
        self._full = {host for host, left in self._hosts.items() if left <= 0}

    def admit_tickets(
        self, tickets: Sequence[Ticket], wants: Sequence[Want], held: int | None
    ) -> list[Ticket]:
        """The tickets that the quotas allow; the others stay queued."""
        if not self._spent and self._total is None and not self._hosts:
            return list(tickets)
        if held is None:
            held = sum(len(want.holding) for want in wants)
        if self._total is not None:
            self._total -= held
        for want in wants:
            if want.host in self._hosts:
                self._hosts[want.host] -= len(want.holding)
        return [ticket for ticket in tickets if self._admits(ticket)]

    def _admits(self, ticket: Ticket) -> bool:
        is_retry = ticket.lane is Lane.RETRY and ticket.block_digest is None
        if ticket.lane not in NEVER_READ and not is_retry:
            return True
        if self._spent or ticket.host in self._full:
            # Leases and outlook offer retries also when a quota is used up, so a worker would wait
            # for them without end.
            return is_retry
        if self._total is not None and self._total <= 0:
            return False
        if self._hosts.get(ticket.host, 1) <= 0:
            return False
        if self._total is not None:
            self._total -= 1
        if ticket.host in self._hosts:
            self._hosts[ticket.host] -= 1
        return True
