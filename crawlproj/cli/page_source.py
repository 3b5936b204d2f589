"""Pages for commands that look at single ones: from files, or asked for politely."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scrapy.http import Response, TextResponse
from w3lib.encoding import http_content_type_encoding

from crawlproj.errors import ConfigError
from crawlproj.urls.canonical import canonical_url

NO_URL: Final = "http://file.invalid/"
"""The address of a page in a file, if nobody says what it is."""
MAX_FILE: Final = 50_000_000
GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page: its body, its URL, and the charset that its server declared."""

    body: bytes
    url: str
    charset: str = ""


def is_address(word: str) -> bool:
    """Whether a word names a page on the web rather than a file."""
    return word.startswith(("http://", "https://"))


def read_file(name: str, url: str = "") -> SourcePage:
    """A page in a file, compressed or not; ConfigError if there is none."""
    path = Path(name)
    try:
        if path.stat().st_size > MAX_FILE:
            raise ConfigError(f"{name} has more than {MAX_FILE // 1_000_000} MB")
        body = path.read_bytes()
        if body.startswith(GZIP):
            body = gzip.decompress(body)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{name} can't be read: {reason}") from None
    return SourcePage(body, checked_url(url) if url else NO_URL)


def checked_url(url: str) -> str:
    """The canonical form of a URL that a person gave; ConfigError if it is none."""
    found = canonical_url(url)
    if found is None:
        raise ConfigError(f"not a web address: {url[:200]!r}")
    return found


def page_of_response(response: Response) -> SourcePage:
    """What came from a server."""
    declared = (response.headers.get("Content-Type") or b"").decode("latin-1")
    charset = http_content_type_encoding(declared) or ""
    if not charset and isinstance(response, TextResponse):
        charset = response._declared_encoding() or ""
    return SourcePage(response.body, canonical_url(response.url) or response.url, charset)


def check_words(words: Sequence[str], usage: str) -> None:
    """Raise ConfigError unless the words are one URL, or one or several files."""
    if not words or (len(words) > 1 and any(map(is_address, words))):
        raise ConfigError(f"usage: {usage}")
