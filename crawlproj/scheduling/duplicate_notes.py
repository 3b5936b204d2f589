"""What the archive is told of copies: a metadata record each, written after the verdict is stored.

The database is the truth, and says what is not written yet: a worker that is killed only delays it.
Runs in the database thread.
"""

from __future__ import annotations

import time
from typing import Final

from crawlproj.archive.exchange import LaterNote
from crawlproj.database.arrays import array_literal
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.frontier.rows import RECORD_PREFIX
from crawlproj.scheduling.archiver import Archiver

GAP_S: Final = 5.0
"""How often it is looked for copies that are not noted."""


class DuplicateNotes:
    """Writes the records for one crawl."""

    def __init__(self, frontier: PostgresFrontier, archiver: Archiver) -> None:
        self._frontier = frontier
        self._archiver = archiver
        self._looked_at = time.monotonic()

    def write_if_due(self) -> None:
        """Look for copies that are not noted, unless that was done just now."""
        if time.monotonic() - self._looked_at >= GAP_S:
            self._looked_at = time.monotonic()
            self.write_some()

    def write_some(self) -> int:
        """Write records of copies that have none, some hundred at a time; return how many."""
        now = self._frontier.now()
        with self._frontier.db.transaction() as tx:
            rows = tx.fetch_rows("unnoted", crawl=self._frontier.crawl_id)
            if not rows:
                return 0
            notes = [
                LaterNote(
                    url,
                    now,
                    f"{RECORD_PREFIX}{record}>" if record else "",
                    (
                        ("duplicate-of", original),
                        ("duplicate-kind", kind),
                        ("similarity", f"{similarity:.4f}"),
                    ),
                )
                for _, url, _, original, kind, similarity, record in rows
            ]
            if self._archiver.put_notes(notes):
                tx.run("mark_noted", ids=array_literal([row[0] for row in rows]))
        return len(rows)
