"""The versions of a page: found, chosen by time, compared.

They come from the archive's indexes. WARC files that are still written have no index yet: what is
in those is looked up in the database, if it can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from difflib import unified_diff

from w3lib.encoding import http_content_type_encoding

from crawlproj.archive import Archive, Capture
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.open_file import OPEN, SUFFIX
from crawlproj.archive.records import REVISIT_MIME
from crawlproj.content import charset as charsets
from crawlproj.content.html import parse_page
from crawlproj.database.connection import Database
from crawlproj.errors import ArchiveError, ConfigError, CrawlprojError
from crawlproj.urls.canonical import canonical_url, url_key


def find_versions(
    archive: Archive, word: str, database: Callable[[], AbstractContextManager[Database]]
) -> list[IndexEntry]:
    """All versions of a URL as it is written, or else of its canonical form; oldest first.

    `database` is opened only if there are files that are still written.
    """
    url = word if "://" in word else f"http://{word}"
    for spelling in dict.fromkeys((url, canonical_url(url) or url)):
        found = set(archive.versions(spelling))
        if any(archive.folder.glob(f"*{SUFFIX}{OPEN}")):
            indexed = {(entry.file, entry.offset) for entry in found}
            with suppress(CrawlprojError), database() as db:
                found |= set(_unindexed(archive, db, spelling, indexed=indexed))
        if found:
            return sorted(found, key=_age)
    return []


def _unindexed(
    archive: Archive, db: Database, url: str, indexed: set[tuple[str, int]]
) -> Iterator[IndexEntry]:
    ids = [url_key(crawl, url) for (crawl,) in db.fetch_rows("crawl_names")]
    for file, offset, length in db.fetch_rows("archived_places", ids=ids):
        if (file, offset) in indexed:
            continue
        with suppress(ArchiveError):
            entry = IndexEntry.from_stored(archive.read(file, offset, length), file)
            if entry is not None:
                yield entry


def _age(entry: IndexEntry) -> tuple[str, str, int]:
    return entry.timestamp, entry.file, entry.offset


def parse_time(text: str) -> datetime:
    """The time that a user wrote; ConfigError if it is none.

    2026-03-01, 2026-03-01T12:00, or 8 to 14 digits as in an index; without a zone it is UTC.
    """
    try:
        if text.isdecimal() and 8 <= len(text) <= 14:
            found = datetime.strptime(text.ljust(14, "0"), "%Y%m%d%H%M%S")
        else:
            found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            return found.replace(tzinfo=UTC)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):  # at the ends of the calendar a zone leads out of it
        raise ConfigError(
            f"{text!r} is no time: 2026-03-01, 2026-03-01T12:00:00 or 20260301120000"
        ) from None


def version_at(entries: list[IndexEntry], at: datetime | None) -> IndexEntry:
    """The latest version until `at`, of all if that is None; if all are later, the first."""
    before = [entry for entry in entries if at is None or entry.at <= at]
    if not before:
        return entries[0]
    return before[-1]


def last_two(entries: list[IndexEntry]) -> tuple[IndexEntry, IndexEntry] | None:
    """The last version that differs from the newest, and the newest; None if all are equal."""
    newest = entries[-1]
    others = [entry for entry in entries if entry.digest != newest.digest]
    if not others:
        return None
    return others[-1], newest


def diff_captures(old: Capture, new: Capture, text: bool) -> list[str]:
    """The lines of `diff -u`: of the text that a reader sees if `text`, else of the source."""
    return list(
        unified_diff(
            _capture_lines(old, text),
            _capture_lines(new, text),
            f"{old.url} {old.at:%Y-%m-%d %H:%M:%S}",
            tofile=f"{new.url} {new.at:%Y-%m-%d %H:%M:%S}",
            lineterm="",
        )
    )


def _capture_lines(capture: Capture, text: bool) -> list[str]:
    label = http_content_type_encoding(capture.header("Content-Type"))
    if text:
        return [block.text for block in parse_page(capture.content, capture.url, label).blocks]
    source, _ = charsets.to_utf8(capture.content, label, capture.url)
    return source.decode("utf-8", "replace").splitlines()


def version_values(entry: IndexEntry) -> dict[str, object]:
    """A version as values for JSON."""
    return {
        "at": entry.at,
        "url": entry.url,
        "status": entry.status,
        "unchanged": entry.mime == REVISIT_MIME,
        "mime": entry.mime,
        "digest": entry.digest,
        "file": entry.file,
        "offset": entry.offset,
        "length": entry.length,
    }


def version_line(entry: IndexEntry) -> str:
    """A version as a line for people."""
    kind = "unchanged" if entry.mime == REVISIT_MIME else entry.mime
    return (
        f"{entry.at:%Y-%m-%d %H:%M:%S}  {entry.status or '-':>3}  {kind:<24} {entry.file} "
        f"{entry.offset}"
    )
