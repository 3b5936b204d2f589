"""The reader process's reply, checked: after a bad document it may say anything."""

from __future__ import annotations

import json
from typing import Any, Final

from crawlproj.content.document import DEFAULT_LIMITS, INVISIBLE, Document, remove_characters
from crawlproj.content.documents.formats import READER_VERSIONS
from crawlproj.content.documents.result import MAX_BLOCKS, MAX_LINKS, MAX_TEXT, MAX_TITLE
from crawlproj.content.html import PageLinks, clean_in_slices
from crawlproj.content.slices import Slices, run_at_once
from crawlproj.urls.canonical import Joiner

MAX_REPLY: Final = 12_000_000
FAILURES: Final = frozenset(("broken", "encrypted", "memory", "old", "unknown"))

PROCESS_FAILURES: Final = frozenset(("crashed", "garbage", "memory"))
"""Reasons with which the process ended. An earlier document may have spoilt it, or somebody killed
it.
"""
TRANSIENT_FAILURES: Final = PROCESS_FAILURES | {"timeout", "given_up", "no_room"}
"""Reasons that need not hold the next time; all others are in the document itself."""


class DocumentReadError(Exception):
    """The document was not read; the text is the reason, a word for the stats."""


def parse_reply(reply: bytes, url: str) -> Document:
    """The document of a reply; DocumentReadError if there is none, or if it makes no sense."""
    return run_at_once(parse_reply_in_slices(reply, url))


def parse_reply_in_slices(reply: bytes, url: str) -> Slices[Document]:
    """As `parse_reply`: a document may have a hundred thousand blocks."""
    try:
        values = json.loads(reply)
        if values.get("failed") in FAILURES:
            raise DocumentReadError(values["failed"])
        yield
        return (yield from _checked_document(values, url))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DocumentReadError("garbage") from None


def _checked_document(values: dict[str, Any], url: str) -> Slices[Document]:
    title = _checked_text(values["title"])
    language = _checked_text(values["language"])
    blocks = values["blocks"]
    links = values["links"]
    text = _checked_text("\n".join(blocks))
    if (
        len(text) > 2 * MAX_TEXT
        or len(blocks) > MAX_BLOCKS
        or len(links) > MAX_LINKS
        or len(title) > MAX_TITLE
        or len(language) > 35
    ):
        raise ValueError("more than was allowed")
    raw = []
    for href, kind, anchor in links:
        if kind not in ("a", "text"):
            raise ValueError("no such kind of link")
        raw.append((_checked_text(href), kind, _checked_text(anchor), "", False, ""))
    yield
    found = PageLinks(DEFAULT_LIMITS)
    yield from found.add_in_slices(raw, Joiner(url))
    cleaned = yield from clean_in_slices((block, "", True, 0.0) for block in blocks if block)
    document = Document(
        url,
        url,
        title=remove_characters(title, INVISIBLE),
        language=language,
        links=found.links,
        blocks=cleaned,
        cut=values["cut"] is True,
        reader=_checked_reader(values.get("reader", "")),
    )
    yield from document.find_digest_in_slices()
    return document


def _checked_reader(name: str) -> str:
    if name and name not in READER_VERSIONS:
        raise ValueError("no such reader")
    return name


def _checked_text(value: str) -> str:
    """The text, if a database can store it; ValueError for NULs and halves of characters."""
    if "\0" in value:
        raise ValueError("a NUL")
    value.encode()
    return value
