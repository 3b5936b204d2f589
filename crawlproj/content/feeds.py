"""Feeds and sitemaps: lists of links that say when. Also: what is this body really?

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
    """One line of a feed or sitemap. `date` is as written: last change if given,
    else publication.
    """

    url: str
    kind: EntryKind
    title: str = ""
    date: str = ""
    news: bool = False
    """Stands in a news sitemap."""


def sniff_kind(body: bytes, content_type: str = "") -> BodyKind:
    """What the body is; the server's word decides only where the bytes do not."""
    if looks_binary(body):
        return "document" if document_format(body) else "binary"
    head = to_utf8(body[:4096])[0]
    start = _PROLOG.match(head)
    head = head[start.end() :] if start else head
    root = _ROOT.match(head)
    name = root[1].lower() if root else b""
    if name in _FEED_ROOTS:
        return "feed"
    if name in _SITEMAP_ROOTS:
        return "sitemap"
    kind = content_type.partition(";")[0].strip().lower()
    if head[:1] in (b"{", b"[") and kind not in ("text/html", "application/xhtml+xml"):
        return "feed" if b"jsonfeed.org/version" in head else "other"
    if kind in ("text/html", "application/xhtml+xml") or _TAG.search(head[:1024]):
        return "html"
    if kind in ("text/plain", ""):
        return "text" if head else "other"
    return "document" if document_format(body) else "other"


def parse_entries(body: bytes, url: str, charset: str | None = None) -> list[FeedEntry]:
    """The entries of an RSS, RDF, Atom or JSON feed, a sitemap or a sitemap index; broken ones give
    what can be read.

    A sitemap that is plain text has one URL per line. Each URL is listed once.
    """
    text = to_utf8(body[:MAX_BODY], charset)[0].lstrip()
    if text.startswith(b"<"):
        found = _from_xml(text, url)
    elif text.startswith(b"{"):
        found = _from_json(text, url)
    else:
        found = _from_lines(text, url)
    unique: dict[str, FeedEntry] = {}
    for entry in found:
        unique.setdefault(entry.url, entry)
        if len(unique) >= MAX_ENTRIES:
            break
    return list(unique.values())


def _from_xml(text: bytes, url: str) -> Iterator[FeedEntry]:
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
    for element in root.iter("{*}item", "{*}entry", "{*}url", "{*}sitemap"):
        yield from _entry(element, _name(element), Joiner(_base(element, url)))


def _entry(element: Any, name: str, join: Joiner) -> Iterator[FeedEntry]:
    texts: dict[str, str] = {}
    href = ""
    news = False
    for child in element:
        tag = _name(child)
        if tag == "link" and child.get("href"):
            # In a sitemap it names other languages of the page, see below.
            if name != "url" and child.get("rel", "alternate") == "alternate":
                href = href or child.get("href")
        elif tag == "news":
            news = True
            texts.update({_name(part): (part.text or "").strip() for part in child})
        else:
            texts.setdefault(tag, (child.text or "").strip())
    guid = texts.get("guid") or texts.get("id") or ""
    target = (
        href or texts.get("link") or texts.get("loc") or (guid if guid.startswith("http") else "")
    )
    found = join(target) if target else None
    if found:
        date = next((texts[key] for key in _DATES if texts.get(key)), "")
        kind: EntryKind = (
            "feed" if name in ("item", "entry") else "sitemap" if name == "url" else "sitemapindex"
        )
        yield FeedEntry(found, kind, " ".join(texts.get("title", "").split()), date=date, news=news)
    for child in element.iterchildren("{http://www.w3.org/1999/xhtml}link"):
        if child.get("rel") == "alternate" and (other := join(child.get("href") or "")):
            yield FeedEntry(other, "alternate")


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _base(element: Any, url: str) -> str:
    """xml:base of the entry or of what is around it (two levels: enough for every feed format)."""
    for _ in range(3):
        if element is None:
            break
        if base := element.get("{http://www.w3.org/XML/1998/namespace}base"):
            return Joiner(url)(base) or url
        element = element.getparent()
    return url


def _from_json(text: bytes, url: str) -> Iterator[FeedEntry]:
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError):
        return
    items = feed.get("items") if isinstance(feed, dict) else None
    join = Joiner(url)
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        target = item.get("url") or item.get("external_url")
        if isinstance(target, str) and (found := join(target)):
            date = item.get("date_modified") or item.get("date_published") or ""
            yield FeedEntry(found, "feed", str(item.get("title") or ""), date=str(date))


def _from_lines(text: bytes, url: str) -> Iterator[FeedEntry]:
    join = Joiner(url)
    for line in text.decode().split("\n"):
        if line.startswith(("http://", "https://")) and (found := join(line.strip())):
            yield FeedEntry(found, "sitemap")
