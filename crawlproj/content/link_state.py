"""Which links of a listing, a feed or a sitemap are new: such a page is judged by them, not by its
text.

What is kept of the last visits is a few hundred hashes, packed. Of a page with more links than that
only those with the lowest hashes are compared: they stand for all of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final
from zlib import crc32

MAX_KEPT: Final = 460
"""Hashes of four bytes, so that a page's state stays below 1.9 KB."""
RECENT: Final = b"L"
"""All links of the last visit, then those of visits before, as far as there is room: what comes and
goes (the most read articles) is not new each time.
"""
SAMPLE: Final = b"S"
"""The lowest hashes of a page with too many links."""


def hash_links(urls: Iterable[str]) -> list[int]:
    """A number for each different link, in their order."""
    return list(dict.fromkeys([hash_link(url) for url in urls]))


def hash_link(url: str) -> int:
    """The number of one link."""
    return crc32(url.encode("utf-8", "replace"))


def pack_links(hashes: list[int], before: bytes | None = None) -> bytes:
    """The state after a visit that found these links."""
    if len(hashes) > MAX_KEPT:
        return SAMPLE + array("I", sorted(hashes)[:MAX_KEPT]).tobytes()
    kept = hashes
    if before is not None and before[:1] == RECENT:
        kept = list(dict.fromkeys([*hashes, *_unpack(before)]))[:MAX_KEPT]
    return RECENT + array("I", kept).tobytes()


def count_new_links(hashes: list[int], before: bytes | None) -> int | None:
    """How many of the links are new since the visits before; None if that is not known. An estimate
    where there are very many.
    """
    if before is None or before[:1] not in (RECENT, SAMPLE):
        return None
    known = set(_unpack(before))
    if before[:1] == RECENT:
        return sum(number not in known for number in hashes)
    if not known:
        return len(hashes)
    highest = max(known)
    compared = [number for number in hashes if number <= highest]
    new = sum(number not in known for number in compared)
    if not new:
        return 0
    return max(1, round(new * len(hashes) / len(compared)))


def find_new_links(hashes: list[int], before: bytes | None) -> frozenset[int]:
    """Those of the links that are surely new since the visits before; none if that is not known."""
    if before is None or not is_link_state(before):
        return frozenset()
    known = set(_unpack(before))
    if before[:1] == SAMPLE:
        highest = max(known, default=0)
        return frozenset(number for number in hashes if number <= highest) - known
    return frozenset(hashes) - known


def is_link_state(state: bytes | None) -> bool:
    """Was it made here?"""
    return state is not None and state[:1] in (RECENT, SAMPLE)


def _unpack(state: bytes) -> array[int]:
    numbers = array("I")
    size = numbers.itemsize
    packed = state[1:]
    numbers.frombytes(packed[: len(packed) // size * size])
    return numbers
