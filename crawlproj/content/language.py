"""Rules about the language of a page's text: what part of it is looked at, what a declared language
is worth, and when nobody can honestly say.

The guessing itself is done by a process of its own, see `language_process`.
"""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

UNDETERMINED: Final = "und"
"""ISO 639's code for a text whose language nobody can say: too short, mixed, or no language."""
NOT_JUDGED: Final = ""
"""Nobody has looked at the text yet, or whoever should have looked failed."""

SAMPLE_LENGTH: Final = 300
MIN_LETTERS: Final = 40
"""A text of fewer letters is too short. Chinese, Japanese and Korean characters count as three."""
MIN_DIFFERENT: Final = 8
"""A text of fewer different letters is none."""
MIN_PROBABILITY: Final = 0.5
CLOSE: Final = 0.25
"""A language with so much of the best one's probability may be the right one as well: there the
page's own word decides.
"""
SURE_OF_PART: Final = 0.8
"""A text is mixed if one of its halves, or two of its quarters, are so sure of other languages."""
PARTS: Final = 4
MIN_PART: Final = 50

_SLICE: Final = 800
_BLOCKS: Final = 4
_SENTENCES: Final = re.compile("[.!?\u061f\u06d4](?=\\s|$)|[\u0964\u3002\uff01\uff1f\n]")
_ADDRESS: Final = re.compile(r"[!-~]+")
_NOISE: Final = re.compile(
    "[\\d_\x00-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufffd]+"
)
_DENSE: Final = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_CODE: Final = re.compile(r"\s*([A-Za-z]{2,3})(?![A-Za-z0-9])")
_ONE_OF: Final = {
    "ary": "ar",
    "arz": "ar",
    "cmn": "zh",
    "fil": "tl",
    "fuv": "ff",
    "grc": "el",
    "gug": "gn",
    "hbo": "he",
    "in": "id",
    "iw": "he",
    "ji": "yi",
    "kik": "ki",
    "ltg": "lv",
    "mo": "ro",
    "nb": "no",
    "nn": "no",
    "sdh": "ku",
    "sh": "sr",
    "uzs": "uz",
    "wuu": "zh",
    "yue": "zh",
}
"""Languages that are kept under another code: old names, and members of a language that has a code
of two letters. Both kinds of Norwegian are "no", because most pages do not say which they are in.
"""


class Sample(NamedTuple):
    """A piece of a page's text, and the language that the page or its server declares, if any."""

    text: str
    hint: str = ""


class Guess(NamedTuple):
    """A language, and how probable it is."""

    language: str
    probability: float


def normalize_language(code: str) -> str:
    """The two letters that a language is stored under; "" if it has none."""
    code = _ONE_OF.get(code, code)
    return code if len(code) == 2 else ""


def normalize_hint(hint: str) -> str:
    """The language that an attribute or a header names first; "" if that is no code."""
    match = _CODE.match(hint)
    return normalize_language(match[1].lower()) if match else ""


def choose_sample(texts: Iterable[str]) -> str:
    """About 300 characters of a page's blocks of text, from the middles of those that look most
    like sentences; two blocks where there are two, so that a mixed page is seen to be one.
    """
    blocks = list(texts)
    numbers = heapq.nlargest(_BLOCKS, range(len(blocks)), key=lambda n: len(blocks[n]))
    pieces = {number: _clean_text(_cut_middle(blocks[number], _SLICE)) for number in numbers}
    rates = {number: _rate_piece(piece) for number, piece in pieces.items()}
    best = sorted(
        numbers,
        key=lambda number: rates[number] * min(len(pieces[number]), 2 * SAMPLE_LENGTH),
        reverse=True,
    )
    wanted = SAMPLE_LENGTH
    if len(best) > 1:
        first, second, *_ = best
        if len(pieces[second]) >= wanted // 2 and rates[second] >= rates[first] / 2:
            wanted //= 2
    chosen: dict[int, str] = {}
    left = SAMPLE_LENGTH
    for number in best:
        if left < SAMPLE_LENGTH // 10:
            break
        piece = _cut_words(pieces[number], min(wanted, left))
        if piece:
            chosen[number] = piece
            left -= len(piece) + 1
    text = "\n".join(chosen[number] for number in sorted(chosen))
    return unicodedata.normalize("NFC", text)


