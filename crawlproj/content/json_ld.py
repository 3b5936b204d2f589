"""The JSON-LD of a page: what its article says about itself in `<script type=application/ld+json>`.

Much of it is broken: comments, commas too many, wrappers of HTML, cut in the middle, wrong types.
What can be understood is taken, and nothing of it is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import Any, Final, TypeAlias

Node: TypeAlias = dict[str, Any]

_ARTICLE_NAMES: Final = """
AdvertiserContentArticle AnalysisNewsArticle Article AskPublicNewsArticle
BackgroundNewsArticle BlogPosting DiscussionForumPosting LiveBlogPosting MedicalScholarlyArticle
NewsArticle OpinionNewsArticle Report ReportageNewsArticle ReviewNewsArticle SatiricalArticle
ScholarlyArticle SocialMediaPosting TechArticle
"""
ARTICLE_TYPES: Final = frozenset(_ARTICLE_NAMES.lower().split())
PAGE_TYPES: Final = frozenset(
    {"webpage", "itempage", "aboutpage", "medicalwebpage", "creativework"}
)
"""What says something of the page where nothing is called an article."""

MAX_NODES: Final = 20_000
"""Values of a page that are looked at."""
MAX_BODY: Final = 2_000_000
MAX_VALUES: Final = 100
"""Values of one list that are taken."""
_OTHERS: Final = """
about author backstory breadcrumb citation comment creator haspart isbasedon ispartof
itemlistelement mentions potentialaction publisher relatedlink review significantlink subjectof
"""
_ABOUT_OTHERS: Final = frozenset(_OTHERS.split())
"""Properties whose values are no article of this page."""

_WRAPPERS: Final = re.compile(
    r"<!--|-->|(?://|/\*)?[ \t]{0,9}(?:<!\[CDATA\[|\]\]>)(?:[ \t]{0,9}\*/)?"
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""And halves of a pair, which JSON can name and no text can have."""
_TOKENS: Final = re.compile(
    r"""
    ("(?:[^"\\]|\\.)*+(?:"|\\?\Z)) # a string stays as it is
    | /\*.*?(?:\*/|\Z)             # comments go
    | //[^\r\n]*
    | ,(?=\s*[}\]])                # and commas after the last value
    """,
    re.S | re.X,
)
_ESCAPES: Final = re.compile(r'(\\["\\/bfnrtu])|\\')
_SALVAGED: Final = (
    "headline",
    "datePublished",
    "dateModified",
    "articleSection",
    "inLanguage",
    "@type",
)
_SALVAGE: Final = re.compile(
    r'"(' + "|".join(_SALVAGED) + r')"\s*+:\s*+\[?\s*+"((?:[^"\\\r\n]|\\.){1,500}+)"\s*+[],}]', re.I
)
_BREAKS: Final = re.compile(r"</?(?:p|br|div|li|ul|ol|h[1-6])\b[^<>]{0,500}>", re.I)
_TAGS: Final = re.compile(r"<[^<>]{0,500}>")


def read_json_ld(scripts: Iterable[str]) -> list[Node]:
    """All objects of a page's scripts, those outside before those inside."""
    found: list[Node] = []
    for script in scripts:
        values = _parse_script(script)
        if values is None:
            found += _salvage_values(script)
        else:
            found += _walk_values(values, MAX_NODES - len(found))
        if len(found) >= MAX_NODES:
            break
    return found


def choose_article(nodes: Sequence[Node], urls: Iterable[str]) -> Node:
    """The object that is the page's own article, or else the page's; {} if there is none.

    Pages list other articles too: the one whose address is the page's comes first.
    """
    own = {_bare_url(url) for url in urls if url}
    for types in (ARTICLE_TYPES, PAGE_TYPES):
        candidates = [node for node in nodes if types & type_names(node)]
        for node in candidates:
            if own & {_bare_url(url) for url in _own_urls(node)}:
                return node
        if candidates:
            return candidates[0]
    return {}


