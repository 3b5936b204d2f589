"""CPU per page against bare Scrapy, on the same web: `python -m benchmarks.cost [ROUNDS]`.

These crawl in turn, pinned to one core, with the web on another: Scrapy as it comes (600 pages),
Scrapy tuned hard, and crawlproj with one thing more each time: the archive, texts and languages,
exact duplicates, paragraphs, near duplicates. Without anything, with the archive, and with all of
it a second run visits the same pages again, which have not changed. What Postgres and the reader of
languages use counts as ours. The web and the two baselines are not part of the project; BENCH_DIR
says where they are.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crawlproj.database.embedded.server import EmbeddedPostgres

ROOT = Path(__file__).resolve().parent.parent
BENCH_DIR = Path(os.environ.get("BENCH_DIR", ROOT.parent / "shared" / "bench"))
FLOORS = json.loads((Path(__file__).parent / "floors.json").read_text())
HOSTS = 40
CORES = sorted(os.sched_getaffinity(0))
OURS = {CORES[0]}
THEIRS = {CORES[-1]}
QUIET = {
    "GUARD_ALLOW_PRIVATE": "1",
    "POLITENESS_DELAY": "0",
    "POLITENESS_SLOWDOWN": "0",
    "POLITENESS_SERVER_DELAY": "0",
    "POLITENESS_PAUSE_AFTER": "0",
    "CRAWL_PATIENCE": "1",
    "PANEL": "off",
    "LOG_LEVEL": "WARNING",
    "EXTENSIONS": '{"benchmarks.meter.Meter": 1}',
}
OFF = {"WARC_ENABLED": "0", "TEXT_ENABLED": "0", "DUPLICATES_ENABLED": "0"}
ARCHIVED = {**OFF, "WARC_ENABLED": "1"}
TEXT = {**ARCHIVED, "TEXT_ENABLED": "1", "LANGUAGE_ENABLED": "0"}
LANGUAGE = {**TEXT, "LANGUAGE_ENABLED": "1"}
EXACT = {**LANGUAGE, "DUPLICATES_ENABLED": "1", "NEARDUP_ENABLED": "0", "PARAGRAPH_ENABLED": "0"}
PARAGRAPHS = {**EXACT, "PARAGRAPH_ENABLED": "1"}
NEAR = {**PARAGRAPHS, "NEARDUP_ENABLED": "1"}
STAGES = {
    "crawlproj": OFF,
    "archived": ARCHIVED,
    "text": TEXT,
    "language": LANGUAGE,
    "exact": EXACT,
    "paragraphs": PARAGRAPHS,
    "near": NEAR,
}
"""What each crawl has on; the last one is how crawlproj comes."""
REVISITED = ("crawlproj", "archived", "near")
"""Those whose pages are visited a second time, in a run of its own."""
REVISITS = {
    "REVISIT_INTERVAL": "1s",
    "REVISIT_MIN": "1s",
    "SOURCE_INTERVAL": "1s",
    "SOURCE_MIN": "1s",
    "REVISIT_POLICY": "uniform",
    "CLOSESPIDER_PAGECOUNT": "3000",
}


@contextmanager
def web() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.sched_setaffinity(0, THEIRS)
    server = subprocess.Popen(
        [sys.executable, BENCH_DIR / "newsweb.py", str(port)], stdout=subprocess.PIPE, text=True
    )
    os.sched_setaffinity(0, OURS)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        time.sleep(0.5)
        yield port
    finally:
        server.kill()
        server.wait()


def baseline(kind: str, port: int) -> dict[str, Any]:
    command = [
        sys.executable,
        str(BENCH_DIR / "baselines.py"),
        kind,
        str(port),
        *(["600"] if kind == "stock" else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if result["pages"] < (600 if kind == "stock" else 3000):
        raise RuntimeError(f"{kind} read only {result['pages']} pages: {done.stderr[-2000:]}")
    return result


def crawlproj(
    port: int, archived: bool, tree: Path = ROOT, settings: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Crawl the web with a database of its own. `settings` None: `archived` says what is on."""
    folder = Path(tempfile.mkdtemp(prefix="cost-"))
    try:
        with EmbeddedPostgres(folder / "db") as postgres:
            return crawl(
                port,
                folder,
                postgres.start(),
                database=folder / "db",
                archived=archived,
                tree=tree,
                settings=settings,
            )
    finally:
        shutil.rmtree(folder)


