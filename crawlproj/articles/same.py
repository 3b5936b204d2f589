"""When two pages of a site have the same article: other slugs, AMP, print versions."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b
from typing import Final

SHINGLE: Final = 3
SAME_TITLE_SHARE: Final = 0.7
"""Two texts under the same title are the same article if so much of them is the same."""
NAMED_SHARE: Final = 0.5
"""The same if one page names the other as canonical."""
WITHIN_SHARE: Final = 0.9
"""Or so much of the shorter text stands in the longer one: a print version without captions."""
MIN_TITLE: Final = 10
"""Letters of a title that says something; "News" is the title of many articles."""


def site_number(crawl: int, site: str) -> int:
    """A number for a site within a crawl (signed, 64 bits)."""
    return _number(f"{crawl} {site}")


def text_key(site: int, text: str) -> int:
    """A number that articles of a site have in common if their words are the same."""
    return _number(f"{site} {letters_of(text)}")


def title_key(site: int, title: str | None) -> int | None:
    """The same for titles; None if the title says nothing."""
    letters = letters_of(title or "")
    if len(letters) < MIN_TITLE:
        return None
    return _number(f"{site} {letters}")


def letters_of(text: str) -> str:
    """Letters and digits only, deaf to case and to how letters are composed."""
    from crawlproj.duplicates.words import fold_text  # it loads numpy

    folded = fold_text(unicodedata.normalize("NFKC", text))
    return "".join(filter(str.isalnum, folded))


def is_same_article(text: str, other: str, *, same_title: bool, named: bool) -> bool:
    """Whether two pages of one site have the same article, by their texts and by what else they
    have in common. To be asked only if that is something, or if the words are the same.
    """
    if letters_of(text) == letters_of(other):
        return True
    from crawlproj.duplicates.words import shingle_hashes, word_hashes

    a = set(shingle_hashes(word_hashes(text), SHINGLE).tolist())
    b = set(shingle_hashes(word_hashes(other), SHINGLE).tolist())
    if not a or not b:
        return same_title and named
    common = len(a & b)
    share = common / len(a | b)
    if named and share >= NAMED_SHARE:
        return True
    if not same_title:
        return False
    return share >= SAME_TITLE_SHARE or common >= WITHIN_SHARE * min(len(a), len(b))


def _number(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
