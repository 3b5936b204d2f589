"""`scrapy db clean`: what is too old goes from archive, database and logs; remains of crashes, too.

The archive decides: a version goes from the database when its record goes. A file is rewritten only
if that frees a good part of it, and dropped if nothing is left. What the frontier needs (the URLs,
when they are due, what they are compared with) stays, unless RETENTION_STRICT lets nothing older
stay: then pages whose capture went are read in full at their next visit.
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
from crawlproj.upkeep.retention import REMOVAL_NAME, ExpiredCaptures, Retention, select_expired
from crawlproj.upkeep.warc_rewrite import WarcRewriter
from crawlproj.urls.canonical import canonical_url, url_key

MIN_FREED_SHARE = 0.2
"""A file is rewritten if at least this share of it goes."""
BATCH_ROWS = 10_000
T = TypeVar("T")


@dataclass(slots=True)
class CleanResult:
    """What was removed, or would be.

    `waiting` are records that are too old, in files that are not worth rewriting yet.
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
    """Remove what is too old, after finishing take-downs that were interrupted."""
    result = CleanResult()
    now = db.fetch_value("now")
    result.leftovers += bool(takedown.pending_rules(db))
    takedown.carry_out(db, config, tell)
    if config.warc_dir.is_dir():
        _clean_archive(db, config, retention, now=now, result=result, tell=tell)
    result.versions += _drop_versions(db, retention, now)
    result.urls = _drop_urls(db, retention, now)
    for path in old_logs(config.log_dir, retention, now):
        path.unlink(missing_ok=True)
        result.logs += 1
    db.run("leave", worker="", now=now)
    return result


def _clean_archive(
    db: Database,
    config: Config,
    retention: Retention,
    now: datetime,
    result: CleanResult,
    tell: Callable[[str], None],
) -> None:
    """Remove old records from WARC files, and what the database knows of them."""
    folder = config.warc_dir
    with WarcRewriter(db, folder, config.database_patience_s, tell=tell) as rewriter:
        result.leftovers += len(rewriter.leftovers) + rewriter.repaired_indexes
        # A full disk is one reason to clean, and files are dropped before others are written.
        with suppress(OSError):
            refresh_index(folder)
        allowed = {path.name for path in rewriter.files}
        entries = (entry for entry in rewriter.archive.iter_entries() if entry.file in allowed)
        expired = select_expired(entries, retention, now, current=lambda urls: _current(db, urls))
        surveys = rewriter.survey_files(expired.removed_by, expired.note_record)
        to_rewrite, limited = _files_to_rewrite(surveys, expired, retention.strict)
        rewritten = rewriter.remove_records(
            to_rewrite,
            limited.removed_by,
            {REMOVAL_NAME: _reason(retention)},
            now=now,
            listed=False,
        )
        result.versions += rewritten.versions
        result.records = rewritten.records.total()
        result.files_rewritten = rewritten.files
        result.files_dropped = rewritten.dropped
        result.freed_bytes = rewritten.freed
        result.waiting = sum(
            survey.removed.total()
            for survey in surveys.values()
            if not _is_worth_rewriting(survey, retention.strict)
        )


def _is_worth_rewriting(survey: FileSurvey, strict: bool) -> bool:
    if not survey.removed:
        return False
    if strict or not survey.remaining:
        return True
    return survey.removed_bytes >= MIN_FREED_SHARE * survey.size


def _files_to_rewrite(
    surveys: Mapping[str, FileSurvey], expired: ExpiredCaptures, strict: bool
) -> tuple[dict[str, FileSurvey], ExpiredCaptures]:
    """The files that are worth rewriting, and what goes when only these are rewritten.

    Files with records that depend on something that goes are among them.
    """
    limited = expired.limited_to_files(
        name for name, survey in surveys.items() if _is_worth_rewriting(survey, strict)
    )
    to_rewrite: dict[str, FileSurvey] = {}
    for name, survey in surveys.items():
        dependents = {
            offset: target
            for offset, target in survey.dependents.items()
            if limited.removed_by(*target)
        }
        if dependents or _is_worth_rewriting(survey, strict):
            to_rewrite[name] = replace(survey, dependents=dependents)
    return to_rewrite, limited


