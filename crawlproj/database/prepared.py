"""Statements that a connection knows already: parsed once, planned once.

A worker asks the same few questions again and again, and for many of them Postgres would need
longer to plan than to answer. The second time a query is asked on a connection it is prepared,
unless it says that its plan depends on the arguments. Plans are made anew when `discard` is sent,
which the frontier does while its tables grow fast, and by Postgres itself after each ANALYZE.
"""

from __future__ import annotations

from typing import Any

from crawlproj.database.queries import Query


class PreparedStatements:
    """Of one connection: none of them outlives it. `patience`: how often a query is asked plainly
    before it is prepared.
    """

    runs_before_prepare = 1

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        self._ready: dict[str, str] = {}

    def clear(self) -> None:
        self._asked.clear()
        self._ready.clear()

    def statement_for(self, query: Query, connection: Any) -> str:
        """What to send for a query."""
        ready = self._ready.get(query.name)
        if ready is not None:
            return ready
        asked = self._asked[query.name] = self._asked.get(query.name, 0) + 1
        if asked <= self.runs_before_prepare or not query.is_preparable:
            return query.sql
        with connection.cursor() as cursor:
            cursor.execute(query.prepare_sql)
        self._ready[query.name] = query.execute_sql
        return query.execute_sql
