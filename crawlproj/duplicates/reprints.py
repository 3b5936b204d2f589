"""Pages of different hosts that share their long paragraphs: the same article in two frames, or two
articles with the same frame or notice?

The frame test of `compare` would refuse each reprint, since two hosts have different lines around
the same text. Here it is asked what the shared paragraphs are: the content of both pages, inside
frames that differ, or what stands around or beside other content.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from crawlproj.content.packed_text import TextBlock
from crawlproj.duplicates.compare import (
    FRAME_LINK_SHARE,
    MAX_CHARACTERS,
    MAX_RUNS,
    MIN_OWN_PAIRS,
    TEXT_LINK_SHARE,
    is_long,
    is_other_text,
)
from crawlproj.duplicates.words import find_words, run_hashes

SOME_PARAGRAPHS: Final = 3
FRAME_SHARE: Final = 0.08
MAX_FRAME_PAIRS: Final = 20
"""Beside so many shared paragraphs, lines with fewer word pairs than this, or than that share of
the paragraphs' words, are a frame and nothing more.
"""
SAME_LINKS: Final = 0.5
"""Pages of one template share at least so much of the lines of links of the one that has fewer."""
MIN_LINKS: Final = 3
"""Fewer lines of links say nothing of a template."""
ENOUGH_WORDS: Final = 300
ENOUGH_PARAGRAPHS: Final = 4
FEW_WORDS: Final = 150
"""A notice has fewer words, or fewer paragraphs with so few words."""
MIN_MAIN_WORDS: Final = 8
"""With so many words of its own in its main part, that is what a page is about."""


class _Line(NamedTuple):
    """A line of a page, by the hash of its words."""

    hash: int
    words: int
    block: TextBlock

    @property
    def is_linked(self) -> bool:
        return self.block.link_share >= FRAME_LINK_SHARE

    @property
    def is_paragraph(self) -> bool:
        return self.block.link_share < TEXT_LINK_SHARE and is_long(self.block.text)


def is_reprint(page: Sequence[TextBlock], original: Sequence[TextBlock]) -> bool:
    """Whether the paragraphs that two pages of different hosts share are what both are about.

    To be asked of visible blocks, if almost all long paragraphs of the page are known. In doubt
    the answer is no.
    """
    lines = _lines_of(page)
    others = _lines_of(original)
    shared = {line.hash for line in lines} & {line.hash for line in others}
    words = [line.words for line in lines if line.is_paragraph and line.hash in shared]
    own = _text_of_its_own(lines, shared)
    others_own = _text_of_its_own(others, shared)
    if not is_other_text(own, others_own, MIN_OWN_PAIRS):
        return True
    if _has_same_links(lines, others, shared) or not _is_mostly_paragraphs(lines):
        return False
    if _is_about_other(lines, shared) or _is_about_other(others, shared):
        return False
    framed = _frames_shared(lines, shared) and _frames_shared(others, shared)
    if framed and _is_about_shared(lines, shared) and _is_about_shared(others, shared):
        return True
    if len(words) >= SOME_PARAGRAPHS:
        frame = min(MAX_FRAME_PAIRS, FRAME_SHARE * sum(words))
        if not is_other_text(own, others_own, frame):
            return True
    if sum(words) >= ENOUGH_WORDS:
        return framed
    return framed and len(words) >= ENOUGH_PARAGRAPHS and sum(words) >= FEW_WORDS


def _lines_of(blocks: Sequence[TextBlock]) -> list[_Line]:
    """The different lines of a page, in their order; those without words are left out."""
    room = MAX_CHARACTERS
    kept = []
    for block in islice(blocks, MAX_RUNS):
        kept.append(block._replace(text=block.text[:room].replace("\n", " ")))
        room -= len(block.text)
        if room <= 0:
            break
    words = find_words("\n".join([block.text for block in kept]))
    if not len(words.hashes):
        return []
    starts = words.lines
    counts = np.diff(np.append(starts, len(words.hashes))).tolist()
    hashes = run_hashes(words.hashes, starts).tolist()
    found: dict[int, _Line] = {}
    for hash_, count, block in zip(hashes, counts, kept, strict=True):
        if count:
            found.setdefault(hash_, _Line(hash_, count, block))
    return list(found.values())


def _lines_of_its_own(lines: Sequence[_Line], shared: set[int]) -> list[tuple[int, TextBlock]]:
    """What a page has alone, with places, but for its headline: a reprint may have another."""
    headline = next((line.hash for line in lines if line.block.kind == "heading"), None)
    return [
        (place, line.block)
        for place, line in enumerate(lines)
        if line.hash not in shared and line.hash != headline
    ]


def _text_of_its_own(lines: Sequence[_Line], shared: set[int]) -> str:
    """Without links."""
    own = _lines_of_its_own(lines, shared)
    return "\n".join([block.text for _, block in own if block.link_share < FRAME_LINK_SHARE])


def _has_same_links(lines: Sequence[_Line], others: Sequence[_Line], shared: set[int]) -> bool:
    """Do two pages have the menus of one template?"""
    links = [line.hash in shared for line in lines if line.is_linked]
    other_links = [line.hash in shared for line in others if line.is_linked]
    fewer = min(links, other_links, key=len)
    return len(fewer) >= MIN_LINKS and sum(fewer) >= SAME_LINKS * len(fewer)


def _is_mostly_paragraphs(lines: Sequence[_Line]) -> bool:
    """Of a page of short lines a paragraph says little."""
    words = sum(line.words for line in lines if not line.is_linked)
    return 2 * sum(line.words for line in lines if line.is_paragraph) >= words


def _frames_shared(lines: Sequence[_Line], shared: set[int]) -> bool:
    """Has a page lines of its own before and after all paragraphs that are shared? A template has
    its own ones in between, a notice that begins or ends a page on one side.
    """
    places = [
        place for place, line in enumerate(lines) if line.is_paragraph and line.hash in shared
    ]
    own = [place for place, _ in _lines_of_its_own(lines, shared)]
    return bool(places and own) and own[0] < places[0] and own[-1] > places[-1]


def _is_about_shared(lines: Sequence[_Line], shared: set[int]) -> bool:
    """Are most of the shared paragraphs in the main part of a page?"""
    words = [
        (line.words, line.block.main) for line in lines if line.is_paragraph and line.hash in shared
    ]
    return 2 * sum(count for count, main in words if main) > sum(count for count, _ in words)


def _is_about_other(lines: Sequence[_Line], shared: set[int]) -> bool:
    """Has the main part of a page text of its own, but no shared paragraph?"""
    main = [line for line in lines if line.block.main and not line.is_linked]
    if any(line.is_paragraph and line.hash in shared for line in main):
        return False
    own = sum(line.words for line in main if line.hash not in shared)
    return own >= MIN_MAIN_WORDS
