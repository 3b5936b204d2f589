"""The text of a page as it is stored: all of its blocks, each with what it is, in one compressed
value.

Inside it is text again, a line per block after a line with the format's number: a letter for the
kind (a capital if the block is in the page's main part), a character for how much of it is in
links, and the block's text, which has no line ends. *Full* text is all visible blocks, *main* text
is what is left without navigation, notices and the like; both come from the same blocks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from crawlproj.content.document import Block, Document

BlockKind = Literal[
    "title", "description", "keywords", "heading", "list", "table", "caption", "text"
]
FORMAT: Final = "1"
LEVEL: Final = 1
MAX_TEXT: Final = 5_000_000
"""Characters that are kept of a page."""
SHARE_STEPS: Final = 50
LONG: Final = 50
"""Bytes from which a block is taken for a paragraph; a letter beyond ASCII has two or more."""
LOW_LINKS: Final = 0.34
"""A paragraph has less of its text in links."""
_LETTERS: Final[dict[BlockKind, str]] = {
    "title": "t",
    "description": "d",
    "keywords": "k",
    "heading": "h",
    "list": "l",
    "table": "b",
    "caption": "c",
    "text": "x",
}
_KINDS: Final = {letter: kind for kind, letter in _LETTERS.items()}
_TAGS: Final[dict[str, BlockKind]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    **dict.fromkeys(("li", "dt", "dd"), "list"),
    **dict.fromkeys(("td", "th"), "table"),
    **dict.fromkeys(("caption", "figcaption"), "caption"),
    **dict.fromkeys(("p", "blockquote", "pre", "article", "main", "section"), "text"),
}
HIDDEN: Final[frozenset[BlockKind]] = frozenset({"title", "description", "keywords"})
"""Kinds that stand in the head of a page: they are not part of its visible text."""
MAX_PATHS: Final = 5_000
_kinds_of_paths: Final[dict[str, BlockKind]] = {}


class TextBlock(NamedTuple):
    """A block of a stored text; `link_share` is how much of it is in links (0 to 1)."""

    kind: BlockKind
    text: str
    main: bool = False
    link_share: float = 0.0


def kind_of_path(path: str) -> BlockKind:
    """What a block is by the elements around it: the innermost that says something counts."""
    kind = _kinds_of_paths.get(path)
    if kind is None:
        kind = "text"
        for element in reversed(path.rsplit("/", 4)[-4:]):
            found = _TAGS.get(element.partition(".")[0])
            if found is not None:
                kind = found
                break
        if len(_kinds_of_paths) >= MAX_PATHS:
            _kinds_of_paths.clear()
        _kinds_of_paths[path] = kind
    return kind


def pack_document(document: Document) -> bytes:
    """The text of a page, ready to be stored; empty if it has none."""
    lines = [FORMAT]
    for letter, text in (
        ("t", document.title),
        ("d", document.description),
        ("k", document.keywords),
    ):
        if text:
            lines.append(f"{letter}0{' '.join(text.split())}")
    characters = 0
    for text, path, main, share in document.blocks:
        letter = _LETTERS[kind_of_path(path)]
        if main:
            letter = letter.upper()
        lines.append(f"{letter}{chr(48 + int(share * SHARE_STEPS))}{text}")
        characters += len(text)
        if characters > MAX_TEXT:
            break
    if len(lines) == 1:
        return b""
    return zstd.compress("\n".join(lines).encode("utf-8", "replace"), LEVEL)


def unpack_blocks(packed: bytes) -> list[TextBlock]:
    """The blocks of a stored text, in the order of the page."""
    if not packed:
        return []
    number, *lines = zstd.decompress(packed).decode("utf-8", "replace").split("\n")
    if number != FORMAT:
        raise ValueError(f"a stored text has the format {number!r}, this code knows only {FORMAT}")
    return [
        TextBlock(
            _KINDS[line[0].lower()],
            line[2:],
            line[0].isupper(),
            (ord(line[1]) - 48) / SHARE_STEPS,
        )
        for line in lines
    ]


def stored_form(blocks: Iterable[Block]) -> list[TextBlock]:
    """Blocks of a page that was just read, as they will come back from the store: a page is judged
    by the same values whether it is new or stored.
    """
    return [
        TextBlock(kind_of_path(path), text, main, int(share * SHARE_STEPS) / SHARE_STEPS)
        for text, path, main, share in blocks
    ]


def visible_blocks(blocks: Iterable[TextBlock]) -> list[TextBlock]:
    """Blocks without those of the head."""
    return [block for block in blocks if block.kind not in HIDDEN]


def full_text(blocks: Iterable[TextBlock]) -> str:
    """All visible text, nothing removed, a block per line."""
    return "\n".join([block.text for block in visible_blocks(blocks)])


def main_text(blocks: Sequence[TextBlock]) -> str:
    """The text without boilerplate, a block per line: paragraphs, and the headings, lists and short
    lines that stand between two of them. A page without any paragraph is all main text.
    """
    return "\n".join([block.text for block in main_blocks(blocks)])


def main_blocks(blocks: Sequence[TextBlock]) -> list[TextBlock]:
    """The blocks of `main_text`."""
    visible = visible_blocks(blocks)
    flagged = [block for block in visible if block.main]
    if sum(len(block.text) for block in flagged if is_paragraph(block)) >= 250:
        visible = flagged
    paragraphs = [number for number, block in enumerate(visible) if is_paragraph(block)]
    if not paragraphs:
        return [block for block in visible if block.link_share < LOW_LINKS] or visible
    kept = set(paragraphs)
    for before, after in pairwise(paragraphs):
        if after - before <= 4:
            kept.update(
                number
                for number in range(before + 1, after)
                if visible[number].link_share < LOW_LINKS
            )
    first = paragraphs[0]
    if first and visible[first - 1].kind == "heading":
        kept.add(first - 1)
    return [block for number, block in enumerate(visible) if number in kept]


def is_paragraph(block: TextBlock) -> bool:
    """Is it long, and mostly not links?"""
    if block.link_share >= LOW_LINKS:
        return False
    return len(block.text) >= LONG or (
        not block.text.isascii() and len(block.text.encode("utf-8", "replace")) >= LONG
    )


def pack_body(body: bytes) -> bytes:
    """The bytes of a page, compressed, for somebody who reads them later."""
    return zstd.compress(body, LEVEL)


def unpack_body(packed: bytes) -> bytes:
    """What `pack_body` was given."""
    return zstd.decompress(packed)
