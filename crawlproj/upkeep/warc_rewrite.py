"""Records go from the archive while crawls run, and no offset in the database is left that leads
nowhere.

One process at a time does it in a folder. First all workers are called: they read anew what is
barred, close the file that they write, and confirm when the outcome of every visit whose record is
in a closed file is stored. Then, file by file: the successor is written, the new offsets are stored
in one transaction, the old file is deleted. The next run completes what a kill interrupted.
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
from typing import NamedTuple, Self

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

POLL_S = 0.1
BUSY = "another process takes records out of this archive, or adds some: it is waited for"
KnownBodies = dict[str, list[tuple[str, int, int]]]
"""By file, the bodies that the database knows: kind (page, version), URL id, offset."""


class Move(NamedTuple):
    """A body that the database knows: its old offset, and where it is in the new file, if it is."""

    url_id: int
    old_offset: int
    new_offset: int | None
    length: int | None


@dataclass(slots=True)
class RewriteResult:
    """What was removed: records by the name of their rule, files rewritten and dropped, bytes
    freed.

    `versions` went from the database with their records.
    """

    records: Counter[str] = field(default_factory=Counter)
    files: int = 0
    dropped: int = 0
    freed: int = 0
    versions: int = 0


class WarcRewriter:
    """A context manager: while it is open, nobody else rewrites files of this folder.

    `files` are those that may be rewritten.
    """

    def __init__(
        self,
        db: Database,
        folder: Path,
        timeout_s: float,
        tell: Callable[[str], None],
        calls: int = 1,
    ) -> None:
        """`calls` is how often the workers are called.

        A worker that is called may just have begun a file, under rules that it did not know yet:
        only a second call makes sure that this file is searched, too.
        """
        self._calls = calls
        self._db = db
        self._folder = folder
        self._timeout_s = timeout_s
        self._tell = tell
        self.archive = Archive(folder)
        self.result = RewriteResult()
        self.files: list[Path] = []
        self.leftovers: list[RewrittenFile] = []
        self.repaired_indexes = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(rewrite_lock(self._folder, lambda: self._tell(BUSY)))
        try:
            repair_open_files(self._folder)
            self.repaired_indexes = len(repair_indexes(self._folder))
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
        """Call all workers, and wait until each living one has stored what is about closed files.

        ArchiveError if one does not confirm in time.
        """
        call = self._db.fetch_value("takedown_call")
        deadline = time.monotonic() + self._timeout_s
        while True:
            rows = self._db.fetch_rows("takedown_deaf", call=call)
            waited_for = [name for (name,) in rows if not is_dead(name)]
            if not waited_for:
                return
            if time.monotonic() > deadline:
                raise ArchiveError(
                    f"a running worker has not closed its WARC file: {', '.join(waited_for)}; do "
                    "it again, or stop it first"
                )
            time.sleep(POLL_S)

    def survey_files(
        self, rule: RemovalRule, on_record: Callable[[Path, StoredRecord], None] | None = None
    ) -> dict[str, FileSurvey]:
        """What goes from which file by the rule; `on_record` sees each record first."""
        lost = {capture: name for each in self.leftovers for capture, name in each.lost.items()}
        return survey_files(self.files, rule, lost, on_record=on_record)

    def still_open(self, rule: RemovalRule) -> list[str]:
        """Files with records that are to go, which somebody writes who does not know the rule."""
        found = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}{OPEN}")):
            with path.open("rb") as file:
                records = salvage_records(file)
                if any(stored.url and rule(stored.url, stored.at) for stored in records):
                    found.append(path.name)
        return found

    def remove_records(
        self,
        surveys: Mapping[str, FileSurvey],
        rule: RemovalRule,
        reasons: Mapping[str, str],
        now: datetime,
        listed: bool = True,
    ) -> RewriteResult:
        """Rewrite these files without what goes.

        Files with records that depend on something that goes come first, and no old file is
        deleted before all of these are written. Then come files of which nothing is left, which
        frees space.
        """

        def order(path: Path) -> tuple[bool, bool]:
            survey = surveys[path.name]
            return not survey.dependents, survey.remaining > 0

        paths = sorted((path for path in self.files if path.name in surveys), key=order)
        bodies = self._known_bodies(
            [*(each.old.name for each in self.leftovers), *(path.name for path in paths)]
        )
        waiting = self.leftovers
        for each in waiting:
            self._store_moves(each, bodies)
        for path in paths:
            survey = surveys[path.name]
            if waiting and not survey.dependents:
                self._delete_old(waiting)
                waiting = []
            rewritten = self._rewrite(path, rule, survey, reasons=reasons, now=now, listed=listed)
            self._store_moves(rewritten, bodies)
            if survey.dependents:
                waiting.append(rewritten)
            else:
                self._delete_old([rewritten])
        self._delete_old(waiting)
        self.leftovers = []
        refresh_index(self._folder)
        return self.result

    def _rewrite(
        self,
        path: Path,
        rule: RemovalRule,
        survey: FileSurvey,
        reasons: Mapping[str, str],
        now: datetime,
        listed: bool,
    ) -> RewrittenFile:
        """Write the successor of a file; none if nothing is left and the removal is not listed."""
        if not survey.remaining and not listed:
            return RewrittenFile(path, None, dict(survey.removed), moved={})
        return rewrite_file(
            self.archive,
            path,
            rule,
            dependents=survey.dependents,
            reasons=reasons,
            now=now,
            listed=listed,
        )

    def _known_bodies(self, files: list[str]) -> KnownBodies:
        """All bodies that the database knows in these files, by one query."""
        bodies: KnownBodies = defaultdict(list)
        if not files:
            return bodies
        rows = self._db.fetch_rows("takedown_places", files=array_literal(files))
        for kind, url_id, file, offset in rows:
            bodies[file].append((kind, url_id, offset))
        return bodies

    def _store_moves(self, rewritten: RewrittenFile, bodies: KnownBodies) -> None:
        """Store the new offsets in one transaction.

        A version goes with its record; a page without its body stays known.
        """
        old_name = rewritten.old.name
        new_name = ""
        if rewritten.new is not None:
            new_name = rewritten.new.name
        moves: dict[str, list[Move]] = {"page": [], "version": []}
        for kind, url_id, offset in bodies.pop(old_name, []):
            new_offset, length = rewritten.moved.get(offset, (None, None))
            moves[kind].append(Move(url_id, offset, new_offset, length))
        unread = [move.url_id for move in moves["page"] if move.new_offset is None]
        kept = [move for move in moves["version"] if move.new_offset is not None]
        gone = [move for move in moves["version"] if move.new_offset is None]
        with self._db.transaction() as tx:
            # URLs before pages, as in the commits of a crawl: else each could wait for the other.
            tx.run("takedown_read_anew", ids=array_literal(unread))
            tx.run("takedown_move_pages", **_move_columns(old_name, new_name, moves["page"]))
            tx.run("takedown_move_versions", **_move_columns(old_name, new_name, kept))
            self.result.versions += tx.run(
                "takedown_drop_versions",
                url=array_literal(move.url_id for move in gone),
                old=array_literal(move.old_offset for move in gone),
                **{"from": old_name},
            )
            tx.run(
                "takedown_rewrote",
                what=array_literal(rewritten.removed),
                records=array_literal(rewritten.removed.values()),
                file=new_name or old_name,
            )
        # The new file may be rewritten again in this run.
        for kind, moved in moves.items():
            for move in moved:
                if move.new_offset is not None:
                    bodies[new_name].append((kind, move.url_id, move.new_offset))

    def _delete_old(self, files: Iterable[RewrittenFile]) -> None:
        """Delete files whose successors are written and stored, and count what went."""
        for each in files:
            if each.old.exists():
                self.result.freed += each.old.stat().st_size
            if each.new is not None:
                self.result.freed -= each.new.stat().st_size
                self.result.files += 1
            else:
                self.result.dropped += 1
            delete_old_files([each])
            self.result.records.update(each.removed)


def _move_columns(old_file: str, new_file: str, moves: list[Move]) -> dict[str, str]:
    """The arguments of the queries takedown_move_pages and takedown_move_versions."""
    new_files = [new_file if move.new_offset is not None else None for move in moves]
    return {
        "from": old_file,
        "url": array_literal(move.url_id for move in moves),
        "old": array_literal(move.old_offset for move in moves),
        "file": array_literal(new_files),
        "start": array_literal(move.new_offset for move in moves),
        "size": array_literal(move.length for move in moves),
    }
