"""Fills a database with a crawl of any size.

    python -m benchmarks.fill --urls 1e6 --hosts 1e5 [--states] (--dir FOLDER | --database URL)

FOLDER holds an embedded Postgres, made if need be. The rows are those that the frontier would have
written itself (see `madeup`), so it continues from them as from its own. The user must be a
superuser: references and counters are not checked row by row while filling.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg2  # type: ignore[import-untyped]

from benchmarks.madeup import COLUMNS, RECEIVED, Maker, utc_now
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.database.migrations import migrate

AT_ONCE = 20_000
"""URLs per COPY."""


def fill(
    dsn: str,
    crawl: str,
    urls: int,
    hosts: int,
    now: datetime | None = None,
    links: int = 8,
    seed: int = 1,
    asleep: bool = False,
    states_kept: bool = False,
) -> Maker:
    """Make the tables if need be and a new crawl in them.

    Indexes and statistics are made at the end, all at once.
    """
    database = Database(dsn)
    migrate(database)
    database.close()
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    cursor = connection.cursor()
    # Triggers and references would be checked row by row; the rows are consistent as they are made.
    cursor.execute(
        "set search_path = crawlproj; set session_replication_role = replica; set "
        "maintenance_work_mem = '256MB'"
    )
    cursor.execute(
        "insert into crawl (name, ordering, max_depth) values (%s, 'best', 0) returning id",
        (crawl,),
    )
    (number,) = cursor.fetchone()
    cursor.execute(
        "select 1 + greatest((select max(id) from host), (select max(id) from server), 0)"
    )
    maker = Maker(
        number,
        crawl,
        now or utc_now(),
        seed=seed,
        first_id=cursor.fetchone()[0],
        links=links,
        asleep=asleep,
        states_kept=states_kept,
    )
    indexes = _without_indexes(cursor)
    for _ in maker.hosts(hosts, urls):
        if len(maker.rows["url"]) >= AT_ONCE:
            _copy(cursor, maker)
    _copy(cursor, maker)
    for definition in indexes:
        cursor.execute(definition)
    _finish(cursor, maker)
    connection.close()
    return maker


def _without_indexes(cursor: Any) -> list[str]:
    """Drop all indexes that only serve reading, and give the statements that make them again."""
    cursor.execute("""
        select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
        from pg_index i join pg_class c on c.oid = i.indrelid
        where c.relnamespace = 'crawlproj'::regnamespace and not i.indisunique
    """)
    found = cursor.fetchall()
    for name, _ in found:
        cursor.execute(f"drop index {name}")
    return [definition for _, definition in found]


def _copy(cursor: Any, maker: Maker) -> None:
    for table, names in COLUMNS.items():
        if lines := maker.rows[table]:
            text = io.StringIO("\n".join(lines) + "\n")
            cursor.copy_expert(f"copy {table} ({names.replace(' ', ', ')}) from stdin", text)
            lines.clear()


def _finish(cursor: Any, maker: Maker) -> None:
    totals = maker.pages, maker.pages * RECEIVED, maker.crawl
    cursor.execute("update crawl set pages = %s, bytes = %s where id = %s", totals)
    for state, number in maker.states.items():
        cursor.execute(
            "insert into url_count values (%s, %s, %s, 0, %s)",
            (maker.crawl, state.value, number, number),
        )
    for table in ("host", "server"):
        cursor.execute(
            f"select setval(pg_get_serial_sequence('{table}', 'id'), (select max(id) from {table}))"
        )
    cursor.execute("vacuum (analyze)")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--urls", type=float, default=1e6)
    parser.add_argument("--hosts", type=float, default=1e5)
    parser.add_argument("--crawl", default="growth")
    parser.add_argument("--links", type=int, default=8, help="stored links per page")
    parser.add_argument(
        "--states", action="store_true", help="also what tells changes; prints what a row takes"
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--dir", type=Path)
    target.add_argument("--database")
    given = parser.parse_args()
    with ExitStack() as stack:
        dsn = given.database or stack.enter_context(EmbeddedPostgres(given.dir)).start()
        started = time.monotonic()
        maker = fill(
            dsn,
            given.crawl,
            int(given.urls),
            hosts=int(given.hosts),
            links=given.links,
            states_kept=given.states,
        )
        print(
            f"{sum(maker.states.values())} URLs on {int(given.hosts)} hosts in "
            f"{time.monotonic() - started:.0f} s"
        )
        if given.states:
            print_sizes(dsn)
    return 0


def print_sizes(dsn: str) -> None:
    """What a row of each table of changes takes, with its indexes."""
    database = Database(dsn)
    for table in ("page_state", "host_text", "host_hint", "url", "page", "page_version"):
        ((rows, size),) = database.run_script(
            f"select count(*), pg_total_relation_size('crawlproj.{table}') from crawlproj.{table}"
        )
        print(f"{table:<14} {rows:>9} rows, {size / max(rows, 1):>6.0f} bytes each")
    database.close()


if __name__ == "__main__":
    sys.exit(main())
