"""How well changes are told from noise: `python benchmarks/changes.py --data FOLDER`.

FOLDER has `sequences.csv` (page, host, order, file, label of the step from the capture before) and
the captures in `html/`. Recall is of the steps labelled `changed`, false alarms are of those
labelled `noise`, with intervals of 95 % (bootstrap over pages). *Cold* knows only the K captures
before a step, *crawl* all of them, as a crawl does. The host's noise is that of the other pages of
its registered domain. Rules were chosen on the hosts of half `a`; half `b` was only looked at.

The exit code is 1 when a bar is missed: recall and false alarms of K = 3 and K = 1 without the
host's noise (printed beside them), and the CPU of a later visit.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crawlproj.content.changes import ChangeRules, Judgement, judge_change
from crawlproj.content.document import Block, Document
from crawlproj.content.host_noise import NO_NOISE, HostNoise
from crawlproj.content.html import parse_page
from crawlproj.content.packed_text import main_text, stored_form
from crawlproj.content.page_state import clear_walls
from crawlproj.urls.domains import registered_domain

SAMPLES = 1_000
RUNS = 5
BARS = {"K=3 cold": (0.95, 0.025), "K=1 cold": (0.93, 0.05)}
"""Least recall, most false alarms."""
MOST_US = 1_000


@dataclass(frozen=True)
class PageSequence:
    """The captures of one page, and the labels of the steps to each."""

    name: str
    host: str
    documents: list[Document] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://{self.host}/{self.name}"

    @property
    def half(self) -> str:
        return "ab"[crc32(self.host.encode()) & 1]


Verdicts = dict[tuple[str, int], bool]
"""Page and number of the step to whether it was taken for a change."""
Judge = Callable[[PageSequence, int], bool]


def read_sequences(folder: Path) -> list[PageSequence]:
    pages: dict[str, PageSequence] = {}
    with (folder / "sequences.csv").open(newline="") as rows:
        for row in csv.DictReader(rows):
            page = pages.setdefault(row["page"], PageSequence(row["page"], row["host"]))
            body = gzip.decompress((folder / f"html/{row['file']}.html.gz").read_bytes())
            page.documents.append(parse_page(body, page.url))
            page.labels.append(row["label"])
    return list(pages.values())


def learn_hosts(pages: Iterable[PageSequence]) -> dict[str, HostNoise]:
    """What the other pages of its domain say, for each page."""
    learned: dict[str, HostNoise] = {}
    for page in pages:
        noise = NO_NOISE
        state = None
        for document in page.documents:
            judged = judge_change(document.blocks, state, page.url, noise)
            state = judged.state
            noise = noise.merge(judged.noise)
        learned[page.name] = noise
    by_domain = defaultdict(list)
    for page in pages:
        by_domain[registered_domain(page.host)].append(page.name)
    hosts = {}
    for page in pages:
        noise = NO_NOISE
        for name in by_domain[registered_domain(page.host)]:
            if name != page.name:
                noise = noise.merge(learned[name])
        hosts[page.name] = noise
    return hosts


def run_judge(
    page: PageSequence, start: int, stop: int, rules: ChangeRules, host: HostNoise
) -> Judgement:
    """The judgement on the last of the captures, after those before it."""
    state = None
    judged = None
    for document in page.documents[start:stop]:
        judged = judge_change(document.blocks, state, page.url, host, rules)
        state = judged.state
    assert judged is not None
    return judged


def judge_cold(captures: int, hosts: dict[str, HostNoise]) -> Judge:
    rules = ChangeRules(captures=captures)

    def judge(page: PageSequence, step: int) -> bool:
        start = max(0, step - captures)
        return run_judge(
            page, start, step + 1, rules, hosts.get(page.name, NO_NOISE)
        ).change.changed

    return judge


def judge_crawl(captures: int, hosts: dict[str, HostNoise]) -> Judge:
    rules = ChangeRules(captures=captures)

    def judge(page: PageSequence, step: int) -> bool:
        return run_judge(page, 0, step + 1, rules, hosts.get(page.name, NO_NOISE)).change.changed

    return judge


def judge_all_text(page: PageSequence, step: int) -> bool:
    return page.documents[step - 1].block_digest != page.documents[step].block_digest


def judge_main_text(page: PageSequence, step: int) -> bool:
    before, now = (
        main_text(stored_form(document.blocks)).casefold()
        for document in page.documents[step - 1 : step + 1]
    )
    return before != now


def run(pages: Iterable[PageSequence], judge: Judge) -> Verdicts:
    return {
        (page.name, step): judge(page, step)
        for page in pages
        for step in range(1, len(page.documents))
        if page.labels[step]
    }


def rates(pages: Sequence[PageSequence], verdicts: Verdicts) -> tuple[float, float]:
    """Recall and false alarms."""
    found: dict[str, list[bool]] = {"changed": [], "noise": []}
    for page in pages:
        for step, label in enumerate(page.labels):
            if label:
                found[label].append(verdicts[page.name, step])
    return tuple(sum(part) / max(1, len(part)) for part in found.values())  # type: ignore[return-value]


def interval(pages: Sequence[PageSequence], verdicts: Verdicts) -> list[tuple[float, float]]:
    """From 2.5 % to 97.5 % of the samples, for recall and false alarms."""
    chance = random.Random(1)
    samples = [rates(chance.choices(pages, k=len(pages)), verdicts) for _ in range(SAMPLES)]
    cuts = (SAMPLES // 40, SAMPLES - SAMPLES // 40 - 1)
    columns = [sorted(column) for column in zip(*samples, strict=True)]
    return [(column[cuts[0]], column[cuts[1]]) for column in columns]


def report(name: str, pages: Sequence[PageSequence], verdicts: Verdicts) -> bool:
    """Print the rates; is the bar kept?"""
    cells = []
    recall, alarms = interval(pages, verdicts)
    for half in ("", "a", "b"):
        chosen = [page for page in pages if half in ("", page.half)]
        cells.append("{:.3f} / {:.3f}".format(*rates(chosen, verdicts)))
    print(
        f"{name:28} {cells[0]}  [{recall[0]:.2f}-{recall[1]:.2f} / {alarms[0]:.3f}-{alarms[1]:.3f}]"
        f"   a {cells[1]}   b {cells[2]}"
    )
    least, most = BARS.get(name, (0.0, 1.0))
    found, false = rates(pages, verdicts)
    if found < least or false > most:
        print(f"  missed: recall >= {least}, false alarms <= {most}")
        return False
    return True


def measure(pages: Sequence[PageSequence]) -> bool:
    """CPU and sizes, page by page, with the state of the third capture; is the bar kept?"""
    first_us = []
    next_us = []
    same_us = []
    sizes = []
    for page in pages:
        state = run_judge(page, 0, 3, ChangeRules(), NO_NOISE).state
        sizes.append(len(state))
        blocks = page.documents[3].blocks
        first_us.append(best_us(lambda: judge_change(blocks, None, page.url)))  # noqa: B023
        next_us.append(best_us(lambda: judge_change(blocks, state, page.url)))  # noqa: B023
        same_us.append(best_us(lambda: clear_walls(state)))  # noqa: B023
    for name, values in (
        ("us CPU, first visit", first_us),
        ("us CPU, later visit", next_us),
        ("us CPU, same bytes", same_us),
        ("bytes of state", sizes),
    ):
        ordered = sorted(values)
        print(
            f"{name:22} median {statistics.median(ordered):6.0f}  mean {statistics.mean(ordered):6.0f}"
            f"  p95 {ordered[len(ordered) * 95 // 100]:6.0f}  most {ordered[-1]:6.0f}"
        )
    if statistics.mean(next_us) > MOST_US:
        print(f"  missed: <= {MOST_US} us a later visit in the mean")
        return False
    return True


def best_us(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time_ns()
        work()
        best = min(best, (time.process_time_ns() - start) / 1_000)
    return best


def show_wrong(pages: Sequence[PageSequence], half: str, captures: int) -> None:
    """The steps of one half that K = 3 gets wrong."""
    hosts = learn_hosts(pages)
    for page in pages:
        if half not in ("", page.half):
            continue
        for step, label in enumerate(page.labels):
            if not label:
                continue
            judged = run_judge(
                page, max(0, step - captures), step + 1, ChangeRules(), hosts[page.name]
            )
            change = judged.change
            if change.changed != (label == "changed"):
                print(page.host, page.name, step, label, change)
                show_blocks(page.documents[step - 1].blocks, page.documents[step].blocks)


def show_blocks(before: list[Block], now: list[Block]) -> None:
    old = {block.text.casefold() for block in before}
    new = {block.text.casefold() for block in now}
    for sign, blocks, other in (("-", before, new), ("+", now, old)):
        for block in [block for block in blocks if block.text.casefold() not in other][:8]:
            print(f"  {sign} {block.main:d} {block.text[:150]!r} {block.path[-90:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--wrong", choices=("a", "b"), help="show what half a (or b) gets wrong")
    parser.add_argument("--captures", type=int, default=3, help="captures that --wrong knows")
    options = parser.parse_args()
    if not (options.data / "sequences.csv").exists():
        sys.exit(f"{options.data} has no sequences.csv: the data are absent")
    pages = read_sequences(options.data)
    if options.wrong:
        show_wrong(pages, options.wrong, options.captures)
        return
    labels = [label for page in pages for label in page.labels]
    print(
        f"{len(pages)} pages, {labels.count('changed')} steps changed, {labels.count('noise')} noise."
        " Recall / false alarms [95 %], and of the two halves of the hosts"
    )
    report("hash of all text", pages, run(pages, judge_all_text))
    report("main text", pages, run(pages, judge_main_text))
    hosts = learn_hosts(pages)
    kept = True
    for captures in (1, 3, 5):
        for name, verdicts in (
            ("cold", run(pages, judge_cold(captures, {}))),
            ("cold, host", run(pages, judge_cold(captures, hosts))),
            ("crawl", run(pages, judge_crawl(captures, {}))),
            ("crawl, host", run(pages, judge_crawl(captures, hosts))),
        ):
            kept &= report(f"K={captures} {name}", pages, verdicts)
    kept &= measure(pages)
    if not kept:
        sys.exit(1)


if __name__ == "__main__":
    main()
