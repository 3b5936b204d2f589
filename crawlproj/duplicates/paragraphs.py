"""One number per paragraph, by which paragraphs are known again on other pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from crawlproj.duplicates.compare import MIN_CHARACTERS, JudgedText, TextRun, judged_text
from crawlproj.duplicates.words import Positions, mix_bits, run_hashes

MAX_PARAGRAPHS: Final = 2_000
"""Of a page, the first ones."""


class Paragraph(NamedTuple):
    """A paragraph: a hash of its words (signed, 64 bits), and how long it is.

    `length` counts letters, digits and one space between two words; a character of a script
    without spaces counts as 3, as in UTF-8.
    """

    hash: int
    length: int


def paragraphs_of(runs: Iterable[TextRun]) -> list[Paragraph]:
    """The different paragraphs of a page: its runs with few links and at least 50 characters.

    Case, punctuation and white space do not count.
    """
    return paragraphs_in(judged_text(runs))


def paragraphs_in(text: JudgedText) -> list[Paragraph]:
    """As `paragraphs_of`, cheaper for a page that is compared as well: its words are known."""
    words = text.words
    if not len(words.hashes):
        return []
    hashes = run_hashes(words.hashes, words.lines).view(np.int64)
    lengths = _line_lengths(words.lengths, words.lines)
    enough = lengths >= MIN_CHARACTERS
    found = dict(zip(hashes[enough].tolist(), lengths[enough].tolist(), strict=True))
    return list(map(Paragraph._make, islice(found.items(), MAX_PARAGRAPHS)))


def _line_lengths(lengths: Positions, lines: Positions) -> Positions:
    """Letters and digits of each line, and the spaces between its words."""
    sums = np.concatenate(([-1], np.cumsum(lengths + 1) - 1))
    ends = np.append(lines[1:], len(lengths))
    found: Positions = sums[ends] - sums[lines] - 1
    return found


def mix_scope(hash: int, scope: int) -> int:
    """The hash of a paragraph within a scope (signed, 64 bits)."""
    return mix_scopes([hash], scope)[0]


def mix_scopes(hashes: Sequence[int], scope: int) -> list[int]:
    """The hashes of paragraphs within a scope; different ones stay different."""
    salt = np.array([scope], np.int64).view(np.uint64)
    salt += np.uint64(0x9E3779B97F4A7C15)
    mix_bits(salt)
    mixed = np.array(hashes, np.int64).view(np.uint64) ^ salt
    mix_bits(mixed)
    numbers: list[int] = mixed.view(np.int64).tolist()
    return numbers
