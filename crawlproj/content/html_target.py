"""The parser's target: what is taken from each tag while libxml2 reads a page.

No tree is built. That is cheaper than walking one, cannot keep one alive, and has no quadratic case
in depth. This runs for every tag of every page, so the hot methods are written for speed: `data` is
the buffer's own append, elements are found in one dictionary, and the guard that only few pages
need is in a subclass.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content.document import LinkKind
from crawlproj.content.html_elements import ENDS, MAX_ANCHOR, STARTS, Attrs, close_block, open_block
from crawlproj.content.robots_directives import NO_DIRECTIVES, RobotsDirectives
from crawlproj.content.script_urls import find_handler_urls

MAX_DEPTH: Final = 512
"""Documents with very many tags are read no deeper: a closing tag costs libxml2 time in proportion
to the depth.
"""

RawLink: TypeAlias = tuple[str, LinkKind, str, str, bool]
RawBlock: TypeAlias = tuple[str, str, bool, float]
_start_of: Final = STARTS.get
_end_of: Final = ENDS.get


class TooDeepError(Exception):
    """Stops the parser; what was read so far is kept."""


class HtmlTarget:
    """Collects raw links and blocks, and the head's few facts. A link is listed where its element
    ends.
    """

    __slots__ = (
        "agents",
        "alt",
        "anchor",
        "base",
        "blocks",
        "buffer",
        "data",
        "href",
        "language",
        "linked",
        "links",
        "main",
        "mark",
        "nofollow",
        "parser",
        "path",
        "robots",
        "scripts",
        "skip",
        "skip_mark",
        "stack",
        "tip",
        "title",
    )

    def __init__(self, agents: tuple[str, ...]) -> None:
        self.buffer: list[str] = []
        self.data = self.buffer.append
        self.parser = etree.HTMLParser(encoding="utf-8", target=self, huge_tree=True)
        self.reset_page(agents)

    def reset_page(self, agents: tuple[str, ...]) -> None:
        """Forget the page before. A parser costs as much as a small page to make, and dies in a
        cycle with its reader: kept.
        """
        self.agents = agents
        self.buffer.clear()
        self.links: list[RawLink] = []
        self.blocks: list[RawBlock] = []
        self.scripts: list[str] = []
        self.stack: list[tuple[str, bool]] = []
        self.path = self.base = self.title = self.language = ""
        self.href = self.anchor = self.alt = self.tip = ""
        self.main = self.nofollow = False
        self.skip = self.skip_mark = self.mark = self.linked = 0
        self.robots: RobotsDirectives = NO_DIRECTIVES

    def start(self, tag: str, attrib: Attrs) -> None:
        if attrib and "onclick" in attrib:
            self.links += [
                (url, "onclick", "", "", False) for url in find_handler_urls(attrib["onclick"])
            ]
        act = _start_of(tag, open_block)
        if act is not None:
            act(self, tag, attrib)

    def end(self, tag: str) -> None:
        act = _end_of(tag, close_block)
        if act is not None:
            act(self, tag)

    def flush_block(self) -> None:
        """A border: the text since the last one is a block, if there is any."""
        buffer = self.buffer
        if self.href:
            self.anchor = self.read_anchor_text()
            self.mark = 0
        text = (buffer[0] if len(buffer) == 1 else "".join(buffer)).strip()
        buffer.clear()
        if text:
            if "\n" in text or "  " in text or not text.isascii() or "\t" in text:
                text = " ".join(text.split())
            share = 0.0
            if linked := self.linked:
                self.linked = 0
                share = linked / len(text) if linked < len(text) else 1.0
            self.blocks.append((text, self.path, self.main, share))

    def read_anchor_text(self) -> str:
        """Text of the open anchor; the part since the mark is counted as linked."""
        buffer = self.buffer
        mark = self.mark
        text = buffer[mark] if len(buffer) == mark + 1 else "".join(buffer[mark:])
        if "\n" in text or "  " in text or not text.isascii() or "\t" in text:
            text = " ".join(text.split())
        self.linked += len(text)
        if self.anchor:
            text = f"{self.anchor} {text}"
        return text[:MAX_ANCHOR] if len(text) > MAX_ANCHOR else text

    def close_anchor(self) -> None:
        text = self.read_anchor_text().strip() or self.alt
        self.links.append((self.href, "a", text, self.tip, self.nofollow))
        self.href = ""

    def close(self) -> HtmlTarget:
        """The end of the page, also of one that was cut."""
        if self.href:
            self.close_anchor()
        if self.buffer and not self.skip:
            self.flush_block()
        return self


class GuardedHtmlTarget(HtmlTarget):
    """Reads documents with very many tags, and stops in the depth."""

    __slots__ = ("depth",)

    def __init__(self, agents: tuple[str, ...]) -> None:
        self.depth = 0
        super().__init__(agents)

    def start(self, tag: str, attrib: Attrs) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeepError
        super().start(tag, attrib)

    def end(self, tag: str) -> None:
        self.depth -= 1
        super().end(tag)
