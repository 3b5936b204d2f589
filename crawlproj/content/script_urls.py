"""URLs that are written in code: in onclick handlers and in script text.

They are found by linear-time patterns, not by running anything. So they are guesses, and their
links have kinds of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, islice
from typing import Final, TypeAlias

_Mark: TypeAlias = tuple[str, str, int]
"""A slash after a quote or a colon: that character, the text since the slash before, the slash's
offset.
"""

MAX_SCRIPT: Final = 200_000
MAX_LINKS: Final = 200
MAX_MARKS: Final = 20_000
"""Slashes at which a URL may begin; where there are more it is no code that anybody wrote."""

_HANDLER: Final = re.compile(
    r"""(?:location(?:\.href)?\s{0,9}=|location\.(?:assign|replace)\s{0,9}\(|\bopen\s{0,9}\()"""
    r"""\s{0,9}(?:'([^']{1,2000})'|"([^"]{1,2000})")"""
)
_QUOTES: Final = "\"'`"
_MARKS: Final = frozenset((*_QUOTES, ":"))
_SCHEMES: Final = tuple(quote + scheme for quote in _QUOTES for scheme in ("http:", "https:"))
_REST: Final = r"[^\s\"'`<>\\{}$]"
_SEGMENT: Final = "[A-Za-z0-9_~%-][A-Za-z0-9._~%-]{0,200}/"
_FILE: Final = rf"[A-Za-z0-9._~%-]{{1,200}}\.(?:s?html?|php|aspx?|jsp)(?:\?{_REST}{{0,500}})?"
_ABSOLUTE: Final = re.compile(rf"//{_REST}{{4,2000}}(?=[{_QUOTES}])").match
_ROOTED: Final = re.compile(
    rf"/(?:(?:{_SEGMENT}){{0,20}}{_FILE}|(?:{_SEGMENT}){{2,20}})[{_QUOTES}]"
).match
_ASSET: Final = (
    ".js",
    ".mjs",
    ".css",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".svg",
    ".webp",
    ".avif",
    ".ico",
    ".woff",
    ".woff2",
    ".ttf",
    ".mp3",
    ".mp4",
    ".webm",
    ".m3u8",
    ".map",
    ".wasm",
)

_VOCABULARIES: Final = (
    "http://schema.org",
    "https://schema.org",
    "http://www.w3.org/",
    "https://www.w3.org/",
)


def find_handler_urls(code: str) -> list[str]:
    """The URLs where an onclick handler would go: `location.href='...'`, `window.open('...')`."""
    return [single or double for single, double in _HANDLER.findall(code[:4000])]


def find_script_urls(code: str) -> list[str]:
    """Quoted absolute URLs, then quoted paths that look like pages; no pictures, styles, code."""
    # Cut at the slashes once: to look for each mark before a slash ("://" and the quotes) would
    # read a long script four times.
    *pieces, last = code[:MAX_SCRIPT].split("/")
    ends = [piece[-1:] for piece in pieces]
    if "\\" in ends:  # JSON writes \/ for a slash
        pieces = [piece.removesuffix("\\") for piece in pieces]
        ends = [piece[-1:] for piece in pieces]
    slashes = [letters + number for number, letters in enumerate(accumulate(map(len, pieces)))]
    found = (mark for mark in zip(ends, pieces, slashes, strict=True) if mark[0] in _MARKS)
    marks = list(islice(found, MAX_MARKS))
    if not marks:
        return []
    code = "/".join((*pieces, last))
    # Lazily: some pages hold thousands, of which the first few are taken.
    urls = chain(_absolute_urls(code, marks), _rooted_paths(code, marks))
    return list(islice(_unique_pages(urls), MAX_LINKS))


def _unique_pages(urls: Iterable[str]) -> Iterator[str]:
    seen = set()
    for url in urls:
        if url in seen:
            continue
        seen.add(url)
        path = url.partition("?")[0].lower()
        if not url.startswith(_VOCABULARIES) and not path.endswith(_ASSET):
            yield url


def _absolute_urls(code: str, marks: list[_Mark]) -> Iterator[str]:
    for end, before, slash in marks:
        if end == ":" and before.endswith(_SCHEMES):
            rest = _ABSOLUTE(code, slash)
            if rest:
                scheme = before[before.rindex("h") :]
                yield scheme + rest[0]


def _rooted_paths(code: str, marks: list[_Mark]) -> Iterator[str]:
    for quote in _QUOTES:
        for end, _, slash in marks:
            if end == quote:
                path_and_quote = _ROOTED(code, slash)
                if path_and_quote:
                    yield path_and_quote[0][:-1]
