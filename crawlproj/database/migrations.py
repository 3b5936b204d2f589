"""Migrations: the tables are made, or brought up to date.

`sql/schema.sql` has the tables of today; `sql/migrations/NNNN_name.sql` lead there step by step,
0001 being the first schema. A new database gets the schema at once, an older one the steps it
lacks. A test keeps both ways equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crawlproj.database.connection import Database
from crawlproj.database.queries import Queries, read_sql, sql_path
from crawlproj.errors import DatabaseError, MigrationError

FILE = re.compile(r"(?P<name>(?P<number>\d{4})_[a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True, order=True)
class Migration:
    """One numbered step."""

    number: int
    name: str

    @property
    def sql(self) -> str:
        return read_sql(f"migrations/{self.name}.sql")


def list_migrations() -> list[Migration]:
    """All steps that this code knows, in order."""
    steps = []
    for entry in sql_path("migrations").iterdir():
        match = FILE.fullmatch(entry.name)
        if match:
            steps.append(Migration(int(match["number"]), match["name"]))
    steps.sort()
    if [step.number for step in steps] != list(range(1, len(steps) + 1)):
        names = ", ".join(step.name for step in steps)
        raise MigrationError(f"migrations are not numbered 0001, 0002, ... without gaps: {names}")
    return steps


def pending_migrations(db: Database) -> list[str]:
    """Names of the steps that `migrate` would take.

    MigrationError if the database is newer than this code.
    """
    return [step.name for step in _missing(db)]


def migrate(db: Database) -> list[str]:
    """Bring the tables up to date in one transaction, or leave all as it was.

    Returns the names of the steps that were missing.
    """
    with db.transaction() as tx:
        tx.run_script("set local lock_timeout = 0")  # another worker's migration may take long
        tx.run("migration_lock")
        missing = _missing(tx)
        if missing and not tx.fetch_value("migration_table"):
            _apply(tx, "schema", read_sql("schema.sql"))
        else:
            for step in missing:
                _apply(tx, step.name, step.sql)
        for step in missing:
            tx.run("migration_mark", number=step.number, name=step.name)
    return [step.name for step in missing]


def _missing(db: Queries) -> list[Migration]:
    steps = list_migrations()
    if not db.fetch_value("migration_table"):
        return steps
    applied = {number for (number,) in db.fetch_rows("migration_applied")}
    newest = max(applied, default=0)
    if newest > len(steps):
        raise MigrationError(
            f"the database is at migration {newest:04}, this code knows only {len(steps):04}: "
            "update crawlproj"
        )
    return [step for step in steps if step.number not in applied]


def _apply(tx: Queries, name: str, sql: str) -> None:
    try:
        tx.run_script(sql)
    except DatabaseError as error:
        raise MigrationError(
            f"migration {name} failed, nothing was changed: {error}", error.sqlstate
        ) from error
