"""Waiting for a database that is away, or a disk that is full: for a limited time, and logged once.

Runs in the database thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from crawlproj.errors import ArchiveError, DatabaseError

log = logging.getLogger(__name__)

AGAIN_S = 0.5
"""Pause between two tries."""
FULL = "53100"
"""Postgres's code for a disk that is full."""
CALM_S = 3.0
"""A disk that is nearly full takes one write and refuses the next: it counts as back when it has
refused nothing for so long.
"""
HOPELESS = ("22", "23", "42")
"""Classes of Postgres errors that mean a wrong statement or wrong data: another try would only
repeat them.
"""


class OutageRetry:
    """`away`: it failed, and has not succeeded since. `heal` is called meanwhile, and brings the
    database back if it can.
    """

    def __init__(self, limit_s: float, heal: Callable[[], object] | None = None) -> None:
        self._limit_s = limit_s
        self._heal = heal
        self._since = 0.0
        self._what = "database"
        self._failed_at = 0.0
        self._full = False
        self.away = False

    def wait_or_raise(self, error: ArchiveError | DatabaseError, begun: float) -> None:
        """Wait a little before the next try; raise when it is of no use. The first try began at
        `begun`.
        """
        if isinstance(error, DatabaseError):
            what = "database"
            code = error.sqlstate or ""
        else:
            what = "archive"
            code = ""
        if code[:2] in HOPELESS:
            raise error
        self._failed_at = time.monotonic()
        self._full = code == FULL
        if not self.away:
            self._what = what
            log.warning(
                "Nothing is handed out, because the %s is away; waiting up to %g s: %s",
                self._what,
                self._limit_s,
                error,
            )
            self._since = begun
            self.away = True
        if time.monotonic() - self._since > self._limit_s:
            text = (
                f"no use of the {self._what} for {self._limit_s:g} s (DATABASE_PATIENCE): {error}"
            )
            if isinstance(error, DatabaseError):
                raise DatabaseError(text, error.sqlstate)
            raise ArchiveError(text)
        time.sleep(AGAIN_S)
        if self._heal is not None and isinstance(error, DatabaseError):
            with suppress(DatabaseError):
                self._heal()

    def note_success(self) -> None:
        """End the outage, since something was stored, unless a full disk may refuse the next."""
        if not self.away:
            return
        now = time.monotonic()
        if self._full and now - self._failed_at < CALM_S:
            return
        self.away = False
        log.warning("The %s answers again after %.0f s", self._what, now - self._since)
