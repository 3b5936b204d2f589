"""What a visit means for its URL: one pure decision from Page to Outcome.

Which status leads to which state, when a failure is tried again, when a page is visited again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from crawlproj.config import Config
from crawlproj.frontier.base import Found, Outcome, PageChange, State, Ticket
from crawlproj.http.status import (
    FORBIDDEN,
    GONE,
    REDIRECTS,
    RETRYABLE,
    TEMPORARY_REDIRECTS,
    parse_retry_after,
)
from crawlproj.items import ChangeVerdict, Page
from crawlproj.revisit.base import (
    NO_HINTS,
    NO_NUMBERS,
    Hints,
    Numbers,
    RevisitPolicy,
    Visit,
)
from crawlproj.revisit.policies import choose_policy
from crawlproj.revisit.rates import is_known, learn, make_prior
from crawlproj.scheduling.change_watch import forget_walls
from crawlproj.scheduling.hub_trials import HubTrials
from crawlproj.scheduling.server_hints import (
    met_hints,
    read_hints,
    short_date,
    short_tag,
    trusted_change,
)
from crawlproj.scheduling.source_notes import note_source
from crawlproj.scheduling.sources import (
    PAUSE_PART,
    SOURCE_KINDS,
    brought_articles,
    has_stopped,
    hub_pause,
    is_born_source,
    is_broken_list,
    is_host_root,
    is_hub,
    is_seed,
    is_source,
    lasts,
    leads_on,
    was_hub,
    was_read,
)
from crawlproj.urls.canonical import join_href

NEVER_AGAIN = frozenset({"too big", "scheme", "bad url", "decompression", "request"})
"""Reasons without a response that another try would only repeat."""
SIZES = frozenset({"too big", "decompression"})
"""Those of a body that may be another one some day."""
REFUSALS = frozenset({"robots", "guard", "port", "forgotten"})
LONGEST_RETRY = timedelta(days=1)
LONGEST_REST = 8
"""So many times at most the rest of what is retired is doubled."""
SOURCE_RETRY = timedelta(hours=6)
"""A source that fails is tried again after so long at most, for ever."""
SOURCE_ABSENT = timedelta(days=1)
"""So is one that is gone or refused."""
RARE_RETRY = timedelta(days=7)
"""So are seeds that were never read, and front pages that are no seeds: there may be very many."""
SOON_PART = 12
"""What can't be the page is asked again after this part of REVISIT_MIN."""
SOONEST = timedelta(seconds=1)
MAX_TRIES = 1_000
"""They are not counted further."""
FALSE_CHANGE = 0.02
"""So often a page is taken for changed and is not."""