def limit_sample(text: str) -> str:
    """A text that the process is given, whoever chose it: not longer than a sample by far."""
    return _cut_middle(text, 2 * SAMPLE_LENGTH)


def split_sample(text: str) -> list[str]:
    """Four parts of a text, or fewer if they would be too short to be judged by themselves; cut
    between sentences where that is possible, else between words.
    """
    count = max(1, min(PARTS, len(text) // MIN_PART))
    ends = [match.end() for match in _SENTENCES.finditer(text)]
    parts = []
    start = 0
    for number in range(1, count):
        cut = _find_cut(text, len(text) * number // count, ends)
        parts.append(text[start:cut])
        start = cut
    return [*parts, text[start:]]


def _find_cut(text: str, middle: int, ends: Sequence[int]) -> int:
    near = [end for end in ends if abs(end - middle) < MIN_PART // 2]
    if near:
        return min(near, key=lambda end: abs(end - middle))
    space = text.find(" ", middle, middle + MIN_PART // 2)
    return space if space > 0 else middle


def is_text(text: str) -> bool:
    """Whether there are enough letters to name a language by."""
    letters = sum(map(str.isalpha, text)) + 2 * len(_DENSE.findall(text))
    if letters < MIN_LETTERS:
        return False
    return len(set(filter(str.isalpha, text))) >= MIN_DIFFERENT


def judge_language(
    guesses: Sequence[Guess], divisions: Sequence[Sequence[Sequence[Guess]]], hint: str
) -> str:
    """The language of a text, by the guesses about it (best first), the guesses about each of its
    parts in several divisions, and what the page declares. That decides only where the text itself
    leaves it open.
    """
    if not guesses:
        return UNDETERMINED
    declared = normalize_hint(hint)
    best = guesses[0]
    for parts in divisions:
        others = _find_others(best.language, parts)
        if others and 2 * len(others) >= len(parts):
            is_confirmed = declared == best.language or any(declared in other for other in others)
            return declared if is_confirmed else UNDETERMINED
    close = _find_close(guesses)
    if declared in close and sum(close.values()) >= MIN_PROBABILITY:
        return declared
    if best.probability < MIN_PROBABILITY:
        return UNDETERMINED
    return best.language


def _find_close(guesses: Sequence[Guess]) -> dict[str, float]:
    """The languages that may well be the right one, by probability."""
    if not guesses:
        return {}
    least = CLOSE * guesses[0].probability
    return {guess.language: guess.probability for guess in guesses if guess.probability >= least}


def _find_others(language: str, parts: Sequence[Sequence[Guess]]) -> list[dict[str, float]]:
    """Of the parts that are surely in another language, what they may be in."""
    others = []
    for part in parts:
        close = _find_close(part)
        if language not in close and sum(close.values()) >= SURE_OF_PART:
            others.append(close)
    return others


def _cut_middle(text: str, length: int) -> str:
    start = max(0, (len(text) - length) // 2)
    return text[start : start + length]


def _cut_words(text: str, length: int) -> str:
    """So much of the middle of a text; where there are spaces, without words cut in two."""
    if len(text) <= length:
        return text
    piece = _cut_middle(text, length)
    first = piece.find(" ", 0, 30)
    last = piece.rfind(" ", length - 30)
    if last > first >= 0:
        return piece[first + 1 : last]
    return piece


def _clean_text(text: str) -> str:
    """The words of a text, without addresses, digits and what can't be seen."""
    if "@" in text or "://" in text or "www." in text:
        words = [_drop_address(word) for word in text.split()]
        text = " ".join(words)
    return " ".join(_NOISE.sub(" ", text).split())


def _drop_address(word: str) -> str:
    if "@" in word or "://" in word or "www." in word:
        return _ADDRESS.sub("", word)  # Chinese goes on right behind an address
    return word


def _rate_piece(piece: str) -> float:
    """How much a piece looks like sentences: mostly letters, with full stops."""
    some = piece[::5]
    if not some:
        return 0.0
    letters = sum(map(str.isalpha, some)) / len(some)
    sentences = min(len(_SENTENCES.findall(piece)), 3)
    return letters * (1 + sentences)
