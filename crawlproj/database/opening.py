"""Where the database is: the one that was named, or our own."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.errors import DatabaseError

log = logging.getLogger(__name__)

RECOVERY_S = 600.0
STARTING_S = 60.0
"""How long our own server may recover, and how long another that is just being started."""
NOT_YET = ("starting up", "not yet accepting", "in recovery mode")
"""In the words of Postgres, which gives no code to those it does not let in; ours
speaks English.
"""


def open_database(database_url: str, crawl_dir: Path) -> tuple[Database, EmbeddedPostgres | None]:
    """A connected Database; with an Embedded, to be closed after it, if `database_url` is empty."""
    if database_url:
        return _connected(database_url, STARTING_S), None
    embedded = EmbeddedPostgres(crawl_dir)
    try:
        return _connected(embedded.start(), RECOVERY_S), embedded
    except BaseException:
        embedded.close()
        raise


def _connected(dsn: str, patience_s: float) -> Database:
    """A server that recovers from a crash already answers, but lets nobody in yet."""
    database = Database(dsn)
    begun = time.monotonic()
    said = False
    while True:
        try:
            database.connect()
            return database
        except DatabaseError as error:
            if (
                not any(words in str(error) for words in NOT_YET)
                or time.monotonic() - begun > patience_s
            ):
                raise
            if not said:
                log.warning("%s: waiting up to %g s", error, patience_s)
                said = True
        time.sleep(0.1)
