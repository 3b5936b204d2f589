"""Versions of a page: from the indexes of the archive; of files that are still written, from the
database, if it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from difflib import unified_diff

from w3lib.encoding import http_content_type_encoding

from crawlproj.archive import Archive, Capture
from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.open_file import OPEN, SUFFIX
from crawlproj.archive.reader import REVISIT
from crawlproj.content import charset as charsets
from crawlproj.content.html import parse_page
from crawlproj.database.connection import Database
from crawlproj.errors import ArchiveError, ConfigError, CrawlprojError
from crawlproj.urls.canonical import canonical_url, url_key


def find_versions(
    archive: Archive, word: str, database: Callable[[], AbstractContextManager[Database]]
) -> list[IndexEntry]:
    """All of a URL as it is written, or else in its canonical form; oldest first. `database` is
    asked only if files are open.
    """
    url = word if "://" in word else f"http://{word}"
    for spelling in dict.fromkeys((url, canonical_url(url) or url)):
        found = set(archive.versions(spelling))
        if any(archive.folder.glob(f"*{SUFFIX}{OPEN}")):
            with suppress(CrawlprojError), database() as db:
                found |= set(
                    _unlisted(
                        archive,
                        db,
                        spelling,
                        listed={(entry.file, entry.offset) for entry in found},
                    )
                )
        if found:
            return sorted(found, key=lambda entry: (entry.timestamp, entry.file, entry.offset))
    return []


def _unlisted(
    archive: Archive, db: Database, url: str, listed: set[tuple[str, int]]
) -> Iterable[IndexEntry]:
    ids = [url_key(name, url) for (name,) in db.fetch_rows("crawl_names")]
    for file, offset, length in db.fetch_rows("archived_places", ids=ids):
        if (file, offset) not in listed:
            with suppress(ArchiveError):
                entry = IndexEntry.from_stored(archive.read(file, offset, length), file)
                yield from [entry] if entry is not None else []


def parse_time(text: str) -> datetime:
    """2026-03-01, 2026-03-01T12:00, or 14 digits or fewer as in an index; without a zone it is UTC.
    ConfigError if it is none.
    """
    digits = text.ljust(14, "0") if text.isdecimal() and 8 <= len(text) <= 14 else ""
    try:
        found = (
            datetime.strptime(digits, "%Y%m%d%H%M%S") if digits else datetime.fromisoformat(text)
        )
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):  # at the ends of the calendar a zone leads out of it
        raise ConfigError(
            f"{text!r} is no time: 2026-03-01, 2026-03-01T12:00:00 or 20260301120000"
        ) from None


def version_at(entries: list[IndexEntry], at: datetime | None) -> IndexEntry:
    """The latest version until then; if all are later, the first."""
    before = [entry for entry in entries if at is None or entry.at <= at]
    return before[-1] if before else entries[0]


def last_two(entries: list[IndexEntry]) -> tuple[IndexEntry, IndexEntry] | None:
    """The last version, and the last one before it that had other content; None if there
    is none.
    """
    others = [entry for entry in entries if entry.digest != entries[-1].digest]
    return (others[-1], entries[-1]) if others else None


def diff_captures(old: Capture, new: Capture, text: bool) -> list[str]:
    """As `diff -u` shows it: of the source, or of the text that a reader sees."""
    before, after = (f"{page.url} {page.at:%Y-%m-%d %H:%M:%S}" for page in (old, new))
    return list(unified_diff(_lines(old, text), _lines(new, text), before, after, lineterm=""))


def _lines(page: Capture, text: bool) -> list[str]:
    label = http_content_type_encoding(page.header("Content-Type"))
    if text:
        return [block.text for block in parse_page(page.content, page.url, label).blocks]
    return charsets.to_utf8(page.content, label)[0].decode("utf-8", "replace").splitlines()


def as_values(entry: IndexEntry) -> dict[str, object]:
    """For JSON."""
    return {
        "at": entry.at,
        "url": entry.url,
        "status": entry.status,
        "unchanged": entry.mime == REVISIT,
        "mime": entry.mime,
        "digest": entry.digest,
        "file": entry.file,
        "offset": entry.offset,
        "length": entry.length,
    }


def as_line(entry: IndexEntry) -> str:
    kind = "unchanged" if entry.mime == REVISIT else entry.mime
    return (
        f"{entry.at:%Y-%m-%d %H:%M:%S}  {entry.status or '-':>3}  {kind:<24} {entry.file} "
        f"{entry.offset}"
    )
