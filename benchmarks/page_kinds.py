"""Which pages are taken for articles: `python -m benchmarks.page_kinds [--data FOLDER]`.

FOLDER holds `articles` and `change-sequences`, as the shared data do: the first are articles, the
second terms of use. `--listings FOLDER...` adds pages of all kinds: if it has a `pages.tsv`, with
the columns source, file (in `html/`, packed by gzip), url and kind; else the listings of a set of
documentation, as the packages of Debian have them in /usr/share/doc. A page is one of these by its
file name alone (index, contents, toc, modules, genindex, ...-index), or if four fifths of its text
stand in twenty or more links, as lxml has it. Other pages of a set are left out: whether a chapter
of a handbook is an article is a matter of taste. The demo web is always there.

Prints precision and recall of "article", without learning and with it, by source and halves: of the
articles only those with even numbers were looked at when the points were set. Then what a page that
is no article costs more than before there were kinds: the signs that its parse collects, and the
judging. Exits with 1 if precision or recall of the whole is below .95, or that cost above .1 ms.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from gzip import decompress
from pathlib import Path
from typing import Any, Final, NamedTuple

from lxml import etree, html  # type: ignore[import-untyped]

from crawlproj.content import html_elements
from crawlproj.content.document import Document
from crawlproj.content.html import parse_page
from crawlproj.content.page_kinds import KindGuess, PageKinds, judge_page
from crawlproj.demo.profiles import find_profile
from crawlproj.demo.web import Web

RUNS = 5
TIMED: Final = 200
"""So many pages are read again and again for what kinds cost."""
GOAL: Final = 0.95
MAX_COST_MS: Final = 0.1
MAX_OF_SET: Final = 300
"""Listings of one set of documentation; of more, every second, third and so on is taken."""
MOSTLY_LINKS: Final = 0.8
MANY_LINKS: Final = 20
LIST_NAME: Final = re.compile(
    r"(?:.+-|gen|py-?mod|book)?(?:index|contents|toc|modules)(?:-[a-z0-9_]+)?"
).fullmatch
"""Names of files that are listings, without their endings."""
DEMO_AGE_S = 600.0
DEMO_KINDS = {"article": "article", "copy": "article", "front": "listing", "section": "listing"}
HALVES = ("even", "odd")


class LabelledPage(NamedTuple):
    source: str
    url: str
    kind: str
    body: bytes
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

    @property
    def reaches_goal(self) -> bool:
        """Are precision and recall as high as they have to be?"""
        worst = max(self.missed, self.false)
        return self.found > 0 and self.found >= GOAL * (self.found + worst)


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
        yield LabelledPage("demo", url, kind, body, parse_page(body, url))


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
    if not (folder / "pages.tsv").exists():
        yield from listings_of_set(folder)
        return
    with (folder / "pages.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            path = folder / "html" / row["file"]
            yield read_page(row["source"], path, row["url"], row["kind"])


def listings_of_set(folder: Path) -> list[LabelledPage]:
    """The pages of a set of documentation that are listings by their names, or by their links."""
    source = folder.resolve().name
    files = sorted(path for path in folder.rglob("*.htm*") if path.is_file())
    named = [path for path in files if LIST_NAME(path.name.partition(".htm")[0].lower())]
    others = set(files).difference(named)
    linked = [path for path in sorted(others) if is_mostly_links(read_body(path))]
    found = []
    for kind, paths in (("names", named), ("links", linked)):
        step = -(-len(paths) // MAX_OF_SET) or 1
        for path in paths[::step]:
            url = f"https://docs.example.org/{path.relative_to(folder).as_posix()}"
            found.append(read_page(f"{source}, by {kind}", path, url, "listing"))
    return found


def is_mostly_links(body: bytes) -> bool:
    try:
        root = html.document_fromstring(body).find("body")
    except (etree.LxmlError, ValueError):
        return False
    if root is None:
        return False
    links = [link for link in root.iter("a") if link.get("href")]
    words = sum(len("".join(link.itertext()).split()) for link in links)
    everything = len("".join(root.itertext()).split())
    return len(links) >= MANY_LINKS and words >= MOSTLY_LINKS * everything


def read_body(path: Path) -> bytes:
    body = path.read_bytes()
    return decompress(body) if path.suffix == ".gz" else body


def read_page(source: str, path: Path, url: str, kind: str) -> LabelledPage:
    body = read_body(path)
    return LabelledPage(source, url, kind, body, parse_page(body, url))


def judge_pages(pages: list[LabelledPage], *, learning: bool) -> list[KindGuess]:
    if not learning:
        return [judge_page(page.document, page.url) for page in pages]
    kinds = PageKinds()
    return [kinds.guess(page.document, page.url) for page in pages]


def report(pages: list[LabelledPage], *, learning: bool, verbose: bool) -> bool:
    """Print the scores; whether that of the whole is high enough."""
    print(f"learning {'on' if learning else 'off'}")
    scores: defaultdict[tuple[str, str], Score] = defaultdict(Score)
    numbers: defaultdict[str, int] = defaultdict(int)
    for page, guess in zip(pages, judge_pages(pages, learning=learning), strict=True):
        half = HALVES[numbers[page.source] % 2]
        numbers[page.source] += 1
        article = page.kind == "article"
        taken = guess.kind == "article"
        for key in ((page.source, half), ("all", half), ("all", "")):
            scores[key].add(article=article, taken=taken)
        if verbose and article != taken:
            print(f"  {half} {page.source}: {page.kind}, taken for {guess.kind}: {page.url[:150]}")
            print(f"      {guess.points:+.1f}: {guess.why}")
    width = max(map(len, numbers))
    for source in (*numbers, "all"):
        for half in HALVES:
            print(f"  {source:{width}} {half:4} {scores[source, half].line}")
    whole = scores["all", ""]
    print(f"  {'all':{width}}      {whole.line}")
    return whole.reaches_goal


@contextmanager
def without_signs() -> Iterator[None]:
    """Let the parse collect no signs of kinds, but for the count of articles in a page: two looks
    at an attribute.
    """
    without: dict[str, Any] = {
        "find_json_ld_types": lambda _: [],
        "note_type": lambda _: [],
        "DATE_NAMES": frozenset(),
    }
    before = {name: getattr(html_elements, name) for name in without}
    starts = {tag: html_elements.STARTS[tag] for tag in ("time", "body")}
    _set_all(without)
    html_elements.STARTS["time"] = None
    html_elements.STARTS["body"] = lambda target, tag, attrib: None
    try:
        yield
    finally:
        html_elements.STARTS.update(starts)
        _set_all(before)


def _set_all(values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(html_elements, name, value)


def report_cost(pages: Sequence[LabelledPage]) -> bool:
    """Print what pages cost more for their kinds; whether that is little enough for the one in the
    middle: a table of contents may have a megabyte. Of each page the best of some runs counts, with
    and without signs in turn.
    """
    kinds = PageKinds()
    rows = []
    for page in pages:
        times: list[tuple[float, float, float]] = []
        for _ in range(RUNS):
            with without_signs():
                plain_ms = cpu_ms(partial(parse_page, page.body, page.url))
            parse_ms = cpu_ms(partial(parse_page, page.body, page.url))
            times.append(
                (plain_ms, parse_ms, cpu_ms(partial(kinds.judge, page.document, page.url)))
            )
        plain_ms, parse_ms, judging_ms = map(min, zip(*times, strict=True))
        rows.append((plain_ms, parse_ms - plain_ms, judging_ms, parse_ms - plain_ms + judging_ms))
    print(f"{len(pages)} pages that are no articles, ms of CPU each")
    for name, middle in (("median", statistics.median), ("mean", statistics.mean)):
        plain_ms, signs_ms, judging_ms, both_ms = map(middle, zip(*rows, strict=True))
        print(
            f"  {name:6} {both_ms:.3f} for its kind ({signs_ms:.3f} for signs in the parse, "
            f"{judging_ms:.3f} for judging), {plain_ms:.2f} for the parse without signs"
        )
    middle_ms: float = statistics.median([both_ms for *_, both_ms in rows])
    return middle_ms <= MAX_COST_MS


def cpu_ms(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="folder with articles and change-sequences")
    parser.add_argument(
        "--listings", type=Path, nargs="+", default=[], help="folders of pages, or documentation"
    )
    parser.add_argument("--verbose", action="store_true", help="print the pages that are wrong")
    options = parser.parse_args()
    pages = list(demo_pages())
    if options.data is not None:
        pages += shared_pages(options.data)
    for folder in options.listings:
        pages += listed_pages(folder)
    if {page.source for page in pages} == {"demo"}:
        print("There are no real pages: only the demo web is judged.")
    reached = [
        report(pages, learning=learning, verbose=options.verbose) for learning in (False, True)
    ]
    others = [page for page in pages if page.kind != "article"]
    reached.append(report_cost(others[:: -(-len(others) // TIMED)]))
    if not all(reached):
        print(f"NOT REACHED: {GOAL} of precision and recall, {MAX_COST_MS} ms")
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