def crawl(
    port: int,
    folder: Path,
    url: str,
    database: Path,
    archived: bool = False,
    tree: Path = ROOT,
    settings: Mapping[str, str] | None = None,
    hosts: int = HOSTS,
) -> dict[str, Any]:
    """Crawl the whole web once, with the embedded Postgres in `database` and the code in `tree`."""
    seeds = folder / "seeds.txt"
    meter = folder / "meter.json"
    seeds.write_text("\n".join(f"http://127.0.1.{n}:{port}/" for n in range(1, hosts + 1)))
    more = {
        "CRAWL_DIR": folder,
        "DATABASE_URL": url,
        "METER_FILE": meter,
        "METER_PG_DATA": database / "pg" / "data",
    }
    command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"seeds_file={seeds}"]
    chosen = {"WARC_ENABLED": archived} if settings is None else settings
    for name, value in {**QUIET, **more, **chosen}.items():
        command += ["-s", f"{name}={value}"]
    subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(meter.read_text())
    return result


def crawl_and_revisit(port: int, kind: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Crawl the web with what a stage has on; and, of some stages, visit the same pages again."""
    folder = Path(tempfile.mkdtemp(prefix="cost-"))
    try:
        with EmbeddedPostgres(folder / "db") as postgres:
            url = postgres.start()
            settings = STAGES[kind]
            first = crawl(port, folder, url, database=folder / "db", settings=settings)
            if kind not in REVISITED:
                return first | {"kind": kind}, None
            time.sleep(1)
            settings = {**settings, **REVISITS}
            again = crawl(port, folder, url, database=folder / "db", settings=settings)
            return first | {"kind": kind}, again | {"kind": f"{kind}, again"}
    finally:
        shutil.rmtree(folder)


def print_stages(cost: Mapping[str, float]) -> None:
    """What each thing adds to a crawl, and how quick the crawl is then."""
    before = 0.0
    print("stage        us/page    adds   speed")
    for kind in STAGES:
        speed = cost["crawlproj"] / cost[kind]
        print(f"{kind:<12} {cost[kind]:>7.0f} {cost[kind] - before:>7.0f}  {speed:>5.0%}")
        before = cost[kind]
    for kind in REVISITED:
        print(f"{'second visit, ' + kind:<25} {cost[f'{kind}, again']:>7.0f}")
    both = (cost["crawlproj"] + cost["crawlproj, again"]) / 2
    print(f"a crawl that visits each page twice runs at {cost['crawlproj'] / both:.0%}")


def main(rounds: int) -> int:
    if not (BENCH_DIR / "newsweb.py").exists():
        print(f"The web to measure on is not here ({BENCH_DIR}); nothing measured.")
        return 0
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in ("stock", "tuned", *STAGES)}
    revisits: dict[str, list[dict[str, Any]]] = {f"{kind}, again": [] for kind in REVISITED}
    with web() as port:
        for _ in range(rounds):
            for kind in found:
                if kind in STAGES:
                    result, again = crawl_and_revisit(port, kind)
                else:
                    result, again = baseline(kind, port), None
                found[kind].append(result)
                print(json.dumps(result), flush=True)
                if again is not None:
                    revisits[f"{kind}, again"].append(again)
                    print(json.dumps(again), flush=True)
    cost = {
        kind: statistics.median(result["cpu_us_per_page"] for result in results)
        for kind, results in (found | revisits).items()
    }
    figures = {
        "cheaper_than_stock": round(cost["stock"] / cost["crawlproj"], 2),
        "of_tuned": round(cost["tuned"] / cost["crawlproj"], 2),
        "archived_cheaper_than_stock": round(cost["stock"] / cost["archived"], 2),
        "archive_us_per_page": round(cost["archived"] - cost["crawlproj"]),
        "rss_mb": max(result["rss_mb"] for result in found["crawlproj"]),
        "archived_rss_mb": max(result["rss_mb"] for result in found["archived"]),
        "near_rss_mb": max(result["rss_mb"] for result in found["near"]),
        "reader_rss_mb": max(result["reader_rss_mb"] for result in found["near"]),
        "text_and_duplicates_us": round(cost["near"] - cost["archived"]),
        "same_text_again_us": round(cost["near, again"] - cost["archived, again"]),
    }
    print_stages(cost)
    print(json.dumps(figures))
    low = [name for name, floor in FLOORS["cost"].items() if figures[name] < floor]
    high = [name for name, ceiling in FLOORS["ceilings"].items() if figures[name] > ceiling]
    for name in low + high:
        print(f"NOT REACHED: {name} = {figures[name]}")
    return 1 if low + high else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
