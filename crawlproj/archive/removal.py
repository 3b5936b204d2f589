"""Taking pages out of the archive, for good, and saying so in it.

Places in a file change when something before them goes, and a database may hold places. So a file
is never changed: its successor (`NAME-r1.warc.gz`) is written beside it, the caller writes the new
places down, and then `drop` removes the old file. A kill at any moment leaves either state or both;
a successor whose predecessor is still there is `unfinished`, and what was left to do is done first
the next time. Records of other pages that were stored as "the same as this one" become whole: their
content is theirs.
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
"""Under which name what was captured from a URL at that time is to go; empty: it stays."""
CaptureKey = tuple[str, datetime]
NOTHING: Mapping[CaptureKey, str] = {}
_REVISION = re.compile(r"(?:-r([0-9]+))?\.warc\.gz$")
_NOTE = b"removed: "


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """`moved` tells of each place (offset) in the old file where it is in the new one (offset,
    length); `removed` how many records went under which name. Without `new` nothing was left.
    `lost`: captures that went before a kill, perhaps not yet from those who need them.
    """

    old: Path
    new: Path | None
    removed: Mapping[str, int]
    moved: dict[int, tuple[int, int]] = field(repr=False)
    lost: Mapping[CaptureKey, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class FileSurvey:
    """What one look at a file has found: records that go by name, their bytes in the file, offsets
    of records of other pages that need something that goes (and what), whether anything else is
    left, and the size of it all.
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
    """One look at every record of these files; only files that are concerned are told. `see` is
    called with each record first.
    """
    found: dict[str, FileSurvey] = {}
    for path in files:
        here = FileSurvey()
        with path.open("rb", buffering=1 << 18) as file:
            for stored in salvage_records(file):
                if on_record is not None:
                    on_record(path, stored)
                _look(stored, rule, lost, here=here)
        if here.removed or here.dependents:
            found[path.name] = here
    return found


def _look(
    stored: StoredRecord, gone: RemovalRule, lost: Mapping[CaptureKey, str], here: FileSurvey
) -> None:
    here.size += stored.length
    if name := _goes(stored, gone):
        here.removed[name] += 1
        here.removed_bytes += stored.length
        return
    here.remaining += stored.kind != "warcinfo" and not _is_mere_note(stored)
    target = stored.refers_to
    if target is not None and (gone(target.url, target.at) or (target.url, target.at) in lost):
        here.dependents[stored.offset] = target.url, target.at


def _is_mere_note(stored: StoredRecord) -> bool:
    """Of a removal that names no records, as of those that were just old: without other records it
    is of no use.
    """
    return (
        stored.kind == "metadata"
        and stored.block.startswith(_NOTE)
        and b"\nremovedRecord: " not in stored.block
    )


def _goes(stored: StoredRecord, gone: RemovalRule) -> str:
    return gone(stored.url, stored.at) if stored.url and "warc-date" in stored.fields else ""


def remove_records(
    archive: Archive, rule: RemovalRule, reasons: Mapping[str, str], now: datetime
) -> Iterator[RewrittenFile]:
    """Write successors of all files that hold records that are to go; `reasons` are by the names of
    `gone`, for the record of it.

    A 304 goes with the version that it speaks of.
    """
    found = survey_files(archive.closed_files(), rule)
    for path in archive.closed_files():
        if path.name in found:
            yield rewrite_file(
                archive,
                path,
                rule,
                dependents=found[path.name].dependents,
                reasons=reasons,
                now=now,
            )


def delete_old_files(rewritten: Iterable[RewrittenFile]) -> None:
    """Remove the old files, after the new places are written down."""
    for each in rewritten:
        index_path(each.old).unlink(missing_ok=True)
        each.old.unlink(missing_ok=True)
        sync_folder(each.old.parent)


def refresh_index(folder: Path) -> None:
    """The common index, as far as there is one, says nothing more of files that were dropped."""
    if folder.is_dir():
        merge_indexes(folder)


def unfinished_rewrites(archive: Archive) -> Iterator[RewrittenFile]:
    """What a kill has left: successors that are whole, while the old file is still there."""
    for new in archive.closed_files():
        old = predecessor_path(new)
        if old is not None and old.exists() and (found := _compared(old, new)) is not None:
            if not index_path(new).exists():
                write_index(new)
            yield found