def _reason(retention: Retention) -> str:
    reason = f"older than {retention.older}"
    if retention.keep:
        reason += f", except {' and '.join(sorted(retention.keep))} of each {retention.per}"
    return reason


def _current(db: Queries, urls: Sequence[str]) -> dict[str, set[str]]:
    """The times of the records that the next visits of these URLs compare with, by URL."""
    crawls = [name for (name,) in db.fetch_rows("crawl_names")]
    urls_by_id = {url_key(name, canonical_url(url) or url): url for name in crawls for url in urls}
    found: dict[str, set[str]] = {}
    for id_, at in db.fetch_rows("retention_current", ids=array_literal(urls_by_id)):
        found.setdefault(urls_by_id[id_], set()).add(format_timestamp(at))
    return found


def _expired_versions(
    db: Queries, retention: Retention, now: datetime
) -> list[tuple[int, datetime]]:
    """URL id and time of the versions without a record, which the archive can't decide on."""
    if retention.older is None:
        return []
    rows = db.fetch_rows(
        "retention_versions",
        cutoff=now - retention.older,
        per=retention.per,
        first="first" in retention.keep,
        last="last" in retention.keep,
        strict=retention.strict,
    )
    return [(url_id, at) for url_id, at in rows]


def _drop_versions(db: Database, retention: Retention, now: datetime) -> int:
    versions = _expired_versions(db, retention, now)
    for batch in _batches(versions):
        db.run(
            "retention_drop_versions",
            url=array_literal(url_id for url_id, _ in batch),
            at=array_literal(at for _, at in batch),
        )
    return len(versions)


def _dead_urls(db: Queries, retention: Retention, now: datetime) -> list[int]:
    """The ids of URLs that were given up long ago, and never read."""
    if retention.dead is None:
        return []
    return [id_ for (id_,) in db.fetch_rows("retention_dead", cutoff=now - retention.dead)]


def _drop_urls(db: Database, retention: Retention, now: datetime) -> int:
    dropped = 0
    for batch in _batches(_dead_urls(db, retention, now)):
        dropped += db.run("retention_drop_urls", ids=array_literal(batch))
    return dropped


def _batches(rows: Sequence[T]) -> Iterable[Sequence[T]]:
    return (rows[start : start + BATCH_ROWS] for start in range(0, len(rows), BATCH_ROWS))


def old_logs(folder: Path, retention: Retention, now: datetime) -> list[Path]:
    """Logs that nothing was written to for as long as the retention says, a day at least."""
    if retention.logs is None or not folder.is_dir():
        return []
    latest = (now - max(retention.logs, timedelta(days=1))).timestamp()
    found = []
    kinds = ("*.log", "requests-*.jsonl", "hang-*.txt")
    for path in sorted(path for kind in kinds for path in folder.glob(kind)):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < latest:
                found.append(path)
    return found


def preview_clean(
    db: Queries | None, config: Config, retention: Retention, now: datetime
) -> CleanResult:
    """What `clean_storage` would do; nothing is changed."""

    def current(urls: Sequence[str]) -> dict[str, set[str]]:
        if db is None:
            return {}
        return _current(db, urls)

    archive = Archive(config.warc_dir)
    result = CleanResult()
    expired = select_expired(archive.iter_entries(), retention, now, current=current)
    surveys = survey_files(
        archive.closed_files(), expired.removed_by, on_record=expired.note_record
    )
    for survey in surveys.values():
        if not _is_worth_rewriting(survey, retention.strict):
            result.waiting += survey.removed.total()
            continue
        result.records += survey.removed.total()
        if survey.remaining:
            result.files_rewritten += 1
            result.freed_bytes += survey.removed_bytes
        else:
            result.files_dropped += 1
            result.freed_bytes += survey.size
    if db is not None:
        result.versions = len(_expired_versions(db, retention, now))
        result.urls = len(_dead_urls(db, retention, now))
        result.leftovers += bool(takedown.pending_rules(db))
    result.logs = len(old_logs(config.log_dir, retention, now))
    return result
