"""Looks every few minutes whether the sources of a crawl still bring something, and says so once of
each that does not. In the database thread.

Sources are looked at site by site, some in a turn, so that no turn takes long however many there
are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from crawlproj.database.arrays import array_literal
from crawlproj.database.queries import Queries
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.revisit.silence import (
    FORMER,
    HISTORY,
    LEFT,
    SILENCE_WORDS,
    SourceFacts,
    count_lacking,
    describe_problem,
    describe_silence,
    estimate_missed,
    find_disagreements,
    is_replaced,
    judge_silence,
    learn_hours,
    may_be_silent,
)

log = logging.getLogger(__name__)

FIRST_GAP_S: Final = 5.0
GAP_S: Final = 120.0
"""How often all are looked at, as soon as a crawl has run for so long."""
SHARE: Final = 0.005
"""At most so much of the thread's time."""
PART: Final = 2_000
"""Sources of one turn."""
MAX_INDEXES: Final = 50
"""So many indexes of sitemaps of a part are looked into: each may name a thousand."""
TIMES: Final = 3_000
MAX_SAID: Final = 10_000
CLOSING_S: Final = 5.0
"""So long a worker that ends looks once more at most."""


class WatchedSource(NamedTuple):
    """The columns of query `watched_sources`."""

    id: int
    url: str
    kind: str
    site: str
    title: str
    first_visit: datetime
    last_visit: datetime
    visits: int
    entries: int
    new_links: int
    last_new: datetime | None
    gap_s: float | None
    newest: datetime | None
    silent_since: datetime | None
    problem: str
    missed: int
    state: str
    status: int
    why: str
    tries: int
    next_visit: datetime | None
    interval_s: float | None

    def as_facts(self, children: tuple[int, int] = (0, 0)) -> SourceFacts:
        """What its health is judged by. `children` of a sitemap index: asked, dead."""
        return SourceFacts(
            self.url,
            self.kind,
            self.site,
            self.first_visit,
            self.last_visit,
            visits=self.visits,
            entries=self.entries,
            new_links=self.new_links,
            last_new=self.last_new,
            gap_s=self.gap_s,
            newest=self.newest,
            state=self.state,
            status=self.status,
            why=self.why,
            tries=self.tries,
            children=children[0],
            dead_children=children[1],
        )


class SourceVerdict(NamedTuple):
    """What is to be noted of a source: before and after. `missed`: about so many links, since it is
    silent, or because others of its site have brought them and it has not.
    """

    row: WatchedSource
    silent_since: datetime | None
    problem: str
    missed: int


class LastLook(NamedTuple):
    """How many sources have fallen silent since the look before; how many are silent, and how many
    list nothing of what others of their site bring; how many links these have missed, by estimate;
    and one of each.
    """

    fallen: int = 0
    silent: int = 0
    disagreeing: int = 0
    missed: int = 0
    a_silent: str = ""
    a_disagreeing: str = ""


