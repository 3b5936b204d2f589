"""Where the database is: the one that was named, or our own."""

from __future__ import annotations

from pathlib import Path

from crawlproj.db import Database
from crawlproj.embedded import Embedded


def open_database(database_url: str, crawl_dir: Path) -> tuple[Database, Embedded | None]:
    """A connected Database; with an Embedded, to be closed after it, if `database_url` is empty."""
    if database_url:
        return _connected(database_url), None
    embedded = Embedded(crawl_dir)
    try:
        return _connected(embedded.start()), embedded
    except BaseException:
        embedded.close()
        raise


def _connected(dsn: str) -> Database:
    database = Database(dsn)
    database.connect()
    return database
