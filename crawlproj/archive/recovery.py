"""After a kill or a loss of power: files that nobody writes any more are cut after their last whole
record, indexed and closed.

A file that another process is writing is locked by it and left alone. Doing it twice does no harm,
nor does a kill in the middle. Whole records behind a damaged place (a loss of power can leave one)
are not lost: they go to a file of their own. Only those count that name the first record of their
file: a page that was being written may be a WARC file itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from crawlproj.archive.cdxj import IndexEntry
from crawlproj.archive.fsync import sync_folder
from crawlproj.archive.gzip_members import BrokenRecordError, GzipMember, next_member, read_member
from crawlproj.archive.index_builder import IndexBuilder
from crawlproj.archive.index_merge import PART, LineSorter, file_indexes, write_file
from crawlproj.archive.locks import lock_file
from crawlproj.archive.open_file import OPEN, SUFFIX, index_path
from crawlproj.archive.stored_record import StoredRecord, parse_record


@dataclass(frozen=True, slots=True)
class RepairedFile:
    """`file` is the name of the closed file, empty if nothing was in it; `saved` is that of the one
    with records behind damage.
    """

    file: str
    records: int
    cut_bytes: int
    saved: str = ""
    why: str = ""


def repair_open_files(folder: Path) -> list[RepairedFile]:
    """Close what was left open in `folder`."""
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}{OPEN}")):
        if (file := lock_file(path)) is not None:
            with os.fdopen(file, "r+b", buffering=1 << 18) as opened:
                found.append(_close(path, opened))
    for path in folder.glob(f"*{PART}"):
        if (half := lock_file(path)) is not None:
            path.unlink()
            os.close(half)
    return found


def repair_indexes(folder: Path, thorough: bool = False) -> list[RepairedFile]:
    """Closed files whose index is missing or half, as a loss of power between two renames leaves
    them, are indexed; indexes without a file go. For who holds the lock of those who rewrite. `why`
    says what is wrong with a file behind its last whole record. `thorough`: each line of each index
    is read.
    """
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if not _ends_well(index_path(path)) or (thorough and not _is_index(index_path(path))):
            empty = index_path(path).exists()
            with path.open("rb") as file:
                count, _, broken = _scan(file, path.name, path)
            if (
                broken is not None or not empty or index_path(path).stat().st_size
            ):  # else nothing is to be listed, and was not
                found.append(RepairedFile(path.name, count, 0, why=str(broken or "")))
    found += [RepairedFile(path.name, 0, 0) for path in orphan_indexes(folder)]
    for path in orphan_indexes(folder):
        path.unlink(missing_ok=True)
    sync_folder(folder)
    return found


def _ends_well(path: Path) -> bool:
    """It is there, and does not end in the middle of a line. One without lines may have
    lost them.
    """
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    except OSError:
        return False


def _is_index(path: Path) -> bool:
    """Does it consist of entries, in their order?"""
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
    """Indexes whose file is gone. A file that is just being closed has its index first, and another
    name: that is asked first.
    """
    return [
        path
        for path in file_indexes(folder)
        if not any(
            (folder / (path.stem + end)).exists() for end in (SUFFIX + OPEN, SUFFIX, ".warc")
        )
    ]


def write_index(path: Path) -> int:
    """Write the index of a closed file anew; returns the number of its records. BrokenError if the
    file is damaged.
    """
    with path.open("rb") as file:
        count, _, broken = _scan(file, path.name, path)
    if broken is not None:
        raise broken
    return count


def _scan(file: BinaryIO, name: str, path: Path) -> tuple[int, int, BrokenRecordError | None]:
    """Index all whole records from the start; how many there are, where they end, and what comes
    then.
    """
    lines = LineSorter(path.parent)
    count = 0
    end = 0
    broken = None
    listing = IndexBuilder(name, lambda entry: lines.add(entry.to_line()))
    try:
        count, end, broken = walk_records(file, listing.add_record)
        listing.close()
        if count:
            write_file(index_path(path), lines.sorted_lines())
    finally:
        lines.close()
    return count, end, broken


def walk_records(
    file: BinaryIO, on_record: Callable[[StoredRecord], None]
) -> tuple[int, int, BrokenRecordError | None]:
    """Give out whole records until the first that is none."""
    count = end = 0
    try:
        while (found := read_member(file, end)) is not None:
            on_record(parse_record(found))
            count = count + 1
            end = end + found.length
    except BrokenRecordError as error:
        return count, end, error
    return count, end, None


def salvage_records(file: BinaryIO) -> Iterator[StoredRecord]:
    """All whole records, also those behind damaged places."""
    offset = 0
    while True:
        try:
            found = read_member(file, offset)
            stored = parse_record(found) if found is not None else None
        except BrokenRecordError:
            found = _next_record(file, offset + 1)
            stored = parse_record(found) if found is not None else None
        if found is None or stored is None:
            return
        yield stored
        offset = found.offset + found.length


def _close(path: Path, file: BinaryIO) -> RepairedFile:
    name = path.name.removesuffix(OPEN)
    folder = path.parent
    size = os.fstat(file.fileno()).st_size
    count, end, broken = _scan(file, name, path)
    saved = _save_rest(folder / name, file, end) if broken is not None else ""
    os.ftruncate(file.fileno(), end)
    os.fsync(file.fileno())
    if count:
        path.replace(folder / name)
    else:
        path.unlink()
    sync_folder(folder)
    return RepairedFile(
        name if count else "", count, size - end, saved=saved, why=broken.why if broken else ""
    )


def _save_rest(path: Path, file: BinaryIO, end: int) -> str:
    """Whole records of this file after `end` go to another one, behind its first; returns its name,
    empty if there are none.
    """
    first = read_member(file, 0) if end else None
    if first is None:
        return ""
    places = [(0, first.length)]
    own = parse_record(first).id
    found = _next_record(file, end + 1)
    while found is not None:
        places += (
            [(found.offset, found.length)]
            if parse_record(found).fields.get("warc-warcinfo-id") == own
            else []
        )
        found = _next_record(file, found.offset + found.length)
    if len(places) == 1:
        return ""
    rest = path.with_name(path.name.removesuffix(SUFFIX) + "-rest" + SUFFIX)
    write_file(rest, (os.pread(file.fileno(), length, offset) for offset, length in places))
    write_index(rest)
    return rest.name


def _next_record(file: BinaryIO, offset: int) -> GzipMember | None:
    """The next member that is one whole record."""
    while (found := next_member(file, offset)) is not None:
        try:
            parse_record(found)
        except BrokenRecordError:
            offset = found.offset + 1
        else:
            return found
    return None
