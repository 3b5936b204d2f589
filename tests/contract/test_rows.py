"""The columns of the queries that become Tickets, StoredUrls and RobotsRows are their fields: by
name, and in the order that rows are decoded in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields

import pytest

from crawlproj.database.connection import Database
from crawlproj.database.queries import PERCENT, load_queries
from crawlproj.frontier.base import RobotsRow
from crawlproj.frontier.rows import STORED_URL_COLUMNS, TICKET_COLUMNS
from crawlproj.frontier.writes import OUTCOME_COLUMNS
from tests.contract.worlds import contract_database

COLUMNS = {
    "refill": TICKET_COLUMNS,
    "look": STORED_URL_COLUMNS,
    "get_robots": tuple(field.name for field in fields(RobotsRow)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_a_query_are_the_fields(name: str, servers: Callable[[str], str]) -> None:
    sql = load_queries()[name].sql.rstrip(";")
    without_arguments = PERCENT.sub(lambda match: "null" if match[1] else "%", sql)
    database = Database(contract_database(servers("embedded")))
    with database.transaction() as tx:
        tx.run_script(f"create temp view {name}_columns as {without_arguments}")
        rows = tx.run_script(
            "select attname from pg_attribute "
            f"where attrelid = 'pg_temp.{name}_columns'::regclass and attnum > 0 order by attnum"
        )
    database.close()
    assert tuple(column for (column,) in rows) == COLUMNS[name]


def test_outcome_columns_are_read_in_the_order_of_their_arguments() -> None:
    """A column that is named in one order and filled in another would be stored as something
    else.
    """
    sql = load_queries()["end_visits"].sql
    arguments = re.findall(r"%\((\w+)\)s::\w+\[\]", sql)
    names = re.search(r"as o \((.*?)\)", sql, re.DOTALL)
    assert names is not None
    assert re.findall(r"\w+", names[1]) == arguments
    assert set(arguments) == set(OUTCOME_COLUMNS)
