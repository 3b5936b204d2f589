"""How good the texts of articles are: `python -m benchmarks.articles --data FOLDER`.

FOLDER holds `ground-truth.json`, which says `url` and `articleBody` of each page by its name, and
the pages as `html/NAME.html.gz`, as the article extraction benchmark of Scrapinghub does. Where the
truth has `title`, `date` or `authors` of a page, these are judged as well.

Prints precision and recall of shingles of four words, each the mean over all pages, their F1 (as
that benchmark has it) and the mean of the pages' own F1: for this project and for trafilatura,
which it builds on, in the same run, with its defaults and without comments. Pages are sorted by
name and cut into quarters; the rules were made on the first half alone. Exits with 1 unless every
quarter is as good as trafilatura without comments, and the whole better, by both.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from gzip import decompress
from pathlib import Path
from statistics import mean
from typing import Any, Final, NamedTuple

from crawlproj.content.article_main import warm_up
from crawlproj.content.articles import ArticleFields, extract_article

SHINGLE: Final = 4
GAIN: Final = 0.005
"""So much better than trafilatura must the whole be."""
DEFAULTS: Final = "trafilatura, defaults"
PLAIN: Final = "trafilatura, no comments"
OURS: Final = "crawlproj"
_WORDS: Final = re.compile(r"\w+")
_JSON_LD: Final = re.compile(rb"<script[^>]+ld\+json.*?</script>", re.I | re.S)


class JudgedPage(NamedTuple):
    name: str
    body: bytes
    truth: Mapping[str, Any]

    @property
    def url(self) -> str:
        url: str = self.truth["url"]
        return url


class Score(NamedTuple):
    """Of a page, or the means of several."""

    precision: float
    recall: float
    f1: float

    @property
    def total_f1(self) -> float:
        """F1 of precision and recall; `f1` may be the mean of those of the pages."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def line(self) -> str:
        return (
            f"precision {self.precision:.4f}  recall {self.recall:.4f}  F1 {self.total_f1:.4f}  "
            f"mean F1 {self.f1:.4f}"
        )


class Result(NamedTuple):
    """What one way to extract gives: its texts and scores in the order of the pages."""

    texts: list[str]
    scores: list[Score]
    ms_per_page: float

    def mean_of(self, part: slice) -> Score:
        scores = self.scores[part]
        return Score(*(mean(values) for values in zip(*scores, strict=True)))


def load_pages(folder: Path) -> list[JudgedPage]:
    truth = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    return [
        JudgedPage(name, decompress((folder / f"html/{name}.html.gz").read_bytes()), truth[name])
        for name in sorted(truth)
    ]


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """All runs of four words, with their counts; a shorter text is one run."""
    words = _WORDS.findall(text)
    if not words:
        return Counter()
    last = max(1, len(words) - SHINGLE + 1)
    return Counter(tuple(words[start : start + SHINGLE]) for start in range(last))


def score_text(text: str, truth: str) -> Score:
    found = shingles(text)
    right = shingles(truth)
    common = (found & right).total()
    if not common:
        same = float(not found and not right)
        return Score(same, same, same)
    precision = common / found.total()
    recall = common / right.total()
    return Score(precision, recall, 2 * precision * recall / (precision + recall))


def run_pages(pages: Sequence[JudgedPage], extract: Callable[[JudgedPage], str]) -> Result:
    texts: list[str] = []
    start = time.process_time()
    for page in pages:
        texts.append(extract(page))
    spent = time.process_time() - start
    scores = [
        score_text(text, page.truth.get("articleBody", ""))
        for text, page in zip(texts, pages, strict=True)
    ]
    return Result(texts, scores, spent / len(pages) * 1000)


def plain_trafilatura(page: JudgedPage, **options: Any) -> str:
    import trafilatura

    text: str | None = trafilatura.extract(page.body, url=page.url, **options)
    return text or ""


