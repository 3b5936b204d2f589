"""What is kept for how long: the settings, and which captures of a page go by them. The last one
stays, unless none may.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from crawlproj.archive.cdxj import IndexEntry, format_timestamp
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.config import SettingsReader, one_of, parse_boolean, parse_duration, parse_list
from crawlproj.errors import ConfigError
from crawlproj.http import heads

NAME = "older captures"
PERIODS: Mapping[str, Callable[[datetime], object]] = {
    "day": lambda at: at.date(),
    "week": lambda at: at.isocalendar()[:2],
    "month": lambda at: (at.year, at.month),
    "year": lambda at: at.year,
}
AT_ONCE = 1_000
LONGEST = timedelta(days=365_000)
Current = Callable[[Sequence[str]], Mapping[str, set[str]]]
"""Of these URLs, the times (14 digits) of the records that the next visits compare with."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Ages; None: for ever. Of captures that are older, `keep` (first, last) of each period stay.
    `strict`: none of them stays, not even the last one of a page, or one whose file is hardly worth
    rewriting.
    """

    older: timedelta | None = None
    keep: frozenset[str] = frozenset()
    per: str = "month"
    dead: timedelta | None = None
    logs: timedelta | None = None
    strict: bool = False


def read_retention(settings: Any, given: Mapping[str, str | None]) -> Retention:
    """From the settings, or from what a user gives in their place; ConfigError for nonsense."""
    read = SettingsReader(
        {name: settings.get(name) for name in SETTINGS}
        | {name: text for name, text in given.items() if text is not None}
    )
    found = Retention(
        read("RETENTION_CAPTURES", _age),
        read("RETENTION_KEEP", _ends),
        read("RETENTION_PER", one_of(*PERIODS)),
        dead=read("RETENTION_DEAD", _age),
        logs=read("RETENTION_LOGS", _age),
        strict=read("RETENTION_STRICT", parse_boolean),
    )
    if found.keep and found.older is None:
        raise ConfigError(
            "RETENTION_KEEP says what stays of what is older than RETENTION_CAPTURES (--older), "
            "which is not set"
        )
    if found.strict and found.older is None:
        raise ConfigError(
            "RETENTION_STRICT (--strict) is about what is older than RETENTION_CAPTURES (--older), "
            "which is not set"
        )
    if found.strict and found.keep:
        raise ConfigError(
            "RETENTION_STRICT (--strict) keeps nothing that is older, RETENTION_KEEP (--keep) some "
            "of it: choose one"
        )
    return found


SETTINGS = (
    "RETENTION_CAPTURES",
    "RETENTION_KEEP",
    "RETENTION_PER",
    "RETENTION_DEAD",
    "RETENTION_LOGS",
    "RETENTION_STRICT",
)


def _age(value: object) -> timedelta | None:
    """Not so long that it began before there were dates."""
    found = parse_duration(value) if str(value).strip() else None
    if found is not None and found > LONGEST:
        raise ValueError("a shorter duration")
    return found


def _ends(value: object) -> frozenset[str]:
    found = frozenset(parse_list(value))
    if not found <= {"first", "last"}:
        raise ValueError("first, last, or both")
    return found


def expired_captures(
    captures: Sequence[IndexEntry], retention: Retention, cutoff: str, current: set[str]
) -> list[IndexEntry]:
    """Which captures of one URL, oldest first, are to go. What stays in a second stays with all of
    that second.
    """
    if retention.strict:
        return [entry for entry in captures if entry.timestamp < cutoff]
    good = [entry for entry in captures if 200 <= entry.status < 300 or not entry.status]
    stay = {captures[-1].timestamp, *(entry.timestamp for entry in good[-1:]), *current}
    old = [entry for entry in captures if entry.timestamp < cutoff]
    for _, period in groupby(old, key=lambda entry: PERIODS[retention.per](entry.at)):
        every = list(period)
        best = [entry for entry in every if entry in good] or every
        stay |= {best[0].timestamp} if "first" in retention.keep else set()
        stay |= {best[-1].timestamp} if "last" in retention.keep else set()
    return [entry for entry in old if entry.timestamp not in stay]


class Selection:
    """Captures that are to go, file by file: eight bytes for each. `limited` is the same for some
    of the files only.
    """

    def __init__(self, cutoff: datetime | None = None) -> None:
        self._cutoff = cutoff
        self._by_file: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self._exact: dict[str, set[int]] = defaultdict(set)
        self._all: array[int] = array("q")
        self._others: set[int] = set()
        self._answers: dict[tuple[str, int], bool] = {}
        self._staying: set[int] = set()

    def add(self, captures: Sequence[IndexEntry], gone: Iterable[IndexEntry]) -> None:
        """`captures` of one page, or of one form, some of which are gone."""
        if captures[0].post_query:
            going = {(entry.file, entry.offset) for entry in gone}
            self._answers |= {
                (entry.file, entry.offset): (entry.file, entry.offset) in going
                for entry in captures
            }
            return
        for entry in gone:
            self._by_file[entry.file].append(hash((entry.url, entry.timestamp)))

    def note_record(self, path: Path, stored: StoredRecord) -> None:
        """304s are in no index; they go by their age alone. An answer to a form may be of the same
        second as a page that does not share its fate.
        """
        if (
            self._cutoff is None
            or stored.kind not in ("revisit", "response", "resource")
            or "warc-date" not in stored.fields
        ):
            return
        goes = self._answers.get((path.name, stored.offset))
        if goes is None and heads.parse_status(stored.head) == 304:
            goes = stored.at < self._cutoff or None
        if goes:
            self._exact[path.name].add(hash((stored.url, stored.at)))
            self._others.add(hash((stored.url, stored.at)))
        elif goes is False:
            self._staying.add(hash((stored.url, stored.at)))

    def limited_to_files(self, files: Iterable[str] | None = None) -> Selection:
        """As `gone` sees it from now on."""
        found = Selection(self._cutoff)
        names = [*self._by_file, *self._exact] if files is None else list(files)
        found._all = array(
            "q",
            sorted(
                chain.from_iterable(
                    self._by_file[name] for name in set(names) if name in self._by_file
                )
            ),
        )
        found._others = set(
            chain.from_iterable(self._exact[name] for name in names if name in self._exact)
        )
        found._exact = self._exact
        found._by_file = self._by_file
        found._answers = self._answers
        found._staying = self._staying
        return found

    def removed_by(self, url: str, at: datetime) -> str:
        exact = hash((url, at)) if self._others or self._staying else 0
        if exact in self._others or exact in self._staying:
            return NAME if exact in self._others else ""
        key = hash((url, format_timestamp(at)))
        place = bisect_left(self._all, key)
        return NAME if place < len(self._all) and self._all[place] == key else ""


def select_expired(
    entries: Iterable[IndexEntry], retention: Retention, now: datetime, current: Current
) -> Selection:
    """From all entries of the index, sorted by key and time. What the next visit of a page compares
    with stays, too.
    """
    if retention.older is None:
        return Selection()
    found = Selection(now - retention.older)
    cutoff = format_timestamp(now - retention.older)
    for batch in _batches(_pages(entries, cutoff, least=1 if retention.strict else 2)):
        kept = current([captures[0].url for captures in batch])
        for captures in batch:
            current_of = kept.get(captures[0].url, set()) if not captures[0].post_query else set()
            found.add(captures, expired_captures(captures, retention, cutoff, current=current_of))
    return found.limited_to_files()


def _pages(entries: Iterable[IndexEntry], cutoff: str, least: int) -> Iterator[list[IndexEntry]]:
    """The captures of each URL that has so many, and an old one among them; those of a form in any
    case.
    """
    for _, group in groupby(entries, key=lambda entry: entry.key):
        by_url: dict[str, list[IndexEntry]] = {}
        for entry in group:
            by_url.setdefault(entry.url, []).append(entry)
        for captures in by_url.values():
            if captures[0].timestamp < cutoff and (
                len(captures) >= least or captures[0].post_query
            ):
                yield captures


def _batches(pages: Iterable[list[IndexEntry]]) -> Iterator[list[list[IndexEntry]]]:
    batch: list[list[IndexEntry]] = []
    for captures in pages:
        batch.append(captures)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
