"""What the reading process says of a document, checked: after a bad document it may
say anything.
"""

from __future__ import annotations

import json
from typing import Any, Final

from crawlproj.content.document import INVISIBLE, Document, remove_characters
from crawlproj.content.documents.result import MAX_LINKS, MAX_TEXT, MAX_TITLE
from crawlproj.content.html import clean_blocks, resolve_links
from crawlproj.urls.canonical import Joiner

MAX_REPLY: Final = 12_000_000
FAILURES: Final = frozenset(("broken", "encrypted", "memory", "old", "unknown"))

PROCESS_FAILURES: Final = frozenset(("crashed", "garbage", "memory"))
"""The process ended over it. It may have been spoilt by an earlier document, or killed
by somebody.
"""
TRANSIENT_FAILURES: Final = PROCESS_FAILURES | {"timeout", "given_up"}
"""Reasons that need not hold the next time; all others are in the document itself."""


class DocumentReadError(Exception):
    """The document was not read; the text is the reason, a word for the stats."""


def parse_reply(answer: bytes, url: str) -> Document:
    try:
        said = json.loads(answer)
        if said.get("failed") in FAILURES:
            raise DocumentReadError(said["failed"])
        return _document(said, url)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DocumentReadError("garbage") from None


def _document(said: dict[str, Any], url: str) -> Document:
    title = _text(said["title"])
    language = _text(said["language"])
    blocks = said["blocks"]
    links = said["links"]
    text = _text("\n".join(blocks))
    if (
        len(text) > 2 * MAX_TEXT
        or len(links) > MAX_LINKS
        or len(title) > MAX_TITLE
        or len(language) > 35
    ):
        raise ValueError("more than was allowed")
    raw = []
    for target, kind, anchor in links:
        if kind not in ("a", "text"):
            raise ValueError("no such kind of link")
        raw.append((_text(target), kind, _text(anchor), "", False))
    return Document(
        url,
        url,
        title=remove_characters(title, INVISIBLE),
        language=language,
        links=resolve_links(raw, Joiner(url)),
        blocks=clean_blocks([(block, "", True, 0.0) for block in blocks if block]),
        cut=said["cut"] is True,
    )


def _text(value: str) -> str:
    """Text that a database takes: no NULs, no halves of characters."""
    if "\0" in value:
        raise ValueError("a NUL")
    value.encode()
    return value
