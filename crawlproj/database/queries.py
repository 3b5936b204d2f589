"""Named queries: the files of `sql/queries`, one for each part of the code that asks them.

A query stands below its header and its description, up to the next header:

    -- name: host_names
    -- The names of hosts, by id; asked by a commit that touched hosts found by others.
    select name from host where id = any (%(hosts)s::int[]);

Arguments are named, `%(hosts)s`. Further comments below the description say why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

HEADER = re.compile(r"^--\s*name:\s*(.*?)\s*$", re.MULTILINE)
NAME = re.compile(r"[a-z][a-z0-9_]*")
PLAN_EACH_TIME = "-- Planned each time"
"""A comment of queries whose best plan depends on the arguments."""
PERCENT = re.compile(r"%(?:\((\w+)\)s|(%)|)")

Row = TypeVar("Row", bound=NamedTuple)


@dataclass(frozen=True, slots=True)
class Query:
    """One statement and the names of the arguments that it wants, no more and no less.

    `file` and `description` are for people: where it stands, and the line below its header.
    """

    name: str
    sql: str
    arguments: frozenset[str]
    description: str = ""
    file: str = ""

    def check_arguments(self, given: Mapping[str, Any]) -> None:
        """A wrong argument is a slip in our own code: say so before the database does."""
        if given.keys() != self.arguments:
            wants = ", ".join(sorted(self.arguments)) or "nothing"
            raise TypeError(
                f"query {self.name} wants {wants}, not {', '.join(sorted(given)) or 'nothing'}"
            )

    @property
    def is_preparable(self) -> bool:
        """Is one plan good for all arguments?"""
        return bool(self.arguments) and PLAN_EACH_TIME not in self.sql

    @property
    def prepare_sql(self) -> str:
        """The statement that makes the server keep it, arguments in the order of their names."""
        numbers = {name: f"${number}" for number, name in enumerate(sorted(self.arguments), 1)}
        statement = PERCENT.sub(lambda match: numbers.get(match[1], "%"), self.sql)
        return f'prepare "{self.name}" as {statement}'

    @property
    def execute_sql(self) -> str:
        """The statement that runs what was prepared."""
        placeholders = ", ".join(f"%({name})s" for name in sorted(self.arguments))
        return f'execute "{self.name}" ({placeholders})'


@cache
def load_queries() -> Mapping[str, Query]:
    """All queries of the package by name, also out of a zipped egg."""
    texts = {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in sql_path("queries").iterdir()
        if entry.name.endswith(".sql")
    }
    return MappingProxyType(parse_files(texts))


def sql_path(path: str) -> Traversable:
    """A file or folder below the package's `sql` folder, which may be inside a zipped egg."""
    return files("crawlproj").joinpath("database", "sql", *path.split("/"))


def read_sql(path: str) -> str:
    """The text of a file below the package's `sql` folder."""
    return sql_path(path).read_text(encoding="utf-8")


def parse_files(texts: Mapping[str, str]) -> dict[str, Query]:
    """The queries of several files, given as name -> text. ValueError says what is wrong."""
    queries: dict[str, Query] = {}
    for file, text in sorted(texts.items()):
        for query in parse_queries(text, file).values():
            _add(queries, query)
    return queries


def parse_queries(text: str, file: str = "the text") -> dict[str, Query]:
    """The queries of one file. ValueError says what is wrong.

    Text before the first header may only be comments.
    """
    before, *parts = HEADER.split(text)
    if any(line.strip() and not line.startswith("--") for line in before.splitlines()):
        raise ValueError(f"SQL before the first '-- name:' header of {file}")
    queries: dict[str, Query] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if not NAME.fullmatch(name):
            raise ValueError(f"bad name of a query: {name!r}")
        _add(queries, _query(name, body.strip(), file))
    return queries


def _add(queries: dict[str, Query], query: Query) -> None:
    first = queries.setdefault(query.name, query)
    if first is not query:
        raise ValueError(f"two queries are named {query.name}: in {first.file} and in {query.file}")


def _query(name: str, body: str, file: str) -> Query:
    description = ""
    sql = body
    if body.startswith("--"):
        description, _, sql = body.removeprefix("--").partition("\n")
    sql = _without_last_comments(sql)
    if not re.sub(r"--.*", "", sql).strip():
        raise ValueError(f"query {name} is empty")
    found = list(PERCENT.finditer(sql))
    if any(match[0] == "%" for match in found):
        raise ValueError(f"query {name} has a lone %: write %% or %(argument)s")
    arguments = frozenset(match[1] for match in found if match[1])
    if not arguments:
        # The driver turns %% into % only where there is an argument to fill in.
        sql = sql.replace("%%", "%")
    return Query(name, sql, arguments, description=description.strip(), file=file)


def _without_last_comments(sql: str) -> str:
    """The statement without comments after it, such as the heading of the queries that follow."""
    lines = sql.split("\n")
    while lines and (not lines[-1].strip() or lines[-1].startswith("--")):
        lines.pop()
    return "\n".join(lines).strip()


class Queries:
    """What a Database and a Transaction have in common: functions that only query take either."""

    def run(self, name: str, /, **args: Any) -> int:
        """Run the named query and return how many rows it touched."""
        return self._execute(name, args)[0]

    def fetch_rows(self, name: str, /, **args: Any) -> list[tuple[Any, ...]]:
        """All rows of the named query, as plain tuples: to be unpacked where they are read."""
        return self._execute(name, args)[1]

    def fetch_rows_as(self, name: str, row_type: type[Row], /, **args: Any) -> list[Row]:
        """All rows of the named query as NamedTuples whose fields are its columns, in their order.

        For rows of many columns, or read at several places; `fetch_rows` is cheaper.
        """
        return list(map(row_type._make, self.fetch_rows(name, **args)))

    def fetch_row(self, name: str, /, **args: Any) -> tuple[Any, ...] | None:
        """The first row of the named query, or None."""
        rows = self._execute(name, args)[1]
        return rows[0] if rows else None

    def fetch_value(self, name: str, /, **args: Any) -> Any:
        """The first column of the first row of the named query, or None."""
        row = self.fetch_row(name, **args)
        return row[0] if row else None

    def run_script(self, text: str) -> list[tuple[Any, ...]]:
        """Run SQL as it stands, for migrations and tests; the rows of its last statement."""
        return self._send("script", text, None)[1]

    def _execute(self, name: str, args: dict[str, Any]) -> tuple[int, list[tuple[Any, ...]]]:
        query = load_queries()[name]
        query.check_arguments(args)
        return self._send(
            name,
            self._statement(query),
            {key: _adapt(value) for key, value in args.items()} or None,
        )

    def _statement(self, query: Query) -> str:
        """What to send for a query: its text, or the call of its prepared statement."""
        raise NotImplementedError

    def _send(
        self, name: str, text: str, args: dict[str, Any] | None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        """Run a statement: how many rows it touched, and those it gives."""
        raise NotImplementedError


def _adapt(value: Any) -> Any:
    """Dicts travel as JSON, alone and in lists."""
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, list):
        return [json.dumps(item) if isinstance(item, dict) else item for item in value]
    return value
