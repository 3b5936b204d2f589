"""Pages to documents: one parse gives the links and the text, block by block."""

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
_spare_targets: Final[list[HtmlTarget]] = []
"""Targets to be used again; each thread that is parsing a page has one of its own."""
# Quicker than Link(...) and Block(...), and there are hundreds on a page.
_make_link = partial(tuple.__new__, Link)
_make_block = partial(tuple.__new__, Block)


def parse_page(
    body: bytes,
    url: str,
    charset: str | None = None,
    content_type: str = "text/html",
    agents: tuple[str, ...] = ("robots",),
) -> Document:
    """Read a page; any bytes give a Document, broken ones a poor and binary ones an empty one.

    `charset` is the HTTP header's. `agents` are the names (lower case) whose meta elements hold
    directives for us.
    """
    if charsets.looks_binary(body):
        return Document(url, base=url, charset="")
    text, name = charsets.to_utf8(body[:MAX_BODY], charset)
    if content_type.startswith("text/plain"):
        return _parse_plain_text(text.decode(), url, name, cut=len(body) > MAX_BODY)
    target, cut = _parse_html(text, agents)
    joiner = Joiner(url)
    base = None
    if target.base:
        base = joiner(target.base)
        if base:
            joiner = Joiner(base)
    links = resolve_links(_raw_links(target), joiner)
    document = Document(
        url,
        base or url,
        title=remove_characters(target.title, INVISIBLE),
        language=target.language,
        charset=name,
        canonical=next((link[0] for link in links if link[1] == "canonical"), None),
        robots=target.robots,
        links=links,
        blocks=clean_blocks(target.blocks),
        cut=cut or len(body) > MAX_BODY,
    )
    if type(target) is HtmlTarget and len(_spare_targets) < MAX_SPARE:
        target.reset_page(())
        _spare_targets.append(target)
    return document


def _parse_plain_text(text: str, url: str, charset: str, cut: bool) -> Document:
    kind: LinkKind = "text"
    raw_links = [(found, kind, "", "", False) for found in find_text_urls(text)]
    links = resolve_links(raw_links, Joiner(url))
    return Document(url, url, charset=charset, links=links, blocks=_paragraphs(text), cut=cut)


def _parse_html(text: bytes, agents: tuple[str, ...]) -> tuple[HtmlTarget, bool]:
    """The target after the parse, and whether the page was cut."""
    if len(text) > _LONG and text.count(b"<") > _MANY_TAGS:
        return _parse_guarded(text, agents)
    try:
        target = _spare_targets.pop()
        target.agents = agents
    except IndexError:
        target = HtmlTarget(agents)
    try:
        etree.fromstring(text, target.parser)
    except etree.LxmlError:
        # An empty page, or one without any tag or text.
        target.close()
    return target, False


def _parse_guarded(text: bytes, agents: tuple[str, ...]) -> tuple[HtmlTarget, bool]:
    """As `_parse_html`, in pieces: libxml2 reads each to its end, whatever the target raises."""
    target = GuardedHtmlTarget(agents)
    parser = target.parser
    cut = False
    try:
        for at in range(0, len(text), _PIECE):
            parser.feed(text[at : at + _PIECE])
        parser.close()
    except TooDeepError:
        cut = True
    except etree.LxmlError:
        pass
    target.close()
    return target, cut


def _raw_links(target: HtmlTarget) -> list[RawLink]:
    """The links of the page, and after them those in script text."""
    links = target.links
    if target.scripts:
        kind: LinkKind = "text"
        code = "\n".join(target.scripts)[:MAX_SCRIPT]
        links += [(url, kind, "", "", False) for url in find_script_urls(code)]
    return links


def resolve_links(raw: list[RawLink], join: Joiner) -> list[Link]:
    """The canonical links in document order, each (url, kind) once.

    Where the first one has no anchor text, the first that has some takes its place.
    """
    links: list[Link] = []
    # Kind -> URL -> index. Not keyed by both: a string knows its hash, a pair of strings does not.
    indexes: defaultdict[str, dict[str, int]] = defaultdict(dict)
    urls = join.join_all([link[0] for link in raw])
    for url, (_, kind, text, title, nofollow) in zip(urls, raw, strict=True):
        if url is None:
            continue
        index = indexes[kind].setdefault(url, len(links))
        if index == len(links):
            links.append(_make_link((url, kind, text, title, nofollow)))
        elif text and not links[index][2]:
            links[index] = _make_link((url, kind, text, title, nofollow))
    return links


def _paragraphs(text: str) -> list[Block]:
    parts = [" ".join(part.split()) for part in text.replace("\r\n", "\n").split("\n\n")]
    return clean_blocks([(part, "", False, 0.0) for part in parts if part])


def clean_blocks(raw: list[RawBlock]) -> list[Block]:
    """The blocks without characters that nobody sees; those that are then empty are left out."""
    if _has_invisible("\n".join([block[0] for block in raw])):
        cleaned: list[RawBlock] = []
        for text, path, main, share in raw:
            text = " ".join(remove_characters(text, INVISIBLE).split())
            if text:
                cleaned.append((text, path, main, share))
        raw = cleaned
    return list(map(_make_block, raw))


def _has_invisible(text: str) -> bool:
    if any(character in text for character in _ODD_SPACES):
        return True
    return not text.isascii() and any(character in text for character in INVISIBLE)
