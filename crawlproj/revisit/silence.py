"""Has a source dried up? What it brought, and when, says what would be usual.

A feed that is broken still answers, so nobody notices: it brings nothing, for ever. Here a source
is silent when it has brought nothing for `k` times its usual gap. A newspaper sleeps at night and
on Sundays, so of a source that is known for two weeks only the hours count in which it used to
bring something; and no pause counts that is not clearly longer than all it has made. Of others a
pause must be twice as long, and half as long as the source was seen at work, up to a night.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from crawlproj.formatting import format_count, format_duration

GAPS_KNOWN: Final = 3
"""A source must have been seen at work for so many of its usual gaps."""
UNSURE: Final = 2.0
"""`k` is so much bigger while the hours of a source are not known."""
NIGHT_S: Final = 14 * 3600.0
BACKGROUND: Final = 0.1
"""An hour in which a source has never brought anything counts as much of a usual one."""
RECORD: Final = 1.5
"""A pause must be so much longer than the longest that was seen."""
HISTORY: Final = timedelta(days=28)
LEAST_HISTORY: Final = timedelta(days=14)
LEAST_TIMES: Final = 20
WEEK: Final = timedelta(days=7)
WEEK_HOURS: Final = 168
TRIES: Final = 3
"""So often a source must have failed before its errors count."""
LISTED: Final = 30
"""After so many visits without anything new a source is said to repeat itself."""
JUST_NOW_S: Final = 120.0
FUTURE_S: Final = 86_400.0
REGENERATED_S: Final = 36 * 3600.0
"""Many sitemaps are made once a day: so long they may lack what the front page has."""
ENDED: Final = frozenset({"gone", "retired", "dead", "forbidden"})
LEFT: Final = frozenset({"moved", "ignored"})
"""What is asked no more, and not missed: another URL stands for it, or it is out of the scope."""
FAILING: Final = frozenset({"retry", "gone"})
FORMER: Final = frozenset({"former hub"})
REPLACED: Final = frozenset({"sitemap", "hub"})
"""Kinds of which one ends and another one begins, such as those of a month."""
REPEATING: Final = frozenset({"feed", "news sitemap"})
"""Kinds that are there for what is new."""
ENTRANCES: Final = "front page"
KIND_GROUPS: Final = {
    "feed": "feed",
    "sitemap": "sitemap",
    "news sitemap": "sitemap",
    "sitemap index": "sitemap",
    "front page": ENTRANCES,
    "seed": ENTRANCES,
    "hub": ENTRANCES,
}
"""What a site is expected to list its new pages in, whichever way it does."""


SILENCE_WORDS: Final = "nothing new for"
"""So begins what is said of a silence."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What is known of a source: what its visits brought, and how the last one ended. `gap_s`: the
    usual time between two visits that brought something. `dead_children` of `children`: of a
    sitemap index, sitemaps that were asked, and failed.
    """

    url: str
    kind: str
    site: str
    first_visit: datetime
    last_visit: datetime
    visits: int = 1
    entries: int = 0
    new_links: int = 0
    last_new: datetime | None = None
    gap_s: float | None = None
    newest: datetime | None = None
    state: str = "waiting"
    status: int = 200
    why: str = ""
    tries: int = 0
    children: int = 0
    dead_children: int = 0

    @property
    def was_good(self) -> bool:
        """Has it brought something so regularly that a pause would tell something?"""
        if self.gap_s is None or self.last_new is None or self.kind in FORMER:
            return False
        return self.gap_s > 0 and self.worked_s >= GAPS_KNOWN * self.gap_s

    @property
    def worked_s(self) -> float:
        """For how long it was seen at work."""
        if self.last_new is None:
            return 0.0
        return (self.last_new - self.first_visit).total_seconds()

    @property
    def lists_until(self) -> datetime:
        """Until when it had something new."""
        return self.last_new or self.first_visit

    @property
    def links_brought(self) -> float:
        """So many new links it has brought, about, without those that it listed at first."""
        least = 0.0
        if self.gap_s:
            least = self.worked_s / self.gap_s
        return max(0.0, self.new_links - self.entries, least)


class ActiveHours:
    """At which hours of the week a source brings something, and how long its pauses are, in time
    that is stretched by these hours: a second of a usual hour is a second, one of the night less.
    """

    def __init__(self, times: Sequence[datetime]) -> None:
        """`times`: when it brought something, in order."""
        counts = [0.0] * WEEK_HOURS
        for at in times:
            hour = _hour_of_week(at)
            # A little of it to its neighbours: nobody publishes by the clock.
            counts[hour - 1] += 0.25
            counts[hour] += 0.5
            counts[(hour + 1) % WEEK_HOURS] += 0.25
        mean = sum(counts) / WEEK_HOURS
        weights = [BACKGROUND + count / mean for count in counts]
        total = sum(weights) / WEEK_HOURS
        self._weights = [weight / total for weight in weights]
        pauses = [self.active_s(before, after) for before, after in pairwise(times)]
        self.gap_s = sum(pauses) / max(1, len(pauses))
        self.longest_s = max(pauses, default=0.0)

    def active_s(self, start: datetime, end: datetime) -> float:
        """How much of the time between two moments counts."""
        at = start.astimezone(UTC)
        end = end.astimezone(UTC)
        weeks = max(0, (end - at) // WEEK)
        at += weeks * WEEK
        total = weeks * WEEK.total_seconds()
        while at < end:
            next_hour = at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            until = min(end, next_hour)
            total += self._weights[_hour_of_week(at)] * (until - at).total_seconds()
            at = until
        return total


def _hour_of_week(at: datetime) -> int:
    at = at.astimezone(UTC)
    return at.weekday() * 24 + at.hour


def learn_hours(times: Sequence[datetime]) -> ActiveHours | None:
    """The hours of a source by when it brought something; None if too little is known."""
    if len(times) < LEAST_TIMES:
        return None
    known = sorted(times)
    if known[-1] - known[0] < LEAST_HISTORY:
        return None
    return ActiveHours(known)


def may_be_silent(source: SourceFacts, k: float) -> bool:
    """Is it worth while to look at its hours?"""
    if not k or not source.was_good or source.gap_s is None or source.state in LEFT:
        return False
    if has_ended(source):
        return True
    if source.state in FAILING and source.tries < TRIES:
        return False
    return _pause_s(source) > k * source.gap_s


def judge_silence(source: SourceFacts, k: float, hours: ActiveHours | None) -> bool:
    """Whether a source had been silent for `k` times its usual gap when it was visited last, or is
    not there any more.
    """
    if not may_be_silent(source, k):
        return False
    assert source.gap_s is not None
    if has_ended(source):
        return True
    if hours is None:
        least_s = min(NIGHT_S, source.worked_s / 2)
        return _pause_s(source) > max(UNSURE * k * source.gap_s, least_s)
    pause_s = hours.active_s(source.lists_until, source.last_visit)
    return pause_s > max(k * hours.gap_s, RECORD * hours.longest_s)


def has_ended(source: SourceFacts) -> bool:
    """Is it not there any more? A 404 or two are none: it is asked again soon."""
    if source.state == "gone":
        return source.tries >= TRIES
    return source.state in ENDED


def is_replaced(source: SourceFacts, others: Sequence[SourceFacts], k: float) -> bool:
    """Has another source of its site gone on, so that a silence need not mean anything? So it is
    with the sitemap of last month, and a hub that is a page of a list.
    """
    if source.kind not in REPLACED or source.gap_s is None:
        return False
    latest = max((other.lists_until for other in others), default=source.lists_until)
    return (latest - source.lists_until).total_seconds() > k * source.gap_s


def estimate_missed(source: SourceFacts) -> int:
    """About how many links a silent source would have brought, had it gone on as before."""
    if not source.worked_s:
        return 0
    return max(1, round(_pause_s(source) * source.links_brought / source.worked_s))


def describe_silence(source: SourceFacts) -> str:
    """What is said of a silent source."""
    gap = format_duration(source.gap_s or 0.0)
    return (
        f"{SILENCE_WORDS} {format_duration(_pause_s(source))}, usual is every {gap}: about "
        f"{format_count(estimate_missed(source), 'link')} missed"
    )


def _pause_s(source: SourceFacts) -> float:
    return (source.last_visit - source.lists_until).total_seconds()


def describe_problem(source: SourceFacts) -> str:
    """What is odd about a source by itself, in a few words; empty if nothing is."""
    if source.state in ENDED:
        return f"it is {source.state}: {_answer(source)}"
    if source.state == "retry" and source.tries >= TRIES:
        return f"it fails again and again: {_answer(source)}"
    least = max(1, min(TRIES, source.entries))
    if source.children >= least and source.dead_children == source.children:
        return f"all {source.children:,} of its sitemaps that were asked are dead"
    if source.newest is not None:
        ahead_s = (source.newest - source.last_visit).total_seconds()
        if ahead_s > FUTURE_S:
            return f"its latest date is in the future: {source.newest:%Y-%m-%d}"
        if abs(ahead_s) <= JUST_NOW_S < _pause_s(source) and source.visits > TRIES:
            return "its dates are those of the visit, and it lists nothing new"
    if source.kind in REPEATING and source.visits > LISTED and source.entries:
        known_s = (source.last_visit - source.first_visit).total_seconds()
        if _pause_s(source) >= known_s * (LISTED - 1) / LISTED:
            return f"it repeats itself: nothing new on {source.visits:,} visits"
    return ""


def _answer(source: SourceFacts) -> str:
    if source.status >= 300:
        return f"status {source.status}"
    return source.why or "no answer"


def find_disagreements(sources: Sequence[SourceFacts], k: float) -> dict[str, str]:
    """Of the sources of one site: those that list nothing of what others of another kind bring, by
    URL, and what is to be said of each.
    """
    return {
        late.url: (
            f"it lists nothing new since {late.lists_until:%Y-%m-%d %H:%M}, but the "
            f"{leader.kind} {leader.url} does: about "
            f"{format_count(_lacking(late, leader), 'link')} more"
        )
        for late, leader in _late_sources(sources, k)
    }


def count_lacking(sources: Sequence[SourceFacts], k: float) -> dict[str, int]:
    """About how many links each of them lacks that others of its site have brought, by URL: of
    those that answer, and are there to list what is new, or used to. A front page may be only an
    entrance.
    """
    return {
        late.url: _lacking(late, leader)
        for late, leader in _late_sources(sources, k)
        if late.state == "waiting" and (KIND_GROUPS[late.kind] != ENTRANCES or late.worked_s > 0)
    }


def _late_sources(
    sources: Sequence[SourceFacts], k: float
) -> list[tuple[SourceFacts, SourceFacts]]:
    """The latest source of each kind that lists nothing of what one of another kind brings; and
    that one.

    Kinds are compared, not single sources: the feed of a quiet section may be silent for long while
    that of the whole site goes on.
    """
    groups: dict[str, list[SourceFacts]] = {}
    for source in sources:
        group = KIND_GROUPS.get(source.kind)
        if group is not None and source.visits > 1:
            groups.setdefault(group, []).append(source)
    found: dict[str, tuple[SourceFacts, SourceFacts]] = {}
    for group, members in groups.items():
        latest = max(members, key=lambda source: source.lists_until)
        for other, leaders in groups.items():
            best = max(leaders, key=lambda source: source.lists_until)
            if other != group and _is_ahead(best, latest, k):
                found[group] = (latest, best)
    return list(found.values())


def _lacking(late: SourceFacts, leader: SourceFacts) -> int:
    """About how many links the leader has brought since the other one brought some."""
    if not leader.worked_s:
        return 0
    return max(1, round(_ahead_s(leader, late) * leader.links_brought / leader.worked_s))


def _ahead_s(leader: SourceFacts, other: SourceFacts) -> float:
    until = min(leader.lists_until, other.last_visit)
    return (until - other.lists_until).total_seconds()


def _is_ahead(leader: SourceFacts, other: SourceFacts, k: float) -> bool:
    if not k or not leader.was_good or leader.gap_s is None:
        return False
    known_s = (other.last_visit - other.first_visit).total_seconds()
    return _ahead_s(leader, other) > max(UNSURE * k * leader.gap_s, min(REGENERATED_S, known_s / 2))
