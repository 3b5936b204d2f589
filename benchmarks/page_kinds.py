"""Which pages are taken for articles: `python -m benchmarks.page_kinds [--data FOLDER]`.

FOLDER holds `articles` and `change-sequences`, as the shared data do: the first are articles, the
second terms of use. `--listings FOLDER` adds pages of all kinds: its `pages.tsv` has the columns
source, file (in `html/`, packed by gzip), url and kind. The demo web is always there.

Prints precision and recall of "article", without learning and with it, by source and halves: of the
articles only those with even numbers were looked at when the points were set. A last line says what
judging costs.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from gzip import decompress
from pathlib import Path
from typing import NamedTuple

from crawlproj.content.document import Document
from crawlproj.content.html import parse_page
from crawlproj.content.page_kinds import KindGuess, PageKinds, judge_page
from crawlproj.demo.profiles import find_profile
from crawlproj.demo.web import Web

RUNS = 5
DEMO_AGE_S = 600.0
DEMO_KINDS = {"article": "article", "copy": "article", "front": "listing", "section": "listing"}
HALVES = ("even", "odd")


class LabelledPage(NamedTuple):
    source: str
    url: str
    kind: str
    document: Document


@dataclass
class Score:
    """How many articles were found and missed, and how many other pages were taken for some."""

    found: int = 0
    missed: int = 0
    false: int = 0
    rejected: int = 0

    def add(self, *, article: bool, taken: bool) -> None:
        if article and taken:
            self.found += 1
        elif article:
            self.missed += 1
        elif taken:
            self.false += 1
        else:
            self.rejected += 1

    @property
    def line(self) -> str:
        recall = precision = "    -"
        if self.found + self.missed:
            recall = f"{self.found / (self.found + self.missed):.3f}"
        if self.found + self.false:
            precision = f"{self.found / (self.found + self.false):.3f}"
        return (
            f"{self.found + self.missed:5} articles, recall {recall}; "
            f"{self.false + self.rejected:5} others, {self.false:3} taken for articles; "
            f"precision {precision}"
        )


def demo_pages() -> Iterator[LabelledPage]:
    web = Web(find_profile("demo"))
    truth = web.truth_at(web.world.unix_time(DEMO_AGE_S))
    for url in truth.pages:
        found = web.split_url(url)
        assert found is not None
        site, target = found
        page = web.find_page(site, target, DEMO_AGE_S)
        if page is None or not page.type.startswith("text/html"):
            continue
        body = web.render_page(site, target, page).body
        kind = DEMO_KINDS.get(page.kind, "other")
        yield LabelledPage("demo", url, kind, parse_page(body, url))


def shared_pages(folder: Path) -> Iterator[LabelledPage]:
    articles = folder / "articles"
    truth = articles / "ground-truth.json"
    if truth.exists():
        for name, page in json.loads(truth.read_text("utf-8")).items():
            yield read_page("articles", articles / f"html/{name}.html.gz", page["url"], "article")
    sequences = folder / "change-sequences"
    table = sequences / "sequences.csv"
    if table.exists():
        seen = set()
        with table.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["page"] not in seen:
                    seen.add(row["page"])
                    # The set does not know the paths: nothing in these tells terms of use.
                    url = f"https://{row['host']}/{row['page']}"
                    path = sequences / f"html/{row['file']}.html.gz"
                    yield read_page("terms", path, url, "other")


def listed_pages(folder: Path) -> Iterator[LabelledPage]:
    with (folder / "pages.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            path = folder / "html" / row["file"]
            yield read_page(row["source"], path, row["url"], row["kind"])


def read_page(source: str, path: Path, url: str, kind: str) -> LabelledPage:
    return LabelledPage(source, url, kind, parse_page(decompress(path.read_bytes()), url))


def judge_pages(pages: list[LabelledPage], *, learning: bool) -> list[KindGuess]:
    if not learning:
        return [judge_page(page.document, page.url) for page in pages]
    kinds = PageKinds()
    return [kinds.guess(page.document, page.url) for page in pages]


def report(pages: list[LabelledPage], *, learning: bool, verbose: bool) -> None:
    print(f"learning {'on' if learning else 'off'}")
    scores: defaultdict[tuple[str, str], Score] = defaultdict(Score)
    numbers: defaultdict[str, int] = defaultdict(int)
    for page, guess in zip(pages, judge_pages(pages, learning=learning), strict=True):
        half = HALVES[numbers[page.source] % 2]
        numbers[page.source] += 1
        article = page.kind == "article"
        taken = guess.kind == "article"
        for source in (page.source, "all"):
            scores[source, half].add(article=article, taken=taken)
        if verbose and article != taken:
            print(f"  {half} {page.source}: {page.kind}, taken for {guess.kind}: {page.url[:150]}")
            print(f"      {guess.points:+.1f}: {guess.why}")
    for source in (*numbers, "all"):
        for half in HALVES:
            print(f"  {source:12} {half:4} {scores[source, half].line}")


def report_cost(pages: list[LabelledPage]) -> None:
    best = float("inf")
    for _ in range(RUNS):
        kinds = PageKinds()
        start = time.process_time()
        for page in pages:
            kinds.judge(page.document, page.url)
        best = min(best, time.process_time() - start)
    print(f"{best / len(pages) * 1e6:.0f} us of CPU per page for judging, without the parse")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="folder with articles and change-sequences")
    parser.add_argument("--listings", type=Path, help="folder with pages.tsv and html")
    parser.add_argument("--verbose", action="store_true", help="print the pages that are wrong")
    options = parser.parse_args()
    pages = list(demo_pages())
    if options.data is not None:
        pages += shared_pages(options.data)
    if options.listings is not None:
        pages += listed_pages(options.listings)
    if {page.source for page in pages} == {"demo"}:
        print("There are no real pages: only the demo web is judged.")
    for learning in (False, True):
        report(pages, learning=learning, verbose=options.verbose)
    report_cost(pages)


if __name__ == "__main__":
    main()
