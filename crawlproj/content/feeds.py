"""Feeds and sitemaps, which are lists of links with dates; and the kind of a body, by its bytes.

XML is read without entities, without network and with libxml2's own size limits. What is broken is
read as tag soup (`feed_soup`): many feeds are, none may hurt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from crawlproj.content.charset import looks_binary, to_utf8, to_utf8_in_slices
from crawlproj.content.document import DEFAULT_LIMITS, LinkLimits
from crawlproj.content.documents.formats import document_format
from crawlproj.content.feed_soup import FIELDS, MAX_FIELD, FeedSoup, RawEntry, unescape_entities
from crawlproj.content.slices import (
    BIG_BODY,
    MANY_LINKS,
    NEWLINE,
    SLICE_ITEMS,
    Slices,
    cut_text,
    run_at_once,
)
from crawlproj.urls.canonical import MAX_URL, Joiner, host_of

MAX_ENTRIES: Final = 50_000
"""As many as a sitemap may have."""
MAX_SITEMAP: Final = 52_428_800
"""As many bytes as a sitemap may have; more of it are not read."""
MAX_XML_ELEMENTS: Final = 300_000
"""Elements that are read of a feed or sitemap; 10 MB that are honest have fewer."""
MAX_JSON_VALUES: Final = 400_000
"""A JSON feed with more is not read: that would be one call of a second."""
_MAX_JUNK: Final = 4096
"""So much may stand before the root of a feed."""
MAX_MENDED_JSON: Final = 1_000_000
"""Bytes of broken JSON that is mended: that is one call of a tenth of a second."""
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

_PUBLISHED: Final = ("pubdate", "published", "issued", "created", "date", "publication_date")
_DATES: Final = ("lastmod", "updated", "modified", *_PUBLISHED)
_ALTERNATE: Final = ("alternate", "http://www.iana.org/assignments/relation/alternate")
_MAX_TEXTS: Final = 1_000
"""Pieces of a text between markup."""
_MAX_BASES: Final = 100
_MARKUP: Final = re.compile(
    r"</?(?:a|abbr|b|big|br|cite|code|em|font|h[1-6]|i|img|mark|p|q|s|small|span|strong|sub|sup|u|div)"
    r"\b[^<>]{0,1000}>",
    re.I,
)
_FIND_ROOT: Final = re.compile(
    rb"<(?:[\w.-]{1,40}:)?(?:rss|feed|rdf|channel|urlset|sitemapindex)(?=[\s>])", re.I
)
_NO_FEED: Final = re.compile(rb"<(?:!doctype html|html|head|body|script|svg)[\s>]", re.I)
_JSON_TOKEN: Final = re.compile(
    rb"""\s++|"(?:[^"\\]|\\.)*+"?|//[^\n]*+|/\*[^*]*+(?:\*++[^/*][^*]*+)*+(?:\*++/)?"""
    rb"""|[{}\[\],:]|[^\s"{}\[\],:/]++""",
    re.S,
)
_OPENING: Final = {b"{": b"}", b"[": b"]"}
_CLOSING: Final = frozenset(_OPENING.values())
_BEFORE_VALUES: Final = frozenset((*_OPENING, b","))
_CALLBACK: Final = re.compile(rb"(?:/\*\*/)?[\w.$]{1,60}\(\s{0,20}(?=\{)")
_WHOLE_URL: Final = re.compile(r"https?://[^\s\"'<>]+", re.I)
_HTTP_LINE: Final = re.compile(r"https?://", re.I).match
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
    published: str = ""
    """The date of publication, as written, if it is given."""


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
    if _is_json_feed(head, mime):
        return "feed"
    if head[:1] in (b"{", b"[") and not is_html_mime:
        return "other"
    root = _FIND_ROOT.search(head)
    if root and not _NO_FEED.search(head, 0, root.start()):
        # What a program has to complain about often comes before it.
        return "sitemap" if root[0].lower().endswith((b"urlset", b"sitemapindex")) else "feed"
    if is_html_mime or _TAG.search(head[:1024]):
        return "html"
    if mime in ("text/plain", ""):
        if _has_only_urls(head, is_cut=len(body) > 4096):
            return "sitemap"
        return "text" if head else "other"
    return "document" if document_format(body) else "other"


