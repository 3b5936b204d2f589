"""A thread that notices when the database has fallen silent; the one that waits for it can't."""

from __future__ import annotations

import logging
import threading

from crawlproj.database.connection import Database

log = logging.getLogger(__name__)

CHECK_EVERY_S = 1.0
SHARE = 2 / 3
"""Share of the patience that one statement may use up; the rest is for connecting again."""


class DatabaseWatchdog(threading.Thread):
    """Cuts the connection when a statement has had no reply for two thirds of `patience_s`.

    It runs from the start, until `stop`.
    """

    def __init__(self, database: Database, patience_s: float) -> None:
        super().__init__(name="watch", daemon=True)
        self._database = database
        self._limit_s = patience_s * SHARE
        self._end = threading.Event()
        self.start()

    def stop(self) -> None:
        self._end.set()

    def run(self) -> None:
        check_every_s = min(CHECK_EVERY_S, max(0.05, self._limit_s / 4))
        while not self._end.wait(check_every_s):
            silent_s = self._database.silent_s
            if silent_s > self._limit_s:
                log.warning("The database has not answered for %.0f s: hanging up", silent_s)
                self._database.hang_up()
