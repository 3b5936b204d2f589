"""How often the charset of a page that declares none is found, and what that costs.

    python -m benchmarks.charset [--data FOLDER] [--pages 100]

For each charset, pages are made of sentences in its language, of 300 and of 2,000 letters, under the
language's own top-level domain, .com and a wrong one; printed are the pages whose text is read as it
was written, and the microseconds that the guess takes. With FOLDER/articles/html/*.html.gz the same
sentences also stand in the paragraphs of these real pages, among their scripts and styles, and the
pages themselves are read in windows-1252. Pages that declare their charset must be read as declared.
"""

from __future__ import annotations

import argparse
import gzip
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crawlproj.content.charset import to_utf8
from crawlproj.content.charset_guess import guess_charset
from tests.support.languages import CHARSETS, PYTHON_NAMES, encode, make_page, make_text

GOAL = 0.98
LETTERS = (300, 2_000)
DECLARATION = re.compile(r"charset\s*=|encoding\s*=", re.I)
PARAGRAPH = re.compile(r"(<p(?:\s[^<>]*)?>)([^<>]{40,})")
RUNS = 3


@dataclass(slots=True)
class Score:
    """Pages of one kind: how many were read right, and the seconds that the guesses took."""

    pages: int = 0
    right: int = 0
    seconds: float = 0.0
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, body: bytes, text: str, domain: str) -> None:
        url = f"https://www.example.{domain}/page.html"
        read, charset = to_utf8(body, None, url)
        self.pages += 1
        if read.decode() == text:
            self.right += 1
        else:
            self.wrong[charset] += 1
        self.seconds += min(time_of_guess(body, url) for _ in range(RUNS))

    def __str__(self) -> str:
        return f"{self.right:5}/{self.pages:<5}{self.seconds / max(self.pages, 1) * 1e6:5.0f} us"


def time_of_guess(body: bytes, url: str) -> float:
    start = time.perf_counter()
    guess_charset(body, url)
    return time.perf_counter() - start


def is_guessed(body: bytes) -> bool:
    """Whether the page is neither ASCII nor UTF-8."""
    try:
        body.decode()
    except ValueError:
        return True
    return False


def wrong_domain(domain: str) -> str:
    return "de" if domain in ("cz", "pl", "hu") else "cz"


def read_articles(folder: Path | None) -> list[str]:
    """Real pages with their declarations made void."""
    if folder is None:
        return []
    files = sorted((folder / "articles/html").glob("*.html.gz"))
    texts = [gzip.decompress(file.read_bytes()).decode("utf-8", "replace") for file in files]
    return [DECLARATION.sub("data-none=", text.replace("\0", "")) for text in texts]


def fill_article(article: str, sentences: list[str]) -> str:
    """The article with our sentences in its paragraphs, and no other letters beyond ASCII."""
    left = list(sentences)

    def fill(found: re.Match[str]) -> str:
        taken, left[:] = left[:3], left[3:]
        return found[1] + " ".join(taken)

    ascii_page = article.encode("ascii", "xmlcharrefreplace").decode()
    filled = PARAGRAPH.sub(fill, ascii_page)
    return filled + "".join(f"<p>{sentence}</p>\n" for sentence in left)


def show(title: str, kinds: Iterable[str], rows: dict[str, dict[str, Score]]) -> bool:
    """Print a table; whether all of it is good enough."""
    kinds = list(kinds)
    print(f"\n{title}\n{'':33}" + "".join(f"{kind:>20}" for kind in kinds))
    good = True
    for name, scores in rows.items():
        wrong = sum((score.wrong for score in scores.values()), Counter[str]())
        print(f"{name:33}" + "".join(f"{scores[kind]!s:>20}" for kind in kinds), *wrong.items())
        good &= all(score.right >= GOAL * score.pages for score in scores.values())
    return good


def measure_made_up(pages: int) -> bool:
    rows: dict[str, dict[str, Score]] = {}
    for charset, language, own in CHARSETS:
        scores = rows.setdefault(f"{charset} {language}", {})
        for letters in LETTERS:
            for kind, domain in (("own", own), ("com", "com"), ("wrong", wrong_domain(own))):
                score = scores.setdefault(f"{letters} {kind}", Score())
                for seed in range(pages):
                    page = make_page(make_text(language, letters, seed))
                    score.add(encode(page, charset), page, domain)
    kinds = [f"{letters} {kind}" for letters in LETTERS for kind in ("own", "com", "wrong")]
    return show("Made-up pages, by letters and domain: read right, cost of the guess", kinds, rows)


def measure_articles(articles: list[str]) -> bool:
    rows: dict[str, dict[str, Score]] = {}
    for charset, language, own in CHARSETS:
        scores = {kind: Score() for kind in ("own", "com")}
        rows[f"{charset} {language}"] = scores
        for seed, article in enumerate(articles):
            page = fill_article(article, make_text(language, 1_000, seed))
            body = encode(page, charset)
            scores["own"].add(body, page, own)
            scores["com"].add(body, page, "com")
    western = {kind: Score() for kind in ("own", "com")}
    for article in articles:
        body = article.encode("windows-1252", "xmlcharrefreplace")
        if is_guessed(body):
            western["own"].add(body, body.decode("windows-1252"), "uk")
            western["com"].add(body, body.decode("windows-1252"), "com")
    rows["windows-1252 as they are"] = western
    return show("Real pages with these sentences", ("own", "com"), rows)


def measure_declared(pages: int) -> bool:
    """Whether pages that declare their charset, by header or by meta element, are read so."""
    total = right = 0
    for charset, language, _ in CHARSETS:
        for seed in range(pages):
            page = make_page(make_text(language, 300, seed))
            body = encode(page, charset)
            text = body.decode(PYTHON_NAMES.get(charset, charset)).encode()
            meta = f"<meta charset={charset}>".encode()
            total += 2
            right += to_utf8(body, charset, "https://example.cz/") == (text, charset)
            right += to_utf8(meta + body, None, "https://example.cz/") == (meta + text, charset)
    print(f"\nDeclared: {right} of {total} read as declared")
    return right == total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with articles/html/*.html.gz")
    parser.add_argument("--pages", type=int, default=100, help="pages of each kind")
    options = parser.parse_args()
    good = measure_made_up(options.pages)
    articles = read_articles(options.data)
    if articles:
        good &= measure_articles(articles)
    else:
        print("\nReal pages: none (--data FOLDER)")
    good &= measure_declared(min(options.pages, 20))
    print(
        f"\nAt least {GOAL:.0%} of each kind, and all that is declared: {'yes' if good else 'NO'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
