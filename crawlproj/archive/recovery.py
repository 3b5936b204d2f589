"""Repair after a kill or a loss of power: files that no process writes any more are cut after their
last whole record, indexed and closed.

A file that another process is writing is locked by it and left alone. Repairing twice does no harm,
nor does a kill in the middle. Whole records behind a damaged part (a loss of power can leave one)
are not lost: they go to a file of their own. Only those count that name the warcinfo record of
their file, because a page that was being written may be a WARC file itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.fsync import sync_folder
from crawlproj.archive.gzip_members import BrokenRecordError, next_member, read_member
from crawlproj.archive.index_builder import IndexBuilder
from crawlproj.archive.index_merge import PART, LineSorter, file_indexes, write_file
from crawlproj.archive.locks import lock_file
from crawlproj.archive.open_file import OPEN, SUFFIX, index_path
from crawlproj.archive.stored_record import StoredRecord, parse_record


@dataclass(frozen=True, slots=True)
class RepairedFile:
    """What was done to a file. `file` is its closed name, empty if it had no record; `saved` is the
    name of the file with the records behind the damage, `why` says what the damage was.
    """

    file: str
    records: int
    cut_bytes: int
    saved: str = ""
    why: str = ""


def repair_open_files(folder: Path) -> list[RepairedFile]:
    """Close the WARC files that killed processes left open in `folder`."""
    repaired = []
    for path in sorted(folder.glob(f"*{SUFFIX}{OPEN}")):
        descriptor = lock_file(path)
        if descriptor is not None:
            with os.fdopen(descriptor, "r+b", buffering=1 << 18) as file:
                repaired.append(_close(path, file))
    for path in folder.glob(f"*{PART}"):
        descriptor = lock_file(path)
        if descriptor is not None:
            path.unlink()
            os.close(descriptor)
    return repaired


def repair_indexes(folder: Path, thorough: bool = False) -> list[RepairedFile]:
    """Index the closed files without a whole index, and delete indexes without a file.

    A loss of power between two renames leaves such files. `thorough`: each line of each index is
    read. The caller holds the rewrite lock.
    """
    repaired = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        index = index_path(path)
        if _ends_with_newline(index) and (not thorough or _is_index(index)):
            continue
        existed = index.exists()
        with path.open("rb") as file:
            count, _, broken = _index_records(file, path.name, path)
        # An index that was empty and still is has been right.
        if broken is not None or not existed or index.stat().st_size:
            repaired.append(RepairedFile(path.name, count, 0, why=str(broken or "")))
    for path in orphan_indexes(folder):
        repaired.append(RepairedFile(path.name, 0, 0))
        path.unlink(missing_ok=True)
    sync_folder(folder)
    return repaired


def _ends_with_newline(path: Path) -> bool:
    """Whether an index ends with a whole line; an empty one may have lost its lines."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    except OSError:
        return False


def _is_index(path: Path) -> bool:
    """Whether a file consists of sorted entries."""
    last = b""
    with path.open("rb") as file:
        for line in file:
            try:
                IndexEntry.from_line(line)
            except (ValueError, KeyError):
                return False
            if line < last:
                return False
            last = line
    return True


def orphan_indexes(folder: Path) -> list[Path]:
    """Indexes whose WARC file is gone."""
    # A file that is just being closed gets its index before its name: look for that name first.
    endings = (SUFFIX + OPEN, SUFFIX, ".warc")
    return [
        path
        for path in file_indexes(folder)
        if not any((folder / (path.stem + ending)).exists() for ending in endings)
    ]


def write_index(path: Path) -> int:
    """Write the index of a closed file and return the number of its records.

    Raises BrokenRecordError if the file is damaged.
    """
    with path.open("rb") as file:
        count, _, broken = _index_records(file, path.name, path)
    if broken is not None:
        raise broken
    return count


def _index_records(
    file: BinaryIO, name: str, path: Path
) -> tuple[int, int, BrokenRecordError | None]:
    """Write the index of all records up to the first damage; the result is that of walk_records."""
    lines = LineSorter(path.parent)
    count = 0
    end = 0
    broken = None
    builder = IndexBuilder(name, lambda entry: lines.add(entry.to_line()))
    try:
        count, end, broken = walk_records(file, builder.add_record)
        builder.close()
        if count:
            write_file(index_path(path), lines.sorted_lines())
    finally:
        lines.close()
    return count, end, broken


def walk_records(
    file: BinaryIO, on_record: Callable[[StoredRecord], None]
) -> tuple[int, int, BrokenRecordError | None]:
    """Call `on_record` with all records up to the first damage.

    Returns how many there are, where they end, and the damage, if any.
    """
    count = 0
    end = 0
    try:
        while (member := read_member(file, end)) is not None:
            on_record(parse_record(member))
            count += 1
            end += member.length
    except BrokenRecordError as error:
        return count, end, error
    return count, end, None


def salvage_records(file: BinaryIO) -> Iterator[StoredRecord]:
    """All whole records, also those behind damaged parts."""
    offset = 0
    while True:
        try:
            member = read_member(file, offset)
            stored = None if member is None else parse_record(member)
        except BrokenRecordError:
            stored = _next_record(file, offset + 1)
        if stored is None:
            return
        yield stored
        offset = stored.offset + stored.length


def _close(path: Path, file: BinaryIO) -> RepairedFile:
    """Cut an open file after its last whole record and close it; delete it if it has none."""
    name = path.name.removesuffix(OPEN)
    folder = path.parent
    size = os.fstat(file.fileno()).st_size
    count, end, broken = _index_records(file, name, path)
    saved = ""
    why = ""
    if broken is not None:
        saved = _save_rest(folder / name, file, end)
        why = broken.why
    os.ftruncate(file.fileno(), end)
    os.fsync(file.fileno())
    if count:
        path.replace(folder / name)
    else:
        path.unlink()
        name = ""
    sync_folder(folder)
    return RepairedFile(name, count, size - end, saved=saved, why=why)


def _save_rest(path: Path, file: BinaryIO, end: int) -> str:
    """Write the whole records after `end` to another file, behind the warcinfo record.

    Returns the name of that file, empty if there are no such records.
    """
    if end == 0:
        return ""
    first = read_member(file, 0)
    if first is None:
        return ""
    members = [(0, first.length)]
    warcinfo_id = parse_record(first).id
    stored = _next_record(file, end + 1)
    while stored is not None:
        if stored.fields.get("warc-warcinfo-id") == warcinfo_id:
            members.append((stored.offset, stored.length))
        stored = _next_record(file, stored.offset + stored.length)
    if len(members) == 1:
        return ""
    rest = path.with_name(path.name.removesuffix(SUFFIX) + "-rest" + SUFFIX)
    write_file(rest, (os.pread(file.fileno(), length, offset) for offset, length in members))
    write_index(rest)
    return rest.name


def _next_record(file: BinaryIO, offset: int) -> StoredRecord | None:
    """The next whole record, wherever after `offset` it starts."""
    while (member := next_member(file, offset)) is not None:
        try:
            return parse_record(member)
        except BrokenRecordError:
            offset = member.offset + 1
    return None
