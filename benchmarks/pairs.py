"""Two crawls at the same time on one core: `python -m benchmarks.pairs [ROUNDS]`.

Whatever else the machine does hits both. Compares the crawl without its archive and with it;
`python -m benchmarks.pairs ROUNDS FOLDER` compares another checkout with this one, both with the
archive. Ratios of CPU per page repeat to about a hundredth, those of crawls in turn to a tenth.
Each crawl takes more CPU than alone, since they drive each other out of the caches.
"""

from __future__ import annotations

import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.cost import BENCH_DIR, ROOT, crawlproj, web


def main(rounds: int, other: Path | None) -> int:
    if not (BENCH_DIR / "newsweb.py").exists():
        print(f"The web to measure on is not here ({BENCH_DIR}); nothing measured.")
        return 0
    sides = [(False, ROOT), (True, ROOT)] if other is None else [(True, other), (True, ROOT)]
    ratios = []
    with web() as port, ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            crawls = [pool.submit(crawlproj, port, archived, tree) for archived, tree in sides]
            first, second = (crawl.result()["cpu_us_per_page"] for crawl in crawls)
            ratios.append(second / first)
            print(f"{first} and {second} us per page: {ratios[-1]:.3f}", flush=True)
    print(f"ratio: {statistics.median(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 4,
            Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None,
        )
    )
