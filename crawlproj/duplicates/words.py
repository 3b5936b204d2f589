"""Text to hashes of words and of runs of words, without a loop over them.

What a word is, and its hash, is part of what the database stores: a change here needs another
name in `Signer.scheme`.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashes: TypeAlias = NDArray[np.uint64]
Positions: TypeAlias = NDArray[np.intp]
Codes: TypeAlias = NDArray[np.uint32]
Flags: TypeAlias = NDArray[np.bool_]

_BORDER: Final = 0
_LETTER: Final = 1
_WHOLE_WORD: Final = 2
"""A character of a script that writes no spaces: it is a word."""
_INVISIBLE: Final = 3

_CLASS_OF: Final = {"L": _LETTER, "N": _LETTER, "M": _LETTER}
_WITHOUT_SPACES: Final = (
    (0x0E00, 0x0F00),  # Thai, Lao
    (0x1000, 0x10A0),  # Burmese
    (0x1780, 0x1800),  # Khmer
    (0x3005, 0x3008),  # signs that repeat or stand for an ideograph
    (0x3040, 0x3100),  # Hiragana, Katakana
    (0x31F0, 0x3200),
    (0x3400, 0x4DC0),  # ideographs
    (0x4E00, 0xA000),
    (0xA9E0, 0xAA00),  # Burmese, extended
    (0xAA60, 0xAA80),
    (0xF900, 0xFB00),
    (0xFF66, 0xFFA0),  # Katakana of half width
)
_JOINS_GRAPHEMES: Final = 0x034F
_VARIATION_SELECTORS: Final = slice(0xFE00, 0xFE10)

_BMP: Final = 0x10000
_BLOCK_BITS: Final = 12
"""Beyond the BMP, blocks of 4,096 characters have one class."""
_LAST_PLANES: Final = np.zeros(0x110 - 0x10, np.uint8)
_LAST_PLANES[0x10 - 0x10 : 0x1F - 0x10] = _LETTER  # old scripts and mathematical letters
_LAST_PLANES[0x20 - 0x10 : 0x40 - 0x10] = _WHOLE_WORD  # ideographs; 0x1F are emoji
_LAST_PLANES[0xE0 - 0x10] = _INVISIBLE  # tags and variation selectors

_BASE: Final = np.uint64(0x9E3779B97F4A7C15)
_INVERSE: Final = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_MIX_1: Final = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_HALF: Final = np.uint64(33)
_KEPT_POWERS: Final = 1 << 14
NO_HASHES: Final[Hashes] = np.empty(0, np.uint64)
_NO_POSITIONS: Final[Positions] = np.empty(0, np.intp)


class Words(NamedTuple):
    """The words of a text: their hashes, how many characters each has (one of a script without
    spaces counts as 3, its bytes in UTF-8), and before which words a line begins.
    """

    hashes: Hashes
    lengths: Positions
    lines: Positions


def fold_text(text: str) -> str:
    """The text as it is compared: NFC, and deaf to case, also to Turkish i and dotless i."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFC", text.casefold())
    # Upper case of a dotless i is I; lower case of a dotted I is i and a dot that NFC leaves alone.
    return folded.replace("\u0131", "i").replace("\u0307", "")


def word_hashes(text: str) -> Hashes:
    """A hash for each word of a text: runs of letters and digits, deaf to case.

    Characters of scripts without spaces are words, invisible ones are not there. The hashes are
    the same in every process and on every machine.
    """
    codes, classes = _visible(fold_text(text))
    if not codes.size:
        return NO_HASHES
    starts, ends = _find_words(classes)
    return _hash_words(codes, starts, ends)


def find_words(text: str) -> Words:
    """The words of a text, with their lengths and the lines they stand in."""
    codes, classes = _visible(fold_text(text))
    if not codes.size:
        return Words(NO_HASHES, _NO_POSITIONS, _NO_POSITIONS)
    starts, ends = _find_words(classes)
    lengths = ends - starts
    lengths[classes[starts] == _WHOLE_WORD] = 3
    line_ends = np.flatnonzero(codes == 10)
    lines = np.concatenate((_NO_POSITIONS[:0], [0], np.searchsorted(starts, line_ends)))
    return Words(_hash_words(codes, starts, ends), lengths, lines)


