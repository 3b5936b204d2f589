"""URLs that are written in plain text, as people write them."""

from __future__ import annotations

import re
from typing import Final

MAX_TEXT_URLS: Final = 5_000

_URL: Final = re.compile(r"https?://[^\s<>\"'`{}|\\^\u2018-\u201f\xab\xbb]{4,2000}", re.I)
_AFTER: Final = ".,;:!?*_\u2026"
_MAX_TRIMMED: Final = 8
_PAIRS: Final = {")": "(", "]": "["}


def find_text_urls(text: str) -> list[str]:
    """The URLs in a text, each once, in order.

    What ends the sentence or closes a bracket around a URL is not part of it.
    """
    if "://" not in text:
        return []
    found: dict[str, None] = {}
    for match in _URL.finditer(text):
        found[_trim_end(match[0])] = None
        if len(found) >= MAX_TEXT_URLS:
            break
    return list(found)


def _trim_end(url: str) -> str:
    for _ in range(_MAX_TRIMMED):
        last = url[-1]
        if last in _PAIRS:
            if url.count(_PAIRS[last]) >= url.count(last):
                break
        elif last not in _AFTER:
            break
        url = url[:-1]
    return url
