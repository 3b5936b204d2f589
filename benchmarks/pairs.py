"""Two crawls at the same time on one core: `python -m benchmarks.pairs [ROUNDS [STAGE STAGE]]`.

Whatever else the machine does hits both. Compares the crawl without its archive and with it, or two
stages of `benchmarks.cost`, such as `archived near`; of those that have second visits, these too.
`python -m benchmarks.pairs ROUNDS FOLDER` compares another checkout with this one, both with all
that they do. Ratios of CPU per page repeat to about a hundredth, those of crawls in turn to a
tenth. Each crawl takes more CPU than alone, since they drive each other out of the caches.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.cost import BENCH_DIR, ROOT, STAGES, crawl_and_revisit, crawlproj, web

EVERYTHING = {"WARC_ENABLED": "1"}
"""The rest is on anyway."""


def crawl_two(pool: Executor, port: int, words: Sequence[str]) -> dict[str, list[int]]:
    """CPU per page of both crawls, and of their second visits."""
    if words and words[0] not in STAGES:
        trees = [Path(words[0]).resolve(), ROOT]
        crawls = [pool.submit(crawlproj, port, True, tree, EVERYTHING) for tree in trees]
        return {"a page": [crawl.result()["cpu_us_per_page"] for crawl in crawls]}
    kinds = words or ("crawlproj", "archived")
    both = [pool.submit(crawl_and_revisit, port, kind) for kind in kinds]
    results: list[tuple[dict[str, Any], dict[str, Any] | None]] = [two.result() for two in both]
    found = {"a page": [first["cpu_us_per_page"] for first, _ in results]}
    again = [second["cpu_us_per_page"] for _, second in results if second is not None]
    if len(again) == len(results):
        found["a second visit"] = again
    return found


def main(rounds: int, words: Sequence[str]) -> int:
    if not (BENCH_DIR / "newsweb.py").exists():
        print(f"The web to measure on is not here ({BENCH_DIR}); nothing measured.")
        return 0
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    more: defaultdict[str, list[int]] = defaultdict(list)
    with web() as port, ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            for what, (first, second) in crawl_two(pool, port, words).items():
                ratios[what].append(second / first)
                more[what].append(second - first)
                print(f"{what}: {first} and {second} us: {second / first:.3f}", flush=True)
    for what, found in ratios.items():
        print(
            f"{what}: ratio {statistics.median(found):.3f}, "
            f"{statistics.median(more[what]):.0f} us more"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4, sys.argv[2:4]))
