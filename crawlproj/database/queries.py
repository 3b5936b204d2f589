"""SQL by name: `sql/queries.sql` read once, each `-- name: x` up to the next one; arguments are
named, `%(x)s`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

HEADER = re.compile(r"^--\s*name:\s*(.*?)\s*$", re.MULTILINE)
NAME = re.compile(r"[a-z][a-z0-9_]*")
ANEW = "-- Planned each time"
"""A comment of queries whose best plan depends on the arguments."""
PERCENT = re.compile(r"%(?:\((\w+)\)s|(%)|)")


@dataclass(frozen=True, slots=True)
class Query:
    """One statement and the names of the arguments that it wants, no more and no less."""

    name: str
    sql: str
    arguments: frozenset[str]

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
        return bool(self.arguments) and ANEW not in self.sql

    @property
    def prepare_sql(self) -> str:
        """The statement that makes the server keep it, arguments in the order of their names."""
        numbers = {name: f"${number}" for number, name in enumerate(sorted(self.arguments), 1)}
        return (
            f'prepare "{self.name}" as '
            f"{PERCENT.sub(lambda match: numbers.get(match[1], '%'), self.sql)}"
        )

    @property
    def execute_sql(self) -> str:
        """The statement that asks for what was prepared."""
        return (
            f'execute "{self.name}" ({", ".join(f"%({name})s" for name in sorted(self.arguments))})'
        )


@cache
def load_queries() -> Mapping[str, Query]:
    """All of ours, also out of a zipped egg."""
    return MappingProxyType(parse_queries(read_sql("queries.sql")))


def read_sql(path: str) -> str:
    """A file of the package's `sql` folder."""
    return (
        files("crawlproj").joinpath("database", "sql", *path.split("/")).read_text(encoding="utf-8")
    )


def parse_queries(text: str) -> dict[str, Query]:
    """Text before the first header may only be comments. ValueError names what is wrong."""
    before, *parts = HEADER.split(text)
    if any(line.strip() and not line.startswith("--") for line in before.splitlines()):
        raise ValueError("SQL before the first '-- name:' header")
    queries: dict[str, Query] = {}
    for name, sql in zip(parts[::2], parts[1::2], strict=True):
        if not NAME.fullmatch(name):
            raise ValueError(f"bad name of a query: {name!r}")
        if name in queries:
            raise ValueError(f"two queries are named {name}")
        queries[name] = _query(name, sql.strip())
    return queries


def _query(name: str, sql: str) -> Query:
    if not re.sub(r"--.*", "", sql).strip():
        raise ValueError(f"query {name} is empty")
    found = list(PERCENT.finditer(sql))
    if any(match[0] == "%" for match in found):
        raise ValueError(f"query {name} has a lone %: write %% or %(argument)s")
    arguments = frozenset(match[1] for match in found if match[1])
    # The driver turns %% into % only where there is an argument to fill in.
    return Query(name, sql if arguments else sql.replace("%%", "%"), arguments)


class Queries:
    """What a Database and a Transaction have in common: functions that only query take either."""

    def run(self, name: str, /, **args: Any) -> int:
        """Run the named query and return how many rows it touched."""
        return self._execute(name, args)[0]

    def fetch_rows(self, name: str, /, **args: Any) -> list[tuple[Any, ...]]:
        return self._execute(name, args)[1]

    def fetch_row(self, name: str, /, **args: Any) -> tuple[Any, ...] | None:
        """The first row, or None."""
        rows = self._execute(name, args)[1]
        return rows[0] if rows else None

    def fetch_value(self, name: str, /, **args: Any) -> Any:
        """The first column of the first row, or None."""
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
        raise NotImplementedError

    def _send(
        self, name: str, text: str, args: dict[str, Any] | None
    ) -> tuple[int, list[tuple[Any, ...]]]:
        raise NotImplementedError


def _adapt(value: Any) -> Any:
    """Dicts travel as JSON, alone and in lists."""
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, list):
        return [json.dumps(item) if isinstance(item, dict) else item for item in value]
    return value
