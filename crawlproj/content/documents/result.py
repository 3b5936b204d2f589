"""What is found in a document, kept within bounds while it grows."""

from __future__ import annotations

from typing import Any, Final

from crawlproj.content.text_urls import find_text_urls

MAX_TEXT: Final = 1_000_000
"""Characters of text, and as many of links."""
MAX_LINKS: Final = 5_000
MAX_LINK = 4_000
MAX_ANCHOR = 200
MAX_TITLE = 1_000


class LimitReachedError(Exception):
    """There is more than we read; what was found so far is kept."""


class BadDocumentError(Exception):
    """No document that can be read; the reason is a word for the stats."""


class DocumentResult:
    """Title, language, blocks of text, links as (url, kind, anchor text)."""

    def __init__(self) -> None:
        self.title = self.language = ""
        self.blocks: list[str] = []
        self.links: list[tuple[str, str, str]] = []
        self.cut = False
        self._room = self._link_room = MAX_TEXT

    def add_block(self, text: str) -> None:
        """A block, if it is not empty."""
        text = _line(text)
        if not text:
            return
        self.blocks.append(text[: self._room])
        self._room -= len(text) + 1
        if self._room <= 0:
            raise LimitReachedError

    def add_link(self, url: str, text: str = "", kind: str = "a") -> None:
        """A link is left out when there are too many: the text may still go on."""
        url = url.replace("\0", "").strip()
        if not url or len(url) > MAX_LINK:
            return
        self._link_room -= len(url) + MAX_ANCHOR
        if len(self.links) >= MAX_LINKS or self._link_room < 0:
            self.cut = True
        else:
            self.links.append((url, kind, _line(text)[:MAX_ANCHOR]))

    def add_text_urls(self) -> None:
        """URLs that stand in the text."""
        for url in find_text_urls("\n".join(self.blocks)):
            self.add_link(url, kind="text")

    def as_values(self) -> dict[str, Any]:
        return {
            "title": _line(self.title)[:MAX_TITLE], "language": _line(self.language)[:35],
            "blocks": self.blocks, "links": self.links, "cut": self.cut,
        }  # fmt: skip


def _line(text: str) -> str:
    return " ".join(text.replace("\0", "").split())