def type_names(node: Node) -> set[str]:
    """The types of an object, in lower case and without the address before them."""
    return {
        value.rsplit("/", 1)[-1].rsplit(":", 1)[-1].lower()
        for value in listed(node.get("@type"))
        if isinstance(value, str)
    }


def listed(value: object) -> list[Any]:
    """A value as a list: one that is none is a list of one, and null is none at all."""
    if value is None:
        return []
    if not isinstance(value, list):
        return [value]
    flat: list[Any] = []
    for part in value[:MAX_VALUES]:
        if isinstance(part, list):
            flat += part[:MAX_VALUES]
        else:
            flat.append(part)
    return flat


def plain_text(value: object) -> str:
    """A value as one line of text; "" if it is none. Its entities and tags are no text."""
    if isinstance(value, dict):
        value = value.get("@value") or value.get("name")
    if not isinstance(value, str):
        return ""
    text = value[:20_000]
    if "&" in text:
        text = unescape(text)
    if "<" in text:
        text = _TAGS.sub(" ", text)
    return " ".join(_CONTROLS.sub(" ", text).split())


def plain_lines(value: object) -> str:
    """A long value as text, a paragraph per line; "" if it is none."""
    if not isinstance(value, str):
        return ""
    text = value[:MAX_BODY]
    if "&" in text:
        text = unescape(text)
    if "<" in text:
        text = _TAGS.sub(" ", _BREAKS.sub("\n", text))
    return text


def plain_texts(value: object) -> list[str]:
    """The texts of a value, each once."""
    return list(dict.fromkeys(text for part in listed(value) if (text := plain_text(part))))


def _parse_script(script: str) -> list[Any] | None:
    """The values of a script, of which there is one as a rule; None if it is beyond repair."""
    for text in (script, _repair_script(script)):
        values = _parse_values(text)
        if values is not None:
            return values
    if "&quot;" in script:
        return _parse_values(_repair_script(unescape(script)))
    return None


def _parse_values(text: str) -> list[Any] | None:
    decoder = json.JSONDecoder(strict=False)
    text = text.strip("\ufeff \t\r\n;")
    values: list[Any] = []
    while text:
        try:
            value, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return values or None
        values.append(value)
        if len(values) > MAX_VALUES:
            break
        text = text[end:].lstrip(" \t\r\n;,")
    return values


def _repair_script(script: str) -> str:
    text = _WRAPPERS.sub(" ", _CONTROLS.sub(" ", script))
    text = _TOKENS.sub(lambda match: match[1] or "", text)
    return _ESCAPES.sub(lambda match: match[1] or "", text)


def _salvage_values(script: str) -> list[Node]:
    """What single values say that can be read although the whole can't."""
    node: Node = {}
    for match in _SALVAGE.finditer(script):
        name = next(name for name in _SALVAGED if name.lower() == match[1].lower())
        if name == "@type" and match[2].lower() not in ARTICLE_TYPES:
            continue
        node.setdefault(name, match[2].replace('\\"', '"').replace("\\/", "/"))
    return [node] if "@type" in node else []


def _walk_values(values: list[Any], limit: int) -> Iterator[Node]:
    """Objects with a type, breadth first; names of properties as they are written most often."""
    level = values
    while level and limit > 0:
        below: list[Any] = []
        for value in level[:limit]:
            if isinstance(value, list):
                below += value
            elif isinstance(value, dict):
                yield value
                below += [part for name, part in value.items() if _may_hold_article(name, part)]
        limit -= len(level)
        level = below


def _may_hold_article(name: str, part: object) -> bool:
    return isinstance(part, list | dict) and name.lower() not in _ABOUT_OTHERS


def _own_urls(node: Node) -> Iterator[str]:
    for name in ("url", "mainEntityOfPage", "@id"):
        for value in listed(node.get(name)):
            if isinstance(value, dict):
                value = value.get("@id") or value.get("url")
            if isinstance(value, str):
                yield value


def _bare_url(url: str) -> str:
    """An address without what does not matter when two are compared."""
    bare = url.partition("#")[0].partition("?")[0].rstrip("/").lower()
    return bare.removeprefix("https://").removeprefix("http://").removeprefix("www.")
