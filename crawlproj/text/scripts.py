"""URLs that are written in programs: onclick handlers and script text.

Found by linear-time patterns, not by running anything, so they are guesses and carry their own kinds.
"""

from __future__ import annotations

import re
from typing import Final

MAX_SCRIPT: Final = 200_000
MAX_LINKS: Final = 200

_HANDLER: Final = re.compile(
    r"""(?:location(?:\.href)?\s{0,9}=|location\.(?:assign|replace)\s{0,9}\(|\bopen\s{0,9}\()"""
    r"""\s{0,9}(?:'([^']{1,2000})'|"([^"]{1,2000})")"""
)
_ABSOLUTE: Final = r"https?://[^\s\"'`<>\\{}$]{4,2000}"
_SEGMENT: Final = "[A-Za-z0-9_~%-][A-Za-z0-9._~%-]{0,200}/"
_FILE: Final = r"[A-Za-z0-9._~%-]{1,200}\.(?:s?html?|php|aspx?|jsp)(?:\?[^\s\"'`<>\\{}$]{0,500})?"
_PAGE: Final = f"/(?:{_SEGMENT}){{0,20}}{_FILE}"
_FOLDER: Final = rf"/(?:{_SEGMENT}){{2,20}}"
_QUOTED: Final = re.compile(rf"""["'`]({_ABSOLUTE}|{_PAGE}|{_FOLDER})["'`]""")
_ASSET: Final = (
    ".js", ".mjs", ".css", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".woff", ".woff2", ".ttf",
    ".mp3", ".mp4", ".webm", ".m3u8", ".map", ".wasm",
)  # fmt: skip


def in_handler(code: str) -> list[str]:
    """Where an onclick handler would go: `location.href='...'`, `window.open('...')` and the like."""
    return [single or double for single, double in _HANDLER.findall(code[:4000])]


def in_script(code: str) -> list[str]:
    """Quoted absolute URLs and quoted paths that look like pages, in their order; no pictures, styles, programs."""
    if "/" not in code:
        return []
    code = code[:MAX_SCRIPT]
    if "\\/" in code:
        code = code.replace("\\/", "/")
    if "://" not in code and '"/' not in code and "'/" not in code and "`/" not in code:
        return []
    found = dict.fromkeys(_QUOTED.findall(code))
    return [url for url in found if not url.partition("?")[0].lower().endswith(_ASSET)][:MAX_LINKS]
