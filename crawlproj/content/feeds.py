"""Feeds and sitemaps, which are lists of links with dates; and the kind of a body, by its bytes.

XML is read without entities, without network, with libxml2's own size limits, and recovers from
errors: many feeds are broken, none may hurt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content.charset import looks_binary, to_utf8, to_utf8_in_slices
from crawlproj.content.document import DEFAULT_LIMITS, LinkLimits
from crawlproj.content.documents.formats import document_format
from crawlproj.content.html import MAX_BODY
from crawlproj.content.slices import (
    BIG_BODY,
    MANY_LINKS,
    NEWLINE,
    SLICE_ITEMS,
    Slices,
    cut_text,
    run_at_once,
)
from crawlproj.urls.canonical import MAX_URL, Joiner

MAX_ENTRIES: Final = 50_000
"""As many as a sitemap may have."""
MAX_XML_ELEMENTS: Final = 300_000
"""Elements that are read of a feed or sitemap; 10 MB that are honest have fewer."""
MAX_JSON_VALUES: Final = 400_000
"""A JSON feed with more is not read: that would be one call of a second."""
_XML_PIECE: Final = 65_536
_MAX_NEWS_PARTS: Final = 100

BodyKind = Literal["html", "feed", "sitemap", "text", "document", "binary", "other"]
EntryKind = Literal["feed", "sitemap", "sitemapindex", "alternate"]

_ENTRY_KINDS: Final[dict[str, EntryKind]] = {
    "item": "feed",
    "entry": "feed",
    "url": "sitemap",
    "sitemap": "sitemapindex",
}
"""The elements that hold an entry, and its kind."""

_DATES: Final = (
    "lastmod",
    "updated",
    "modified",
    "pubDate",
    "published",
    "issued",
    "date",
    "publication_date",
)
_ROOT: Final = re.compile(rb"<(?:[\w.-]{1,40}:)?([A-Za-z][\w.-]{0,40})")
_PROLOG: Final = re.compile(
    rb"(?:\s|<\?[^>]{0,2000}>|<!--.{0,4000}?-->|<!DOCTYPE[^>\[]{0,500}>)+", re.S | re.I
)
_FEED_ROOTS: Final = frozenset((b"rss", b"feed", b"rdf"))
_SITEMAP_ROOTS: Final = frozenset((b"urlset", b"sitemapindex"))
_TAG: Final = re.compile(
    rb"<(?:!doctype html|html|head|body|title|meta|script|div|p|a|h1|table|br|span|link|style)"
    rb"[\s/>]",
    re.I,
)


class FeedEntry(NamedTuple):
    """A link of a feed or sitemap.

    `date` is as written: of the last change if that is given, else of publication.
    """

    url: str
    kind: EntryKind
    title: str = ""
    date: str = ""
    news: bool = False
    """Whether it is in a news sitemap."""


class FeedEntries(NamedTuple):
    """The entries of a feed or sitemap, each URL once.

    `too_many`: there were more than we take. `cut`: it was longer than we read.
    """

    entries: list[FeedEntry]
    too_many: bool
    cut: bool


def sniff_kind(body: bytes, content_type: str = "") -> BodyKind:
    """The kind of a body; the server's Content-Type decides only where the bytes do not."""
    if looks_binary(body):
        return "document" if document_format(body) else "binary"
    head, _ = to_utf8(body[:4096], guess=False)
    prolog = _PROLOG.match(head)
    if prolog:
        head = head[prolog.end() :]
    root = _ROOT.match(head)
    if root:
        name = root[1].lower()
        if name in _FEED_ROOTS:
            return "feed"
        if name in _SITEMAP_ROOTS:
            return "sitemap"
    mime = content_type.partition(";")[0].strip().lower()
    is_html_mime = mime in ("text/html", "application/xhtml+xml")
    if head[:1] in (b"{", b"[") and not is_html_mime:
        return "feed" if b"jsonfeed.org/version" in head else "other"
    if is_html_mime or _TAG.search(head[:1024]):
        return "html"
    if mime in ("text/plain", ""):
        return "text" if head else "other"
    return "document" if document_format(body) else "other"


def parse_entries(
    body: bytes, url: str, charset: str | None = None, limits: LinkLimits = DEFAULT_LIMITS
) -> list[FeedEntry]:
    """The entries of a feed (RSS, RDF, Atom, JSON), a sitemap or a sitemap index, each URL once.

    A sitemap that is plain text has one URL per line. Broken ones give what can be read.
    """
    return run_at_once(parse_entries_in_slices(body, url, charset, limits)).entries


def parse_entries_in_slices(
    body: bytes, url: str, charset: str | None, limits: LinkLimits
) -> Slices[FeedEntries]:
    """As `parse_entries`; a short one is read in one slice."""
    text, _ = yield from to_utf8_in_slices(body[:MAX_BODY], charset, url)
    text = text.lstrip()
    cut = False
    if text.startswith(b"<"):
        root, cut = yield from _parse_xml(text)
        entries = _xml_entries(root, url)
    elif text.startswith(b"{"):
        feed, cut = _parse_json(text)
        entries = _json_entries(feed, url)
    else:
        entries = _line_entries(text.decode(), url)
    unique: dict[str, FeedEntry] = {}
    characters_left = limits.characters
    too_many = False
    for number, entry in enumerate(entries):
        if entry is None or _is_time_to_pause(number):
            yield
        if entry is None or entry.url in unique:
            continue
        characters_left -= len(entry.url)
        if len(unique) == limits.links or characters_left < 0:
            too_many = True
            break
        unique[entry.url] = entry
    return FeedEntries(list(unique.values()), too_many, cut or len(body) > MAX_BODY)