def split_pages(number: int) -> dict[str, slice]:
    """The parts of the set, each with what it is called."""
    cuts = [number * quarter // 4 for quarter in range(5)]
    parts = {"all": slice(0, number)}
    parts |= {"first half (the rules)": slice(0, cuts[2]), "second half": slice(cuts[2], number)}
    parts |= {f"quarter {n + 1}": slice(cuts[n], cuts[n + 1]) for n in range(4)}
    return parts


def report_texts(results: Mapping[str, Result], parts: Mapping[str, slice]) -> None:
    for name, result in results.items():
        print(f"{name}: {result.ms_per_page:.1f} ms of CPU per page")
        for part, pages in parts.items():
            print(f"  {part:24}{result.mean_of(pages).line}")


def find_shortfalls(results: Mapping[str, Result], parts: Mapping[str, slice]) -> list[str]:
    """What is not as good as it has to be, a line each."""
    wanted = {"all": GAIN} | {name: 0.0 for name in parts if name.startswith("quarter")}
    found = []
    for part, gain in wanted.items():
        ours = results[OURS].mean_of(parts[part])
        plain = results[PLAIN].mean_of(parts[part])
        for what, own, other in (
            ("F1", ours.total_f1, plain.total_f1),
            ("mean F1", ours.f1, plain.f1),
        ):
            if own < other + gain:
                found.append(f"{part}: {what} {own:.4f}, should be {other + gain:.4f} or more")
    return found


def report_worst(pages: Sequence[JudgedPage], results: Mapping[str, Result], number: int) -> None:
    gains = [
        (ours.f1 - plain.f1, page, ours, plain)
        for page, ours, plain in zip(
            pages, results[OURS].scores, results[PLAIN].scores, strict=True
        )
    ]
    for gain, page, ours, plain in sorted(gains, key=lambda row: row[0])[:number]:
        print(
            f"  {gain:+.3f} precision {ours.precision:.3f} recall {ours.recall:.3f} (F1 was {plain.f1:.3f}) {page.name[:12]} {page.url[:90]}"
        )


def report_fields(pages: Sequence[JudgedPage], fields: Sequence[ArticleFields]) -> None:
    """How many articles have each field and from where; how many are right, if that is known."""
    for name in ("title", "date", "authors", "language", "section", "image", "canonical"):
        origins = Counter(found.origins.get(name, "none") for found in fields)
        told = ", ".join(f"{origin} {times}" for origin, times in origins.most_common())
        print(f"  {name:10}{told}")
    for name in ("title", "date", "authors"):
        judged = [
            is_right(name, page.truth[name], getattr(found, name))
            for page, found in zip(pages, fields, strict=True)
            if page.truth.get(name)
        ]
        if judged:
            print(f"  {name:10}{sum(judged)} of {len(judged)} right")


def report_fallbacks(
    pages: Sequence[JudgedPage], fields: Sequence[ArticleFields], verbose: bool
) -> None:
    """How often the other places of a page say what its JSON-LD says: by day, by all names."""
    without = [
        extract_article(_JSON_LD.sub(b"", page.body), page.url) if found.origins else found
        for page, found in zip(pages, fields, strict=True)
    ]
    for name in ("title", "date", "authors"):
        counts: Counter[str] = Counter()
        for page, found, other in zip(pages, fields, without, strict=True):
            if found.origins.get(name) != "json-ld":
                continue
            truth = getattr(found, name)
            guess = getattr(other, name)
            if not guess:
                result = "none"
            elif is_right(name, truth, guess):
                result = "the same"
            else:
                result = "other"
                if verbose:
                    origin = other.origins[name]
                    print(f"    {name}: {truth!r}, {guess!r} by {origin}: {page.url[:80]}")
            counts[f"{other.origins.get(name, 'nowhere')} {result}"] += 1
        told = ", ".join(f"{result} {times}" for result, times in counts.most_common())
        print(f"  {name:10}{told}")


def is_right(name: str, truth: Any, found: Any) -> bool:
    if not found:
        return False
    if name == "date":
        return str(truth)[:10] == str(found)[:10]
    if name == "authors":
        people = [truth] if isinstance(truth, str) else truth
        return {bare_text(text) for text in people} == {bare_text(text) for text in found}
    return bare_text(str(truth)) == bare_text(str(found))


def bare_text(text: str) -> str:
    return "".join(_WORDS.findall(text)).casefold()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="folder with ground-truth.json")
    parser.add_argument("--worst", type=int, default=0, help="print so many pages that got worse")
    options = parser.parse_args()
    if not (options.data / "ground-truth.json").exists():
        print(f"There is no ground-truth.json in {options.data}.")
        return 1
    pages = load_pages(options.data)
    warm_up()
    fields: list[ArticleFields] = []

    def extract(page: JudgedPage) -> str:
        fields.append(extract_article(page.body, page.url))
        return fields[-1].text

    results = {
        DEFAULTS: run_pages(pages, plain_trafilatura),
        PLAIN: run_pages(pages, lambda page: plain_trafilatura(page, include_comments=False)),
        OURS: run_pages(pages, extract),
    }
    parts = split_pages(len(pages))
    print(f"{len(pages)} pages")
    report_texts(results, parts)
    print("fields")
    report_fields(pages, fields)
    print("fields of pages with JSON-LD, if it were not there")
    report_fallbacks(pages, fields, verbose=bool(options.worst))
    if options.worst:
        report_worst(pages, results, options.worst)
    shortfalls = find_shortfalls(results, parts)
    for line in shortfalls:
        print(f"too low: {line}")
    return 1 if shortfalls else 0


if __name__ == "__main__":
    sys.exit(main())
