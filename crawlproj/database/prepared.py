"""Statements that a connection knows already: parsed once, planned once.

A worker runs the same few queries again and again, and many of them take Postgres longer to plan
than to run. The second time a query runs on a connection it is prepared, unless its comment says
that its plan depends on the arguments. Plans are made anew when the query `discard` is run, which
the frontier does while its tables grow fast, and by Postgres itself after each ANALYZE.
"""

from __future__ import annotations

from typing import Any

from crawlproj.database.queries import Query


class PreparedStatements:
    """Those of one connection; none of them outlives it.

    `runs_before_prepare`: how often a query is sent as plain text before it is prepared.
    """

    runs_before_prepare = 1

    def __init__(self) -> None:
        self._runs: dict[str, int] = {}
        self._prepared: dict[str, str] = {}

    def clear(self) -> None:
        """Forget all: the connection is a new one."""
        self._runs.clear()
        self._prepared.clear()

    def statement_for(self, query: Query, connection: Any) -> str:
        """The text to send for a query; prepares it if it is time."""
        prepared = self._prepared.get(query.name)
        if prepared is not None:
            return prepared
        runs = self._runs.get(query.name, 0) + 1
        self._runs[query.name] = runs
        if runs <= self.runs_before_prepare or not query.is_preparable:
            return query.sql
        with connection.cursor() as cursor:
            cursor.execute(query.prepare_sql)
        self._prepared[query.name] = query.execute_sql
        return query.execute_sql
