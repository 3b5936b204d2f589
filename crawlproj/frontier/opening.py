"""Commands open the database and the frontier of a crawl here: for reading, or for writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from crawlproj.database.connection import Database
from crawlproj.database.migrations import migrate, pending_migrations
from crawlproj.database.opening import open_database
from crawlproj.errors import ConfigError, CrawlprojError, DatabaseError
from crawlproj.frontier.base import CrawlSpec
from crawlproj.frontier.postgres import PostgresFrontier

if TYPE_CHECKING:
    from crawlproj.config import Config


class NoCrawlYet(CrawlprojError):
    """Nothing was crawled so far: the database is empty, or there is none."""


@contextmanager
def open_for_reading(config: Config) -> Iterator[Database]:
    """The database, for reading only: nothing is created. NoCrawlYet if nothing is there."""
    if not config.database_url and not (config.crawl_dir / "pg").exists():
        raise NoCrawlYet(
            f"nothing was crawled yet in {config.crawl_dir}: scrapy crawl site -a seeds=URL, or "
            "scrapy demo"
        )
    with _connected(config) as database:
        steps = pending_migrations(database)
        if steps and not database.fetch_value("migration_table"):
            raise NoCrawlYet(
                "nothing was crawled yet in this database: scrapy crawl site -a seeds=URL, or "
                "scrapy demo"
            )
        if steps:
            raise DatabaseError("the tables are older than this code: scrapy db migrate")
        yield database


@contextmanager
def open_for_writing(config: Config) -> Iterator[Database]:
    """The database with all its tables, created if need be."""
    with _connected(config) as database:
        migrate(database)
        yield database


@contextmanager
def _connected(config: Config) -> Iterator[Database]:
    database, embedded = open_database(config.database_url, config.crawl_dir)
    try:
        yield database
    finally:
        database.close()
        if embedded:
            embedded.close()


def open_frontier(
    database: Database, config: Config, name: str, make: bool = False
) -> PostgresFrontier:
    """The frontier of a crawl with the order and depth limit that it has. `make`: a crawl that is
    not known is created, else it is a ConfigError.
    """
    known = database.fetch_row("crawl_named", name=name)
    if known is None and not make:
        names = ", ".join(name for (name,) in database.fetch_rows("crawl_names"))
        others = f"; there are: {names}" if names else " yet"
        raise ConfigError(f"there is no crawl {name!r}{others}")
    spec: CrawlSpec = replace(config.spec, name=name)
    if known is not None:
        _, order, max_depth = known
        spec = replace(spec, order=order, max_depth=max_depth)
    frontier = PostgresFrontier(database, spec)
    frontier.open()
    return frontier
