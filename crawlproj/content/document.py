"""The result of one parse of a page: values only, nothing of the parser stays alive in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, get_args

from crawlproj.content.page_signs import NO_SIGNS, PageSigns
from crawlproj.content.robots_directives import NO_DIRECTIVES, RobotsDirectives
from crawlproj.content.slices import (
    ANYWHERE,
    SLICE_CHARACTERS,
    Slices,
    cut_text,
)

LinkKind = Literal[
    "a",
    "area",
    "img",
    "media",
    "iframe",
    "script",
    "link",
    "canonical",
    "alternate",
    "next",
    "feed",
    "sitemap",
    "refresh",
    "onclick",
    "text",
]
"""What holds the link. `link`: styles, icons and such; `next`: rel=next and prev; `text`: found in
script text, plain text or a document.
"""

LINK_KINDS: Final[frozenset[str]] = frozenset(get_args(LinkKind))
PAGE_KINDS: Final[frozenset[str]] = frozenset(
    ("a", "area", "iframe", "next", "alternate", "refresh", "onclick", "text")
)
"""Kinds that may lead to pages."""

JOINERS: Final = "\u200c\u200d\u200e\u200f"
INVISIBLE: Final = "\u200b\u2060\ufeff\xad"
_WORD: Final = re.compile(r"[^\W\d_]+")
_NO_LETTERS: Final = bytes(n for n in range(256) if not chr(n).isalpha() or n > 127)


def remove_characters(text: str, characters: str) -> str:
    """The text without these characters (none of them ASCII); much cheaper than str.translate."""
    if not text.isascii():
        for character in characters:
            text = text.replace(character, "")
    return text


class Link(NamedTuple):
    """A link of the page; `url` is canonical, `text` that of the anchor or of its picture's alt.

    It stands for all links of its kind to that URL: `nofollow` if all of them are, `more_texts` are
    the texts of later ones that differ, `hreflang` their languages with blanks between them.
    """

    url: str
    kind: LinkKind
    text: str = ""
    title: str = ""
    nofollow: bool = False
    hreflang: str = ""
    more_texts: tuple[str, ...] = ()


class Block(NamedTuple):
    """A run of text between two borders; never empty, white space collapsed.

    `path` is the chain of `tag.firstclass` of the non-inline elements around it (an ARIA landmark
    is marked: `div.box@navigation`), `main` says whether the innermost landmark is main or article,
    `link_share` is how much of the text is in links (0 to 1).
    """

    text: str
    path: str = ""
    main: bool = False
    link_share: float = 0.0


class LinkLimits(NamedTuple):
    """How many links of a page are taken, and how many characters their URLs may have together.

    The first ones are kept. A sitemap may name 50,000 URLs.
    """

    links: int = 50_000
    characters: int = 10_000_000


DEFAULT_LIMITS: Final = LinkLimits()


@dataclass(slots=True)
class Document:
    """One page or document, read.

    `base` is what its links were resolved against, `canonical` its rel=canonical.
    """

    url: str
    base: str = ""
    title: str = ""
    language: str = ""
    charset: str = "utf-8"
    canonical: str | None = None
    robots: RobotsDirectives = NO_DIRECTIVES
    links: list[Link] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    cut: bool = False
    """The page was longer, nested deeper or had more elements than we read."""
    too_many_links: bool = False
    """It had more links than we take."""
    description: str = ""
    keywords: str = ""
    """What its head says it is about."""
    listed: dict[str, str] = field(default_factory=dict)
    """Of a feed or sitemap: the dates of the pages that it names, as they are written: when they
    were changed last, or else published.
    """
    published: dict[str, str] = field(default_factory=dict)
    """When it says that they were published, of those of which it does."""
    list_kind: str = ""
    """What list it is: feed, sitemap, sitemap index or news sitemap; empty: none of them."""
    newest: datetime | None = None
    """The latest date of a list."""
    reader: str = ""
    """Of a PDF or office file: which reader has read it."""
    signs: PageSigns = NO_SIGNS
    """What its markup says of the kind of page it is; no other document has any."""
    _digest: bytes = field(default=b"", repr=False, compare=False)

    @property
    def text(self) -> str:
        """All blocks, one per line."""
        return "\n".join([block[0] for block in self.blocks])

    @property
    def block_digest(self) -> bytes:
        """16 bytes that are equal if two pages or captures show the same text.

        Case, layout and invisible joiners do not count.
        """
        if not self._digest:
            self._digest = blake2b(_digested(self.text), digest_size=16).digest()
        return self._digest

    def find_digest_in_slices(self) -> Slices[None]:
        """Find the block digest of a long text, so that it is there when it is asked for.

        How a letter is folded does not depend on those around it, so the text is cut anywhere.
        """
        hasher = blake2b(digest_size=16)
        waiting: list[str] = []
        characters = 0
        for number, block in enumerate(self.blocks):
            for piece in cut_text(block[0], ANYWHERE):
                waiting.append(piece)
                characters += len(piece) + 20
                if characters > SLICE_CHARACTERS:
                    hasher.update(_digested("".join(waiting)))
                    waiting.clear()
                    characters = 0
                    yield
            if number < len(self.blocks) - 1:
                waiting.append("\n")
        hasher.update(_digested("".join(waiting)))
        self._digest = hasher.digest()

    @property
    def letter_count(self) -> int:
        """How many letters the text has."""
        text = self.text
        if text.isascii():
            return len(text.encode().translate(None, _NO_LETTERS))
        return sum(map(len, _WORD.findall(text)))


def _digested(text: str) -> bytes:
    return remove_characters(text.casefold(), JOINERS).encode("utf-8", "replace")