@dataclass(frozen=True, slots=True)
class OutcomeRules:
    """The settings that decisions depend on. `revisit_filter`: kinds of pages that are visited
    again; None: all.
    """

    policy: RevisitPolicy
    retries: int
    retry_delay: timedelta
    gone_limit: int
    gone_interval: timedelta
    revisit_filter: frozenset[str] | None = None
    soon: timedelta = timedelta(hours=1)
    """After what can't be the page it is asked again; a source after its own first interval."""
    source_soon: timedelta = timedelta(minutes=15)
    hub_longest: timedelta = timedelta(hours=12)
    """A page with new links more often than that is a hub."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """What a visit to a page of each kind is worth; others: 1."""
    trials: HubTrials | None = None
    """Which pages are looked at again soon, as they may be hubs; None: none are."""

    @classmethod
    def from_config(
        cls, config: Config, policy: RevisitPolicy | None = None, steers: bool = True
    ) -> Self:
        """`policy`: the one that is shared with others; made from the settings if there is none.
        `steers`: visits move its price; not those of the past.
        """
        return cls(
            policy or choose_policy(config.revisit, steers),
            config.retries,
            config.retry_delay,
            gone_limit=config.gone_limit,
            gone_interval=config.bounds.interval,
            soon=max(config.bounds.shortest / SOON_PART, SOONEST),
            source_soon=config.source_bounds.interval,
            hub_longest=config.bounds.shortest,
            weights=config.revisit_weights,
            revisit_filter=config.revisit_filter,
        )

    def decide_outcome(self, page: Page, ticket: Ticket) -> Outcome:
        """Say what state the URL is in now, and when it is visited again."""
        outcome = self._decide_state(page, ticket)
        outcome = replace(outcome, source_note=note_source(page, ticket, outcome))
        if outcome.next_visit is not None and not self._is_revisited(outcome, page, ticket):
            return replace(outcome, next_visit=None)
        return outcome

    def _is_revisited(self, outcome: Outcome, page: Page, ticket: Ticket) -> bool:
        """Only pages of the wanted kinds are visited again, or those whose document is to be read
        at another try; an ordinary request of a spider is made once, unless it leads to new
        pages.
        """
        if outcome.state is not State.WAITING or outcome.status == 304:
            return True
        if ticket.request is not None:
            return page.kind in SOURCE_KINDS and _is_repeatable(ticket)
        wanted = self.revisit_filter is None or page.kind in self.revisit_filter
        return wanted or 0 < outcome.tries <= self.retries

    def _decide_state(self, page: Page, ticket: Ticket) -> Outcome:
        status = page.status
        if ticket.found is Found.PROBE and status and status not in RETRYABLE:
            return _outcome(page, ticket, State.IGNORED, why="probe")
        if page.verdict is not None and page.verdict.set_aside and 200 <= status < 300:
            return self._set_aside_outcome(page, ticket, page.verdict)
        if 200 <= status < 300 or (status == 304 and _was_conditional(ticket)):
            return self._fetched_outcome(page, ticket)
        target = _redirect_target(page)
        if target is not None:
            again = None
            if status in TEMPORARY_REDIRECTS:
                pause = self.gone_interval
                if lasts(page, ticket):
                    pause = min(pause, SOURCE_RETRY)
                again = page.at + pause
            why = f"redirect {status}"
            return _outcome(page, ticket, State.MOVED, why=why, moved_to=target, next_visit=again)
        if status in GONE:
            return self._gone_outcome(page, ticket, f"status {status}")
        if status in RETRYABLE or status == 304:
            return self.retry_outcome(page, ticket, f"status {status}")
        if status and lasts(page, ticket) and was_read(ticket):
            return self._refused_outcome(page, ticket, f"status {status}")
        if status in FORBIDDEN:
            return _outcome(page, ticket, State.FORBIDDEN, why=f"status {status}")
        if status:
            return _outcome(page, ticket, State.DEAD, why=f"status {status}")
        kind = page.reason.partition(":")[0]
        if kind in REFUSALS:
            return _outcome(page, ticket, State.FORBIDDEN, why=page.reason)
        if kind in NEVER_AGAIN:
            if kind in SIZES and lasts(page, ticket) and was_read(ticket):
                return self._refused_outcome(page, ticket, page.reason)
            return _outcome(page, ticket, State.DEAD, why=page.reason)
        return self.retry_outcome(page, ticket, page.reason or "no answer")

    def retry_outcome(self, page: Page, ticket: Ticket, why: str) -> Outcome:
        """Try again later, each time twice as late: a few times, or a source for ever."""
        if page.status == 304 and ticket.unread and ticket.tries < self.retries:
            # Nothing was told of it: it is still to be read.
            tries = ticket.tries + 1
            again = page.at + self._retry_pause(tries)
            return _outcome(page, ticket, State.WAITING, why, tries=tries, next_visit=again)
        tries = 1
        if not ticket.unread and ticket.state is not State.NEW:
            tries = min(ticket.tries + 1, MAX_TRIES)
        pause = min(self._retry_pause(tries), LONGEST_RETRY)
        if tries > self.retries:
            if not lasts(page, ticket):
                return _outcome(page, ticket, State.DEAD, why=why, tries=tries)
            # An outage: a run that is to end does not wait for that.
            pause = min(max(pause, self.source_soon), _longest_pause(ticket, SOURCE_RETRY))
        demanded_s = parse_retry_after(page.headers.get("retry-after"), page.at) or 0
        pause = max(pause, min(timedelta(seconds=demanded_s), LONGEST_RETRY))
        return _outcome(page, ticket, State.RETRY, why=why, tries=tries, next_visit=page.at + pause)

    def _retry_pause(self, tries: int) -> timedelta:
        """Twice as long each time."""
        return self.retry_delay * _doubled(tries)

    def _refused_outcome(self, page: Page, ticket: Ticket, why: str) -> Outcome:
        """A source answers, but is not given: it is asked again, rarer and rarer, for ever."""
        tries = 1
        if ticket.state is State.RETRY:
            tries = min(ticket.tries + 1, MAX_TRIES)
        next_visit = page.at + self._absent_pause(tries, ticket)
        return _outcome(page, ticket, State.RETRY, why=why, tries=tries, next_visit=next_visit)

    def _absent_pause(self, times: int, ticket: Ticket) -> timedelta:
        return min(self.source_soon * _doubled(times), _longest_pause(ticket, SOURCE_ABSENT))

    def _fetched_outcome(self, page: Page, ticket: Ticket) -> Outcome:
        visit = self._visit_of(page, ticket)
        look = self._next_look(visit, page, ticket)
        if look is None and self._is_on_trial(ticket) and not visit.source and not ticket.changes:
            # What a vain trial has taught is of its short intervals.
            visit = replace(visit, numbers=NO_NUMBERS)
        plan = self.policy.plan(visit)
        pause = plan.interval
        if look is not None:
            pause = min(pause, look)
        elif visit.source and was_hub(ticket) and not brought_articles(page):
            pause = max(pause, min(hub_pause(ticket, page.at) / PAUSE_PART, self.hub_longest))
        expires = page.directives.expires
        if expires is None and page.content is None:
            expires = ticket.expires
        if expires is not None and expires <= page.at:
            retired = self._retired_outcome(page, ticket, "unavailable_after", tries=1)
            return replace(retired, changed=page.changed, expires=expires)
        # One look when its time is over: it may have been given more.
        next_visit = page.at + pause
        if expires is not None:
            next_visit = min(next_visit, expires)
        tries = 0
        if page.unread:
            tries = 1
            if ticket.unread:
                tries = ticket.tries + 1
        if page.lacked_room:
            next_visit = min(next_visit, page.at + self._retry_pause(tries))
        outcome = _outcome(
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
        numbers = plan.numbers
        return replace(
            outcome,
            source=visit.source,
            rate_a=numbers.rate_a,
            rate_b=numbers.rate_b,
            own_a=numbers.own_a,
            own_b=numbers.own_b,
            saw_page=True,
            page_state=_state_of(page, ticket),
            turns_noindex=page.status == 304 and page.noindex and not ticket.noindex,
            hints=read_hints(page),
            hints_met=met_hints(page, ticket),
        )

    def _next_look(self, visit: Visit, page: Page, ticket: Ticket) -> timedelta | None:
        """When a page on trial is looked at again; None: it is not, or not any more."""
        if self.trials is None:
            return None
        if not visit.source:
            return self.trials.next_look(page, ticket)
        if page.kind in SOURCE_KINDS:
            self.trials.note_source(page, ticket)
        elif self.trials.is_on_trial(ticket):
            self.trials.note_hub(page, ticket)
        return None

    def _is_on_trial(self, ticket: Ticket) -> bool:
        return self.trials is not None and self.trials.is_on_trial(ticket)

    def _set_aside_outcome(self, page: Page, ticket: Ticket, verdict: ChangeVerdict) -> Outcome:
        """What came is not what the page says, nor are its validators. Behind a wall it may be
        there again soon; of its changes nothing was learned, nor whether what was gone or unread
        still is.
        """
        if verdict.set_aside == "soft 404":
            outcome = self._gone_outcome(page, ticket, "soft 404")
            return replace(outcome, etag=None, modified=None, set_aside=True)
        state = State.WAITING
        tries = 0
        if ticket.state is State.GONE or ticket.unread:
            state = ticket.state
            tries = ticket.tries
        outcome = _outcome(
            page,
            ticket,
            state,
            why=verdict.set_aside,
            tries=tries,
            next_visit=page.at + min(self.soon, self.source_soon if is_source(page) else self.soon),
            interval_s=ticket.interval_s,
        )
        return replace(outcome, etag=None, modified=None, set_aside=True, page_state=verdict.state)

    def weight_of(self, page: Page, ticket: Ticket) -> float:
        """What a visit to the page is worth beside others. One that is as it was is not read: then
        it is of the kind that it was.
        """
        kind = page.page_kind or page.kind
        if not page.page_kind and kind in ("", "html"):
            kind = ticket.page_kind
        return self.weights.get(kind, 1.0) * (ticket.importance or 1.0)

    def _visit_of(self, page: Page, ticket: Ticket) -> Visit:
        """The visit, as its policy is told. What is known of a page says nothing of a source, and
        the other way round; but of a page that becomes a hub, or was one, it goes on.
        """
        source = is_source(page) or was_hub(ticket)
        kind = page.page_kind or page.kind
        verdict = page.verdict
        visit = Visit(
            page.at,
            page.changed,
            last_change=ticket.last_change,
            source=source,
            kind=kind,
            host=ticket.host,
            new_links=_new_links(page, ticket, kind, trial=self._is_on_trial(ticket)),
            weight=self.weight_of(page, ticket),
            first=True,
            false_change=FALSE_CHANGE if verdict is not None and verdict.kind else 0.0,
            visits=ticket.reads,
            due=ticket.next_visit,
            page=page,
        )
        if ticket.source != source and ticket.block_digest is not None:
            return visit
        numbers = Numbers(ticket.rate_a, ticket.rate_b, ticket.own_a, ticket.own_b)
        if ticket.block_digest is None:
            return replace(visit, numbers=numbers)
        if self.trials is not None and self._is_on_trial(ticket) and not is_known(numbers):
            numbers = make_prior(self.trials.first.total_seconds())
        interval = None
        if ticket.interval_s is not None:
            interval = timedelta(seconds=ticket.interval_s)
        hints = NO_HINTS
        if page.changed:
            hints = Hints(last_modified=trusted_change(page, ticket))
        visit = replace(
            visit,
            interval=interval,
            last_visit=ticket.last_read,
            numbers=numbers,
            hints=hints,
            first=False,
        )
        if is_born_source(page, ticket) or (source and not was_hub(ticket)):
            return visit
        return replace(visit, source=self._is_hub(visit, page, ticket))

    def _is_hub(self, visit: Visit, page: Page, ticket: Ticket) -> bool:
        """Is the page a hub after this visit?"""
        before = was_hub(ticket)
        if not before and not _brings_articles(page):
            return False
        is_idle = before and not brought_articles(page)
        if is_idle and has_stopped(ticket, page.at, self.hub_longest):
            return False
        learned = learn(visit.numbers, visit, NO_NUMBERS)
        brought = ticket.changes + page.changed
        return is_hub(learned, self.hub_longest, brought=brought, before=before)

    def _gone_outcome(self, page: Page, ticket: Ticket, why: str) -> Outcome:
        times = 1
        if ticket.state in (State.GONE, State.NEW):
            # What is new again after it was retired is looked at once.
            times = min(ticket.tries + 1, MAX_TRIES)
        if lasts(page, ticket):
            next_visit = page.at + self._absent_pause(times, ticket)
            return _outcome(page, ticket, State.GONE, why=why, tries=times, next_visit=next_visit)
        if times >= self.gone_limit:
            return self._retired_outcome(page, ticket, why, tries=times)
        pause = self.gone_interval * _doubled(times)
        return _outcome(page, ticket, State.GONE, why=why, tries=times, next_visit=page.at + pause)

    def _retired_outcome(self, page: Page, ticket: Ticket, why: str, tries: int) -> Outcome:
        """Until its next visit only a new link brings it back; twice as long each time."""
        if ticket.state is State.NEW:
            tries = max(tries, ticket.tries + 1)
        again = page.at + self.gone_interval * 2 ** min(tries, LONGEST_REST)
        return _outcome(page, ticket, State.RETIRED, why=why, tries=tries, next_visit=again)


def _doubled(times: int) -> int:
    """How many times as long a pause is that has been doubled each time but the first."""
    doubled: int = 2 ** min(times - 1, 20)
    return doubled


def _longest_pause(ticket: Ticket, of_sources: timedelta) -> timedelta:
    """After how long a source that can't be read is asked again at the latest."""
    if was_read(ticket) and (is_seed(ticket) or not is_host_root(ticket.url)):
        return of_sources
    return RARE_RETRY


