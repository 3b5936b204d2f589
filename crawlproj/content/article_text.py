"""The text of an article: trafilatura's, without what stands around it.

What helps in all languages is where a line stands: `read_lines` walks the page once, and each line
that trafilatura gives is found there again. Most lines are in one element, the *container*. What
comes before it or behind it is the title, a byline, a newsletter, a list of other articles.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content.article_boilerplate import (
    MAX_NOTICE,
    is_byline,
    is_invitation,
    is_label,
    is_notice,
)
from crawlproj.content.article_page import ArticlePage, Element, clean_lines
from crawlproj.content.packed_text import LONG, LOW_LINKS

CONTAINER_SHARE: Final = 0.75
"""The container has so much of the text."""
TAIL_SHARE: Final = 0.15
"""Lines behind the container that are more than this belong to the article all the same."""
HEAD_LINES: Final = 8
"""Lines among which a title may stand."""
LINK_LINE: Final = 0.8
"""A line with more of its text in links is nothing but links."""
BYLINES: Final = 3
TAIL_LINES: Final = 4
INSERT_SHARE: Final = 0.3
LONG_LINK: Final = 150
REPEATED: Final = 50
"""Characters from which a line does not stand in an article twice."""
MAX_LINES: Final = 20_000

_BLOCK_NAMES: Final = """
address article aside blockquote body button caption center dd details dialog dir div dl dt
fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html iframe legend li
main menu nav ol optgroup option p pre search section select summary table tbody td tfoot th
thead tr ul br
"""
_BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
_SILENT: Final = frozenset(
    ("head", "iframe", "noscript", "script", "style", "svg", "template", "textarea")
)
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_PARTS: Final = frozenset(
    ("blockquote", "dd", "dl", "li", "ol", "p", "pre", "table", "tbody", "td", "tr", "ul")
)
"""Elements that are part of a text, never the container of one."""
_INSERTS: Final = re.compile(
    r"""
    newsletter | subscri(?:be|ption) | outbrain | taboola | recirc | breadcrumb | paywall
    | (?<![A-Za-z]) (?:
        sign-?up | related | recommend | read-?(?:more|also) | more-?(?:from|stories|on)
        | most-?(?:read|popular|viewed) | trending | popular | promo(?!t) | sponsor | advert
        | share-?(?:bar|tools|buttons|links|this) | social-?(?:bar|links|share|media-links)
        | follow-?us | author-?(?:bio|box|info|card) | about-?author | byline | comments?
        | post-?(?:meta|info|tags|nav) | entry-?meta | copyright | donat(?:e|ion) | cta
        | call-?to-?action | app-?download
    ) (?![a-z])
    """,
    re.I | re.X,
)
"""What the classes and ids of inserts are called."""
_WORDS: Final = re.compile(r"\w+")
_RULE: Final = re.compile(r"[\s|:-]*")

logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
logging.getLogger("htmldate").setLevel(logging.CRITICAL)


class PageLine(NamedTuple):
    """A line of the page: text between two starts or ends of blocks; `block` is the number of the
    innermost one around it.
    """

    text: str
    link_share: float
    block: int
    in_heading: bool


class PageBlock(NamedTuple):
    """A block element of the page; `parent` is the number of the block around it."""

    element: Element
    parent: int


@dataclass(slots=True)
class PageLines:
    """The visible lines of a page and its blocks, both in its order: a parent comes before its
    children, so one pass over the list is enough for what follows from the tree.
    """

    runs: list[PageLine] = field(default_factory=list)
    blocks: list[PageBlock] = field(default_factory=list)


class _Line(NamedTuple):
    text: str
    key: str
    runs: Sequence[PageLine]

    @property
    def is_linked(self) -> bool:
        """Whether it is nothing but links; long ones, and addresses, are text all the same."""
        if not self.runs or len(self.text) >= LONG_LINK or self.text.startswith("http"):
            return False
        return all(run.link_share > LINK_LINE for run in self.runs)

    @property
    def is_heading(self) -> bool:
        return any(run.in_heading for run in self.runs)


def general_text(page: ArticlePage, titles: Sequence[str], authors: Sequence[str]) -> str:
    """The text of the article by the general recipe, a paragraph per line; "" if there is none.

    Lines at its beginning that only say the title or the authors are left out.
    """
    lines = read_lines(page.tree)
    text = _ask_trafilatura(page.tree, page.url)
    if not text:
        return paragraph_text(lines)
    return filter_lines(text, lines, titles, authors)


def read_lines(tree: Element) -> PageLines:
    """The visible lines of a page, or of an element of it."""
    walker = _Walker(tree)
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if event == "start":
            walker.start(element)
        else:
            walker.end(element)
    walker.finish_run()
    return walker.lines


def paragraph_text(lines: PageLines) -> str:
    """What looks like paragraphs, of a page that nothing else makes sense of."""
    found = [run.text for run in lines.runs if len(run.text) >= LONG and run.link_share < LOW_LINKS]
    return clean_lines("\n".join(dict.fromkeys(found)))


def line_key(text: str) -> str:
    """What is left of a line when two are compared: its letters and digits."""
    return "".join(_WORDS.findall(text)).casefold()


def filter_lines(text: str, page: PageLines, titles: Sequence[str], authors: Sequence[str]) -> str:
    """The lines of the article, of a text that has some more."""
    lines = _find_lines(text, page.runs)
    container = _find_container(lines, page.blocks)
    if container is not None:
        lines = _drop_outside(lines, page.blocks, container)
        lines = _drop_inserts(lines, page.blocks, container)
    lines = _drop_head(lines, {line_key(title) for title in titles if title}, authors)
    lines = _drop_tail(_drop_asides(lines))
    return clean_lines("\n".join(line.text for line in lines))


class _Walker:
    """Collects the lines of a page while its elements start and end."""

    def __init__(self, root: Element) -> None:
        self.lines = PageLines()
        self._root = root
        self._open: list[int] = []
        self._pieces: list[str] = []
        self._link_characters = 0
        self._links = 0
        self._headings = 0
        self._silent = 0

    def start(self, element: Element) -> None:
        tag = element.tag
        if tag in _SILENT:
            self._silent += 1
        if self._silent:
            return
        if tag in _BLOCKS or element is self._root:
            self.finish_run()
            if tag != "br":
                self._open_block(element)
        if tag == "a":
            self._links += 1
        elif tag in _HEADINGS:
            self._headings += 1
        if element.text:
            self._add_text(element.text)

    def end(self, element: Element) -> None:
        tag = element.tag
        if tag in _SILENT:
            self._silent -= 1
        elif not self._silent:
            if tag in _BLOCKS:
                self.finish_run()
                if tag != "br" and element is not self._root:
                    self._open.pop()
            if tag == "a":
                self._links -= 1
            elif tag in _HEADINGS:
                self._headings -= 1
        if element.tail and not self._silent and element is not self._root:
            self._add_text(element.tail)

    def finish_run(self) -> None:
        """The line ends here."""
        if not self._pieces:
            return
        text = " ".join("".join(self._pieces).split())
        if text and self._open:
            characters = sum(len(piece.strip()) for piece in self._pieces)
            share = self._link_characters / max(1, characters)
            self.lines.runs.append(PageLine(text, share, self._open[-1], self._headings > 0))
        self._pieces = []
        self._link_characters = 0

    def _open_block(self, element: Element) -> None:
        parent = -1
        if self._open:
            parent = self._open[-1]
        self._open.append(len(self.lines.blocks))
        self.lines.blocks.append(PageBlock(element, parent))

    def _add_text(self, text: str) -> None:
        self._pieces.append(text)
        if self._links:
            self._link_characters += len(text.strip())


def _ask_trafilatura(tree: Element, url: str) -> str:
    from trafilatura import extract

    try:
        return extract(tree, url=url, include_comments=False) or ""
    except Exception:  # whatever it is, it is about this one page
        return ""


def _find_lines(text: str, runs: Sequence[PageLine]) -> list[_Line]:
    """The lines of trafilatura's text, each with its places in the page."""
    places: dict[str, list[PageLine]] = {}
    for run in runs:
        places.setdefault(line_key(run.text), []).append(run)
    lines = []
    for part in text.splitlines()[:MAX_LINES]:
        line = part.strip()
        if line.startswith("|") or line.endswith("|"):  # a row of a table
            line = line.strip("| ")
        if not _RULE.fullmatch(line):
            key = line_key(line)
            lines.append(_Line(line, key, places.get(key, ())))
    return lines


