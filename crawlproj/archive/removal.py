"""Removal of pages from the archive for good, with a note about it in the archive.

Offsets in a file change when a record before them is removed, and a database may refer to them. So
a file is never changed: its successor (`NAME-r1.warc.gz`) is written beside it, the caller stores
the new offsets, and then `delete_old_files` removes the old file. A kill at any moment leaves one
of the files or both; a successor whose predecessor is still there is one of the
`unfinished_rewrites`, which are completed first the next time. Revisits of other pages that point
at a removed record become whole responses: the content is theirs, too.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from crawlproj.archive.exchange import Exchange
from crawlproj.archive.fsync import sync_folder
from crawlproj.archive.gzip_members import BrokenRecordError, compress_member, read_member
from crawlproj.archive.index_merge import merge_indexes, write_file
from crawlproj.archive.open_file import SUFFIX, index_path
from crawlproj.archive.reader import Archive
from crawlproj.archive.records import (
    FIELDS_TYPE,
    NOT_MODIFIED,
    build_record,
    build_response,
    new_id,
    warc_fields,
)
from crawlproj.archive.recovery import salvage_records, write_index
from crawlproj.archive.stored_record import StoredRecord, parse_record
from crawlproj.errors import ArchiveError

RemovalRule = Callable[[str, datetime], str]
"""The name of the removal to which a capture (URL, time) falls; empty if it stays."""
CaptureKey = tuple[str, datetime]
"""URL and time."""
NOTHING: Mapping[CaptureKey, str] = {}
_REVISION = re.compile(r"(?:-r([0-9]+))?\.warc\.gz$")
_NOTE = b"removed: "


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A file and its successor; without `new` no record was left.

    `removed` is the number of records by the name of the removal, `moved` the new (offset, length)
    by the old offset. `lost`: captures that were removed before a kill, while other files may still
    have revisits that need them.
    """

    old: Path
    new: Path | None
    removed: Mapping[str, int]
    moved: dict[int, tuple[int, int]] = field(repr=False)
    lost: Mapping[CaptureKey, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class FileSurvey:
    """What is to be removed from a file.

    `removed` is the number of records by the name of the removal, `removed_bytes` their size in the
    file. `dependents`: the offsets of revisits that stay while their originals go, with those
    originals. `remaining`: how many records stay. `size` is that of all records.
    """

    removed: Counter[str] = field(default_factory=Counter)
    removed_bytes: int = 0
    dependents: dict[int, CaptureKey] = field(default_factory=dict)
    remaining: int = 0
    size: int = 0


def survey_files(
    files: Iterable[Path],
    rule: RemovalRule,
    lost: Mapping[CaptureKey, str] = NOTHING,
    on_record: Callable[[Path, StoredRecord], None] | None = None,
) -> dict[str, FileSurvey]:
    """What the rule removes from each of these files; files that are not concerned are left out.

    `on_record` is called with each record first.
    """
    surveys: dict[str, FileSurvey] = {}
    for path in files:
        survey = FileSurvey()
        with path.open("rb", buffering=1 << 18) as file:
            for stored in salvage_records(file):
                if on_record is not None:
                    on_record(path, stored)
                _survey_record(stored, rule, lost, survey=survey)
        if survey.removed or survey.dependents:
            surveys[path.name] = survey
    return surveys


def _survey_record(
    stored: StoredRecord, rule: RemovalRule, lost: Mapping[CaptureKey, str], survey: FileSurvey
) -> None:
    survey.size += stored.length
    name = _removed_by(stored, rule)
    if name:
        survey.removed[name] += 1
        survey.removed_bytes += stored.length
        return
    if stored.kind != "warcinfo" and not _is_dispensable_note(stored):
        survey.remaining += 1
    target = stored.refers_to
    if target is not None and (rule(target.url, target.at) or (target.url, target.at) in lost):
        survey.dependents[stored.offset] = target.url, target.at


def _is_dispensable_note(stored: StoredRecord) -> bool:
    """Whether it is the note about a removal that names no records, as of those that were just old:
    it is of no use in a file without other records.
    """
    return (
        stored.kind == "metadata"
        and stored.block.startswith(_NOTE)
        and b"\nremovedRecord: " not in stored.block
    )


def _removed_by(stored: StoredRecord, rule: RemovalRule) -> str:
    """The name of the removal to which a record falls; empty if it stays."""
    if not stored.url or "warc-date" not in stored.fields:
        return ""
    return rule(stored.url, stored.at)


def remove_records(
    archive: Archive, rule: RemovalRule, reasons: Mapping[str, str], now: datetime
) -> Iterator[RewrittenFile]:
    """Write successors of all files that hold records to be removed.

    `reasons`, by the names of removals, are for the note. A 304 is removed with the version that it
    confirms.
    """
    surveys = survey_files(archive.closed_files(), rule)
    for path in archive.closed_files():
        if path.name in surveys:
            dependents = surveys[path.name].dependents
            yield rewrite_file(archive, path, rule, dependents=dependents, reasons=reasons, now=now)


def delete_old_files(rewritten: Iterable[RewrittenFile]) -> None:
    """Delete the predecessors, when the new offsets are stored."""
    for each in rewritten:
        index_path(each.old).unlink(missing_ok=True)
        each.old.unlink(missing_ok=True)
        sync_folder(each.old.parent)


def refresh_index(folder: Path) -> None:
    """Write the common index again, without the files that were deleted."""
    if folder.is_dir():
        merge_indexes(folder)


def unfinished_rewrites(archive: Archive) -> Iterator[RewrittenFile]:
    """What a kill has left: whole successors of files that are still there."""
    for new in archive.closed_files():
        old = predecessor_path(new)
        if old is None or not old.exists():
            continue
        rewritten = _compare_files(old, new)
        if rewritten is not None:
            if not index_path(new).exists():
                write_index(new)
            yield rewritten


def _compare_files(old: Path, new: Path) -> RewrittenFile | None:
    """The rewrite that led from `old` to `new`, by the ids of records; None if there was none."""
    new_locations, removed = _read_successor(new)
    if removed is None:
        return None
    first_name = next(iter(removed), "")
    moved = dict[int, tuple[int, int]]()
    lost = dict[CaptureKey, str]()
    missing = 0
    with old.open("rb", buffering=1 << 18) as file:
        for stored in salvage_records(file):
            if stored.id in new_locations:
                moved[stored.offset] = new_locations[stored.id]
                continue
            missing += 1
            if stored.kind in ("response", "resource"):
                lost[stored.url, stored.at] = first_name
    # The successor has one record more, the note.
    if len(moved) != len(new_locations) - 1 or missing != sum(removed.values()):
        return None
    return RewrittenFile(old, new, removed, moved=moved, lost=lost)


def _read_successor(
    path: Path,
) -> tuple[dict[str, tuple[int, int]], dict[str, int] | None]:
    """Offset and length by the ids of records, and the counts of the note in the last record; None
    if the last record is no note.
    """
    locations = dict[str, tuple[int, int]]()
    last: StoredRecord | None = None
    with path.open("rb", buffering=1 << 18) as file:
        for stored in salvage_records(file):
            locations[stored.id] = stored.offset, stored.length
            last = stored
    if last is None or last.kind != "metadata" or not last.block.startswith(_NOTE):
        return locations, None
    names = list[str]()
    counts = list[int]()
    for line in last.block.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(": ")
        if name == "removed":
            names.append(value)
        elif name == "records":
            counts.append(int(value))
    return locations, dict(zip(names, counts, strict=False))


def _revision(path: Path) -> tuple[str, int]:
    """The name of a file without its ending, and its revision; 0 for a file as it was written."""
    found = _REVISION.search(path.name)
    if found is None:
        return path.name, 0
    return path.name[: found.start()], int(found[1] or 0)


def successor_path(path: Path) -> Path:
    """The next name of a rewritten file that is free."""
    base, revision = _revision(path)
    while True:
        revision += 1
        new = path.with_name(f"{base}-r{revision}{SUFFIX}")
        if not new.exists():
            return new


def predecessor_path(path: Path) -> Path | None:
    """The name of the file that was rewritten as this one; None if this one is no successor."""
    base, revision = _revision(path)
    if revision == 0:
        return None
    if revision == 1:
        return path.with_name(base + SUFFIX)
    return path.with_name(f"{base}-r{revision - 1}{SUFFIX}")


def rewrite_file(
    archive: Archive,
    path: Path,
    rule: RemovalRule,
    dependents: Mapping[int, CaptureKey],
    reasons: Mapping[str, str],
    now: datetime,
    listed: bool = True,
) -> RewrittenFile:
    """Write the successor of one file. `listed`: the note names the records that were removed."""
    moved = dict[int, tuple[int, int]]()
    new = successor_path(path)
    removed = dict[str, list[str]]()

    def pieces(file: BinaryIO) -> Iterator[bytes]:
        offset = 0
        for stored in salvage_records(file):
            name = _removed_by(stored, rule)
            if name:
                removed.setdefault(name, []).append(stored.id)
                continue
            if stored.offset in dependents:
                data = _whole_response(archive, stored)
                if not data:
                    name = rule(*dependents[stored.offset]) or next(iter(reasons), "")
                    removed.setdefault(name, []).append(stored.id)
                    continue
            else:
                data = os.pread(file.fileno(), stored.length, stored.offset)
            moved[stored.offset] = (offset, len(data))
            offset += len(data)
            yield data
        yield _removal_note(removed, reasons, find_warcinfo_id(file), now=now, listed=listed)

    with path.open("rb", buffering=1 << 18) as file:
        write_file(new, pieces(file))
    write_index(new)
    sync_folder(new.parent)
    return RewrittenFile(path, new, {name: len(ids) for name, ids in removed.items()}, moved=moved)


def _removal_note(
    removed: Mapping[str, list[str]],
    reasons: Mapping[str, str],
    info: str,
    now: datetime,
    listed: bool,
) -> bytes:
    """The last record of a successor, which says what was removed and why; no other file has it."""
    pairs = list[tuple[str, object]]()
    if not removed:
        pairs += [
            ("removed", "nothing"),
            ("reason", "records became whole, since what they repeat was removed"),
            ("records", 0),
        ]
    for name, ids in removed.items():
        pairs += [("removed", name), ("reason", reasons.get(name, "")), ("records", len(ids))]
        if listed:
            pairs += [("removedRecord", each) for each in ids]
    fields = {"WARC-Record-ID": new_id(), "WARC-Warcinfo-ID": info}
    block = (warc_fields(pairs),)
    return compress_member(
        build_record("metadata", now, block, content_type=FIELDS_TYPE, fields=fields)
    )


def find_warcinfo_id(file: BinaryIO) -> str:
    """The id of the warcinfo record at the start of a file; empty if another record is there."""
    try:
        first = read_member(file, 0)
        if first is None:
            return ""
        stored = parse_record(first)
    except BrokenRecordError:
        return ""
    if stored.kind != "warcinfo":
        return ""
    return stored.id


def _whole_response(archive: Archive, stored: StoredRecord) -> bytes:
    """A revisit as a whole response with the same id; empty if its payload can't be had.

    Then it is removed, because without content it would only name the removed page.
    """
    if stored.fields.get("warc-profile") == NOT_MODIFIED:
        return b""
    try:
        capture = archive.resolve_record(stored)
    except ArchiveError:
        return b""
    exchange = Exchange(
        stored.url,
        stored.at,
        capture.head,
        body=capture.payload,
        address=stored.fields.get("warc-ip-address", ""),
    )
    response = build_response(
        exchange,
        None,
        stored.fields.get("warc-warcinfo-id", ""),
        algorithm=stored.digest.partition(":")[0],
    )
    return compress_member(response.data.replace(response.id.encode(), stored.id.encode(), 1))