def _is_repeatable(ticket: Ticket) -> bool:
    """May an ordinary request be made again by itself? Not if it sends something, and not one of
    which each is a row of its own.
    """
    request = ticket.request
    if request is None:
        return True
    return request["method"] == "GET" and (ticket.found is Found.SEED or not request["dont_filter"])


def _was_conditional(ticket: Ticket) -> bool:
    """Was the server asked whether a page has changed, so that it may say that it has not? An
    ordinary request of a spider may have validators of its own.
    """
    if ticket.block_digest is None or ticket.unread:
        return False
    return bool(ticket.etag or ticket.modified or ticket.request)


def _redirect_target(page: Page) -> str | None:
    location = page.headers.get("location")
    if page.status in REDIRECTS and location:
        return join_href(page.url, location) or None
    return None


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
        etag=short_tag(page),
        modified=short_date(page),
        elapsed_s=page.elapsed_s,
        received=len(page.body),
        depth=ticket.depth,
        content=page.content,
        receipt=page.receipt,
        source=is_source(page) or was_hub(ticket),
        change=_change_of(page),
    )


def _change_of(page: Page) -> PageChange | None:
    verdict = page.verdict
    if verdict is None or not page.changed or not verdict.kind:
        return None
    return PageChange(verdict.kind, verdict.new_letters, verdict.gone_letters)


