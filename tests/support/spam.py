"""Compressed bytes that keep a decoder busy and give nothing."""

from __future__ import annotations

import gzip
from itertools import chain

HEAD = gzip.compress(b"")[:10]
"""Of a gzip file."""
_LENGTHS = {18: 1, 1: 1}
_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)


def deflate_spam(size: int) -> bytes:
    """Raw deflate: blocks of nothing, about 11 bytes each, with a table that must be built for
    each; a second of work in 10 MB. It has no end.
    """
    fields = [(0, 1), (2, 2), (0, 5), (0, 5), (14, 4)]  # not the last; tables of its own
    lengths = [(_LENGTHS.get(symbol, 0), 3) for symbol in _ORDER]
    zeros = [(1, 1), (138 - 11, 7), (1, 1), (118 - 11, 7)]
    codes = [(0, 1), (0, 1), (0, 1)]  # for "end", for a distance; then "end"
    bits = 0
    width = 0
    for value, count in chain(fields, lengths, zeros, codes):
        bits |= value << width
        width += count
    eight = sum(bits << (number * width) for number in range(8))
    unit = eight.to_bytes(width, "little")
    return unit * (size // len(unit))


def gzip_spam(size: int) -> bytes:
    return HEAD + deflate_spam(size)
