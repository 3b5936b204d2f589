"""Whether a page costs more where more is known: `python -m benchmarks.grown [ROUNDS] [FOLDER]`.

Whole crawls of the same web beside 10^4 and beside 10^6 other URLs of the same crawl, in turn; CPU
of the worker and of Postgres. FOLDER keeps the two databases for another time.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.cost import BENCH_DIR, crawl, web
from benchmarks.fill import fill
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres

SIZES = (10_000, 1_000_000)
URLS_PER_HOST = 10
GOAL = 1.1
FORGET = """
delete from url where host in (select id from host where name like '127.%');
delete from crawl_host where name like '127.%';
delete from host where name like '127.%';
"""
"""Removes what the last round added."""


def prepared(database_dir: Path, urls: int, stack: ExitStack) -> str:
    fresh = not (database_dir / "pg").exists()
    dsn = stack.enter_context(EmbeddedPostgres(database_dir)).start()
    if fresh:
        fill(dsn, "site", urls, hosts=urls // URLS_PER_HOST, asleep=True)
    return dsn


def measure(folder: Path, port: int, dsn: str, database_dir: Path) -> dict[str, Any]:
    database = Database(dsn)
    database.run_script(FORGET)
    for table in ("url", "host", "crawl_host", "page", "page_version", "page_links"):
        database.run_script(f"vacuum (analyze) {table}")
    database.close()
    work = Path(tempfile.mkdtemp(dir=folder))
    return crawl(port, work, dsn, database=database_dir)


def main(rounds: int, folder: Path) -> int:
    if not (BENCH_DIR / "newsweb.py").exists():
        print(f"The web to measure on is not here ({BENCH_DIR}); nothing measured.")
        return 0
    found: dict[int, list[dict[str, Any]]] = {urls: [] for urls in SIZES}
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="grown-") as scratch:
        databases = {urls: prepared(folder / f"asleep{urls}", urls, stack) for urls in SIZES}
        port = stack.enter_context(web())
        for _ in range(rounds):
            for urls, dsn in databases.items():
                result = measure(Path(scratch), port, dsn, database_dir=folder / f"asleep{urls}")
                found[urls].append(result)
                print(json.dumps({"known": urls, **result}), flush=True)
    few, many = (
        statistics.median(result["cpu_us_per_page"] for result in found[urls]) for urls in SIZES
    )
    memory = [max(result["rss_mb"] for result in found[urls]) for urls in SIZES]
    print(json.dumps({"cpu_ratio": round(many / few, 3), "memory_mb": memory[1] - memory[0]}))
    return 0 if many / few <= GOAL else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="grown-") as temporary:
        given = sys.argv[1:]
        sys.exit(
            main(int(given[0]) if given else 3, Path(given[1]) if given[1:] else Path(temporary))
        )
