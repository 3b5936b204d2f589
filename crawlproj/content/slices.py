"""Long work in slices: a generator that yields between two of them and returns the result.

Whoever runs it decides what happens in between: nothing (`run_at_once`), or the event loop's other
work (`crawlproj.fetch.slices`). Work that is short yields nothing and costs as much as a function.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
Slices: TypeAlias = Generator[None, None, T]

BIG_BODY: Final = 256 * 1024
"""Bodies of more bytes are read in slices."""
MANY_LINKS: Final = 500
"""So many links are handled at once, more of them in slices."""
SLICE_CHARACTERS: Final = 100_000
"""About so much text is handled at once."""
SLICE_ITEMS: Final = 200
"""So many links or entries are handled at once where there are many."""

NEWLINE: Final = re.compile("\n")
PARAGRAPH: Final = re.compile("\n\n")
ANYWHERE: Final = re.compile("")


def run_at_once(slices: Slices[T]) -> T:
    """The result, without a pause."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result


def cut_text(text: str, border: re.Pattern[str]) -> Iterator[str]:
    """The text in pieces, each cut just before a border; what has no border is not cut."""
    start = 0
    while len(text) - start > SLICE_CHARACTERS:
        found = border.search(text, start + SLICE_CHARACTERS)
        if found is None:
            break
        yield text[start : found.start()]
        start = found.start()
    yield text[start:]
