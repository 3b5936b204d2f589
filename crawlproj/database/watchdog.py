"""Somebody who notices that the database has fallen silent, since the thread that waits for its
answer can't.
"""

from __future__ import annotations

import logging
import threading

from crawlproj.database.connection import Database

log = logging.getLogger(__name__)

LOOK_S = 1.0
PART = 2 / 3
"""Of the patience: the rest is for connecting again."""


class DatabaseWatchdog(threading.Thread):
    """Cuts the connection when a question has not been answered for two thirds of `patience_s`;
    `stop` ends it.
    """

    def __init__(self, database: Database, patience_s: float) -> None:
        super().__init__(name="watch", daemon=True)
        self._database = database
        self._limit_s = patience_s * PART
        self._end = threading.Event()
        self.start()

    def stop(self) -> None:
        self._end.set()

    def run(self) -> None:
        while not self._end.wait(min(LOOK_S, max(0.05, self._limit_s / 4))):
            if (silent_s := self._database.silent_s) > self._limit_s:
                log.warning("The database has not answered for %.0f s: hanging up", silent_s)
                self._database.hang_up()