def _state_of(page: Page, ticket: Ticket) -> bytes | None:
    """What the next visit is compared with; None keeps what is stored."""
    if page.verdict is not None:
        return page.verdict.state
    is_same = 200 <= page.status < 300 and page.body_digest == ticket.body_digest
    if is_same or page.status == 304:
        return forget_walls(ticket.page_state)
    return None


def _new_links(page: Page, ticket: Ticket, kind: str, *, trial: bool) -> int | None:
    """How many new links a source or a listing had; of a hub, or a page on `trial`, those to
    articles that it has brought. None: nobody has counted.
    """
    if is_broken_list(page, ticket):
        return 0
    if page.verdict is not None:
        if (trial or was_hub(ticket)) and page.verdict.new_articles is not None:
            return brought_articles(page)
        return page.verdict.new_links
    if ticket.page_state is None or not (leads_on(page) or kind == "listing"):
        return None
    return 0  # its bytes are those of the last visit


def _brings_articles(page: Page) -> bool:
    """Has this visit to a page that may be a hub brought new articles, and mostly these, and most
    of them before others did?
    """
    if page.kind != "html" or page.page_kind not in ("listing", "other"):
        return False
    brought = brought_articles(page)
    verdict = page.verdict
    if not brought or verdict is None or verdict.new_articles is None:
        return brought > 0
    return (verdict.new_links or 0) <= 2 * verdict.new_articles <= 4 * brought
