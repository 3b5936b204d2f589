"""The errors that we raise ourselves.

    CrawlprojError
    |-- ArchiveError         a WARC file cannot be written (disk full), or cannot be read
    |-- ConfigError          a setting or an input is nonsense; the text says what would be right
    |   `-- MistakesError    a file is: a line for each mistake
    `-- DatabaseError        Postgres is unreachable, too old, was lost, or refused a statement
        |-- EmbeddedError    our own Postgres could not be made, started or stopped
        `-- MigrationError   the tables do not fit this code

Each text is one line that can be shown to a user as it is (of MistakesError each of its lines);
none ever holds a password.
"""

from __future__ import annotations

from collections.abc import Sequence


class CrawlprojError(Exception):
    """The base of all of them: catch this one to print a clear line and exit.

    `end` is the finish reason of a crawl that it ends.
    """

    end = "scheduler_error"


class ArchiveError(CrawlprojError):
    """A WARC file cannot be written or read."""

    end = "archive_lost"


class ConfigError(CrawlprojError):
    """A bad setting or bad input."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What is to be shown."""
        return (str(self),)


class MistakesError(ConfigError):
    """Mistakes in one file, each a line of its own."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self._lines = tuple(lines)

    @property
    def lines(self) -> tuple[str, ...]:
        return self._lines


class DatabaseError(CrawlprojError):
    """The database cannot do what we ask; `sqlstate` is Postgres's code where it gave one."""

    end = "database_lost"

    def __init__(self, message: str, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class EmbeddedError(DatabaseError):
    """The embedded Postgres could not be made, started or stopped."""


class MigrationError(DatabaseError):
    """The tables are newer than the code, or a migration failed."""