def shingle_hashes(words: Hashes, size: int, unique: bool = False) -> Hashes:
    """A hash for each run of `size` words, in their order; if `unique`, sorted and each once.

    A text of fewer words is one run.
    """
    count = len(words) - min(size, len(words)) + 1
    if not len(words):
        return NO_HASHES
    hashes = words[:count].copy()
    for offset in range(1, len(words) - count + 1):
        hashes *= _BASE
        hashes += words[offset : offset + count]
    mix_bits(hashes)
    if unique:
        return sort_unique(hashes)
    return hashes


def run_hashes(words: Hashes, starts: Positions) -> Hashes:
    """A hash for each run of words that begins at one of `starts` and ends at the next one."""
    sums = _power_sums(words)
    ends = np.append(starts[1:], len(words))
    hashes: Hashes = (sums[ends] - sums[starts]) * _powers(int(_INVERSE), len(words) + 1)[starts]
    mix_bits(hashes)
    return hashes


def sort_unique(hashes: Hashes) -> Hashes:
    """The hashes sorted, each once; several times as fast as numpy.unique."""
    ordered = np.sort(hashes)
    if len(ordered) < 2:
        return ordered
    new = np.empty(len(ordered), np.bool_)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def mix_bits(hashes: Hashes) -> None:
    """Spread each hash over its 64 bits, in place; no two become one."""
    hashes ^= hashes >> _HALF
    hashes *= _MIX_1
    hashes ^= hashes >> _HALF
    hashes *= _MIX_2
    hashes ^= hashes >> _HALF


@cache
def _character_classes() -> NDArray[np.uint8]:
    """A class for each character of the BMP; made when it is first asked for, in some 10 ms."""
    categories = map(unicodedata.category, map(chr, range(_BMP)))
    found = (_INVISIBLE if name == "Cf" else _CLASS_OF.get(name[0], _BORDER) for name in categories)
    classes = np.fromiter(found, np.uint8, _BMP)
    classes[_JOINS_GRAPHEMES] = _INVISIBLE
    classes[_VARIATION_SELECTORS] = _INVISIBLE
    for start, end in _WITHOUT_SPACES:
        part = classes[start:end]
        part[part == _LETTER] = _WHOLE_WORD
    return classes


def _visible(text: str) -> tuple[Codes, NDArray[np.uint8]]:
    """Code points and classes of the characters that can be seen."""
    codes: Codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    if not codes.size:
        return codes, np.empty(0, np.uint8)
    if codes.max() < _BMP:
        classes = _character_classes()[codes]
    else:
        classes = _character_classes()[np.minimum(codes, _BMP - 1)]
        beyond = codes >= _BMP
        classes[beyond] = _LAST_PLANES[(codes[beyond] - _BMP) >> _BLOCK_BITS]
    invisible = classes == _INVISIBLE
    if invisible.any():
        return codes[~invisible], classes[~invisible]
    return codes, classes


def _find_words(classes: NDArray[np.uint8]) -> tuple[Positions, Positions]:
    """Where words start and end."""
    inside = classes != _BORDER
    border = np.empty(len(classes) + 1, np.bool_)
    border[0] = border[-1] = True
    np.not_equal(inside[1:], inside[:-1], out=border[1:-1])
    whole = classes == _WHOLE_WORD
    if whole.any():
        border[1:] |= whole
        border[:-1] |= whole
    return np.flatnonzero(border[:-1] & inside), np.flatnonzero(border[1:] & inside) + 1


def _hash_words(codes: Codes, starts: Positions, ends: Positions) -> Hashes:
    sums = _power_sums(codes)
    hashes = (sums[ends] - sums[starts]) * _powers(int(_INVERSE), len(codes))[starts]
    mix_bits(hashes)
    return hashes


def _power_sums(values: Codes | Hashes) -> Hashes:
    """sum(values[i] * base^i) of the first n values, for each n; all modulo 2^64.

    The difference of two of them, divided by a power of the base, is the hash of what is between.
    """
    sums = np.empty(len(values) + 1, np.uint64)
    sums[0] = 0
    np.cumsum(values * _powers(int(_BASE), len(values)), out=sums[1:])
    return sums


def _powers(base: int, count: int) -> Hashes:
    """The first powers of a number; long rows of them are not kept."""
    if count <= _KEPT_POWERS:
        return _kept_powers(base)[:count]
    return _find_powers(base, count)


@cache
def _kept_powers(base: int) -> Hashes:
    return _find_powers(base, _KEPT_POWERS)


def _find_powers(base: int, count: int) -> Hashes:
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)
