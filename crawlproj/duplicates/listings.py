"""Pages that are lists of links: their content is what they lead to, not the notice beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from crawlproj.duplicates.compare import TEXT_LINK_SHARE, JudgedText, TextRun

MAX_WORDS: Final = 100
"""A page with more words that are not links says something itself."""
MIN_LINKED: Final = 0.6
"""So much of the text of a list is in runs of links."""
SAME_SHARE: Final = 0.5
"""Of the links of two equal lists so many are the same."""


def listed_links(runs: Iterable[TextRun], text: JudgedText) -> frozenset[str] | None:
    """The texts of the links of a page that is a list of them; None if it is something else."""
    if len(text.words.hashes) > MAX_WORDS:
        return None
    characters = 0
    linked = 0
    links = set()
    for run in runs:
        characters += len(run.text)
        if run.link_share >= TEXT_LINK_SHARE:
            linked += len(run.text)
            links.add(run.text)
    if linked < MIN_LINKED * characters or not links:
        return None
    return frozenset(links)


def is_same_list(a: frozenset[str] | None, b: frozenset[str] | None) -> bool:
    """Do two pages list the same links, if they are lists?"""
    if a is None and b is None:
        return True
    if a is None or b is None:
        return False
    return len(a & b) >= SAME_SHARE * len(a | b)
