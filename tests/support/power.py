"""A disk that loses power: what a process has not synced may be gone afterwards, or be something
else.

In the process that writes, `Recorder` notes every sync of a file and of a folder; it stands in for
the disk, so nothing is really synced. After a kill `Disk.fail` turns the folder into what such a
disk may have kept: a file as far as it was synced, and behind that whatever chance gives; names as
of the last sync of the folder, each later change kept or not.
"""

from __future__ import annotations

import json
import os
import random
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawlproj.archive import open_file
from crawlproj.archive.gzip_members import BrokenRecordError, iter_members
from crawlproj.archive.open_file import OPEN
from crawlproj.archive.stored_record import parse_record
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.scheduling.archiver import Archiver

PAGE = 4_096
LATE_S = 1.0


class Recorder:
    """As an extension of a crawl: POWER_DISK is the folder of the notes, POWER_SYNC_S how long a
    sync takes, POWER_BROKEN which rule is broken on purpose.
    """

    def __init__(self, home: Path, sync_s: float = 0.0, broken: str = "") -> None:
        self._home = home
        self._sync_s = sync_s
        (home / "kept").mkdir(parents=True, exist_ok=True)
        self._notes = os.open(home / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.fsync = self.sync
        open_file._sync = self.sync
        self._watch_commits()
        BREAK[broken](self)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Recorder:
        settings = crawler.settings
        return cls(
            Path(settings["POWER_DISK"]),
            settings.getfloat("POWER_SYNC_S"),
            settings.get("POWER_BROKEN", ""),
        )

    def sync(self, file: int) -> None:
        found = os.fstat(file)
        if stat.S_ISDIR(found.st_mode):
            self.note(folder=found.st_ino, names=names(file, self._home / "kept"))
        else:
            time.sleep(self._sync_s)
            self.note(file=found.st_ino, size=found.st_size)

    def note(self, **facts: object) -> None:
        os.write(self._notes, json.dumps(facts).encode() + b"\n")

    def _watch_commits(self) -> None:
        """Where the records are that a transaction tells of, noted before it."""
        true = PostgresFrontier.commit

        def commit(frontier: PostgresFrontier, batch: Any, worker: str = "") -> Any:
            places = [
                outcome.receipt.record_location
                for outcome in batch.outcomes
                if outcome.receipt is not None
            ]
            self.note(
                commit=[
                    (place.file, place.offset + place.length) if place else None for place in places
                ]
            )
            done = true(frontier, batch, worker)
            self.note(committed=len(places))
            return done

        PostgresFrontier.commit = commit  # type: ignore[method-assign]


def names(folder: int | Path, kept: Path) -> dict[str, int]:
    """What is in a folder, name by name; each file is linked elsewhere too, so that it can come
    back.
    """
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                found[entry.name] = entry.inode()
                here = {"src_dir_fd": folder} if isinstance(folder, int) else {}
                try:
                    os.link(entry.name if here else entry.path, kept / str(entry.inode()), **here)  # type: ignore[arg-type]
                except FileExistsError:
                    pass
                except FileNotFoundError:  # renamed or removed meanwhile, by another process
                    del found[entry.name]
            elif entry.is_dir(follow_symlinks=False):
                found[entry.name + "/"] = entry.inode()
    return found


def _no_sync(recorder: Recorder) -> None:
    open_file._sync = lambda file: None


def _no_folder_sync(recorder: Recorder) -> None:
    true = recorder.sync
    recorder.sync = lambda file: None if stat.S_ISDIR(os.fstat(file).st_mode) else true(file)  # type: ignore[method-assign]
    os.fsync = recorder.sync


def _commit_first(recorder: Recorder) -> None:
    """The transaction comes first, the sync after it."""
    late: list[int] = []
    true = Archiver.mark_stored

    def stored(vault: Archiver, outcomes: Any) -> None:
        true(vault, outcomes)
        time.sleep(LATE_S)
        while late:
            recorder.sync(late[-1])
            os.close(late.pop())

    open_file._sync = lambda file: late.append(os.dup(file))
    Archiver.mark_stored = stored  # type: ignore[method-assign]


BREAK: Mapping[str, Callable[[Recorder], None]] = {
    "": lambda recorder: None,
    "no sync": _no_sync,
    "no sync of the folder": _no_folder_sync,
    "commit first": _commit_first,
}


@dataclass(frozen=True, slots=True)
class Loss:
    """What happened to one file: records that were whole before and are not touched, and how many
    were.
    """

    name: str
    how: str
    untouched: frozenset[str] = frozenset()
    touched: int = 0


class Disk:
    """The folder `folder` on a disk whose notes are in `home`."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self._home = home
        self._notes = home / "notes"
        (home / "kept").mkdir(parents=True, exist_ok=True)

    @property
    def settings(self) -> dict[str, object]:
        return {"EXTENSIONS": {"tests.support.power.Recorder": 0}, "POWER_DISK": str(self._home)}

    def notes(self) -> list[dict[str, Any]]:
        lines = self._notes.read_bytes().splitlines(keepends=True) if self._notes.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def synced(self) -> dict[int, int]:
        return {note["file"]: note["size"] for note in self.notes() if "file" in note}

    def durable(self) -> dict[str, int]:
        """The names as of the last sync; none, if the folder itself was made and that was never
        synced.
        """
        found: dict[str, int] = {}
        here = self.folder.stat().st_ino if self.folder.is_dir() else 0
        inside = False
        parent = self.folder.resolve().parent.stat().st_ino
        for note in self.notes():
            if note.get("folder") == here:
                found = note["names"]
            inside |= (
                note.get("folder") == parent and note["names"].get(self.folder.name + "/") == here
            )
        return found if inside else {}

    def unsynced(self) -> int:
        """Bytes of open files that a loss of power may take."""
        synced = self.synced()
        sizes = [
            (found.st_size, found.st_ino)
            for found in (path.stat() for path in self.folder.glob(f"*{OPEN}"))
        ]
        return sum(max(0, size - synced.get(inode, 0)) for size, inode in sizes)

    def settle(self) -> None:
        """All that is there is on disk: how a test begins, and how it goes on after a loss."""
        for path in (self._home / "kept").iterdir():
            path.unlink()
        sizes = [
            {"file": path.stat().st_ino, "size": path.stat().st_size}
            for path in self.folder.iterdir()
        ]
        here = {
            "folder": self.folder.stat().st_ino,
            "names": names(self.folder, self._home / "kept"),
        }
        above = self.folder.resolve().parent
        around = {
            "folder": above.stat().st_ino,
            "names": {self.folder.name + "/": self.folder.stat().st_ino},
        }
        self._notes.write_text("".join(json.dumps(note) + "\n" for note in [*sizes, here, around]))

    def fail(self, dice: random.Random, worst: bool = False) -> list[Loss]:
        """Nobody may be writing. With `worst` nothing is kept that was not synced."""
        synced = self.synced()
        kept = self._home / "kept"
        before = self.durable()
        after = names(self.folder, kept)
        stays = {
            inode
            for inode in sorted({*before.values(), *after.values()})
            if not worst and dice.random() < 0.5
        }
        found = self._arrange(merged(before, after, stays))
        losses = [_damage(path, synced.get(path.stat().st_ino, 0), dice, worst) for path in found]
        losses += [
            Loss(name, "gone") for name in sorted(after.keys() - {path.name for path in found})
        ]
        self.settle()
        return [loss for loss in losses if loss.how]

    def _arrange(self, wanted: Mapping[str, int]) -> list[Path]:
        for path in self.folder.iterdir():
            if path.is_file():
                path.unlink()
        for name, inode in wanted.items():
            os.link(self._home / "kept" / str(inode), self.folder / name)
        return [self.folder / name for name in sorted(wanted)]


def merged(
    before: Mapping[str, int], after: Mapping[str, int], stays: Iterable[int]
) -> dict[str, int]:
    """Names of which those changes were kept that concern the files in `stays`. A rename is kept or
    not, never half.
    """
    found = dict(before)
    kept = set(stays)
    for name, inode in before.items():
        if (
            after.get(name) != inode
            and inode in kept
            and (name not in after or inode in after.values())
        ):
            del found[name]
    for name, inode in after.items():
        if inode in kept:
            found[name] = inode
    return {name: inode for name, inode in found.items() if not name.endswith("/")}


def _damage(path: Path, synced: int, dice: random.Random, worst: bool) -> Loss:
    """What is behind the last sync."""
    data = path.read_bytes()
    if len(data) <= synced:
        return Loss(path.name, "")
    start = dice.randrange(synced, len(data))
    end = min(len(data), (start // PAGE + 1) * PAGE)
    how = "cut" if worst else dice.choice(["whole", "cut", "zeros", "noise", "hole"])
    if how == "cut":
        start = synced if worst else start
        end = len(data)
        left = data[:start]
    elif how == "hole":
        left = data[:start] + bytes(end - start) + data[end:]
    else:
        start = len(data) if how == "whole" else start
        end = len(data)
        left = data[:start] + (
            bytes(end - start) if how == "zeros" else dice.randbytes(end - start)
        )
    places = records(path) if path.name.endswith(OPEN) else {}
    known = (
        bool(places) and min(places.values())[1] <= start
    )  # without its first record nothing behind damage counts
    path.write_bytes(left)  # the same file: its links and notes stay
    untouched = frozenset(
        name for name, (first, last) in places.items() if last <= start or (first >= end and known)
    )
    return Loss(path.name, how, untouched, len(places) - len(untouched))


def records(path: Path) -> dict[str, tuple[int, int]]:
    """From where to where each whole record is, by its id."""
    found = {}
    with path.open("rb") as file:
        try:
            for member in iter_members(file):
                found[parse_record(member).id] = member.offset, member.offset + member.length
        except BrokenRecordError:
            pass
    return found


def untimely(notes: Iterable[Mapping[str, Any]], folder: Path) -> list[str]:
    """Transactions that told of a record before it was on disk, and its file's name."""
    sizes: dict[int, int] = {}
    known: dict[str, int] = {}
    wrong = []
    for note in notes:
        if "file" in note:
            sizes[note["file"]] = note["size"]
        elif note.get("folder") == folder.stat().st_ino:
            known |= note["names"]
        for place in note.get("commit", ()):
            if place is None:
                wrong.append("no place")
                continue
            name, end = place
            inode = known.get(name) or known.get(name + OPEN)
            if inode is None or sizes.get(inode, 0) < end:
                wrong.append(
                    f"{name} to {end}: on disk {sizes.get(inode or 0)}, named {inode is not None}"
                )
    return wrong
