"""scrapy db clean: what is too old goes from archive, database and logs, and what crashed runs left
is put in order.

The archive decides: a version goes from the database when its record goes. A file is written anew
only if that frees a good part of it, and dropped if nothing is left. What the frontier needs (the
URLs, when they are due, what they are compared with) stays, unless nothing older is to stay at all:
then pages whose capture went are read in full at their next visit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from crawlproj.archive import Archive
from crawlproj.archive.cdxj import format_timestamp
from crawlproj.archive.removal import FileSurvey, refresh_index, survey_files
from crawlproj.config import Config
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database
from crawlproj.database.queries import Queries
from crawlproj.upkeep import takedown
from crawlproj.upkeep.retention import NAME, Retention, Selection, select_expired
from crawlproj.upkeep.warc_rewrite import WarcRewriter
from crawlproj.urls.canonical import canonical_url, url_key

WORTH = 0.2
"""A file is written anew if so much of it goes."""
ROWS = 10_000
T = TypeVar("T")


@dataclass(slots=True)
class CleanResult:
    """What went, or would go. `waiting`: records that are too old, in files that are not worth
    rewriting yet.
    """

    records: int = 0
    waiting: int = 0
    files_rewritten: int = 0
    files_dropped: int = 0
    freed_bytes: int = 0
    versions: int = 0
    urls: int = 0
    logs: int = 0
    leftovers: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def clean_storage(
    db: Database, config: Config, retention: Retention, tell: Callable[[str], None]
) -> CleanResult:
    """What was asked to be forgotten, and was not ended, comes first."""
    done = CleanResult()
    now = db.fetch_value("now")
    done.leftovers += bool(takedown.pending_rules(db))
    takedown.carry_out(db, config, tell)
    if config.warc_dir.is_dir():
        _clean_archive(db, config, retention, now=now, done=done, tell=tell)
    done.versions += _drop_versions(db, retention, now)
    done.urls = _drop_urls(db, retention, now)
    for path in old_logs(config.log_dir, retention, now):
        path.unlink(missing_ok=True)
        done.logs += 1
    db.run("leave", worker="", now=now)
    return done


def _clean_archive(
    db: Database,
    config: Config,
    retention: Retention,
    now: datetime,
    done: CleanResult,
    tell: Callable[[str], None],
) -> None:
    folder = config.warc_dir
    with WarcRewriter(db, folder, config.database_patience_s, tell=tell) as work:
        done.leftovers += len(work.leftovers) + work.mended
        with suppress(
            OSError
        ):  # a full disk is one reason to clean: files are dropped before others are written
            refresh_index(folder)
        allowed = {path.name for path in work.files}
        entries = (entry for entry in work.archive.iter_entries() if entry.file in allowed)
        chosen = select_expired(entries, retention, now, current=lambda urls: _current(db, urls))
        found = work.survey_files(chosen.removed_by, chosen.note_record)
        concerned, limited = _worth_it(found, chosen, retention.strict)
        result = work.remove_records(
            concerned, limited.removed_by, {NAME: _reason(retention)}, now=now, listed=False
        )
        done.versions += result.versions
        done.records = result.records.total()
        done.files_rewritten = result.files
        done.files_dropped = result.dropped
        done.freed_bytes = result.freed
        done.waiting = sum(
            each.going.total()
            for name, each in found.items()
            if not _is_worth(each, retention.strict)
        )


def _is_worth(found: FileSurvey, strict: bool) -> bool:
    return bool(found.going) and (strict or not found.left or found.bytes >= WORTH * found.size)


def _worth_it(
    found: Mapping[str, FileSurvey], chosen: Selection, strict: bool
) -> tuple[dict[str, FileSurvey], Selection]:
    """Files to be written anew, and what goes when only these are; with those that hold records
    which need something that goes.
    """
    limited = chosen.limited_to_files(
        name for name, each in found.items() if _is_worth(each, strict)
    )
    out: dict[str, FileSurvey] = {}
    for name, each in found.items():
        heirs = {
            offset: target for offset, target in each.heirs.items() if limited.removed_by(*target)
        }
        if heirs or _is_worth(each, strict):
            out[name] = replace(each, heirs=heirs)
    return out, limited


def _reason(retention: Retention) -> str:
    kept = (
        f", except {' and '.join(sorted(retention.keep))} of each {retention.per}"
        if retention.keep
        else ""
    )
    return f"older than {retention.older}{kept}"


def _current(db: Queries, urls: Sequence[str]) -> dict[str, set[str]]:
    crawls = [name for (name,) in db.fetch_rows("crawl_names")]
    ids = {url_key(name, canonical_url(url) or url): url for name in crawls for url in urls}
    found: dict[str, set[str]] = {}
    for id_, at in db.fetch_rows("retention_current", ids=array_literal(ids)):
        found.setdefault(ids[id_], set()).add(format_timestamp(at))
    return found


def _versions(db: Queries, retention: Retention, now: datetime) -> list[tuple[int, datetime]]:
    """Versions without a record, which the archive can't decide on."""
    if retention.older is None:
        return []
    first = "first" in retention.keep
    last = "last" in retention.keep
    rows = db.fetch_rows(
        "retention_versions",
        cutoff=now - retention.older,
        per=retention.per,
        first=first,
        last=last,
        strict=retention.strict,
    )
    return [(row[0], row[1]) for row in rows]


