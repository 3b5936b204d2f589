"""What of a page is judged, how alike two pages are, and whether they only share a frame."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple, Protocol

import numpy as np

from crawlproj.duplicates.words import (
    Hashes,
    Words,
    find_words,
    fold_text,
    shingle_hashes,
    sort_unique,
    word_hashes,
)

TEXT_LINK_SHARE: Final = 0.34
"""Runs with so much of their text in links are lists of links, not text."""
FRAME_LINK_SHARE: Final = 0.5
"""The same for the frame test, which looks at headings and short lines too."""
MIN_CHARACTERS: Final = 50
"""Shorter runs are scraps: captions, buttons, dates."""
MIN_SHINGLES: Final = 20
"""A text with fewer different shingles is too short to be like another one."""
MAX_CHARACTERS: Final = 500_000
"""So much of a page is looked at, its beginning."""
MAX_RUNS: Final = 50_000
"""So many runs of a page are looked at, the first ones."""
MIN_OWN_PAIRS: Final = 7
"""With fewer word pairs of its own (8 words) a page has no other content than its twin."""
SAME_SHARE: Final = 0.25
"""Twins share at least so many word pairs of the lines that only one of them has."""
SAME_PLACE: Final = 0.1
"""Lines stand at the same place if no more of the common text is between their places."""
END: Final = 0.995
"""Lines after this place are behind all common text, where notices come and go: these are compared
with each other alone.
"""
MUCH_SHARE: Final = 0.1
"""Lines with so many word pairs, compared with the words of the page's text, are content wherever
they stand.
"""
MOVED_SHARE: Final = 0.75
"""So many word pairs of a line are elsewhere on the other page if it only was moved."""
_NUMBER: Final = re.compile(r"\d+")


class PlacedLine(NamedTuple):
    """A line, and where it stands: 0 is before, 1 after all text that two pages share."""

    place: float
    text: str


class TextRun(Protocol):
    """A run of text of a page, from the parser or from the database."""

    @property
    def text(self) -> str: ...

    @property
    def link_share(self) -> float: ...


class JudgedText:
    """The text of one page by which it is compared. What is found out about it is kept."""

    __slots__ = ("_all_lines", "_frame_lines", "_lines", "_sets", "_words", "text")

    def __init__(self, text: str, lines: str, all_lines: str) -> None:
        self.text: Final = text
        """The long runs with few links, one per line."""
        self._lines = lines
        self._all_lines = all_lines
        self._words: Words | None = None
        self._sets: dict[int, Hashes] = {}
        self._frame_lines: dict[str, None] | None = None

    @property
    def characters(self) -> int:
        """How much text is kept here."""
        return len(self.text) + len(self._lines) + len(self._all_lines)

    @property
    def words(self) -> Words:
        """The words of the text."""
        if self._words is None:
            self._words = find_words(self.text)
        return self._words

    def shingle_set(self, size: int) -> Hashes:
        """The hashes of all runs of so many words, sorted, each once."""
        found = self._sets.get(size)
        if found is None:
            found = shingle_hashes(self.words.hashes, size, unique=True)
            self._sets[size] = found
        return found

    @property
    def frame_lines(self) -> dict[str, None]:
        """All lines with few links, also short ones, as they are compared; in their order."""
        if self._frame_lines is None:
            self._frame_lines = dict.fromkeys(fold_text(self._lines).split("\n"))
        return self._frame_lines

    @property
    def all_pairs(self) -> Hashes:
        """The word pairs of the whole page, links too; all numbers are equal."""
        return sort_unique(_word_pairs(self._all_lines))


def judged_text(runs: Iterable[TextRun]) -> JudgedText:
    """The text by which a page is compared: its long runs with few links, without the scraps.

    A sharper idea of "main text" drops the body of some pages and keeps a notice, which makes
    different pages equal; this one cannot lose a paragraph.
    """
    room = MAX_CHARACTERS
    all_lines: list[str] = []
    lines: list[str] = []
    texts: list[str] = []
    for run in islice(runs, MAX_RUNS):
        text = run.text[:room]
        share = run.link_share
        all_lines.append(text)
        if share < FRAME_LINK_SHARE:
            lines.append(text)
            if share < TEXT_LINK_SHARE and is_long(text):
                texts.append(text)
        room -= len(text)
        if room <= 0:
            break
    return JudgedText("\n".join(texts), "\n".join(lines), "\n".join(all_lines))


def similarity(a: JudgedText, b: JudgedText, shingle: int) -> float:
    """The Jaccard similarity of the texts' sets of word runs, exactly; 0 if one has no words."""
    return _jaccard(a.shingle_set(shingle), b.shingle_set(shingle))


