"""What a visit means for its URL: one pure decision from Page to Outcome (DESIGN: States of
a URL).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from crawlproj.frontier.base import Outcome, State, Ticket
from crawlproj.http.status import (
    FORBIDDEN,
    GONE,
    REDIRECTS,
    RETRYABLE,
    TEMPORARY_REDIRECTS,
    parse_retry_after,
)
from crawlproj.items import Page
from crawlproj.revisit.base import RevisitPolicy, Visit
from crawlproj.urls.canonical import join_href

NEVER_AGAIN = frozenset({"too big", "scheme", "bad url", "decompression"})
"""Reasons without an answer that another try would only repeat."""
REFUSALS = frozenset({"robots", "guard", "forgotten"})
LONGEST_RETRY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class OutcomeRules:
    """The settings that decisions depend on."""

    policy: RevisitPolicy
    retries: int
    retry_delay: timedelta
    gone_limit: int
    gone_interval: timedelta

    def decide_outcome(self, page: Page, ticket: Ticket) -> Outcome:
        status = page.status
        if 200 <= status < 300 or (status == 304 and ticket.block_digest is not None):
            return self._fetched_outcome(page, ticket)
        if (
            status in REDIRECTS
            and (where := page.headers.get("location"))
            and (target := join_href(page.url, where))
        ):
            again = page.at + self.gone_interval if status in TEMPORARY_REDIRECTS else None
            return _outcome(
                page,
                ticket,
                State.MOVED,
                why=f"redirect {status}",
                moved_to=target,
                next_visit=again,
            )
        if status in FORBIDDEN:
            return _outcome(page, ticket, State.FORBIDDEN, why=f"status {status}")
        if status in GONE:
            return self._gone_outcome(page, ticket)
        if status in RETRYABLE or status == 304:
            return self.retry_outcome(page, ticket, f"status {status}")
        if status:
            return _outcome(page, ticket, State.DEAD, why=f"status {status}")
        kind = page.reason.partition(":")[0]
        if kind in REFUSALS:
            return _outcome(page, ticket, State.FORBIDDEN, why=page.reason)
        if kind in NEVER_AGAIN:
            return _outcome(page, ticket, State.DEAD, why=page.reason)
        return self.retry_outcome(page, ticket, page.reason or "no answer")

    def retry_outcome(self, page: Page, ticket: Ticket, why: str) -> Outcome:
        """Try again later, each time twice as late, a few times."""
        tries = 1 if ticket.unread else ticket.tries + 1
        if tries > self.retries:
            return _outcome(page, ticket, State.DEAD, why=why, tries=tries)
        pause = min(self.retry_delay * 2 ** min(tries - 1, 20), LONGEST_RETRY)
        pause = max(
            pause,
            min(
                timedelta(seconds=parse_retry_after(page.headers.get("retry-after"), page.at) or 0),
                LONGEST_RETRY,
            ),
        )
        return _outcome(page, ticket, State.RETRY, why=why, tries=tries, next_visit=page.at + pause)

    def _fetched_outcome(self, page: Page, ticket: Ticket) -> Outcome:
        read_before = ticket.interval_s is not None and ticket.block_digest is not None
        interval = timedelta(seconds=ticket.interval_s or 0) if read_before else None
        pause = self.policy.next_interval(
            Visit(page.at, page.changed, interval, last_change=ticket.last_change)
        )
        expires = page.directives.expires or (ticket.expires if page.content is None else None)
        if expires is not None and expires <= page.at:
            return _outcome(
                page,
                ticket,
                State.RETIRED,
                why="unavailable_after",
                changed=page.changed,
                expires=expires,
            )
        # One look when its time is over: it may have been given more.
        next_visit = page.at + pause if expires is None else min(page.at + pause, expires)
        tries = ((ticket.tries if ticket.unread else 0) + 1) if page.unread else 0
        return _outcome(
            page,
            ticket,
            State.WAITING,
            why=page.error,
            tries=tries,
            next_visit=next_visit,
            interval_s=pause.total_seconds(),
            changed=page.changed,
            expires=expires,
        )

    def _gone_outcome(self, page: Page, ticket: Ticket) -> Outcome:
        times = ticket.tries + 1 if ticket.state is State.GONE else 1
        why = f"status {page.status}"
        if times >= self.gone_limit:
            return _outcome(page, ticket, State.RETIRED, why=why, tries=times)
        pause = self.gone_interval * 2 ** min(times - 1, 20)
        return _outcome(page, ticket, State.GONE, why=why, tries=times, next_visit=page.at + pause)


def _outcome(
    page: Page,
    ticket: Ticket,
    state: State,
    why: str,
    *,
    tries: int = 0,
    next_visit: datetime | None = None,
    interval_s: float | None = None,
    changed: bool = False,
    moved_to: str | None = None,
    expires: datetime | None = None,
) -> Outcome:
    return Outcome(
        id=ticket.id,
        visit=ticket.visit,
        server=ticket.server,
        epoch=ticket.epoch,
        state=state,
        at=page.at,
        status=page.status,
        why=why[:500],
        next_visit=next_visit,
        tries=tries,
        interval_s=interval_s,
        changed=changed,
        moved_to=moved_to,
        expires=expires,
        etag=page.headers.get("etag"),
        modified=page.headers.get("last-modified"),
        elapsed_s=page.elapsed_s,
        received=len(page.body),
        depth=ticket.depth,
        content=page.content,
        receipt=page.receipt,
    )
