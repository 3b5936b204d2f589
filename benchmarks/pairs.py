"""Two crawls at the same time on one core: `python -m benchmarks.pairs [ROUNDS]`.

Whatever else the machine does hits both. Compares the crawl without its archive and with it;
`python -m benchmarks.pairs ROUNDS archived near` compares two stages of `benchmarks.cost`, and
`python -m benchmarks.pairs ROUNDS FOLDER` another checkout with this one, both with all that they
do. Ratios of CPU per page repeat to about a hundredth, those of crawls in turn to a tenth. Each
crawl takes more CPU than alone, since they drive each other out of the caches.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.cost import ARCHIVED, BENCH_DIR, OFF, ROOT, STAGES, crawlproj, web

Side = tuple[Mapping[str, str], Path]


def choose_sides(words: Sequence[str]) -> list[Side]:
    """The settings and the code of both crawls."""
    if not words:
        return [(OFF, ROOT), (ARCHIVED, ROOT)]
    if words[0] in STAGES:
        return [(STAGES[word], ROOT) for word in words[:2]]
    everything = {"WARC_ENABLED": "1"}
    return [(everything, Path(words[0]).resolve()), (everything, ROOT)]


def main(rounds: int, words: Sequence[str]) -> int:
    if not (BENCH_DIR / "newsweb.py").exists():
        print(f"The web to measure on is not here ({BENCH_DIR}); nothing measured.")
        return 0
    ratios = []
    more = []
    with web() as port, ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            crawls = [
                pool.submit(crawlproj, port, False, tree, settings)
                for settings, tree in choose_sides(words)
            ]
            first, second = (crawl.result()["cpu_us_per_page"] for crawl in crawls)
            ratios.append(second / first)
            more.append(second - first)
            print(f"{first} and {second} us per page: {ratios[-1]:.3f}", flush=True)
    print(f"ratio: {statistics.median(ratios):.3f}, {statistics.median(more):.0f} us more")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4, sys.argv[2:]))
