"""Pages to documents: one parse gives the links and the text, block by block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content import charset as charsets
from crawlproj.content.document import (
    DEFAULT_LIMITS,
    INVISIBLE,
    Block,
    Document,
    Link,
    LinkKind,
    LinkLimits,
    remove_characters,
)
from crawlproj.content.html_target import (
    MAX_DEPTH,
    MAX_ELEMENTS,
    BigHtmlTarget,
    HtmlTarget,
    RawBlock,
    RawLink,
    StopReadingError,
)
from crawlproj.content.script_urls import MAX_SCRIPT, find_script_urls
from crawlproj.content.slices import (
    BIG_BODY,
    MANY_LINKS,
    PARAGRAPH,
    SLICE_CHARACTERS,
    SLICE_ITEMS,
    Slices,
    cut_text,
    run_at_once,
)
from crawlproj.content.text_urls import find_text_urls_in_slices
from crawlproj.urls.canonical import Joiner

MAX_BODY: Final = 10_000_000
"""Bytes that are read of a page."""
MAX_SPARE: Final = 4
_MIDDLING: Final = 50_000
"""Only longer pages are looked at for many tags: to count them is a hundredth of the reading."""
_LONG: Final = 100_000
_MANY_TAGS: Final = 8_000
_VERY_MANY_TAGS: Final = 20_000
_PIECE: Final = 4_096
_ODD_SPACES: Final = "\r\f\v\x1c\x1d\x1e\x1f"
_spare_targets: Final[list[HtmlTarget]] = []
"""Targets to be used again, of pages that are read at once; each thread has one of its own."""
MAX_MORE_TEXTS: Final = 10
"""Further texts that are kept of the links to one URL."""
MAX_MORE_CHARACTERS: Final = 100_000
"""Characters of all further texts of a page."""
MAX_LANGUAGES: Final = 200
"""Characters of the languages of one link."""
# Quicker than Link(...) and Block(...), and there are hundreds on a page.
_make_link = partial(tuple.__new__, Link)
_make_block = partial(tuple.__new__, Block)


def parse_page(
    body: bytes,
    url: str,
    charset: str | None = None,
    content_type: str = "text/html",
    agents: tuple[str, ...] = ("robots",),
    limits: LinkLimits = DEFAULT_LIMITS,
) -> Document:
    """Read a page; any bytes give a Document, broken ones a poor and binary ones an empty one.

    `charset` is the HTTP header's. `agents` are the names (lower case) whose meta elements hold
    directives for us.
    """
    return run_at_once(parse_in_slices(body, url, charset, content_type, agents, limits))


def parse_in_slices(
    body: bytes,
    url: str,
    charset: str | None,
    content_type: str,
    agents: tuple[str, ...],
    limits: LinkLimits,
) -> Slices[Document]:
    """As `parse_page`. A page that is neither big nor has many links is read in one slice."""
    if charsets.looks_binary(body):
        return Document(url, base=url, charset="")
    big = len(body) > BIG_BODY
    target: HtmlTarget
    if big:
        text, name = yield from charsets.to_utf8_in_slices(body[:MAX_BODY], charset, url)
    else:
        text, name = charsets.to_utf8(body, charset, url)
    if content_type.startswith("text/plain"):
        document = yield from _parse_plain_text(text.decode(), url, name, limits)
        document.cut |= len(body) > MAX_BODY
        return document
    if big or (len(text) > _MIDDLING and text.count(b"<") > _MANY_TAGS):
        target, cut = yield from _parse_in_pieces(text, agents)
    else:
        target, cut = _parse_html(text, agents), False
    joiner = Joiner(url)
    base = None
    if target.base:
        base = joiner(target.base)
        if base:
            joiner = Joiner(base)
    raw_links = _raw_links(target)
    found = PageLinks(limits)
    if len(raw_links) <= MANY_LINKS:
        found.add(raw_links, joiner)
    else:
        yield from found.add_in_slices(raw_links, joiner)
    if big:
        blocks = yield from clean_in_slices(target.blocks)
    else:
        blocks = clean_blocks(target.blocks)
    links = found.links
    document = Document(
        url,
        base or url,
        title=remove_characters(target.title, INVISIBLE),
        language=target.language,
        charset=name,
        canonical=next((link[0] for link in links if link[1] == "canonical"), None),
        robots=target.robots,
        links=links,
        blocks=blocks,
        cut=cut or len(body) > MAX_BODY,
        too_many_links=found.too_many,
        description=remove_characters(target.description, INVISIBLE),
        keywords=remove_characters(target.keywords, INVISIBLE),
        signs=target.signs(),
    )
    if big:
        yield from document.find_digest_in_slices()
    if type(target) is HtmlTarget and len(_spare_targets) < MAX_SPARE:
        target.reset_page(())
        _spare_targets.append(target)
    return document


def _parse_plain_text(text: str, url: str, charset: str, limits: LinkLimits) -> Slices[Document]:
    kind: LinkKind = "text"
    urls = yield from find_text_urls_in_slices(text)
    found = PageLinks(limits)
    yield from found.add_in_slices([(url, kind, "", "", False, "") for url in urls], Joiner(url))
    blocks, cut = yield from _paragraphs(text.replace("\r\n", "\n"))
    document = Document(
        url,
        url,
        charset=charset,
        links=found.links,
        blocks=blocks,
        cut=cut,
        too_many_links=found.too_many,
    )
    yield from document.find_digest_in_slices()
    return document


def _parse_html(text: bytes, agents: tuple[str, ...]) -> HtmlTarget:
    """The target after the parse."""
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
    return target


def _parse_in_pieces(text: bytes, agents: tuple[str, ...]) -> Slices[tuple[BigHtmlTarget, bool]]:
    """As `_parse_html`, for big pages and those with many tags; and whether the page was cut.

    libxml2 reads each piece to its end, whatever the target raises. Targets are not used again
    here: several pages may be under way.
    """
    max_depth = len(text)
    if len(text) > _LONG and text.count(b"<") > _VERY_MANY_TAGS:
        max_depth = MAX_DEPTH
    target = BigHtmlTarget(agents, max_depth)
    parser = target.parser
    cut = False
    try:
        for at in range(0, len(text), _PIECE):
            piece = text[at : at + _PIECE]
            parser.feed(piece)
            if not target.note_piece(piece):
                raise StopReadingError
            yield
        parser.close()
    except StopReadingError:
        cut = True
    except etree.LxmlError:
        pass
    target.close()
    yield
    for index in target.long_blocks:
        raw, path, main, linked = target.blocks[index]
        clean = yield from _collapse_in_slices(raw)
        share = min(1.0, linked / max(1, len(clean)))
        target.blocks[index] = (clean, path, main, share)
    if target.long_blocks:
        target.blocks = [block for block in target.blocks if block[0]]
    return target, cut


def _collapse_in_slices(text: str) -> Slices[str]:
    """A long text without characters that nobody sees, and with single spaces.

    It is cut anywhere; a word that was cut is put together again.
    """
    text = remove_characters(text, INVISIBLE)
    pieces: list[str] = []
    in_word = False
    for start in range(0, len(text), SLICE_CHARACTERS):
        piece = text[start : start + SLICE_CHARACTERS]
        collapsed = " ".join(piece.split())
        if collapsed:
            if pieces and not (in_word and not piece[0].isspace()):
                pieces.append(" ")
            pieces.append(collapsed)
        in_word = not piece[-1].isspace()
        yield
    return "".join(pieces)


def _raw_links(target: HtmlTarget) -> list[RawLink]:
    """The links of the page, and after them those in script text."""
    links = target.links
    if target.scripts:
        kind: LinkKind = "text"
        code = "\n".join(target.scripts)[:MAX_SCRIPT]
        links += [(url, kind, "", "", False, "") for url in find_script_urls(code)]
    return links


class PageLinks:
    """The canonical links of a page in document order, each (url, kind) once, up to the limits.

    What later ones say besides is added to the first: see `Link`.
    """

    __slots__ = (
        "_characters_left",
        "_indexes",
        "_max_links",
        "_text_left",
        "links",
        "too_many",
    )

    def __init__(self, limits: LinkLimits) -> None:
        self.links: list[Link] = []
        self.too_many = False
        self._max_links, self._characters_left = limits
        self._text_left = MAX_MORE_CHARACTERS
        # Kind -> URL -> index. Not keyed by both: a string knows its hash, a pair of strings does
        # not.
        self._indexes: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def add(self, raw: list[RawLink], join: Joiner) -> None:
        """Take a few hundred links; with the first that is one too many it ends."""
        links = self.links
        indexes = self._indexes
        max_links = self._max_links
        characters_left = self._characters_left
        urls = join.join_all([link[0] for link in raw])
        for url, (_, kind, text, title, nofollow, hreflang) in zip(urls, raw, strict=True):
            if url is None:
                continue
            index = indexes[kind].setdefault(url, len(links))
            if index == len(links):
                characters_left -= len(url)
                if index == max_links or characters_left < 0:
                    self.too_many = True
                    return
                links.append(_make_link((url, kind, text, title, nofollow, hreflang, ())))
                continue
            first = links[index]
            if (
                (text and text != first[2])
                or (first[4] and not nofollow)
                or (title and not first[3])
                or (hreflang and hreflang != first[5])
            ):
                links[index] = self._merge(first, text, title, nofollow, hreflang)
        self._characters_left = characters_left

    def _merge(self, first: Link, text: str, title: str, nofollow: bool, hreflang: str) -> Link:
        """The first link, with what another one to the same URL says besides."""
        first_text = first.text or text
        more_texts = first.more_texts
        if (
            text
            and text != first_text
            and text not in more_texts
            and len(more_texts) < MAX_MORE_TEXTS
            and self._text_left > 0
        ):
            self._text_left -= len(text)
            more_texts = (*more_texts, text)
        languages = first.hreflang
        if hreflang and hreflang not in languages.split():
            languages = f"{languages} {hreflang}".strip()
            if len(languages) > MAX_LANGUAGES:
                languages = first.hreflang
        return Link(
            first.url,
            first.kind,
            first_text,
            first.title or title,
            first.nofollow and nofollow,
            languages,
            more_texts,
        )

    def add_in_slices(self, raw: list[RawLink], join: Joiner) -> Slices[None]:
        """Take any number of links. Those after the last one that is kept are never joined."""
        for start in range(0, len(raw), SLICE_ITEMS):
            if start:
                yield
            self.add(raw[start : start + SLICE_ITEMS], join)
            if self.too_many:
                return


def resolve_links(
    raw: list[RawLink], join: Joiner, limits: LinkLimits = DEFAULT_LIMITS
) -> list[Link]:
    """The canonical links, without a pause: for documents, which have few."""
    found = PageLinks(limits)
    run_at_once(found.add_in_slices(raw, join))
    return found.links


def _paragraphs(text: str) -> Slices[tuple[list[Block], bool]]:
    """The paragraphs of a plain text as blocks, and whether there were too many of them."""
    blocks: list[Block] = []
    for piece in cut_text(text, PARAGRAPH):
        raw: list[RawBlock] = []
        for part in piece.split("\n\n"):
            if len(part) > SLICE_CHARACTERS:
                paragraph = yield from _collapse_in_slices(part)
            else:
                paragraph = " ".join(part.split())
            if paragraph:
                raw.append((paragraph, "", False, 0.0))
        blocks += clean_blocks(raw)
        if len(blocks) > MAX_ELEMENTS:
            return blocks[:MAX_ELEMENTS], True
        if len(text) > SLICE_CHARACTERS:
            yield
    return blocks, False


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


def clean_in_slices(raw: Iterable[RawBlock]) -> Slices[list[Block]]:
    """As `clean_blocks`, for very many or very long blocks."""
    blocks: list[Block] = []
    waiting: list[RawBlock] = []
    characters = 0
    for block in raw:
        waiting.append(block)
        characters += len(block[0]) + 20
        if characters > SLICE_CHARACTERS:
            blocks += clean_blocks(waiting)
            waiting.clear()
            characters = 0
            yield
    blocks += clean_blocks(waiting)
    return blocks


def _has_invisible(text: str) -> bool:
    if any(character in text for character in _ODD_SPACES):
        return True
    return not text.isascii() and any(character in text for character in INVISIBLE)
