"""The selectors that a site's spider states for the fields of its articles.

A selector is CSS, with Scrapy's `::text` and `::attr(name)`, or XPath if it begins with `/`, `./`,
`(` or `xpath:`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from cssselect import SelectorError
from lxml import etree  # type: ignore[import-untyped]
from parsel.csstranslator import HTMLTranslator

from crawlproj.content.article_page import Element, clean_text, element_text
from crawlproj.content.article_text import read_lines

MAX_MATCHES: Final = 10_000
_XPATH: Final = ("/", "./", "(")
_PREFIX: Final = "xpath:"
_NAMESPACES: Final = {
    "re": "http://exslt.org/regular-expressions",
    "set": "http://exslt.org/sets",
}
"""Those that Scrapy's selectors know."""
_URLS: Final = ("content", "href", "src", "data-src")
_DATES: Final = ("datetime", "content", "data-time", "data-timestamp")
_ATTRIBUTES: Final = {
    "date": _DATES,
    "modified": _DATES,
    "image": _URLS,
    "canonical": _URLS,
    "language": ("content", "lang", "hreflang"),
}
"""Where the value of a field stands if an element is selected and not its text."""
_SILENT: Final = frozenset({"script", "style", "noscript", "template"})


def selector_fault(selector: str) -> str:
    """What is wrong with a selector, in one line; "" if it can be used."""
    if not isinstance(selector, str) or not selector.strip():
        return "it is empty"
    try:
        _compile_selector(selector.strip())(etree.Element("html"))
    except (etree.XPathError, SelectorError, ValueError, RecursionError) as error:
        return " ".join(str(error).split()) or "it cannot be parsed"
    return ""


def select_values(tree: Element, field: str, selector: str) -> list[str]:
    """The values that a selector finds for a field, each one line and none empty."""
    attributes = _ATTRIBUTES.get(field, ())
    found = [_value_of(match, attributes) for match in _select_all(tree, selector)]
    return [value for value in found if value]


def select_text(tree: Element, selector: str) -> str:
    """The text that a selector finds: a line for each paragraph that it matches, or that is in what
    it matches.
    """
    lines: list[str] = []
    matched: set[Element] = set()
    for match in _select_all(tree, selector):
        if not etree.iselement(match):
            lines.append(clean_text(str(match)))
            continue
        if match.tag in _SILENT or any(above in matched for above in match.iterancestors()):
            continue
        matched.add(match)
        lines += _element_lines(match)
    return "\n".join(line for line in lines if line)


def _element_lines(element: Element) -> list[str]:
    if element.tag == "p":
        return [element_text(element)]
    return [clean_text(run.text) for run in read_lines(element).runs]


def _select_all(tree: Element, selector: str) -> list[Any]:
    found = _compile_selector(selector.strip())(tree)
    if isinstance(found, list):
        return found[:MAX_MATCHES]
    if isinstance(found, bool):
        return []
    return [found]


@lru_cache(maxsize=1_000)
def _compile_selector(selector: str) -> Any:
    if selector.startswith(_PREFIX):
        return etree.XPath(selector.removeprefix(_PREFIX).strip(), namespaces=_NAMESPACES)
    if selector.startswith(_XPATH):
        return etree.XPath(selector, namespaces=_NAMESPACES)
    return etree.XPath(HTMLTranslator().css_to_xpath(selector), namespaces=_NAMESPACES)


def _value_of(match: Any, attributes: tuple[str, ...]) -> str:
    if not etree.iselement(match):
        return clean_text(str(match))
    for name in attributes:
        value = clean_text(match.get(name) or "")
        if value:
            return value
    return element_text(match)