def _is_json_feed(head: bytes, mime: str) -> bool:
    if not head.startswith((b"{", b"[")) and not _CALLBACK.match(head):
        return False
    is_named = b"jsonfeed.org/version" in head.replace(b"\\/", b"/")
    return is_named or mime in ("application/feed+json", "application/feed")


def _has_only_urls(head: bytes, *, is_cut: bool) -> bool:
    """Whether each line is a URL, and there are several."""
    lines = head.split()
    if is_cut:
        lines.pop()
    return len(lines) > 1 and all(
        line[:8].lower().startswith((b"http://", b"https://")) for line in lines
    )


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
    text, _ = yield from to_utf8_in_slices(body[:MAX_SITEMAP], charset, url)
    text = text.lstrip()
    notes = _Notes()
    callback = _CALLBACK.match(text)
    if callback:
        text = text[callback.end() :].rstrip().removesuffix(b";").removesuffix(b")")
    if text.startswith(b"{"):
        feed, notes.cut = _parse_json(text)
        entries = _json_entries(feed, url)
    elif text.startswith(b"<") or _FIND_ROOT.search(text, 0, _MAX_JUNK):
        entries = _xml_entries(text, url, notes)
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
    return FeedEntries(list(unique.values()), too_many, notes.cut or len(body) > MAX_SITEMAP)


def _parse_xml(text: bytes) -> Slices[tuple[Any, bool]]:
    """The tree, None if it is no XML; and whether it was cut."""
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=True,
    )
    try:
        if len(text) <= BIG_BODY:
            return etree.fromstring(text, parser), False
        elements = 0
        for start in range(0, len(text), _XML_PIECE):
            piece = text[start : start + _XML_PIECE]
            elements += piece.count(b"<") - piece.count(b"</")
            if elements > MAX_XML_ELEMENTS:
                return None, True
            parser.feed(piece)
            yield
        return parser.close(), False
    except etree.LxmlError:
        return None, False


def _tree_entries(root: Any) -> Iterator[RawEntry | None]:
    """The entries in order; None where there is time for something else."""
    bases: dict[Any, str] = {}
    for number, element in enumerate(root.iter(*(f"{{*}}{name}" for name in _ENTRY_KINDS))):
        if _is_time_to_pause(number):
            yield None
        raw = RawEntry(
            _local_name(element),
            base=_base(element, bases),
            about=element.get("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about") or "",
        )
        yield from _read_element(element, raw)
        yield raw


def _read_element(element: Any, raw: RawEntry) -> Iterator[None]:
    """Fill in what the children of an entry say."""
    namespace = element.tag.rpartition("}")[0]
    for number, child in enumerate(element):
        name = _local_name(child).lower()
        if name == "link" and child.get("href"):
            raw.add_link(child.get("rel") or "", child.get("type") or "", child.get("href").strip())
        elif name == "news":
            raw.news = True
            for part in islice(child, _MAX_NEWS_PARTS):
                raw.texts.setdefault(_local_name(part).lower(), (part.text or "").strip())
        elif name in FIELDS:
            text = "".join(islice(child.itertext(), _MAX_TEXTS)).strip()
            own = child.tag.rpartition("}")[0] == namespace
            if text:
                (raw.texts if own else raw.foreign).setdefault(name, text)
        if _is_time_to_pause(number):
            yield None


def _channel_link(root: Any) -> str:
    """Where the channel of an RSS feed says that its site is."""
    channel = root.find("{*}channel")
    link = channel.find("{*}link") if channel is not None else None
    return (link.text or "").strip() if link is not None else ""