def _parse_xml(text: bytes) -> Slices[tuple[Any, bool]]:
    """The tree, or None; and whether it was cut."""
    parser = etree.XMLParser(
        encoding="utf-8",
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=True,
    )
    cut = False
    try:
        if len(text) <= BIG_BODY:
            return etree.fromstring(text, parser), False
        elements = 0
        for start in range(0, len(text), _XML_PIECE):
            piece = text[start : start + _XML_PIECE]
            elements += piece.count(b"<") - piece.count(b"</")
            if elements > MAX_XML_ELEMENTS:
                cut = True
                break
            parser.feed(piece)
            yield
        return parser.close(), cut
    except etree.LxmlError:
        return None, cut


def _xml_entries(root: Any, url: str) -> Iterator[FeedEntry | None]:
    """The entries in order; None where there is time for something else."""
    if root is None:
        return
    joiners: dict[str, Joiner] = {"": Joiner(url)}
    bases: dict[Any, str] = {}
    for number, element in enumerate(root.iter(*(f"{{*}}{name}" for name in _ENTRY_KINDS))):
        if _is_time_to_pause(number):
            yield None
        base = _base(element, bases)
        if base not in joiners:
            joiners[base] = Joiner(joiners[""](base) or url)
        yield from _element_entries(element, _local_name(element), joiners[base])


def _element_entries(element: Any, name: str, join: Joiner) -> Iterator[FeedEntry | None]:
    """The entry of one element, and those of the page's other languages."""
    texts: dict[str, str] = {}
    href = ""
    news = False
    for number, child in enumerate(element):
        tag = _local_name(child)
        if tag == "link" and child.get("href"):
            # In a sitemap it names other languages of the page, see below.
            if name != "url" and child.get("rel", "alternate") == "alternate":
                href = href or child.get("href")
        elif tag == "news":
            news = True
            parts = islice(child, _MAX_NEWS_PARTS)
            texts.update({_local_name(part): (part.text or "").strip() for part in parts})
        else:
            texts.setdefault(tag, (child.text or "").strip())
        if _is_time_to_pause(number):
            yield None
    href = href or texts.get("link") or texts.get("loc") or _guid_url(texts)
    if href:
        found = join(href)
        if found:
            date = next((texts[key] for key in _DATES if texts.get(key)), "")
            title = " ".join(texts.get("title", "").split())
            yield FeedEntry(found, _ENTRY_KINDS[name], title, date=date, news=news)
    for number, child in enumerate(element.iterchildren("{http://www.w3.org/1999/xhtml}link")):
        if _is_time_to_pause(number):
            yield None
        if child.get("rel") == "alternate":
            other = join(child.get("href") or "")
            if other:
                yield FeedEntry(other, "alternate")


def _guid_url(texts: dict[str, str]) -> str:
    """The entry's id if that is a URL, else nothing."""
    guid = texts.get("guid") or texts.get("id") or ""
    if guid.startswith("http"):
        return guid
    return ""


def _local_name(element: Any) -> str:
    """The element's name without its namespace; empty if it is no element but an entity."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    return tag.rpartition("}")[2]


def _base(element: Any, bases: dict[Any, str]) -> str:
    """xml:base of the entry or of what is around it (two levels: enough for every feed format);
    empty if there is none.

    `bases` are those of elements around entries that were asked before: one long attribute may be
    around many. Of entries themselves nothing is kept, there may be half a million.
    """
    for level in range(3):
        if element is None:
            break
        base = bases.get(element) if level else None
        if base is None:
            base = element.get("{http://www.w3.org/XML/1998/namespace}base") or ""
            if len(base) > MAX_URL:
                base = ""
            if level:
                bases[element] = base
        if base:
            return base
        element = element.getparent()
    return ""


def _parse_json(text: bytes) -> tuple[Any, bool]:
    """The value, or None; and whether it is too much to be read."""
    if len(text) > BIG_BODY and sum(map(text.count, (b",", b"[", b"{"))) > MAX_JSON_VALUES:
        return None, True
    try:
        return json.loads(text), False
    except (ValueError, RecursionError):
        return None, False


def _json_entries(feed: Any, url: str) -> Iterator[FeedEntry | None]:
    if not isinstance(feed, dict):
        return
    items = feed.get("items")
    if not isinstance(items, list):
        return
    join = Joiner(url)
    for number, item in enumerate(items):
        if _is_time_to_pause(number):
            yield None
        if not isinstance(item, dict):
            continue
        href = item.get("url") or item.get("external_url")
        if not isinstance(href, str):
            continue
        found = join(href)
        if found:
            date = _json_text(item.get("date_modified")) or _json_text(item.get("date_published"))
            yield FeedEntry(found, "feed", _json_text(item.get("title")), date=date)


def _json_text(value: object) -> str:
    """Empty for lists and objects: to write one that is nested deeply fails."""
    if isinstance(value, str | int | float) and value:
        return str(value)
    return ""


def _line_entries(text: str, url: str) -> Iterator[FeedEntry | None]:
    join = Joiner(url)
    for number, piece in enumerate(cut_text(text, NEWLINE)):
        if number:
            yield None
        for line in piece.split("\n"):
            if line.startswith(("http://", "https://")):
                found = join(line.strip())
                if found:
                    yield FeedEntry(found, "sitemap")


def _is_time_to_pause(number: int) -> bool:
    """After how many elements something else may be done; never in an ordinary feed."""
    return number > MANY_LINKS and number % SLICE_ITEMS == 0