def _compared(old: Path, new: Path) -> RewrittenFile | None:
    """By the ids of their records. None if the one is no successor of the other."""
    after = dict[str, tuple[int, int]]()
    note = b""
    with new.open("rb", buffering=1 << 18) as file:
        for stored in salvage_records(file):
            after[stored.id] = stored.offset, stored.length
            note = (
                stored.block
                if stored.kind == "metadata" and stored.block.startswith(_NOTE)
                else b""
            )
    pairs = [line.partition(": ") for line in note.decode("utf-8", "replace").splitlines()]
    names = [value for name, _, value in pairs if name == "removed"]
    removed = dict(
        zip(names, (int(value) for name, _, value in pairs if name == "records"), strict=False)
    )
    moved = dict[int, tuple[int, int]]()
    lost = dict[CaptureKey, str]()
    missing = 0
    with old.open("rb", buffering=1 << 18) as file:
        for stored in salvage_records(file):
            if stored.id in after:
                moved[stored.offset] = after[stored.id]
                continue
            missing += 1
            if stored.kind in ("response", "resource"):
                lost[stored.url, stored.at] = names[0] if names else ""
    fits = note and len(moved) == len(after) - 1 and missing == sum(removed.values())
    return RewrittenFile(old, new, removed, moved=moved, lost=lost) if fits else None


def successor_path(path: Path) -> Path:
    """The next name that is free."""
    number = int((_REVISION.search(path.name) or [0, 0])[1] or 0)
    while (
        new := path.with_name(_REVISION.sub("", path.name) + f"-r{number + 1}{SUFFIX}")
    ).exists():
        number += 1
    return new


def predecessor_path(path: Path) -> Path | None:
    number = int((_REVISION.search(path.name) or [0, 0])[1] or 0)
    base = _REVISION.sub("", path.name)
    return (
        path.with_name(base + (f"-r{number - 1}" if number > 1 else "") + SUFFIX)
        if number
        else None
    )


def rewrite_file(
    archive: Archive,
    path: Path,
    rule: RemovalRule,
    dependents: Mapping[int, CaptureKey],
    reasons: Mapping[str, str],
    now: datetime,
    listed: bool = True,
) -> RewrittenFile:
    """A successor of one file. `listed`: the record of the removal says which records went."""
    moved = dict[int, tuple[int, int]]()
    new = successor_path(path)
    removed = dict[str, list[str]]()

    def pieces(file: BinaryIO) -> Iterator[bytes]:
        at = 0
        for stored in salvage_records(file):
            name = _goes(stored, rule)
            data = b""
            if not name:
                data = (
                    _whole(archive, stored)
                    if stored.offset in dependents
                    else os.pread(file.fileno(), stored.length, stored.offset)
                )
            if not data:
                removed.setdefault(
                    name or rule(*dependents[stored.offset]) or next(iter(reasons), ""), []
                ).append(stored.id)
                continue
            moved[stored.offset] = (at, len(data))
            at += len(data)
            yield data
        yield _note(removed, reasons, find_warcinfo_id(file), now=now, listed=listed)

    with path.open("rb", buffering=1 << 18) as file:
        write_file(new, pieces(file))
    write_index(new)
    sync_folder(new.parent)
    return RewrittenFile(path, new, {name: len(ids) for name, ids in removed.items()}, moved=moved)


def _note(
    removed: Mapping[str, list[str]],
    reasons: Mapping[str, str],
    info: str,
    now: datetime,
    listed: bool,
) -> bytes:
    """The record of a removal, the last of its file; every successor has one, and is known
    by it.
    """
    whole = [
        ("removed", "nothing"),
        ("reason", "records became whole, since what they repeat was removed"),
        ("records", 0),
    ]
    pairs: list[tuple[str, object]] = [] if removed else [*whole]
    for name, ids in removed.items():
        pairs += [("removed", name), ("reason", reasons.get(name, "")), ("records", len(ids))]
        pairs += [("removedRecord", each) for each in ids if listed]
    fields = {"WARC-Record-ID": new_id(), "WARC-Warcinfo-ID": info}
    return compress_member(
        build_record(
            "metadata", now, (warc_fields(pairs),), content_type=FIELDS_TYPE, fields=fields
        )
    )


def find_warcinfo_id(file: BinaryIO) -> str:
    """Of the warcinfo record that a file starts with; empty if it starts with another."""
    try:
        first = read_member(file, 0)
        stored = parse_record(first) if first is not None else None
    except BrokenRecordError:
        return ""
    return stored.id if stored is not None and stored.kind == "warcinfo" else ""


def _whole(archive: Archive, stored: StoredRecord) -> bytes:
    """A revisit as a response of its own, with its id; empty if it can't be: then it has no
    content, and would name the page.
    """
    if stored.fields.get("warc-profile") == NOT_MODIFIED:
        return b""
    try:
        found = archive.resolve_record(stored)
    except ArchiveError:
        return b""
    exchange = Exchange(
        stored.url,
        stored.at,
        found.head,
        body=found.payload,
        address=stored.fields.get("warc-ip-address", ""),
    )
    made = build_response(
        exchange,
        None,
        stored.fields.get("warc-warcinfo-id", ""),
        algorithm=stored.digest.partition(":")[0],
    )
    return compress_member(made.data.replace(made.id.encode(), stored.id.encode(), 1))
