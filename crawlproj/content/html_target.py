"""The parser's target: it takes what we need from each tag while libxml2 reads a page.

No tree is built. That is cheaper than walking one, cannot keep one alive, and has no quadratic case
in depth. This runs for every tag of every page, so the hot methods are written for speed: `data` is
the buffer's own append, elements are found in one dictionary, and the guard that only few pages
need is in a subclass.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content.document import LinkKind
from crawlproj.content.html_elements import (
    ENDS,
    MAX_ANCHOR,
    STARTS,
    Attrs,
    close_block,
    open_block,
)
from crawlproj.content.page_signs import MAX_TYPES, PageSigns
from crawlproj.content.robots_directives import NO_DIRECTIVES, RobotsDirectives
from crawlproj.content.script_urls import find_handler_urls
from crawlproj.content.slices import SLICE_CHARACTERS

MAX_DEPTH: Final = 512
"""Pages with very many tags are read no deeper: a closing tag costs libxml2 time in proportion to
the depth.
"""

MAX_ELEMENTS: Final = 200_000
"""Elements that are read of a page, and links."""
MAX_ANCHOR_READ: Final = 100_000
"""Characters of an anchor among which its text is looked for."""
MAX_SEPARATORS: Final = 200_000
"""What may stand between attributes of one tag. A tag with more is not waited for: libxml2 reads it
in one go, half a second for a million attributes.
"""
MAX_TOKEN: Final = 5_000_000
"""Bytes of one tag, comment or such, which libxml2 reads in one go, too."""
LONG_PATH: Final = 200
MAX_PATHS: Final = 10_000_000
"""Characters of all long paths of a page, of which equal ones are kept once. 64 elements with long
classes around 200,000 blocks would take almost a gigabyte.
"""

RawLink: TypeAlias = tuple[str, LinkKind, str, str, bool, str]
"""As written: address, kind, text, title, nofollow, language."""
RawBlock: TypeAlias = tuple[str, str, bool, float]
_start_of: Final = STARTS.get
_end_of: Final = ENDS.get


class StopReadingError(Exception):
    """Stops the parser: too deep, or too many elements. What was read so far is kept."""


class HtmlTarget:
    """A collector of a page's raw links and blocks, and of the few facts of its head.

    A link is listed where its element ends. `buffer` holds the texts since the last border; the
    open anchor's text starts at `anchor_start` of it, skipped text at `skip_start`.
    """

    __slots__ = (
        "agents",
        "anchor_alt",
        "anchor_href",
        "anchor_hreflang",
        "anchor_nofollow",
        "anchor_start",
        "anchor_text",
        "anchor_title",
        "article_elements",
        "base",
        "blocks",
        "body_class",
        "buffer",
        "data",
        "description",
        "in_json_ld",
        "in_main",
        "keywords",
        "language",
        "linked_characters",
        "links",
        "og_type",
        "parser",
        "path",
        "published",
        "robots",
        "scripts",
        "skip_depth",
        "skip_start",
        "stack",
        "time_elements",
        "title",
        "types",
    )

    def __init__(self, agents: tuple[str, ...]) -> None:
        self.buffer: list[str] = []
        self.data = self.buffer.append
        self.parser = etree.HTMLParser(encoding="utf-8", target=self, huge_tree=True)
        self.reset_page(agents)

    def reset_page(self, agents: tuple[str, ...]) -> None:
        """Forget the page before.

        Targets are used again: to make one with its parser costs as much as a small page, and only
        the garbage collector can free the two.
        """
        self.agents = agents
        self.buffer.clear()
        self.links: list[RawLink] = []
        self.blocks: list[RawBlock] = []
        self.scripts: list[str] = []
        self.stack: list[tuple[str, bool]] = []
        self.path = ""
        self.in_main = False
        self.base = ""
        self.title = ""
        self.description = ""
        self.keywords = ""
        self.language = ""
        self.robots: RobotsDirectives = NO_DIRECTIVES
        self.anchor_href = ""
        self.anchor_text = ""
        self.anchor_alt = ""
        self.anchor_title = ""
        self.anchor_nofollow = False
        self.anchor_hreflang = ""
        self.anchor_start = 0
        self.linked_characters = 0
        self.skip_depth = 0
        self.skip_start = 0
        self.og_type = ""
        self.types: list[str] = []
        self.in_json_ld = False
        self.published = ""
        self.body_class = ""
        self.article_elements = 0
        self.time_elements = 0

    def start(self, tag: str, attrib: Attrs) -> None:
        """What lxml calls when an element starts."""
        if attrib and "onclick" in attrib:
            self.links += [
                (url, "onclick", "", "", False, "") for url in find_handler_urls(attrib["onclick"])
            ]
        handle = _start_of(tag, open_block)
        if handle is not None:
            handle(self, tag, attrib)

    def end(self, tag: str) -> None:
        """What lxml calls when an element ends."""
        handle = _end_of(tag, close_block)
        if handle is not None:
            handle(self, tag)

    def flush_block(self) -> None:
        """Make a block of the text since the last border, if there is any."""
        buffer = self.buffer
        if self.anchor_href:
            self.anchor_text = self.read_anchor_text()
            self.anchor_start = 0
        text = (buffer[0] if len(buffer) == 1 else "".join(buffer)).strip()
        buffer.clear()
        if text:
            if "\n" in text or "  " in text or not text.isascii() or "\t" in text:
                text = " ".join(text.split())
            share = 0.0
            if self.linked_characters:
                share = self.linked_characters / len(text)
                self.linked_characters = 0
                if share > 1.0:
                    share = 1.0
            self.blocks.append((text, self.path, self.in_main, share))

    def read_anchor_text(self) -> str:
        """The text of the open anchor so far; what is new of it is counted as linked."""
        buffer = self.buffer
        start = self.anchor_start
        text = buffer[start] if len(buffer) == start + 1 else "".join(buffer[start:])
        if "\n" in text or "  " in text or not text.isascii() or "\t" in text:
            text = " ".join(text.split())
        self.linked_characters += len(text)
        if self.anchor_text:
            text = f"{self.anchor_text} {text}"
        return text[:MAX_ANCHOR]

    def close_anchor(self) -> None:
        """List the open anchor as a link; if it has no text, with the alt of its first picture."""
        text = self.read_anchor_text().strip() or self.anchor_alt
        self.links.append(
            (
                self.anchor_href,
                "a",
                text,
                self.anchor_title,
                self.anchor_nofollow,
                self.anchor_hreflang,
            )
        )
        self.anchor_href = ""

    def signs(self) -> PageSigns:
        """What was found that says which kind of page it is."""
        return PageSigns(
            self.og_type,
            tuple(self.types[:MAX_TYPES]),
            self.published,
            self.body_class,
            article_elements=self.article_elements,
            time_elements=self.time_elements,
        )

    def close(self) -> HtmlTarget:
        """End the page, also one that was cut; lxml returns what this returns."""
        if self.anchor_href:
            self.close_anchor()
        if self.buffer and not self.skip_depth:
            self.flush_block()
        return self


class BigHtmlTarget(HtmlTarget):
    """A target for big pages and those with many tags, which are read piece by piece.

    It stops the parser in the depth and after `MAX_ELEMENTS`. No step of it takes long, however
    long a text is: the white space of long blocks is left for later. `long_blocks` are their
    indexes; such a block has the number of its linked characters where others have their share.
    """

    __slots__ = (
        "_depth",
        "_elements",
        "_joined",
        "_max_depth",
        "_path_characters_left",
        "_paths",
        "_progress",
        "_separators",
        "_token_bytes",
        "long_blocks",
    )

    def __init__(self, agents: tuple[str, ...], max_depth: int) -> None:
        self.long_blocks: list[int] = []
        self._depth = 0
        self._elements = 0
        self._joined = 0
        self._max_depth = max_depth
        self._path_characters_left = MAX_PATHS
        self._paths: dict[str, str] = {}
        self._progress = (0, 0, 0, 0)
        self._separators = 0
        self._token_bytes = 0
        super().__init__(agents)

    def start(self, tag: str, attrib: Attrs) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > self._max_depth or self._elements > MAX_ELEMENTS:
            raise StopReadingError
        super().start(tag, attrib)
        if len(self.path) > LONG_PATH:
            self.path = self._shared_path()

    def end(self, tag: str) -> None:
        self._depth -= 1
        super().end(tag)

    def _shared_path(self) -> str:
        """The current path, the same string as before; when there are too many, its parent's."""
        known = self._paths.get(self.path)
        if known is not None:
            return known
        self._path_characters_left -= len(self.path)
        if self._path_characters_left < 0:
            return self.stack[-1][0]
        self._paths[self.path] = self.path
        return self.path

    def note_piece(self, piece: bytes) -> bool:
        """Called after each piece of the page; returns False if no more is to be read."""
        progress = (self._elements, self._depth, len(self.buffer), len(self.blocks))
        if progress != self._progress:
            self._join_texts()
            self._progress = (self._elements, self._depth, len(self.buffer), len(self.blocks))
            self._separators = 0
            self._token_bytes = 0
        else:
            # The parser waits for the end of a tag (or of a comment).
            quotes = piece.count(b"'") + piece.count(b'"')
            self._token_bytes += len(piece)
            self._separators += len(piece.split()) + piece.count(b"/") + quotes // 2
        if self._separators > MAX_SEPARATORS or self._token_bytes > MAX_TOKEN:
            return False
        return len(self.links) <= MAX_ELEMENTS

    def _join_texts(self) -> None:
        """Make one of the texts that came since the last time, as far as they belong together."""
        start = min(self._joined, len(self.buffer))
        if self.anchor_href:
            start = max(start, self.anchor_start)
        if self.skip_depth:
            start = max(start, self.skip_start)
        if len(self.buffer) > start + 1:
            self.buffer[start:] = ["".join(self.buffer[start:])]
        self._joined = len(self.buffer)

    def flush_block(self) -> None:
        if sum(map(len, self.buffer)) <= SLICE_CHARACTERS:
            super().flush_block()
            return
        if self.anchor_href:
            self.anchor_text = self.read_anchor_text()
            self.anchor_start = 0
        text = "".join(self.buffer).strip()
        self.buffer.clear()
        if text:
            self.long_blocks.append(len(self.blocks))
            self.blocks.append((text, self.path, self.in_main, float(self.linked_characters)))
            self.linked_characters = 0

    def read_anchor_text(self) -> str:
        """As for other pages. Of a very long text only the start is read, and all of it counted."""
        texts = self.buffer[self.anchor_start :]
        characters = sum(map(len, texts))
        if characters <= SLICE_CHARACTERS:
            return super().read_anchor_text()
        self.linked_characters += characters
        text = "".join(texts)
        start = text[:MAX_ANCHOR_READ]
        if _has_odd_space(text):
            start = " ".join(start.split())
        if self.anchor_text:
            start = f"{self.anchor_text} {start}"
        return start[:MAX_ANCHOR]


def _has_odd_space(text: str) -> bool:
    """Whether its white space may not be single spaces."""
    return "\n" in text or "  " in text or not text.isascii() or "\t" in text
