"""What is known of a page's changes: how often it changes, what its last visits found, and what of
the last one does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from w3lib.encoding import http_content_type_encoding

from crawlproj.archive import Archive
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.records import REVISIT_MIME
from crawlproj.content.changes import Change, ChangeRules, judge_change
from crawlproj.content.host_noise import HostNoise, unpack_noise
from crawlproj.content.html import parse_page
from crawlproj.database.connection import Database
from crawlproj.database.queries import Queries
from crawlproj.errors import ArchiveError
from crawlproj.formatting import format_count, format_duration, format_share, format_time
from crawlproj.revisit.base import Numbers
from crawlproj.revisit.rates import freshness, is_known

PIECE: Final = 500
LEAST_ID: Final = -(1 << 63)
MAX_SHOWN: Final = 60
HINTS: Final = {
    "etag": "ETag",
    "modified": "Last-Modified",
    "lastmod": "lastmod of sitemaps",
    "expires": "Expires and max-age",
}
MASKED: Final = {
    "path noise": "a place that changes at nearly every visit",
    "host noise": "a place that changes on other pages of its host, too",
    "count range": "a text that has come and gone before",
    "boilerplate": "navigation and the like",
    "relative time": "a time ago",
}


class ChangeRow(NamedTuple):
    """The columns of query `explain_changes`."""

    rate_a: float | None
    rate_b: float | None
    change: str | None
    changed_at: datetime | None
    new_letters: int | None
    gone_letters: int | None
    modified_at: datetime | None
    fresh_until: datetime | None
    listed_at: datetime | None
    noise: bytes | None


def change_facts(db: Queries, crawl: str, key: int, since_s: float | None) -> dict[str, Any]:
    """What is stored of the changes of a page that was visited so long ago."""
    columns = db.fetch_row("explain_changes", id=key, crawl=crawl)
    if columns is None:
        return {}
    row = ChangeRow(*columns)
    numbers = Numbers(row.rate_a, row.rate_b)
    mean_s = None
    fresh = None
    if is_known(numbers):
        assert row.rate_a is not None and row.rate_b is not None
        mean_s = row.rate_b / row.rate_a
        if since_s is not None:
            fresh = round(freshness(numbers, max(since_s, 0.0)), 4)
    return {
        "change_kind": row.change,
        "change_at": row.changed_at,
        "new_letters": row.new_letters,
        "gone_letters": row.gone_letters,
        "mean_between_changes_s": mean_s,
        "freshness": fresh,
        "modified_at": row.modified_at,
        "fresh_until": row.fresh_until,
        "listed_at": row.listed_at,
        "hints": {
            hint: {"changed": [changed, missed], "same": [false, same]}
            for hint, changed, missed, false, same in db.fetch_rows("explain_hints", id=key)
        },
        "noisy_places": _count_noisy(unpack_noise(row.noise)),
    }


def _count_noisy(noise: HostNoise) -> int:
    return sum(path.is_noisy for path in noise.paths.values())


def last_masked(
    archive: Archive, entries: Sequence[IndexEntry], rules: ChangeRules
) -> Change | None:
    """What of the newest capture differs from those before it, by the archive; None if there are
    not two that can be read.
    """
    captures = [entry for entry in entries if entry.status == 200 and entry.mime != REVISIT_MIME]
    chosen = captures[-rules.captures - 1 :]
    if len(chosen) < 2:
        return None
    state = None
    change = None
    for entry in chosen:
        with suppress(ArchiveError):
            capture = archive.read_capture(entry)
            label = http_content_type_encoding(capture.header("Content-Type"))
            blocks = parse_page(capture.content, capture.url, label).blocks
            judged = judge_change(blocks, state, capture.url, rules=rules)
            if not judged.first:
                change = judged.change
            state = judged.state
    return change


def masked_values(change: Change) -> list[dict[str, object]]:
    """What was masked, as JSON."""
    return [
        {"reason": masked.reason.value, "text": masked.text, "new": masked.new}
        for masked in change.masked
    ]


def change_lines(facts: dict[str, Any], now: datetime) -> list[str]:
    """The facts in words."""
    lines = []
    if facts.get("change_kind"):
        line = f"  Last change {format_time(facts['change_at'], now)}: {facts['change_kind']}"
        if facts["new_letters"] or facts["gone_letters"]:
            line += f", {facts['new_letters']:,} letters new, {facts['gone_letters']:,} gone"
        lines.append(f"{line}.")
    if facts.get("mean_between_changes_s"):
        mean = format_duration(facts["mean_between_changes_s"])
        line = f"  By what was learned it changes every {mean}"
        if facts["freshness"] is not None:
            line += f"; its copy is up to date with {format_share(facts['freshness'])} certainty"
        lines.append(f"{line}.")
    for masked in facts.get("masked", ())[:5]:
        why = MASKED[masked["reason"]]
        came = "new" if masked["new"] else "gone"
        if masked["text"]:
            lines.append(f"  Does not count ({why}): {came}, {masked['text'][:MAX_SHOWN]!r}")
        else:
            lines.append(f"  Does not count: {why}, {came}.")
    for hint, met in facts.get("hints", {}).items():
        right = met["changed"][0] + met["same"][1]
        number = sum(met["changed"]) + sum(met["same"])
        lines.append(f"  {HINTS.get(hint, hint)} of its host was right {right} of {number} times.")
    if facts.get("noisy_places"):
        places = format_count(facts["noisy_places"], "place")
        lines.append(f"  {places} of its host's pages change all the time and do not count.")
    return lines


class _VersionRow(NamedTuple):
    """The columns of query `export_changes`."""

    page: int
    at: datetime
    url: str
    kind: str | None
    new_letters: int | None
    gone_letters: int | None
    before: datetime | None


CHANGE_FIELDS: Final = ("url", "at", "kind", "new_letters", "gone_letters", "before")


def iterate_changes(database: Database, crawl: int, since: datetime) -> Iterator[dict[str, object]]:
    """The changes of all pages since a time, page by page, those of a page in order; piece by
    piece. `before`: when the page was as it had been last.
    """
    page = LEAST_ID
    moment = since
    while True:
        rows = database.fetch_rows_as(
            "export_changes",
            _VersionRow,
            crawl=crawl,
            page=page,
            moment=moment,
            since=since,
            limit=PIECE,
        )
        for row in rows:
            yield {
                "url": row.url,
                "at": row.at.isoformat(),
                "kind": row.kind,
                "new_letters": row.new_letters,
                "gone_letters": row.gone_letters,
                "before": row.before and row.before.isoformat(),
            }
        if len(rows) < PIECE:
            return
        page = rows[-1].page
        moment = rows[-1].at
