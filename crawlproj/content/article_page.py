"""A page in which an article is looked for: its tree, and what its head says.

The tree is lxml's and whole, for libraries that want one and for the selectors of sites; the
crawl's own reader (`html`) builds none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from lxml import etree  # type: ignore[import-untyped]
from lxml import html as lxml_html

from crawlproj.content.charset import looks_binary, to_utf8
from crawlproj.content.json_ld import Node, choose_article, plain_text, read_json_ld

Element: TypeAlias = Any
"""An element of lxml, which has no types."""

MAX_URL: Final = 2_000
_PARSER: Final = {
    "encoding": "utf-8",
    "remove_comments": True,
    "remove_pis": True,
    "collect_ids": False,
    "default_doctype": False,
    "huge_tree": True,  # or else what stands deeper than 256 elements is lost
}
_CONTROLS: Final = bytes((*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F))
_NO_TEXT: Final = (*range(0x09), 0x0B, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_CHARACTERS: Final = dict.fromkeys((*_NO_TEXT, *range(0xD800, 0xE000), 0xFEFF, 0xFFFE, 0xFFFF))
_JSON_LD: Final = "application/ld+json"


@dataclass(frozen=True, slots=True)
class ArticlePage:
    """A page in memory. `meta` has the contents of its meta elements by name or property, in the
    order of the page; `article` is the object of its JSON-LD that describes its article.
    """

    tree: Element
    url: str
    base: str
    meta: dict[str, list[str]]
    article: Node
    nodes: list[Node]

    def first_meta(self, *names: str) -> str:
        """The first text of the first of these names that has one; "" if none has."""
        for name in names:
            for text in self.meta.get(name, ()):
                return text
        return ""

    def absolute_url(self, url: str) -> str | None:
        """An address of the page with host and all; None if it is none that can be fetched."""
        url = url.strip()
        if not url or len(url) > MAX_URL:
            return None
        try:
            joined = urljoin(self.base, url)
            parts = urlsplit(joined)
        except ValueError:
            return None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return None
        return clean_text(joined).replace(" ", "%20")


def parse_page(body: bytes, url: str, charset: str = "") -> ArticlePage | None:
    """The page of a body; None if there is nothing in it to read."""
    if looks_binary(body):
        return None
    text, _ = to_utf8(body, charset or None, url)
    text = text.translate(None, _CONTROLS)
    if not text.strip():
        return None
    try:
        tree = lxml_html.document_fromstring(text, parser=lxml_html.HTMLParser(**_PARSER))
    except (etree.LxmlError, ValueError):
        return None
    base = _find_base(tree, url)
    meta = _read_meta(tree)
    links = [element.get("href") or "" for element in tree.iter("link") if has_rel(element)]
    nodes = read_json_ld(_json_ld_scripts(tree))
    article = choose_article(nodes, (url, *links, *meta.get("og:url", ())))
    return ArticlePage(tree, url, base, meta, article, nodes)


def has_rel(element: Element, value: str = "canonical") -> bool:
    """Whether a link has this relation, beside others."""
    return value in (element.get("rel") or "").lower().split()


def clean_text(text: str) -> str:
    """A text as one line, without control characters."""
    return " ".join(text.translate(_CHARACTERS).split())


def clean_lines(text: str) -> str:
    """A text of several lines, each clean, without those that are empty."""
    return "\n".join(line for part in text.splitlines() if (line := clean_text(part)))


def element_text(element: Element) -> str:
    """All text of an element as one line."""
    pieces: list[str] = list(element.itertext())
    return clean_text("".join(pieces))


def first_texts(elements: Iterable[Element], limit: int) -> list[str]:
    """The texts of the first elements that have one."""
    found: list[str] = []
    for element in elements:
        if text := element_text(element):
            found.append(text)
            if len(found) == limit:
                break
    return found


def _find_base(tree: Element, url: str) -> str:
    for element in tree.iter("base"):
        href: str = (element.get("href") or "").strip()
        if href:
            try:
                return urljoin(url, href[:MAX_URL])
            except ValueError:
                break
    return url


def _read_meta(tree: Element) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for element in tree.iter("meta"):
        content = plain_text(element.get("content"))
        if content:
            names = {element.get(key) for key in ("property", "name", "itemprop")}
            for name in names - {None}:
                found.setdefault(name.strip().lower(), []).append(content)
    return found


def _json_ld_scripts(tree: Element) -> list[str]:
    return [
        element.text
        for element in tree.iter("script")
        if element.text and _JSON_LD in (element.get("type") or "").lower()
    ]