def _drop_versions(db: Database, retention: Retention, now: datetime) -> int:
    rows = _versions(db, retention, now)
    for some in _slices(rows):
        db.run(
            "retention_drop_versions",
            url=array_literal(row[0] for row in some),
            at=array_literal(row[1] for row in some),
        )
    return len(rows)


def _urls(db: Queries, retention: Retention, now: datetime) -> list[int]:
    return (
        [row[0] for row in db.fetch_rows("retention_dead", cutoff=now - retention.dead)]
        if retention.dead is not None
        else []
    )


def _drop_urls(db: Database, retention: Retention, now: datetime) -> int:
    return sum(
        db.run("retention_drop_urls", ids=array_literal(some))
        for some in _slices(_urls(db, retention, now))
    )


def _slices(rows: Sequence[T]) -> Iterable[Sequence[T]]:
    return (rows[start : start + ROWS] for start in range(0, len(rows), ROWS))


def old_logs(folder: Path, retention: Retention, now: datetime) -> list[Path]:
    """Those that nobody has written to for so long, a day at least."""
    if retention.logs is None or not folder.is_dir():
        return []
    latest = (now - max(retention.logs, timedelta(days=1))).timestamp()
    found = []
    for path in sorted([*folder.glob("*.log"), *folder.glob("requests-*.jsonl")]):
        with suppress(FileNotFoundError):
            found += [path] if path.stat().st_mtime < latest else []
    return found


def preview_clean(
    db: Queries | None, config: Config, retention: Retention, now: datetime
) -> CleanResult:
    """What `clean` would do; nothing is changed."""
    archive = Archive(config.warc_dir)
    done = CleanResult()
    chosen = select_expired(
        archive.iter_entries(),
        retention,
        now,
        current=(lambda urls: _current(db, urls)) if db else lambda urls: {},
    )
    found = survey_files(archive.closed_files(), chosen.removed_by, see=chosen.note_record)
    for each in found.values():
        if _is_worth(each, retention.strict):
            done.records += each.going.total()
            done.files_dropped += not each.left
            done.files_rewritten += bool(each.left)
            done.freed_bytes += each.bytes if each.left else each.size
        else:
            done.waiting += each.going.total()
    if db is not None:
        done.versions = len(_versions(db, retention, now))
        done.urls = len(_urls(db, retention, now))
        done.leftovers += bool(takedown.pending_rules(db))
    done.logs = len(old_logs(config.log_dir, retention, now))
    return done
