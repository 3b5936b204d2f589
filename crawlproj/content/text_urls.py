"""URLs that are written in plain text, as people write them."""

from __future__ import annotations

import re
from typing import Final

from crawlproj.content.slices import SLICE_ITEMS, Slices, run_at_once

MAX_TEXT_URLS: Final = 5_000

_SCHEME: Final = re.compile(r"https?\Z", re.I).search
_URL: Final = re.compile(r"https?://[^\s<>\"'`{}|\\^\u2018-\u201f\xab\xbb]{4,2000}", re.I).match
_AFTER: Final = ".,;:!?*_\u2026"
_MAX_TRIMMED: Final = 8
_PAIRS: Final = {")": "(", "]": "["}


def find_text_urls(text: str) -> list[str]:
    """The URLs in a text, each once, in order.

    What ends the sentence or closes a bracket around a URL is not part of it.
    """
    return run_at_once(find_text_urls_in_slices(text))


def find_text_urls_in_slices(text: str) -> Slices[list[str]]:
    """As `find_text_urls`, for a text of any length."""
    found: dict[str, None] = {}
    colons = 0
    end = 0
    colon = text.find("://")
    while colon >= 0 and len(found) < MAX_TEXT_URLS:
        scheme = _SCHEME(text, max(end, colon - 5), colon)
        url = None
        if scheme:
            url = _URL(text, scheme.start())
        if url:
            end = url.end()
            found[_trim_end(url[0])] = None
        else:
            end = colon + 3
        colon = text.find("://", end)
        colons += 1
        if colons % SLICE_ITEMS == 0:
            yield
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