def _xml_entries(text: bytes, url: str, notes: _Notes) -> Iterator[FeedEntry | None]:
    """The entries of XML, and of what was to be XML."""
    start = _FIND_ROOT.search(text, 0, _XML_PIECE)
    if start:
        text = text[start.start() :]
    parsing = _parse_xml(text)
    while True:
        try:
            next(parsing)
        except StopIteration as end:
            root, notes.cut = end.value
            break
        yield None
    if root is not None:
        found = False
        join = _EntryJoiner(url, _channel_link(root))
        for raw in _tree_entries(root):
            if raw is None:
                yield None
            else:
                found = True
                yield from _make_entries(raw, join)
        if found:
            return
    soup = FeedSoup(text)
    soup_join: _EntryJoiner | None = None
    for raw in soup.entries():
        if raw is None:
            yield None
        else:
            # The channel says where its site is before its first entry.
            soup_join = soup_join or _EntryJoiner(url, soup.channel_link)
            yield from _make_entries(raw, soup_join)
    notes.cut = soup.cut


class _Notes:
    """What is known of a reading when it is over."""

    cut = False


class _EntryJoiner:
    """Resolves the links of entries as people mean them.

    Those of an RSS feed on another host than its channel are relative to the channel's link.
    """

    def __init__(self, url: str, channel_link: str = "") -> None:
        self._feed = Joiner(url)
        self._site = self._feed
        self.channel = self.join_link(channel_link, "") if channel_link else None
        if self.channel and host_of(self.channel) != host_of(url) and "." in host_of(self.channel):
            self._site = Joiner(self.channel)
        self._url = url
        self._bases: dict[str, Joiner] = {}

    def join_link(self, href: str, base: str, *, in_item: bool = False) -> str | None:
        """The canonical URL of a link, None if it is none."""
        href = _clean_link(href)
        if not href:
            return None
        if not base:
            return (self._site if in_item else self._feed)(href)
        joiner = self._bases.get(base)
        if joiner is None:
            if len(self._bases) > _MAX_BASES:
                self._bases.clear()
            joiner = self._bases[base] = Joiner(self._feed(base) or self._url)
        return joiner(href)


def _clean_link(href: str) -> str:
    """A link without what people put around and into it."""
    if "\n" in href or "\r" in href:
        href = "".join(line.strip() for line in href.splitlines())
    href = href.strip(" \t\"'<>\u00a0\u200b\ufeff")
    if "&amp;" in href or "&#" in href:
        href = unescape_entities(href)
    if '"' in href or "<" in href or ">" in href:
        whole = _WHOLE_URL.search(href)
        href = whole[0] if whole else ""
    if href[:4].lower() == "www.":
        return f"http://{href}"
    return href


def _make_entries(raw: RawEntry, join: _EntryJoiner) -> Iterator[FeedEntry]:
    """What an entry says, as a link; and those of the page's other languages."""
    for href in _links_of(raw):
        found = join.join_link(href, raw.base, in_item=raw.name == "item")
        if found == join.channel and raw.name == "item" and _guid_url(raw):
            # A template that puts the site's address into each entry.
            found = join.join_link(_guid_url(raw), "") or found
        if found and found.startswith("http"):
            yield FeedEntry(
                found,
                _ENTRY_KINDS[raw.name],
                clean_title(raw.text("title")),
                date=_first_text(raw, _DATES),
                news=raw.news,
                published=_first_text(raw, _PUBLISHED),
            )
            break
    for href in raw.alternates:
        other = join.join_link(href, raw.base)
        if other:
            yield FeedEntry(other, "alternate")


def _links_of(raw: RawEntry) -> Iterator[str]:
    """What may be the link of an entry, the likeliest first."""
    if raw.name in ("url", "sitemap"):
        yield raw.text("loc")
        yield raw.text("link")
        return
    alternates = [link for link in raw.links if link[0] in _ALTERNATE]
    # Of several addresses the one for readers counts, not the one for programs.
    alternates.sort(key=lambda link: bool(link[1]) and "html" not in link[1])
    hrefs = [href for _, _, href in alternates]
    if raw.name == "item":
        yield raw.text("link")
        yield from hrefs
    else:
        yield from hrefs
        yield raw.text("link")
    yield _guid_url(raw)
    yield raw.about


