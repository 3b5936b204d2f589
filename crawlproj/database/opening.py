"""The database of a process: that of DATABASE_URL, or a server of our own in the crawl folder."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.errors import DatabaseError

log = logging.getLogger(__name__)

RECOVERY_S = 600.0
"""How long our own server may take to recover from a crash."""
STARTING_S = 60.0
"""How long the server of DATABASE_URL may take to start."""
NOT_YET = ("starting up", "not yet accepting", "in recovery mode")
"""What Postgres says then, without a code. Our own server speaks English."""


def open_database(database_url: str, crawl_dir: Path) -> tuple[Database, EmbeddedPostgres | None]:
    """A connected Database and, if `database_url` is empty, its server, to be closed after it."""
    if database_url:
        return _connect(database_url, STARTING_S), None
    embedded = EmbeddedPostgres(crawl_dir)
    try:
        return _connect(embedded.start(), RECOVERY_S), embedded
    except BaseException:
        embedded.close()
        raise


def _connect(dsn: str, timeout_s: float) -> Database:
    """Connect, waiting for a server that is up already but lets nobody in yet."""
    database = Database(dsn)
    deadline = time.monotonic() + timeout_s
    warned = False
    while True:
        try:
            database.connect()
            return database
        except DatabaseError as error:
            starting = any(words in str(error) for words in NOT_YET)
            if not starting or time.monotonic() > deadline:
                raise
            if not warned:
                log.warning("%s: waiting up to %g s", error, timeout_s)
                warned = True
        time.sleep(0.1)