def is_same_content(a: JudgedText, b: JudgedText) -> bool:
    """Whether nothing says that two similar pages have other content in the same frame.

    They have if at the same place of both stand lines that only one of them has, and these lines
    have little in common; or, wherever they stand, if these are much of both pages. To be asked
    about pages that are similar.
    """
    own_a = _lines_of_its_own(a, b)
    own_b = _lines_of_its_own(b, a)
    pairs_a = _word_pairs(_lines_at_places(own_a, own_b))
    pairs_b = _word_pairs(_lines_at_places(own_b, own_a))
    if not _are_other(pairs_a, pairs_b, MIN_OWN_PAIRS):
        much = MUCH_SHARE * min(len(a.words.hashes), len(b.words.hashes))
        if min(len(own_a), len(own_b)) == 0:
            return True
        pairs_a = _word_pairs("\n".join([line.text for line in own_a]))
        pairs_b = _word_pairs("\n".join([line.text for line in own_b]))
        if not _are_other(pairs_a, pairs_b, max(much, MIN_OWN_PAIRS)):
            return True
    # A line that is moved into a list of links, or out of one, is on both pages all the same.
    return _is_within(pairs_a, b.all_pairs) and _is_within(pairs_b, a.all_pairs)


def is_other_text(a: str, b: str, least: float) -> bool:
    """Whether both of two texts have so many word pairs, and little in common."""
    return _are_other(_word_pairs(a), _word_pairs(b), least)


def _are_other(a: Hashes, b: Hashes, least: float) -> bool:
    """Are both so many word pairs, and have they little in common?"""
    if min(len(a), len(b)) < least:
        return False
    return _jaccard(sort_unique(a), sort_unique(b)) < SAME_SHARE


def near_similarity(a: JudgedText, b: JudgedText, shingle: int, threshold: float) -> float | None:
    """How similar two pages are, if that is enough and they have the same content; else None."""
    sizes = sorted((len(a.shingle_set(shingle)), len(b.shingle_set(shingle))))
    if sizes[0] < MIN_SHINGLES or sizes[0] < threshold * sizes[1]:
        return None
    found = similarity(a, b, shingle)
    if found < threshold or not is_same_content(a, b):
        return None
    return found


def is_long(text: str) -> bool:
    """Is it more than a scrap? By its bytes, since an ideograph says as much as half a word."""
    if len(text) >= MIN_CHARACTERS:
        return True
    return not text.isascii() and len(text.encode("utf-8", "replace")) >= MIN_CHARACTERS


def _jaccard(a: Hashes, b: Hashes) -> float:
    """Of two sorted arrays without repetitions."""
    if not len(a) or not len(b):
        return 0.0
    common = _count_common(a, b)
    return common / (len(a) + len(b) - common)


def _count_common(a: Hashes, b: Hashes) -> int:
    """How many hashes two sorted arrays without repetitions share."""
    both = np.concatenate((a, b))
    both.sort(kind="stable")
    return int(np.count_nonzero(both[1:] == both[:-1]))


def _is_within(part: Hashes, whole: Hashes) -> bool:
    part = sort_unique(part)
    return _count_common(part, whole) >= MOVED_SHARE * len(part)


def _lines_of_its_own(page: JudgedText, other: JudgedText) -> list[PlacedLine]:
    """The lines of a page that the other one has not, with the share of common text before them."""
    known = other.frame_lines
    before = 0
    own = []
    for line in page.frame_lines:
        if line in known:
            before += len(line)
        else:
            own.append((before, line))
    return [PlacedLine(place / max(1, before), line) for place, line in own]


def _lines_at_places(lines: list[PlacedLine], others: list[PlacedLine]) -> str:
    """Those lines that stand about where one of the other page's own lines stands."""
    places = [other.place for other in others]
    before_end = [place for place in places if place < END]
    kept = []
    for place, text in lines:
        if place >= END:
            near = len(before_end) < len(places)
        else:
            next_one = bisect_left(before_end, place - SAME_PLACE)
            near = next_one < len(before_end) and before_end[next_one] <= place + SAME_PLACE
        if near:
            kept.append(text)
    return "\n".join(kept)


def _word_pairs(text: str) -> Hashes:
    """All pairs of neighbouring words; all numbers are equal."""
    return shingle_hashes(word_hashes(_NUMBER.sub("0", text)), 2)