def _first_text(raw: RawEntry, names: Iterable[str]) -> str:
    return next((text for name in names if (text := raw.text(name))), "")


def clean_title(text: str) -> str:
    """A title in one line, without markup: HTML is often escaped, and escaped twice."""
    text = text[:MAX_FIELD]
    if "&" in text:
        text = unescape_entities(text)
    if "<" in text:
        text = text.replace("<![CDATA[", "").replace("]]>", "")
        text = _MARKUP.sub("", text)
    return " ".join(text.split())


def _guid_url(raw: RawEntry) -> str:
    """The entry's id if that is a URL, else nothing."""
    guid = raw.text("guid") or raw.text("id")
    if guid[:4].lower() == "http":
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
        return json.loads(text, strict=False), False
    except (ValueError, RecursionError):
        if len(text) > MAX_MENDED_JSON:
            return None, False
    try:
        return json.loads(_mend_json(text), strict=False), False
    except (ValueError, RecursionError):
        return None, False


def _mend_json(text: bytes) -> bytes:
    """JSON without comments and commas too many; if it is cut, up to its last whole value."""
    pieces: list[bytes] = []
    open_brackets: list[bytes] = []
    whole = 0
    rest = b""
    last = b""
    for match in _JSON_TOKEN.finditer(text):
        token = match[0]
        if token.startswith(b"/") or (token == b"," and last in _BEFORE_VALUES):
            continue
        if not token.isspace():
            last = token
        if token in _CLOSING:
            while pieces and (pieces[-1] == b"," or pieces[-1].isspace()):
                pieces.pop()
            if not open_brackets or open_brackets.pop() != token:
                break
            pieces.append(token)
            if len(open_brackets) == 2:
                whole = len(pieces)
                rest = b"".join(reversed(open_brackets))
            if not open_brackets:
                return b"".join(pieces)
            continue
        if token in _OPENING:
            open_brackets.append(_OPENING[token])
        pieces.append(token)
    return b"".join(pieces[:whole]) + rest


def _json_entries(feed: Any, url: str) -> Iterator[FeedEntry | None]:
    if not isinstance(feed, dict):
        return
    items = feed.get("items")
    if not isinstance(items, list):
        return
    join = _EntryJoiner(url)
    for number, item in enumerate(items):
        if _is_time_to_pause(number):
            yield None
        if not isinstance(item, dict):
            continue
        id_ = item.get("id")
        links = [item.get("url"), item.get("external_url")]
        if isinstance(id_, str) and id_[:4].lower() == "http":
            links.append(id_)
        for href in links:
            found = join.join_link(href, "") if isinstance(href, str) else None
            if found:
                published = _json_text(item.get("date_published"))
                yield FeedEntry(
                    found,
                    "feed",
                    clean_title(_json_text(item.get("title"))),
                    date=_json_text(item.get("date_modified")) or published,
                    published=published,
                )
                break


def _json_text(value: object) -> str:
    """Empty for lists and objects: to write one that is nested deeply fails."""
    if isinstance(value, str | float) and value:
        return str(value)
    if isinstance(value, int) and 0 < value < 1 << 60:
        return str(value)
    return ""


def _line_entries(text: str, url: str) -> Iterator[FeedEntry | None]:
    join = Joiner(url)
    for number, piece in enumerate(cut_text(text, NEWLINE)):
        if number:
            yield None
        for line in piece.splitlines():
            line = line.strip()
            if _HTTP_LINE(line):
                found = join(line)
                if found:
                    yield FeedEntry(found, "sitemap")


def _is_time_to_pause(number: int) -> bool:
    """After how many elements something else may be done; never in an ordinary feed."""
    return number > MANY_LINKS and number % SLICE_ITEMS == 0
