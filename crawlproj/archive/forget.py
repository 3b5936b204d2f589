"""Taking pages out of the archive, for good, and saying so in it.

Places in a file change when something before them goes, and a database may hold places. So a file is never changed: its successor
(`NAME-r1.warc.gz`) is written beside it, the caller writes the new places down, and then `drop` removes the old file. A kill at any
moment leaves either state or both, and doing it again ends it. Records of other pages that were stored as "the same as this one"
become whole: their content is theirs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from crawlproj.archive.exchange import Exchange
from crawlproj.archive.files import SUFFIX, index_path
from crawlproj.archive.members import BrokenError, member, members, pack
from crawlproj.archive.reader import Archive
from crawlproj.archive.records import FIELDS, NOT_MODIFIED, answer, new_id, record, warc_fields
from crawlproj.archive.recovery import index
from crawlproj.archive.sorting import INDEX, merge_indexes, sync_folder, write_file
from crawlproj.archive.stored import Stored, parse
from crawlproj.errors import ArchiveError

Gone = Callable[[str, datetime], bool]
"""Whether what was captured from a URL at that time is to go."""
_REVISION = re.compile(r"(?:-r([0-9]+))?\.warc\.gz$")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """`moved` tells of each place (offset) in the old file where it is in the new one (offset, length)."""

    old: Path
    new: Path
    removed: int
    moved: dict[int, tuple[int, int]] = field(repr=False)


def forget(archive: Archive, gone: Gone, what: str, reason: str, now: datetime) -> Iterator[Rewritten]:
    """Write successors of all files that hold records that are to go; `what` and `reason` are for the record of it.

    A 304 goes with the version that it speaks of.
    """
    lost = _removed(archive, gone)
    for path in archive.files():
        if path.name in lost.files or lost.heirs.get(path.name):
            yield _rewrite(archive, path, gone, lost, [("removed", what), ("reason", reason)], now)


def drop(rewritten: Iterable[Rewritten]) -> None:
    """Remove the old files, after the new places are written down, and what the common index says of them."""
    folders = set()
    for each in rewritten:
        each.old.unlink(missing_ok=True)
        index_path(each.old).unlink(missing_ok=True)
        folders.add(each.old.parent)
    for folder in folders:
        if (folder / INDEX).exists():
            merge_indexes(folder)
        sync_folder(folder)


@dataclass(slots=True)
class _Lost:
    """`files` that hold what goes; `heirs`: offsets, by file, of records of other pages that need what goes."""

    files: set[str] = field(default_factory=set)
    heirs: dict[str, set[int]] = field(default_factory=dict)


def _removed(archive: Archive, gone: Gone) -> _Lost:
    """One look at every record."""
    lost = _Lost()
    for path, stored in archive.records():
        if _goes(stored, gone):
            lost.files.add(path.name)
        elif stored.kind == "revisit" and (target := stored.refers_to) is not None and gone(target.url, target.at):
            lost.heirs.setdefault(path.name, set()).add(stored.offset)
    return lost


def _goes(stored: Stored, gone: Gone) -> bool:
    return bool(stored.url) and gone(stored.url, stored.at)


def successor(path: Path) -> Path:
    number = int((_REVISION.search(path.name) or [0, 0])[1] or 0)
    return path.with_name(_REVISION.sub("", path.name) + f"-r{number + 1}{SUFFIX}")


def _rewrite(
    archive: Archive, path: Path, gone: Gone, lost: _Lost, about: list[tuple[str, object]], now: datetime
) -> Rewritten:  # fmt: skip
    heirs, moved, new = lost.heirs.get(path.name, set()), dict[int, tuple[int, int]](), successor(path)
    removed: list[str] = []

    def pieces(file: BinaryIO) -> Iterator[bytes]:
        at = 0
        for found in members(file):
            stored = parse(found)
            data = b""
            if not _goes(stored, gone):
                data = _whole(archive, stored) if found.offset in heirs else os.pread(file.fileno(), found.length, found.offset)
            if not data:
                removed.append(stored.id)
                continue
            moved[found.offset] = (at, len(data))
            at += len(data)
            yield data
        note = [*about, ("records", len(removed)), *(("removedRecord", each) for each in removed)]
        fields = {"WARC-Record-ID": new_id(), "WARC-Warcinfo-ID": info_id(file)}
        yield pack(record("metadata", now, (warc_fields(note),), FIELDS, fields))

    with path.open("rb", buffering=1 << 18) as file:
        write_file(new, pieces(file))
    index(new)
    sync_folder(new.parent)
    return Rewritten(path, new, len(removed), moved)


def info_id(file: BinaryIO) -> str:
    """Of the warcinfo record that a file starts with; empty if it starts with another."""
    try:
        first = member(file, 0)
        stored = parse(first) if first is not None else None
    except BrokenError:
        return ""
    return stored.id if stored is not None and stored.kind == "warcinfo" else ""


def _whole(archive: Archive, stored: Stored) -> bytes:
    """A revisit as a response of its own, with its id; empty if it can't be: then it has no content, and would name the page."""
    if stored.fields.get("warc-profile") == NOT_MODIFIED:
        return b""
    try:
        found = archive.resolved(stored)
    except ArchiveError:
        return b""
    exchange = Exchange(stored.url, stored.at, found.head, found.payload, address=stored.fields.get("warc-ip-address", ""))
    made = answer(exchange, None, stored.fields.get("warc-warcinfo-id", ""), stored.digest.partition(":")[0])
    return pack(made.data.replace(made.id.encode(), stored.id.encode(), 1))
