"""Pages that are gone, on servers that answer 200 all the same: they are known by the answer to a
path that nobody has (soft 404).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Final
from urllib.parse import urlsplit
from zlib import crc32

from crawlproj.content.document import Block, Document

FORMAT: Final = b"P"
FORMAT_WITH_PAGES: Final = b"Q"
MAX_BLOCKS: Final = 400
SAME: Final = 0.8
"""Two pages are the same answer if so much of their letters is: the address may be quoted."""
MIN_LETTERS: Final = 20
_PREFIX: Final = "/no-such-page-"
_PROBE_PATH: Final = re.compile(rf"^https?://[^/]+{_PREFIX}[0-9a-f]{{16}}$")


@dataclass(frozen=True, slots=True)
class Probe:
    """What a host answers to a path that nobody has. Without blocks it says clearly that there is
    no such page, or nothing is known.
    """

    packed: bytes = b""
    month: int = 0
    """When the host was asked."""
    letters: int = 0
    blocks: frozenset[int] = frozenset()
    has_pages: bool = False
    """The host has shown another page since: else all of it may be behind a wall."""

    def with_pages(self) -> Probe:
        """The same answer, of a host that has shown another page since."""
        packed = FORMAT_WITH_PAGES + self.packed[1:]
        return replace(self, packed=packed, has_pages=True)

    def is_known(self, month: int) -> bool:
        """Has the host been asked this month?"""
        return bool(self.packed) and self.month >= month

    def is_answer(self, document: Document) -> bool:
        """Is the page that answer?"""
        if not self.blocks:
            return False
        found = _weigh_blocks(document.blocks)
        total = sum(found.values())
        if total < MIN_LETTERS:
            return False
        same = sum(weight for number, weight in found.items() if number in self.blocks)
        return same >= SAME * max(total, self.letters)

    def is_answer_for(self, document: Document, url: str) -> bool:
        """Is the page that answer, and all that differs quotes its address? So it is also one that
        was taken for a page before: others may be short, and have much in common with the answer.
        """
        if not self.is_answer(document):
            return False
        path = urlsplit(url).path.casefold()
        for block in document.blocks:
            text = block[0].casefold()
            if _block_number(text) not in self.blocks and path not in text:
                return False
        return True


NO_PROBE: Final = Probe()


def month_of(at: datetime) -> int:
    """The number of a month."""
    return 12 * at.year + at.month


def probe_path(host: str, month: int) -> str:
    """A path that nobody has, the same for all who ask a host in a month."""
    name = blake2b(f"{host} {month}".encode(), digest_size=8).hexdigest()
    return f"{_PREFIX}{name}"


def is_probe_url(url: str) -> bool:
    """Is it such a path, of whichever host and month?"""
    return _PROBE_PATH.search(url) is not None


def make_probe(document: Document | None, month: int) -> Probe:
    """Of the answer; None: the host said that there is no such page."""
    found: dict[int, int] = {}
    if document is not None:
        found = _weigh_blocks(document.blocks)
    letters = sum(found.values())
    if letters < MIN_LETTERS or len(found) > MAX_BLOCKS:
        found = {}
        letters = 0
    packed = FORMAT + array("I", [month, letters, *found]).tobytes()
    return Probe(packed, month, letters, frozenset(found))


def read_probe(packed: bytes | None) -> Probe:
    """What `Probe.packed` was; damaged or unknown bytes: nothing is known."""
    if packed is None or packed[:1] not in (FORMAT, FORMAT_WITH_PAGES):
        return NO_PROBE
    numbers = array("I")
    if len(packed[1:]) % numbers.itemsize:
        return NO_PROBE
    numbers.frombytes(packed[1:])
    if len(numbers) < 2:
        return NO_PROBE
    has_pages = packed[:1] == FORMAT_WITH_PAGES
    return Probe(packed, numbers[0], numbers[1], frozenset(numbers[2:]), has_pages=has_pages)


def _weigh_blocks(blocks: Iterable[Block]) -> dict[int, int]:
    """How many letters each different text has."""
    found: dict[int, int] = {}
    for block in blocks:
        text = block[0].casefold()
        found[_block_number(text)] = len(text)
    return found


def _block_number(text: str) -> int:
    return crc32(text.encode("utf-8", "replace"))
