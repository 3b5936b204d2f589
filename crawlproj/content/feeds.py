"""Feeds and sitemaps, which are lists of links with dates; and the kind of a body, by its bytes.

XML is read without entities, without network, with libxml2's own size limits, and recovers from
errors: many feeds are broken, none may hurt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content.charset import looks_binary, to_utf8
from crawlproj.content.documents.formats import document_format
from crawlproj.content.html import MAX_BODY
from crawlproj.urls.canonical import Joiner

MAX_ENTRIES: Final = 50_000

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


def sniff_kind(body: bytes, content_type: str = "") -> BodyKind:
    """The kind of a body; the server's Content-Type decides only where the bytes do not."""
    if looks_binary(body):
        return "document" if document_format(body) else "binary"
    head, _ = to_utf8(body[:4096])
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


def parse_entries(body: bytes, url: str, charset: str | None = None) -> list[FeedEntry]:
    """The entries of a feed (RSS, RDF, Atom, JSON), a sitemap or a sitemap index, each URL once.

    A sitemap that is plain text has one URL per line. Broken ones give what can be read.
    """
    text = to_utf8(body[:MAX_BODY], charset)[0].lstrip()
    if text.startswith(b"<"):
        entries = _parse_xml(text, url)
    elif text.startswith(b"{"):
        entries = _parse_json(text, url)
    else:
        entries = _parse_lines(text, url)
    unique: dict[str, FeedEntry] = {}
    for entry in entries:
        unique.setdefault(entry.url, entry)
        if len(unique) >= MAX_ENTRIES:
            break
    return list(unique.values())


def _parse_xml(text: bytes, url: str) -> Iterator[FeedEntry]:
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
    try:
        root = etree.fromstring(text, parser)
    except etree.LxmlError:
        return
    if root is None:
        return
    for element in root.iter(*(f"{{*}}{name}" for name in _ENTRY_KINDS)):
        yield from _element_entries(element, _local_name(element), Joiner(_base(element, url)))


def _element_entries(element: Any, name: str, join: Joiner) -> Iterator[FeedEntry]:
    """The entry of one element, and those of the page's other languages."""
    texts: dict[str, str] = {}
    href = ""
    news = False
    for child in element:
        tag = _local_name(child)
        if tag == "link" and child.get("href"):
            # In a sitemap it names other languages of the page, see below.
            if name != "url" and child.get("rel", "alternate") == "alternate":
                href = href or child.get("href")
        elif tag == "news":
            news = True
            texts.update({_local_name(part): (part.text or "").strip() for part in child})
        else:
            texts.setdefault(tag, (child.text or "").strip())
    href = href or texts.get("link") or texts.get("loc") or _guid_url(texts)
    if href:
        found = join(href)
        if found:
            date = next((texts[key] for key in _DATES if texts.get(key)), "")
            title = " ".join(texts.get("title", "").split())
            yield FeedEntry(found, _ENTRY_KINDS[name], title, date=date, news=news)
    for child in element.iterchildren("{http://www.w3.org/1999/xhtml}link"):
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


def _base(element: Any, url: str) -> str:
    """xml:base of the entry or of what is around it (two levels: enough for every feed format)."""
    for _ in range(3):
        if element is None:
            break
        base = element.get("{http://www.w3.org/XML/1998/namespace}base")
        if base:
            return Joiner(url)(base) or url
        element = element.getparent()
    return url


def _parse_json(text: bytes, url: str) -> Iterator[FeedEntry]:
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(feed, dict):
        return
    items = feed.get("items")
    if not isinstance(items, list):
        return
    join = Joiner(url)
    for item in items:
        if not isinstance(item, dict):
            continue
        href = item.get("url") or item.get("external_url")
        if not isinstance(href, str):
            continue
        found = join(href)
        if found:
            date = item.get("date_modified") or item.get("date_published") or ""
            yield FeedEntry(found, "feed", str(item.get("title") or ""), date=str(date))


def _parse_lines(text: bytes, url: str) -> Iterator[FeedEntry]:
    join = Joiner(url)
    for line in text.decode().split("\n"):
        if line.startswith(("http://", "https://")):
            found = join(line.strip())
            if found:
                yield FeedEntry(found, "sitemap")
