"""Media by their suffix: links to pictures, sound, film, archives and programs are recorded, but
not followed.
"""

from __future__ import annotations

from collections.abc import Set
from importlib.resources import files

LISTS = frozenset({"xml", "txt", "rss", "atom", "rdf"})
"""Sitemaps and feeds may be packed: `sitemap.xml.gz` is no archive."""
PACKED = frozenset({"gz", "bz2", "xz", "zst"})


def shipped_suffixes() -> frozenset[str]:
    """The suffixes in `media_suffixes.txt`, which comes with crawlproj."""
    text = files("crawlproj").joinpath("urls", "media_suffixes.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return frozenset(" ".join(lines).split())


def has_suffix(url: str, suffixes: Set[str]) -> bool:
    """Whether the path of a canonical URL ends in one of the suffixes (small letters, no dot).

    Not if its last segment has a colon: `/wiki/File:Map.jpg` is a page about a picture.
    """
    path = url.partition("?")[0]
    segment = path[path.rfind("/") + 1 :]
    stem, dot, suffix = segment.rpartition(".")
    if not dot or suffix.lower() not in suffixes or ":" in segment:
        return False
    return stem.rpartition(".")[2].lower() not in LISTS or suffix.lower() not in PACKED
