"""Languages of texts, how well and how dear: `python -m benchmarks.language [--data FOLDER]`.

Texts are those of tests/data/languages.json, or of FOLDER: one file per language, called de.txt and
so on, with a text on each line. Prints how many pieces of 200 and 300 characters are named
rightly, how many mixed pairs are seen to be mixed, CPU time per text, and memory.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from crawlproj.content.language import NOT_JUDGED, UNDETERMINED, Sample, choose_sample
from crawlproj.content.language_process import LanguageReader

ROOT = Path(__file__).resolve().parents[1]
TICK = os.sysconf("SC_CLK_TCK")
BATCH = 300
STEP = 40
Texts = dict[str, list[str]]


def load_texts(folder: Path | None) -> Texts:
    if folder is None:
        texts: Texts = json.loads((ROOT / "tests/data/languages.json").read_text("utf-8"))
        return texts
    return {
        path.stem: [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        for path in sorted(folder.glob("*.txt"))
    }


def cut_pieces(texts: Texts, length: int) -> Iterator[tuple[str, str]]:
    """Pieces with their language: of each text every one that begins a step after the last."""
    for language, passages in texts.items():
        for passage in passages:
            for start in range(0, max(1, len(passage) - length + 1), STEP):
                yield language, passage[start : start + length]


def detect_all(reader: LanguageReader, samples: list[Sample]) -> list[str]:
    found: list[str] = []
    for start in range(0, len(samples), BATCH):
        found += reader.detect(samples[start : start + BATCH])
    if NOT_JUDGED in found:
        raise SystemExit(f"the process failed {reader.failures} times")
    return found


def report_accuracy(reader: LanguageReader, texts: Texts, length: int) -> None:
    pieces = list(cut_pieces(texts, length))
    found = detect_all(reader, [Sample(text) for _, text in pieces])
    pairs = Counter((right, code) for (right, _), code in zip(pieces, found, strict=True))
    wrong = {pair: times for pair, times in pairs.items() if pair[0] != pair[1]}
    good = len(pieces) - sum(wrong.values())
    open_ = sum(times for (_, code), times in wrong.items() if code == UNDETERMINED)
    print(
        f"{length} characters: {good} of {len(pieces)} right ({good / len(pieces):.2%}), "
        f"{open_} undetermined; wrong: "
        + (", ".join(f"{a} as {b} {n}" for (a, b), n in wrong.items()) or "none")
    )


def report_mixed(reader: LanguageReader, texts: Texts) -> None:
    samples = [
        Sample(choose_sample([texts[first][0], texts[second][-1]]))
        for first, second in combinations(texts, 2)
    ]
    found = detect_all(reader, samples)
    print(f"two languages: {found.count(UNDETERMINED)} of {len(found)} undetermined")


def process_cpu_s(reader: LanguageReader) -> float:
    assert reader._process is not None
    stat = Path(f"/proc/{reader._process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / TICK


def report_cost(reader: LanguageReader, texts: Texts) -> None:
    pages = [passages * 10 for passages in texts.values()]
    start = time.process_time()
    samples = [Sample(choose_sample(page), "en") for page in pages for _ in range(100)]
    chosen = time.process_time()
    wall = time.perf_counter()
    before = process_cpu_s(reader)
    detect_all(reader, samples)
    own = time.process_time() - chosen
    process = process_cpu_s(reader) - before
    wall = time.perf_counter() - wall
    for seconds, name in (
        (chosen - start, "choosing the sample, of 30 blocks"),
        (own, "asking (CPU of the crawl)"),
        (process, "naming (CPU of the process)"),
        (wall, f"a text's share of the time that a batch of {BATCH} takes"),
    ):
        print(f"{seconds / len(samples) * 1e6:9.0f} us  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="folder with a file of texts per language")
    texts = load_texts(parser.parse_args().data)
    print(f"{len(texts)} languages, {sum(map(len, texts.values()))} texts")
    if not texts:
        print("No files such as de.txt are there; nothing measured.")
        return
    reader = LanguageReader(per_process=10_000_000)
    try:
        start = time.perf_counter()
        reader.start()
        detect_all(reader, [Sample("")])
        print(f"{time.perf_counter() - start:9.2f} s   until the first answer")
        report_accuracy(reader, texts, 200)
        report_accuracy(reader, texts, 300)
        report_mixed(reader, texts)
        report_cost(reader, texts)
        print(f"{reader.rss_bytes() / 1e6:9.0f} MB  memory of the process")
    finally:
        reader.close()


if __name__ == "__main__":
    main()