def _find_container(lines: Sequence[_Line], blocks: Sequence[PageBlock]) -> int | None:
    """The smallest block that has most of the text; None if too few lines are found again."""
    weights = [0] * len(blocks)
    known = 0
    for line in lines:
        if len(line.runs) == 1:
            weights[line.runs[0].block] += len(line.text)
            known += len(line.text)
    if not known or known * 2 < sum(len(line.text) for line in lines):
        return None
    for number in range(len(blocks) - 1, 0, -1):
        # All that is in it has been added, because children have higher numbers.
        if weights[number] >= known * CONTAINER_SHARE:
            break
        weights[blocks[number].parent] += weights[number]
    else:
        number = 0
    while number > 0 and blocks[number].element.tag in _PARTS:
        number = blocks[number].parent
    return number


def _blocks_within(blocks: Sequence[PageBlock], container: int) -> list[bool]:
    """Of each block, whether it is the container or in it."""
    within: list[bool] = []
    for number, block in enumerate(blocks):
        within.append(number == container or (block.parent >= 0 and within[block.parent]))
    return within


def _drop_outside(lines: list[_Line], blocks: Sequence[PageBlock], container: int) -> list[_Line]:
    """Without what stands before the container, except paragraphs, and what stands after it."""
    within = _blocks_within(blocks, container)
    inside = [not line.runs or any(within[run.block] for run in line.runs) for line in lines]
    numbers = [number for number, known in enumerate(inside) if known and lines[number].runs]
    if not numbers:
        return lines
    first = numbers[0]
    last = numbers[-1]
    size = sum(len(line.text) for line in lines)
    is_long = sum(len(line.text) for line in lines[last + 1 :]) > TAIL_SHARE * size
    kept = []
    for number, line in enumerate(lines):
        if number > last:
            keep = is_long
        else:
            keep = len(line.text) >= LONG and not (line.is_heading and number < first)
        if keep or inside[number]:
            kept.append(line)
    return kept


