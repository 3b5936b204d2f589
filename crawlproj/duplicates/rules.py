"""The settings by which pages are compared. Free of numpy, so that reading settings loads none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BANDS: Final = 8
"""Bands of a signature: columns of the table `band`."""


@dataclass(frozen=True, slots=True)
class DuplicateRules:
    """What is compared, and where: inside a site (registered domain), a crawl, or among all.

    `keep_all`: copies become articles, and are exported, too. `drop_items`: items of copies are
    dropped.
    """

    exact: bool = True
    near: bool = True
    paragraphs: bool = True
    threshold: float = 0.95
    num_perm: int = 128
    shingle: int = 3
    paragraph_threshold: float = 0.9
    scope: str = "crawl"
    keep_all: bool = False
    drop_items: bool = False
