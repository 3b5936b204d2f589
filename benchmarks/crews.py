"""What a second worker costs: `python -m benchmarks.crews [ROUNDS]`.

A web is crawled by one worker, then by two. CPU per page of all workers and of Postgres together is
compared: 1 means that sharing costs nothing. On two cores the web, Postgres and the workers
compete, so elapsed time says little; what the busiest worker used per page of the whole crawl says
how long it would take if each had a core of its own.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.cost import BENCH_DIR, HOSTS, QUIET, ROOT, web
from benchmarks.meter import postgres_cpu_s
from crawlproj.database.embedded.server import EmbeddedPostgres


def command(folder: Path, number: int, url: str) -> list[str]:
    more = {
        "CRAWL_DIR": folder / f"worker{number}",
        "DATABASE_URL": url,
        "METER_FILE": folder / f"{number}.json",
        "WARC_ENABLED": "0",
        "METER_PG_DATA": folder / "nowhere",
        "FRONTIER_LEASE": "8s",
        "DOWNLOAD_TIMEOUT": "3",
    }
    words = [
        sys.executable,
        "-m",
        "scrapy",
        "crawl",
        "site",
        "-a",
        f"seeds_file={folder / 'seeds.txt'}",
    ]
    return words + [
        word for name, value in {**QUIET, **more}.items() for word in ("-s", f"{name}={value}")
    ]


def crawl_together(port: int, workers: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="crews-"))
    (folder / "seeds.txt").write_text(
        "\n".join(f"http://127.0.1.{n}:{port}/" for n in range(1, HOSTS + 1))
    )
    data = folder / "db" / "pg" / "data"
    try:
        with EmbeddedPostgres(folder / "db") as postgres:
            url = postgres.start()
            before = postgres_cpu_s(data)
            running = [
                subprocess.Popen(command(folder, n, url), cwd=ROOT, stderr=subprocess.DEVNULL)
                for n in range(workers)
            ]
            codes = [process.wait(300) for process in running]
            database_s = postgres_cpu_s(data) - before
        meters = [json.loads((folder / f"{n}.json").read_text()) for n in range(workers)]
    finally:
        shutil.rmtree(folder)
    pages = sum(meter["pages"] for meter in meters)
    own = [meter["own_us"] * meter["pages"] / pages for meter in meters]
    return {
        "workers": workers,
        "exit": codes,
        "pages": [meter["pages"] for meter in meters],
        "postgres_us": round(database_s / pages * 1e6),
        "cpu_us_per_page": round(sum(own) + database_s / pages * 1e6),
        "busiest_us_per_page": round(max(own)),
    }


def main(rounds: int) -> int:
    if not (BENCH_DIR / "newsweb.py").exists():
        print(f"The web to measure on is not here ({BENCH_DIR}); nothing measured.")
        return 0
    found: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    with web() as port:
        for _ in range(rounds):
            for workers, results in found.items():
                results.append(crawl_together(port, workers))
                print(json.dumps(results[-1]), flush=True)
    cost, busiest = (
        {
            workers: statistics.median(result[name] for result in results)
            for workers, results in found.items()
        }
        for name in ("cpu_us_per_page", "busiest_us_per_page")
    )
    print(
        json.dumps(
            {
                "cpu_of_two": round(cost[2] / cost[1], 2),
                "speed_of_two": round(busiest[1] / busiest[2], 2),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2))
