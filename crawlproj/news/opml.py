"""OPML, the format in which feed readers keep and exchange their lists of feeds; in and out.

Lists are written by hand and by many programs: what is broken gives the feeds that can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from crawlproj.content.charset import to_utf8
from crawlproj.content.feed_soup import read_attributes
from crawlproj.errors import ConfigError
from crawlproj.urls.canonical import host_of, typed_url

MAX_FEEDS: Final = 50_000
MAX_BYTES: Final = 20_000_000
_OUTLINE: Final = re.compile(rb"<outline\b([^<]{0,20000}+)", re.I)
_FEED_SCHEME: Final = re.compile(r"feed:(?://)?(?=https?://)|(?=feed://)feed", re.I)
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class OpmlFeed:
    """A feed of a list. `url` is canonical; `site` is the page that people see, or empty."""

    url: str
    title: str = ""
    site: str = ""


def read_opml(body: bytes) -> list[OpmlFeed]:
    """The feeds of a list and of all its folders, each once, in order. Never raises: what is no
    OPML has none.
    """
    text, _ = to_utf8(body[:MAX_BYTES])
    found: dict[str, OpmlFeed] = {}
    for match in _OUTLINE.finditer(_without_comments(text)):
        attributes = read_attributes(match[1])
        address = attributes.get("xmlurl") or ""
        if not address and attributes.get("type", "").lower() in ("rss", "atom", "feed"):
            address = attributes.get("url") or ""
        url = _read_url(address)
        if url is None or url in found:
            continue
        title = attributes.get("title") or attributes.get("text") or ""
        found[url] = OpmlFeed(
            url, " ".join(title.split()), _read_url(attributes.get("htmlurl", "")) or ""
        )
        if len(found) == MAX_FEEDS:
            break
    return list(found.values())


def write_opml(sources: Iterable[OpmlFeed], title: str = "Feeds") -> str:
    """A list that feed readers take, and `read_opml`; feeds without a title have their host's."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<opml version="2.0">',
        f"<head><title>{quoteattr(_printable(title))[1:-1]}</title></head>",
        "<body>",
    ]
    for feed in sources:
        name = quoteattr(_printable(feed.title or host_of(feed.url)))
        line = f'<outline type="rss" text={name} title={name} xmlUrl={quoteattr(feed.url)}'
        if feed.site:
            line += f" htmlUrl={quoteattr(feed.site)}"
        lines.append(f"{line}/>")
    return "\n".join([*lines, "</body>", "</opml>", ""])


def is_opml_file(name: str | None) -> bool:
    """Whether a name is that of such a file, and no web address."""
    return bool(name) and "://" not in str(name) and str(name).lower().endswith(".opml")


def read_opml_file(name: str) -> list[OpmlFeed]:
    """The feeds of a file; ConfigError if it can't be read or has none."""
    try:
        with Path(name).open("rb") as file:
            body = file.read(MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{name!r} can't be read: {error.strerror}") from None
    feeds = read_opml(body)
    if not feeds:
        raise ConfigError(
            f"{name!r} has no feeds: they are outlines with an xmlUrl, as feed readers export them"
        )
    return feeds


def _without_comments(text: bytes) -> bytes:
    pieces = []
    start = 0
    while True:
        begin = text.find(b"<!--", start)
        end = text.find(b"-->", begin) if begin >= 0 else -1
        if end < 0:
            pieces.append(text[start:])
            return b"".join(pieces)
        pieces.append(text[start:begin])
        start = end + 3


def _read_url(text: str) -> str | None:
    """The canonical URL of an attribute; None if there is none. Some programs write feed://."""
    text = "".join(text.split())
    text = _FEED_SCHEME.sub(lambda match: "http" if match[0].lower() == "feed" else "", text, 1)
    if not text:
        return None
    return typed_url(text)


def _printable(text: str) -> str:
    """The text without what XML can't hold."""
    return " ".join(_NOT_XML.sub("", text).split())
