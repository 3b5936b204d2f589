"""URLs that are written in programs: onclick handlers and script text.

Found by linear-time patterns, not by running anything, so they are guesses and carry their own kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_SCRIPT: Final = 200_000
MAX_LINKS: Final = 200

_HANDLER: Final = re.compile(
    r"""(?:location(?:\.href)?\s{0,9}=|location\.(?:assign|replace)\s{0,9}\(|\bopen\s{0,9}\()"""
    r"""\s{0,9}(?:'([^']{1,2000})'|"([^"]{1,2000})")"""
)
_QUOTES: Final = "\"'`"
_OPENING: Final = frozenset(_QUOTES)
_REST: Final = r"[^\s\"'`<>\\{}$]"
_SEGMENT: Final = "[A-Za-z0-9_~%-][A-Za-z0-9._~%-]{0,200}/"
_FILE: Final = rf"[A-Za-z0-9._~%-]{{1,200}}\.(?:s?html?|php|aspx?|jsp)(?:\?{_REST}{{0,500}})?"
_ABSOLUTE: Final = re.compile(rf"://{_REST}{{4,2000}}(?=[{_QUOTES}])").match
_ROOTED: Final = re.compile(rf".((?:/(?:{_SEGMENT}){{0,20}}{_FILE}|/(?:{_SEGMENT}){{2,20}}))[{_QUOTES}]").match
_ASSET: Final = (
    ".js", ".mjs", ".css", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".woff", ".woff2", ".ttf",
    ".mp3", ".mp4", ".webm", ".m3u8", ".map", ".wasm",
)  # fmt: skip

_VOCABULARIES: Final = ("http://schema.org", "https://schema.org", "http://www.w3.org/", "https://www.w3.org/")


def in_handler(code: str) -> list[str]:
    """Where an onclick handler would go: `location.href='...'`, `window.open('...')` and the like."""
    return [single or double for single, double in _HANDLER.findall(code[:4000])]


def in_script(code: str) -> list[str]:
    """Quoted absolute URLs, then quoted paths that look like pages; no pictures, styles, programs."""
    if "/" not in code:
        return []
    code = code[:MAX_SCRIPT]
    if "\\/" in code:
        code = code.replace("\\/", "/")
    found = dict.fromkeys((*_absolute(code), *_rooted(code)))
    pages = [url for url in found if not url.partition("?")[0].lower().endswith(_ASSET)]
    return [url for url in pages if not url.startswith(_VOCABULARIES)][:MAX_LINKS]


def _absolute(code: str) -> Iterator[str]:
    # str.find is several times faster than a pattern that starts with a set of characters.
    for at in _places(code, "://"):
        start = at - 5 if code.endswith("https", 0, at) else at - 4
        if code[start - 1 : start] in _OPENING and code.startswith("http", start) and (rest := _ABSOLUTE(code, at)):
            yield code[start:at] + rest[0]


def _rooted(code: str) -> Iterator[str]:
    for quote in _QUOTES:
        for at in _places(code, quote + "/"):
            if found := _ROOTED(code, at):
                yield found[1]


def _places(code: str, mark: str) -> Iterator[int]:
    at = code.find(mark)
    while at >= 0:
        yield at
        at = code.find(mark, at + 1)
