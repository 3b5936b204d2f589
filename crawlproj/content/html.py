"""One parse of a page gives its links and its text, block by block."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content import charset as charsets
from crawlproj.content.document import INVISIBLE, Block, Document, Link, LinkKind, remove_characters
from crawlproj.content.html_target import (
    GuardedHtmlTarget,
    HtmlTarget,
    RawBlock,
    RawLink,
    TooDeepError,
)
from crawlproj.content.script_urls import MAX_SCRIPT, find_script_urls
from crawlproj.content.text_urls import find_text_urls
from crawlproj.urls.canonical import Joiner

MAX_BODY: Final = 10_000_000
"""Bytes that are read of a page."""
MAX_SPARE: Final = 4
_LONG: Final = 100_000
_MANY_TAGS: Final = 20_000
_PIECE: Final = 16_384
_ODD_SPACES: Final = "\r\f\v\x1c\x1d\x1e\x1f"
_spare: Final[list[HtmlTarget]] = []
"""Readers to be used again; each thread that is reading a page has one of its own."""
_link = partial(tuple.__new__, Link)
_block = partial(tuple.__new__, Block)


def parse_page(
    body: bytes,
    url: str,
    charset: str | None = None,
    content_type: str = "text/html",
    agents: tuple[str, ...] = ("robots",),
) -> Document:
    """Read a page; any bytes give a Document, broken ones a poor and binary ones an empty one.

    `charset` is the HTTP header's. `agents` are the names (lower case) whose meta elements are
    orders for us.
    """
    if charsets.looks_binary(body):
        return Document(url, base=url, charset="")
    text, name = charsets.to_utf8(body[:MAX_BODY], charset)
    if content_type.startswith("text/plain"):
        return _plain(text.decode(), url, name, cut=len(body) > MAX_BODY)
    reader, cut = _read(text, agents)
    joiner = Joiner(url)
    base = joiner(reader.base) if reader.base else None
    links = resolve_links(_with_scripts(reader), Joiner(base) if base else joiner)
    document = Document(
        url,
        base or url,
        title=remove_characters(reader.title, INVISIBLE),
        language=reader.language,
        charset=name,
        canonical=next((link[0] for link in links if link[1] == "canonical"), None),
        robots=reader.robots,
        links=links,
        blocks=clean_blocks(reader.blocks),
        cut=cut or len(body) > MAX_BODY,
    )
    if type(reader) is HtmlTarget and len(_spare) < MAX_SPARE:
        reader.reset_page(())
        _spare.append(reader)
    return document


def _plain(text: str, url: str, charset: str, cut: bool) -> Document:
    kind: LinkKind = "text"
    links = resolve_links(
        [(found, kind, "", "", False) for found in find_text_urls(text)], Joiner(url)
    )
    return Document(url, url, charset=charset, links=links, blocks=_paragraphs(text), cut=cut)


def _read(text: bytes, agents: tuple[str, ...]) -> tuple[HtmlTarget, bool]:
    if len(text) > _LONG and text.count(b"<") > _MANY_TAGS:
        return _read_guarded(text, agents)
    try:
        reader = _spare.pop()
        reader.agents = agents
    except IndexError:
        reader = HtmlTarget(agents)
    try:
        etree.fromstring(text, reader.parser)
    except etree.LxmlError:
        # An empty page, or one without any tag or text.
        reader.close()
    return reader, False


def _read_guarded(text: bytes, agents: tuple[str, ...]) -> tuple[HtmlTarget, bool]:
    """In pieces, because libxml2 reads what it was given to the end, whatever its target says."""
    reader = GuardedHtmlTarget(agents)
    parser = reader.parser
    cut = False
    try:
        for at in range(0, len(text), _PIECE):
            parser.feed(text[at : at + _PIECE])
        parser.close()
    except TooDeepError:
        cut = True
    except etree.LxmlError:
        pass
    reader.close()
    return reader, cut


def _with_scripts(reader: HtmlTarget) -> list[RawLink]:
    """The raw links, with those found in handlers and script text; the latter at the end."""
    links = reader.links
    if reader.scripts:
        text: LinkKind = "text"
        code = "\n".join(reader.scripts)[:MAX_SCRIPT]
        links += [(url, text, "", "", False) for url in find_script_urls(code)]
    return links


def resolve_links(raw: list[RawLink], join: Joiner) -> list[Link]:
    """Canonical links, each (url, kind) once, in document order; a later one only lends its anchor
    text.
    """
    found: list[Link] = []
    places: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for url, (_, kind, text, title, nofollow) in zip(
        join.join_all([link[0] for link in raw]), raw, strict=True
    ):
        if url is not None:
            # Without a key of both: a string knows its hash, a pair of strings does not.
            place = places[kind].setdefault(url, len(found))
            if place == len(found):
                found.append(_link((url, kind, text, title, nofollow)))
            elif text and not found[place][2]:
                found[place] = _link((url, kind, text, title, nofollow))
    return found


def _paragraphs(text: str) -> list[Block]:
    parts = [" ".join(part.split()) for part in text.replace("\r\n", "\n").split("\n\n")]
    return clean_blocks([(part, "", False, 0.0) for part in parts if part])


def clean_blocks(raw: list[RawBlock]) -> list[Block]:
    """Blocks without characters that nobody sees."""
    text = "\n".join([block[0] for block in raw])
    if any(odd in text for odd in _ODD_SPACES) or (
        not text.isascii() and any(mark in text for mark in INVISIBLE)
    ):
        cleaned = [
            (" ".join(remove_characters(block[0], INVISIBLE).split()), *block[1:]) for block in raw
        ]
        raw = [block for block in cleaned if block[0]]
    return list(map(_block, raw))
