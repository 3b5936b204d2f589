"""Records go from the archive while the database and running crawls look on: nobody is left with a
place that leads nowhere.

One process at a time does it in a folder. First all workers are called: they read anew what is
barred, close the file that they write, and answer when every end of a visit whose record is in a
closed file is stored. Then, file by file: the successor is written, the new places are stored in
one transaction, the old file goes. A kill at any moment is made good by the next run.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from crawlproj.archive import Archive
from crawlproj.archive.locks import rewrite_lock
from crawlproj.archive.open_file import OPEN, SUFFIX
from crawlproj.archive.recovery import repair_indexes, repair_open_files, salvage_records
from crawlproj.archive.removal import (
    FileSurvey,
    RemovalRule,
    RewrittenFile,
    delete_old_files,
    refresh_index,
    rewrite_file,
    survey_files,
    unfinished_rewrites,
)
from crawlproj.archive.stored_record import StoredRecord
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database
from crawlproj.errors import ArchiveError
from crawlproj.scheduling.worker import is_dead

LOOK_S = 0.1
BUSY = "another process takes records out of this archive, or adds some: it is waited for"
Places = dict[str, list[tuple[str, int, int]]]


@dataclass(slots=True)
class RewriteResult:
    """Records that went, by name; files that were written anew or dropped; bytes that this freed;
    versions that went with them.
    """

    records: Counter[str] = field(default_factory=Counter)
    files: int = 0
    dropped: int = 0
    freed: int = 0
    versions: int = 0


class WarcRewriter:
    """A context manager: while it is open, nobody else rewrites files of this folder. `files` are
    those that may be rewritten.
    """

    def __init__(
        self,
        db: Database,
        folder: Path,
        patience_s: float,
        tell: Callable[[str], None],
        calls: int = 1,
    ) -> None:
        """A worker that is called may just have begun a file, under rules that it did not know yet:
        only a second call makes sure that this one is searched, too.
        """
        self._calls = calls
        self._db = db
        self._folder = folder
        self._patience_s = patience_s
        self._tell = tell
        self.archive = Archive(folder)
        self.done = RewriteResult()
        self.files: list[Path] = []
        self.leftovers: list[RewrittenFile] = []
        self.mended = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(rewrite_lock(self._folder, lambda: self._tell(BUSY)))
        try:
            repair_open_files(self._folder)
            self.mended = len(repair_indexes(self._folder))
            self.leftovers = list(unfinished_rewrites(self.archive))
            for _ in range(self._calls):
                names = {path.name.removesuffix(OPEN) for path in self._folder.glob(f"*{SUFFIX}*")}
                self._call()
            old = {each.old for each in self.leftovers}
            self.files = [
                path
                for path in self.archive.closed_files()
                if path.name in names and path not in old
            ]
        except BaseException:
            self._stack.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _call(self) -> None:
        """Returns when no living worker holds anything back that is about a closed file.
        ArchiveError if one does not answer.
        """
        call = self._db.fetch_value("takedown_call")
        until = time.monotonic() + self._patience_s
        while deaf := [
            name for (name,) in self._db.fetch_rows("takedown_deaf", call=call) if not is_dead(name)
        ]:
            if time.monotonic() > until:
                raise ArchiveError(
                    f"a running worker has not closed its WARC file: {', '.join(deaf)}; do it "
                    "again, or stop it first"
                )
            time.sleep(LOOK_S)

    def survey_files(
        self, gone: RemovalRule, see: Callable[[Path, StoredRecord], None] | None = None
    ) -> dict[str, FileSurvey]:
        lost = {capture: name for each in self.leftovers for capture, name in each.lost.items()}
        return survey_files(self.files, gone, lost, see=see)

    def still_open(self, gone: RemovalRule) -> list[str]:
        """Files that somebody writes, who does not know of it, and that hold some of it."""
        found = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}{OPEN}")):
            with path.open("rb") as file:
                if any(
                    stored.url and gone(stored.url, stored.at) for stored in salvage_records(file)
                ):
                    found.append(path.name)
        return found

    def remove_records(
        self,
        found: Mapping[str, FileSurvey],
        gone: RemovalRule,
        reasons: Mapping[str, str],
        now: datetime,
        listed: bool = True,
    ) -> RewriteResult:
        """Write these files anew, without what goes. Those with records that need something that
        goes come first, and none of them is dropped before all are written. Then those of which
        nothing is left, which makes room.
        """
        paths = [path for path in self.files if path.name in found]
        places = self._places(
            [*(each.old.name for each in self.leftovers), *(path.name for path in paths)]
        )
        waiting = self.leftovers
        for each in waiting:
            self._move(each, places)
        for path in sorted(
            paths, key=lambda path: (not found[path.name].heirs, found[path.name].left > 0)
        ):
            if waiting and not found[path.name].heirs:
                self._drop(waiting)
                waiting = []
            done = self._rewrite(
                path, gone, found[path.name], reasons=reasons, now=now, listed=listed
            )
            self._move(done, places)
            if found[path.name].heirs:
                waiting.append(done)
            else:
                self._drop([done])
        self._drop(waiting)
        self.leftovers = []
        refresh_index(self._folder)
        return self.done

    def _rewrite(
        self,
        path: Path,
        gone: RemovalRule,
        found: FileSurvey,
        reasons: Mapping[str, str],
        now: datetime,
        listed: bool,
    ) -> RewrittenFile:
        """Nothing but its first record left, and no need to say so: then there is no successor."""
        if not found.left and not listed:
            return RewrittenFile(path, None, dict(found.going), moved={})
        return rewrite_file(
            self.archive, path, gone, heirs=found.heirs, reasons=reasons, now=now, listed=listed
        )

    def _places(self, files: list[str]) -> Places:
        """All that the database knows in these files, in one look."""
        places: Places = defaultdict(list)
        for kind, url, file, offset in (
            self._db.fetch_rows("takedown_places", files=array_literal(files)) if files else ()
        ):
            places[file].append((kind, url, offset))
        return places

    def _move(self, done: RewrittenFile, places: Places) -> None:
        """The new places, all at once. A version whose record is gone is gone; a page without its
        body stays known.
        """
        here = places.pop(done.old.name, [])
        name = done.new.name if done.new is not None else ""
        moves = {
            kind: [
                (url, offset, done.moved.get(offset)) for what, url, offset in here if what == kind
            ]
            for kind in ("page", "version")
        }
        with self._db.transaction() as tx:
            # URLs before pages, as in the commits of a crawl: else each could wait for the other.
            tx.run(
                "takedown_read_anew",
                ids=array_literal(row[0] for row in moves["page"] if row[2] is None),
            )
            tx.run("takedown_move_pages", **_moves(done.old.name, name, moves["page"]))
            kept = [row for row in moves["version"] if row[2] is not None]
            tx.run("takedown_move_versions", **_moves(done.old.name, name, kept))
            gone = [row for row in moves["version"] if row[2] is None]
            urls = array_literal(row[0] for row in gone)
            old = array_literal(row[1] for row in gone)
            self.done.versions += tx.run(
                "takedown_drop_versions", url=urls, old=old, **{"from": done.old.name}
            )
            what = array_literal(done.removed)
            records = array_literal(done.removed.values())
            tx.run("takedown_rewrote", what=what, records=records, file=name or done.old.name)
        # Places that lead to the new file may be moved on in this run.
        places[name] += [
            (kind, url, place[0])
            for kind in moves
            for url, _, place in moves[kind]
            if place is not None
        ]

    def _drop(self, done: Iterable[RewrittenFile]) -> None:
        for each in done:
            old = each.old.stat().st_size if each.old.exists() else 0
            new = each.new.stat().st_size if each.new is not None else 0
            delete_old_files([each])
            self.done.records.update(each.removed)
            self.done.files += each.new is not None
            self.done.dropped += each.new is None
            self.done.freed += old - new


def _moves(
    old: str, new: str, rows: list[tuple[int, int, tuple[int, int] | None]]
) -> dict[str, str]:
    return {
        "from": old,
        "url": array_literal(row[0] for row in rows),
        "old": array_literal(row[1] for row in rows),
        "file": array_literal(new if row[2] else None for row in rows),
        "start": array_literal(row[2] and row[2][0] for row in rows),
        "size": array_literal(row[2] and row[2][1] for row in rows),
    }