def _drop_inserts(lines: list[_Line], blocks: Sequence[PageBlock], container: int) -> list[_Line]:
    """Without newsletters, related articles and the like that stand inside the container, by the
    names that its elements have; with them if they are much of the text.
    """
    inserts = _find_inserts(blocks, container)
    flags = [bool(line.runs) and all(inserts[run.block] for run in line.runs) for line in lines]
    size = sum(len(line.text) for line in lines)
    inserted = sum(len(line.text) for line, flag in zip(lines, flags, strict=True) if flag)
    if inserted > INSERT_SHARE * size:
        return lines
    return [line for line, flag in zip(lines, flags, strict=True) if not flag]


def _find_inserts(blocks: Sequence[PageBlock], container: int) -> list[bool]:
    """Of each block, whether it is in the container and has the name of an insert, or is in one."""
    within = _blocks_within(blocks, container)
    inserts: list[bool] = []
    for number, block in enumerate(blocks):
        if number == container or not within[number]:
            inserts.append(False)
        elif inserts[block.parent]:
            inserts.append(True)
        else:
            names = f"{block.element.get('class') or ''} {block.element.get('id') or ''}"
            inserts.append(bool(_INSERTS.search(names[:500])))
    return inserts


def _drop_head(lines: list[_Line], titles: set[str], authors: Sequence[str]) -> list[_Line]:
    """Without the title, the kickers and breadcrumbs before it, and the byline after it."""
    start = 0
    for number, line in enumerate(lines[:HEAD_LINES]):
        if line.key in titles:
            start = number + 1
        elif len(line.text) >= LONG and not line.is_heading and not line.is_linked:
            break
    names = [name.casefold() for name in authors]
    last = start + BYLINES
    while start < min(last, len(lines)) and is_byline(lines[start].text, names):
        start += 1
    return lines[start:]


def _drop_asides(lines: list[_Line]) -> list[_Line]:
    """Without links to other articles, and without what the page has fewer times."""
    kept = []
    times: Counter[str] = Counter()
    for number, line in enumerate(lines):
        if is_label(line.text) or (line.is_linked and not _opens_section(lines, number)):
            continue
        times[line.key] += 1
        if len(line.key) < REPEATED or times[line.key] <= max(1, len(line.runs)):
            kept.append(line)
    return kept


def _opens_section(lines: Sequence[_Line], number: int) -> bool:
    """Whether a line is the heading of the paragraph after it."""
    if not lines[number].is_heading or number + 1 >= len(lines):
        return False
    following = lines[number + 1]
    return not following.is_linked and len(following.text) >= LONG and not following.is_heading


def _drop_tail(lines: list[_Line]) -> list[_Line]:
    """Without the notices at the end, and what stands between them."""
    end = len(lines)
    for number in range(len(lines) - 1, max(0, len(lines) - TAIL_LINES - 1), -1):
        if is_notice(lines[number].text) or is_invitation(lines[number].text):
            end = number
        elif len(lines[number].text) > MAX_NOTICE:
            break
    size = sum(len(line.text) for line in lines)
    if sum(len(line.text) for line in lines[end:]) > TAIL_SHARE * size:
        return lines
    return lines[:end]
