"""The result of reading a document, kept within bounds while it grows."""

from __future__ import annotations

from typing import Any, Final

from crawlproj.content.text_urls import find_text_urls

MAX_TEXT: Final = 1_000_000
"""Characters of text, and as many of links."""
MAX_BLOCKS: Final = 100_000
MAX_LINKS: Final = 5_000
MAX_LINK = 4_000
MAX_ANCHOR = 200
MAX_TITLE = 1_000


class LimitReachedError(Exception):
    """There is more than we read; what was found so far is kept."""


class BadDocumentError(Exception):
    """The document can't be read; the reason is a word for the stats."""


class DocumentResult:
    """A document's title, language, blocks of text, and links as (url, kind, anchor text)."""

    def __init__(self) -> None:
        self.title = ""
        self.language = ""
        self.blocks: list[str] = []
        self.links: list[tuple[str, str, str]] = []
        self.cut = False
        self.reader = ""
        """Which of `READER_VERSIONS` has read it."""
        self._text_left = MAX_TEXT
        self._links_left = MAX_TEXT

    def add_block(self, text: str) -> None:
        """Add a block, if it is not empty; LimitReachedError when there is enough text."""
        text = _one_line(text)
        if not text:
            return
        self.blocks.append(text[: self._text_left])
        self._text_left -= len(text) + 1
        if self._text_left <= 0 or len(self.blocks) >= MAX_BLOCKS:
            raise LimitReachedError

    def add_link(self, url: str, text: str = "", kind: str = "a") -> None:
        """Add a link. When there are too many it is left out: the text may still go on."""
        url = url.replace("\0", "").strip()
        if not url or len(url) > MAX_LINK:
            return
        self._links_left -= len(url) + MAX_ANCHOR
        if len(self.links) >= MAX_LINKS or self._links_left < 0:
            self.cut = True
        else:
            self.links.append((url, kind, _one_line(text)[:MAX_ANCHOR]))

    def add_text_urls(self) -> None:
        """Add the URLs that are written in the text as links."""
        for url in find_text_urls("\n".join(self.blocks)):
            self.add_link(url, kind="text")

    def as_values(self) -> dict[str, Any]:
        """The values of a reply, for JSON."""
        return {
            "title": _one_line(self.title)[:MAX_TITLE],
            "language": _one_line(self.language)[:35],
            "blocks": self.blocks,
            "links": self.links,
            "cut": self.cut,
            "reader": self.reader,
        }


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", "").split())