class SourceWatch:
    """`k`: after so many usual gaps a source is silent; 0: nobody looks."""

    def __init__(
        self,
        frontier: PostgresFrontier,
        k: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._frontier = frontier
        self._k = k
        self._clock = clock
        self._gap_s = FIRST_GAP_S
        self._due_at = clock() + FIRST_GAP_S
        self._site = ""
        """The last one that was looked at in this round."""
        self._round_s = 0.0
        self._said: set[tuple[int, str]] = set()

    def take_turn(self) -> int:
        """Look at some sources if it is time to; how many have fallen silent since the last
        look.
        """
        if not self._k or self._clock() < self._due_at:
            return 0
        return self._look_at_some()

    def look_at_all(self) -> LastLook:
        """Look once more, when the crawl ends."""
        if not self._k:
            return LastLook()
        until = self._clock() + CLOSING_S
        self._site = ""
        fallen = self._look_at_some()
        while self._site and self._clock() < until:
            fallen += self._look_at_some()
        db = self._frontier.db
        crawl = self._frontier.crawl_id
        return LastLook(fallen, *count_missing(db, crawl))

    def _look_at_some(self) -> int:
        """Look at the next sites; `_site` is empty when the round is over."""
        started = self._clock()
        rows, self._site = read_part(self._frontier.db, self._frontier.crawl_id, self._site)
        fallen = 0
        if rows:
            notes = self._judge(rows)
            fallen = self._store(notes)
        self._round_s += self._clock() - started
        if not self._site:
            self._due_at = self._clock() + max(self._gap_s, self._round_s / SHARE)
            self._gap_s = min(2 * self._gap_s, GAP_S)
            self._round_s = 0.0
        return fallen

    def _judge(self, rows: Sequence[WatchedSource]) -> list[SourceVerdict]:
        """What is new of these sources."""
        db = self._frontier.db
        facts = read_facts(db, rows)
        problems = find_problems(facts, self._k)
        sites: dict[str, list[SourceFacts]] = {}
        for source in facts:
            sites.setdefault(source.site, []).append(source)
        lacking: dict[str, int] = {}
        for members in sites.values():
            lacking |= count_lacking(members, self._k)
        notes = []
        for row, source in zip(rows, facts, strict=True):
            problem = problems.get(source.url, "")
            since = row.silent_since
            if since is None or is_over(row):
                since = None
                if self._is_silent(row, source, sites[source.site]):
                    since = source.lists_until
            if since is not None:
                problem = with_silence(problem or found_by_visit(row), source)
            elif not problem and row.silent_since is None:
                # What its last visit has found, or what was said then: the next one says anew.
                problem = row.problem
                if row.state == "waiting":
                    self._say_once(row, problem)
            missed = lacking.get(source.url, 0)
            if since is not None:
                missed = estimate_missed(source)
            if (since, problem, missed) != (row.silent_since, row.problem, row.missed):
                notes.append(SourceVerdict(row, since, problem, missed))
        return notes

    def _is_silent(
        self, row: WatchedSource, source: SourceFacts, others: Sequence[SourceFacts]
    ) -> bool:
        if not may_be_silent(source, self._k) or is_replaced(source, others, self._k):
            return False
        since = self._frontier.now() - HISTORY
        times = self._frontier.db.fetch_rows("source_times", id=row.id, since=since, count=TIMES)
        return judge_silence(source, self._k, learn_hours([at for (at,) in times]))

    def _store(self, notes: Sequence[SourceVerdict]) -> int:
        """Store what is new and log it; how many have fallen silent."""
        if not notes:
            return 0
        stored = self._frontier.db.fetch_rows(
            "note_sources",
            id=array_literal([note.row.id for note in notes]),
            before=array_literal([note.row.silent_since for note in notes]),
            silent_since=array_literal([note.silent_since for note in notes]),
            problem=array_literal([note.problem for note in notes]),
            missed=array_literal([note.missed for note in notes]),
        )
        ids = {id_ for (id_,) in stored}
        fallen = 0
        for row, since, problem, _ in notes:
            if row.id not in ids:
                continue
            if since is not None and row.silent_since is None:
                fallen += 1
                log.warning("Silent: the %s %s: %s", row.kind, row.url, problem)
            elif since is None and row.silent_since is not None and row.state not in LEFT:
                log.info("Brings something again: the %s %s", row.kind, row.url)
            elif since is None:
                self._say_once(row, problem)
        return fallen

    def _say_once(self, row: WatchedSource, problem: str) -> None:
        """Log a problem that is not a silence, once in a run: each visit may bring it back."""
        said = (row.id, problem.partition(":")[0])
        if not problem or said in self._said or len(self._said) >= MAX_SAID:
            return
        self._said.add(said)
        log.info("Source: the %s %s: %s", row.kind, row.url, problem)


def count_missing(db: Queries, crawl: int) -> tuple[int, int, int, str, str]:
    """The fields of a `LastLook` but for the first."""
    row = db.fetch_row("count_missing", crawl=crawl)
    assert row is not None
    silent, disagreeing, missed, a_silent, a_disagreeing = row
    return silent, disagreeing, missed, a_silent or "", a_disagreeing or ""


def is_over(row: WatchedSource) -> bool:
    """Is the silence that is noted of a source over, or none of our business any more?"""
    assert row.silent_since is not None
    if row.kind in FORMER or row.state in LEFT:
        return True
    return row.last_new is not None and row.last_new > row.silent_since


def found_by_visit(row: WatchedSource) -> str:
    """What the last visit to a silent source has found, without what was said of its silence."""
    return row.problem.partition(SILENCE_WORDS)[0].rstrip("; ")


def with_silence(problem: str, source: SourceFacts) -> str:
    """What is said of a silent source that may have another problem."""
    silence = describe_silence(source)
    return f"{problem}; {silence}" if problem else silence


def read_part(db: Queries, crawl: int, after: str) -> tuple[list[WatchedSource], str]:
    """The sources of the next sites, and the last of these sites; empty if there are no more. Of a
    site with very many only some.
    """
    rows = db.fetch_rows_as("watched_sources", WatchedSource, crawl=crawl, after=after, count=PART)
    if len(rows) < PART:
        return rows, ""
    last = rows[-1].site
    whole = [row for row in rows if row.site != last]
    if not whole:
        return rows, last
    return whole, whole[-1].site


def read_facts(db: Queries, rows: Sequence[WatchedSource]) -> list[SourceFacts]:
    """What the health of sources is judged by."""
    indexes = [row.id for row in rows if row.kind == "sitemap index"][:MAX_INDEXES]
    children: dict[int, tuple[int, int]] = {}
    if indexes:
        found: list[tuple[Any, ...]] = db.fetch_rows("dead_sitemaps", ids=array_literal(indexes))
        children = {id_: (asked, dead) for id_, asked, dead in found}
    return [row.as_facts(children.get(row.id, (0, 0))) for row in rows]


def find_problems(facts: Sequence[SourceFacts], k: float) -> dict[str, str]:
    """What is odd about sources, by URL, but for their silence. All sources of a site come
    together.
    """
    sites: dict[str, list[SourceFacts]] = {}
    for source in facts:
        sites.setdefault(source.site, []).append(source)
    problems: dict[str, str] = {}
    for members in sites.values():
        problems |= find_disagreements(members, k)
    for source in facts:
        problem = describe_problem(source)
        if problem:
            problems[source.url] = problem
    return problems
