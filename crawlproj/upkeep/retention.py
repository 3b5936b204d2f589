"""What is kept for how long: the settings, and which captures of a page go by them.

The last capture of a page stays, unless RETENTION_STRICT lets none stay.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from crawlproj.archive.cdxj import IndexEntry, format_timestamp
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.config import SettingsReader, one_of, parse_boolean, parse_duration, parse_list
from crawlproj.errors import ConfigError
from crawlproj.http import heads

REMOVAL_NAME = "older captures"
PERIODS: Mapping[str, Callable[[datetime], object]] = {
    "day": lambda at: at.date(),
    "week": lambda at: at.isocalendar()[:2],
    "month": lambda at: (at.year, at.month),
    "year": lambda at: at.year,
}
BATCH_PAGES = 1_000
MAX_AGE = timedelta(days=365_000)
CurrentRecords = Callable[[Sequence[str]], Mapping[str, set[str]]]
"""Of these URLs, the times (14 digits) of the records that the next visits compare with."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The maximum ages of captures, dead URLs and logs; None: they are kept for ever.

    Of captures that are older, `keep` (first, last) of each period stay. `strict`: none of them
    stays, not even the last one of a page, or one whose file is hardly worth rewriting.
    """

    older: timedelta | None = None
    keep: frozenset[str] = frozenset()
    per: str = "month"
    dead: timedelta | None = None
    logs: timedelta | None = None
    strict: bool = False


def read_retention(settings: Any, given: Mapping[str, str | None]) -> Retention:
    """The retention by the settings, and by options in their place; ConfigError for nonsense."""
    read = SettingsReader(
        {name: settings.get(name) for name in SETTINGS}
        | {name: text for name, text in given.items() if text is not None}
    )
    found = Retention(
        read("RETENTION_CAPTURES", _age),
        read("RETENTION_KEEP", _first_last),
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
    """A duration, not so long that it begins before there were dates; None if it is empty."""
    if not str(value).strip():
        return None
    age = parse_duration(value)
    if age > MAX_AGE:
        raise ValueError("a shorter duration")
    return age


def _first_last(value: object) -> frozenset[str]:
    found = frozenset(parse_list(value))
    if not found <= {"first", "last"}:
        raise ValueError("first, last, or both")
    return found


def expired_captures(
    captures: Sequence[IndexEntry], retention: Retention, cutoff: str, current: set[str]
) -> list[IndexEntry]:
    """Which captures of one URL, given oldest first, are to go.

    Captures of the same second go or stay together.
    """
    old = [entry for entry in captures if entry.timestamp < cutoff]
    if retention.strict:
        return old
    good = [entry for entry in captures if 200 <= entry.status < 300 or not entry.status]
    kept = {captures[-1].timestamp, *(entry.timestamp for entry in good[-1:]), *current}
    period_of = PERIODS[retention.per]
    for _, group in groupby(old, key=lambda entry: period_of(entry.at)):
        period = list(group)
        best = [entry for entry in period if entry in good] or period
        if "first" in retention.keep:
            kept.add(best[0].timestamp)
        if "last" in retention.keep:
            kept.add(best[-1].timestamp)
    return [entry for entry in old if entry.timestamp not in kept]


class ExpiredCaptures:
    """Captures that are to go, file by file, in eight bytes for each.

    Fill it with `add` and `note_record`; `limited_to_files` makes the one whose `removed_by`
    decides.
    """

    def __init__(self, cutoff: datetime | None = None) -> None:
        self._cutoff = cutoff
        self._by_file: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self._exact_by_file: dict[str, set[int]] = defaultdict(set)
        self._removed: array[int] = array("q")
        self._exact_removed: set[int] = set()
        self._form_captures: dict[tuple[str, int], bool] = {}
        self._exact_kept: set[int] = set()

    def add(self, captures: Sequence[IndexEntry], gone: Iterable[IndexEntry]) -> None:
        """Add the captures of one page, or of one form, some of which are to go."""
        if captures[0].post_query:
            going = {(entry.file, entry.offset) for entry in gone}
            self._form_captures |= {
                (entry.file, entry.offset): (entry.file, entry.offset) in going
                for entry in captures
            }
            return
        for entry in gone:
            self._by_file[entry.file].append(hash((entry.url, entry.timestamp)))

    def note_record(self, path: Path, stored: StoredRecord) -> None:
        """Note the fate of a record that `removed_by` can't tell from URL and second alone.

        304s are in no index: they go by their age. The response to a form may be of the same
        second as a page that does not share its fate.
        """
        if (
            self._cutoff is None
            or stored.kind not in ("revisit", "response", "resource")
            or "warc-date" not in stored.fields
        ):
            return
        goes = self._form_captures.get((path.name, stored.offset))
        if goes is None:
            if heads.parse_status(stored.head) != 304 or stored.at >= self._cutoff:
                return
            goes = True
        exact = hash((stored.url, stored.at))
        if goes:
            self._exact_by_file[path.name].add(exact)
            self._exact_removed.add(exact)
        else:
            self._exact_kept.add(exact)

    def limited_to_files(self, files: Iterable[str] | None = None) -> ExpiredCaptures:
        """The same captures in these files only (default: in all), ready for `removed_by`."""
        names = {*self._by_file, *self._exact_by_file}
        if files is not None:
            names.intersection_update(files)
        removed: list[int] = []
        exact: set[int] = set()
        for name in names:
            removed.extend(self._by_file.get(name, ()))
            exact.update(self._exact_by_file.get(name, ()))
        removed.sort()
        limited = ExpiredCaptures(self._cutoff)
        limited._removed = array("q", removed)
        limited._exact_removed = exact
        limited._exact_by_file = self._exact_by_file
        limited._by_file = self._by_file
        limited._form_captures = self._form_captures
        limited._exact_kept = self._exact_kept
        return limited

    def removed_by(self, url: str, at: datetime) -> str:
        """`REMOVAL_NAME` if the capture is to go; empty if it stays."""
        if self._exact_removed or self._exact_kept:
            exact = hash((url, at))
            if exact in self._exact_removed:
                return REMOVAL_NAME
            if exact in self._exact_kept:
                return ""
        key = hash((url, format_timestamp(at)))
        index = bisect_left(self._removed, key)
        if index < len(self._removed) and self._removed[index] == key:
            return REMOVAL_NAME
        return ""


def select_expired(
    entries: Iterable[IndexEntry], retention: Retention, now: datetime, current: CurrentRecords
) -> ExpiredCaptures:
    """The expired ones of all entries of the index, which are sorted by key and time.

    What the next visit of a page compares with stays, too.
    """
    if retention.older is None:
        return ExpiredCaptures()
    expired = ExpiredCaptures(now - retention.older)
    cutoff = format_timestamp(now - retention.older)
    least = 2
    if retention.strict:
        least = 1
    for batch in _batches(_pages(entries, cutoff, least)):
        current_times = current([captures[0].url for captures in batch])
        for captures in batch:
            page_times: set[str] = set()
            if not captures[0].post_query:
                page_times = current_times.get(captures[0].url, page_times)
            old = expired_captures(captures, retention, cutoff, current=page_times)
            expired.add(captures, old)
    return expired.limited_to_files()


def _pages(entries: Iterable[IndexEntry], cutoff: str, least: int) -> Iterator[list[IndexEntry]]:
    """The captures of each URL that has at least `least`, an old one among them.

    The captures of a form come in any number.
    """
    for _, group in groupby(entries, key=lambda entry: entry.key):
        by_url: dict[str, list[IndexEntry]] = {}
        for entry in group:
            by_url.setdefault(entry.url, []).append(entry)
        for captures in by_url.values():
            first = captures[0]
            if first.timestamp < cutoff and (len(captures) >= least or first.post_query):
                yield captures


def _batches(pages: Iterable[list[IndexEntry]]) -> Iterator[list[list[IndexEntry]]]:
    batch: list[list[IndexEntry]] = []
    for captures in pages:
        batch.append(captures)
        if len(batch) == BATCH_PAGES:
            yield batch
            batch = []
    if batch:
        yield batch
