"""URLs that are written in programs: onclick handlers and script text.

Found by linear-time patterns, not by running anything, so they are guesses and carry their own
kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, islice
from typing import Final, TypeAlias

_Mark: TypeAlias = tuple[str, str, int]
"""What ends before a slash: its last character, all since the slash before, and where the
slash is.
"""

MAX_SCRIPT: Final = 200_000
MAX_LINKS: Final = 200

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
    """Where an onclick handler would go: `location.href='...'`, `window.open('...')` and
    the like.
    """
    return [single or double for single, double in _HANDLER.findall(code[:4000])]


def find_script_urls(code: str) -> list[str]:
    """Quoted absolute URLs, then quoted paths that look like pages; no pictures,
    styles, programs.
    """
    # Cut at the slashes once: to look for each mark before a slash ("://" and the quotes) reads a
    # long script four times.
    *pieces, last = code[:MAX_SCRIPT].split("/")
    if "\\" in (ends := [piece[-1:] for piece in pieces]):
        pieces = [
            piece[:-1] if end == "\\" else piece for piece, end in zip(pieces, ends, strict=True)
        ]
        ends = [piece[-1:] for piece in pieces]
    slashes = [at + n for n, at in enumerate(accumulate(map(len, pieces)))]
    marks = [mark for mark in zip(ends, pieces, slashes, strict=True) if mark[0] in _MARKS]
    code = "/".join((*pieces, last)) if marks else ""
    # Lazily: some pages hold thousands, of which the first few are taken.
    return list(islice(_pages(chain(_absolute(code, marks), _rooted(code, marks))), MAX_LINKS))


def _pages(urls: Iterable[str]) -> Iterator[str]:
    seen = set()
    for url in urls:
        if url not in seen:
            seen.add(url)
            if not url.startswith(_VOCABULARIES) and not url.partition("?")[0].lower().endswith(
                _ASSET
            ):
                yield url


def _absolute(code: str, marks: list[_Mark]) -> Iterator[str]:
    for end, before, slash in marks:
        if end == ":" and before.endswith(_SCHEMES) and (rest := _ABSOLUTE(code, slash)):
            yield before[before.rindex("h") :] + rest[0]


def _rooted(code: str, marks: list[_Mark]) -> Iterator[str]:
    for quote in _QUOTES:
        for end, _, slash in marks:
            if end == quote and (found := _ROOTED(code, slash)):
                yield found[0][:-1]
