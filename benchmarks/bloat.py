"""How much the files of the database grow by many ends of visits: `benchmarks.growth --bloat ENDS`.

Measured with our storage settings and with Postgres's own.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from benchmarks.fill import fill
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.frontier.base import Batch, CrawlSpec, Outcome, Pause, State
from crawlproj.frontier.postgres import PostgresFrontier

HOT = ("url", "crawl_host", "host", "server")
PLAIN = [f"alter table {table} reset (fillfactor, autovacuum_vacuum_scale_factor)" for table in HOT]
"""Undoes what the schema sets."""
# What takes hours in a crawl takes minutes here, so autovacuum must look more often. Its thresholds
# stay as they are.
OPTIONS = {"autovacuum_naptime": "1s", "synchronous_commit": "off"}
SIZES = """
    select c.relname, pg_relation_size(c.oid), pg_indexes_size(c.oid), s.n_tup_upd, s.n_tup_hot_upd,
        s.autovacuum_count
    from pg_class c join pg_stat_user_tables s on s.relid = c.oid
    where c.relname = any ('{url,crawl_host,host,server}')
"""
AT_ONCE = 200


def bloat(updates: int, urls: int = 100_000, hosts: int = 1_000) -> Iterator[dict[str, object]]:
    """Sizes of the hot tables and of their indexes in MB before and after, as a ratio too."""
    for kind, changes in (("ours", []), ("Postgres's own", PLAIN)):
        with (
            tempfile.TemporaryDirectory(prefix="bloat-") as folder,
            EmbeddedPostgres(Path(folder), None, OPTIONS) as server,
        ):
            dsn = server.start()
            fill(dsn, "bloat", urls, hosts=hosts)
            db = Database(dsn)
            for change in changes:
                db.run_script(change)
            if changes:
                for table in HOT:
                    db.run_script(f"vacuum full analyze {table}")
            before = {row[0]: row[1:] for row in db.run_script(SIZES)}
            done = _end_visits(db, updates)
            after = {row[0]: row[1:] for row in db.run_script(SIZES)}
            db.close()
        for table in HOT:
            yield {
                "settings": kind,
                "ends": done,
                "table": table,
                **_compared(before[table], after[table]),
            }


def _compared(before: tuple[int, ...], after: tuple[int, ...]) -> Mapping[str, object]:
    updates, hot, vacuums = (now - then for now, then in zip(after[2:], before[2:], strict=True))
    sizes = {
        name: [round(row[column] / 2**20, 1) for row in (before, after)]
        for column, name in enumerate(("table_mb", "index_mb"))
    }
    grown = sum(after[:2]) / sum(before[:2])
    return {
        **sizes,
        "grown": round(grown, 2),
        "updates": updates,
        "hot": round(hot / max(1, updates), 2),
        "vacuums": vacuums,
    }


def _end_visits(db: Database, updates: int) -> int:
    """End visits of all URLs of the crawl again and again, in batches, through the frontier."""
    frontier = PostgresFrontier(db, CrawlSpec("bloat", lease=timedelta(days=1)))
    frontier.open()
    leases = {lease.server: lease for lease in frontier.lease("w", 10**6)}
    names = {host.name: lease.server for lease in leases.values() for host in lease.hosts}
    rows = db.run_script(
        "select u.id, u.visit, h.name from url u join host h on h.id = u.host order by u.host, u.id"
    )
    held = [(id_, visit, name) for id_, visit, name in rows if name in names]
    chance = random.Random(1)
    done = 0
    turn = 0
    chance.shuffle(held)  # a worker that holds many hosts ends one visit here and one there
    while done < updates:
        for start in range(0, len(held), AT_ONCE):
            batch = held[start : start + AT_ONCE]
            now = frontier.now()
            due = [now + timedelta(days=chance.uniform(1, 30)) for _ in batch]
            outcomes = [
                Outcome(
                    id_,
                    visit + turn,
                    names[name],
                    epoch=leases[names[name]].epoch,
                    state=State.WAITING,
                    at=now,
                    status=304,
                    next_visit=when,
                )
                for (id_, visit, name), when in zip(batch, due, strict=True)
            ]
            clocks = {name: Pause(now) for _, _, name in batch}
            committed = frontier.commit(
                Batch(
                    outcomes,
                    (),
                    (),
                    clocks=clocks,
                    server_clocks={names[name]: Pause(now) for name in clocks},
                ),
                "w",
            )
            done += len(committed.done)
            if done >= updates:
                break
        turn += 1
    return done
