"""Entries of feeds and sitemaps that are no XML: cut, mixed with other things, written by hand.

There is no tree. Tags are taken as they come, and what stands between them belongs to the field
that was opened last. An entry ends where it is closed, or where the next one begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import Final

ENTRY_NAMES: Final = frozenset({"item", "entry", "url", "sitemap"})
FIELDS: Final = frozenset(
    {
        "link",
        "guid",
        "id",
        "loc",
        "title",
        "lastmod",
        "updated",
        "modified",
        "pubdate",
        "published",
        "issued",
        "date",
        "created",
        "publication_date",
    }
)
"""What is read of an entry, in lower case and without prefix."""
MAX_TAGS: Final = 600_000
"""Tags that are read; 10 MB that are honest have fewer."""
MAX_FIELD: Final = 10_000
"""Bytes of a field; longer ones are cut."""
_MAX_LINKS: Final = 100
"""Links of one entry."""
PAUSE: Final = 1_000
"""After so many tags something else may be done."""

_TAG: Final = re.compile(rb"<(!\[CDATA\[|!--|(/?)([A-Za-z_][\w.:-]{0,80})([^<>]*+)>?)")
_ATTRIBUTE: Final = re.compile(
    rb"""([\w.:-]{1,80}+)\s{0,20}+=\s{0,20}+(?:"([^"]*+)"?|'([^']*+)'?|([^\s"'>]++))"""
)
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,9});")
_CONTROL: Final = bytes((*range(9), 11, 12, *range(14, 32), 127))
_CONTAINERS: Final = frozenset(
    {"source", "image", "video", "group", "author", "contributor", "textinput", "publication"}
)
"""What has titles and links of its own within an entry."""
_WRITTEN: Final = frozenset({"description", "content", "summary", "encoded", "body"})
"""What may be HTML that nobody escaped."""
_AFTER_WRITTEN: Final = frozenset({"link", "guid", "pubdate", "loc", "id"})
"""What ends such HTML if its end is missing."""


@dataclass(slots=True)
class RawEntry:
    """What an entry says, before it is known which of its links is the one."""

    name: str
    """Of its element: item, entry, url or sitemap."""
    base: str = ""
    about: str = ""
    """Its address by RDF."""
    texts: dict[str, str] = field(default_factory=dict)
    """Its fields, by name."""
    foreign: dict[str, str] = field(default_factory=dict)
    """Fields in another namespace than its own: dc:date, media:title."""
    links: list[tuple[str, str, str]] = field(default_factory=list)
    """rel, type and href of links that are attributes."""
    alternates: list[str] = field(default_factory=list)
    """The page in other languages, of a sitemap."""
    news: bool = False

    def text(self, name: str) -> str:
        return self.texts.get(name) or self.foreign.get(name) or ""

    def add_link(self, rel: str, content_type: str, href: str) -> None:
        """Take a link that is an attribute; a sitemap's are other languages of the page."""
        if self.name not in ("url", "sitemap"):
            if len(self.links) < _MAX_LINKS:
                self.links.append((rel.lower() or "alternate", content_type.lower(), href))
        elif rel == "alternate":
            self.alternates.append(href)


def unescape_entities(text: str) -> str:
    """The text without the entities of HTML. Those without semicolon stay: in `?a=1&copy=2` there
    is none.
    """
    if "&" not in text:
        return text
    return _ENTITY.sub(lambda match: unescape(match[0]), text)


class FeedSoup:
    """Reads entries of what is no XML; `cut` says afterwards that there was too much."""

    def __init__(self, text: bytes) -> None:
        self._text = text.translate(None, _CONTROL)
        self._entry: RawEntry | None = None
        self._prefix = ""
        self._field = ""
        self._field_prefix = ""
        self._pieces: list[str] = []
        self._skipped = ""
        self._base = ""
        self._ends: dict[bytes, int] = {}
        self.channel_link = ""
        self.cut = False

    def entries(self) -> Iterator[RawEntry | None]:
        """The entries in order; None where there is time for something else."""
        text = self._text
        position = 0
        tags = 0
        while True:
            tag = _TAG.search(text, position)
            self._take_text(text[position : tag.start() if tag else len(text)])
            if tag is None:
                break
            tags += 1
            if tags > MAX_TAGS:
                self.cut = True
                break
            if tags % PAUSE == 0:
                yield None
            position = tag.end()
            if tag[3] is None:
                position = self._pass_section(position, is_comment=tag[1] == b"!--")
                continue
            prefix, name = _split_name(tag[3])
            if tag[2]:
                if self._entry is not None and name == self._entry.name:
                    yield self._finish_entry()
                else:
                    self._close(name)
            elif self._begins_entry(name):
                if self._entry is not None:
                    yield self._finish_entry()
                self._open_entry(name, prefix, tag[4])
            else:
                self._open(name, prefix, tag[4])
        if self._entry is not None:
            yield self._finish_entry()

    def _begins_entry(self, name: str) -> bool:
        if name not in ENTRY_NAMES:
            return False
        # A picture has a <url> too.
        return name in ("item", "entry") or not (self._skipped or self._is_feed_entry())

    def _is_feed_entry(self) -> bool:
        return self._entry is not None and self._entry.name in ("item", "entry")

    def _pass_section(self, start: int, *, is_comment: bool) -> int:
        """Where the text goes on behind a comment or CDATA section, whose content is taken."""
        if is_comment:
            end = self._find_end(b"-->", start)
            return start if end < 0 else end + 3
        end = self._find_end(b"]]>", start)
        if end < 0 or self._text.find(b"<![CDATA[", start, end) >= 0:
            return start  # it is not closed: what follows is read as if it were none
        if self._field and self._has_room():
            content = self._text[start : min(end, start + MAX_FIELD)].decode("utf-8", "ignore")
            self._pieces.append(content)
        return end + 3

    def _find_end(self, mark: bytes, start: int) -> int:
        """Where the mark is next, -1 if nowhere; it is not searched for again before there."""
        if self._ends.get(mark, 0) < start:
            found = self._text.find(mark, start)
            self._ends[mark] = len(self._text) if found < 0 else found
        end = self._ends[mark]
        return end if end < len(self._text) else -1

    def _take_text(self, text: bytes) -> None:
        if text and self._field and self._has_room():
            content = text[:MAX_FIELD].decode("utf-8", "ignore").removesuffix("]]>")
            self._pieces.append(unescape_entities(content))

    def _has_room(self) -> bool:
        return len(self._pieces) < _MAX_LINKS

    def _open_entry(self, name: str, prefix: str, attributes: bytes) -> None:
        self._finish_field()
        self._skipped = ""
        self._prefix = prefix
        found = read_attributes(attributes)
        self._entry = RawEntry(
            name, base=found.get("xml:base", self._base), about=found.get("rdf:about", "")
        )
        if attributes.rstrip().endswith(b"/"):
            self._entry = RawEntry(name)

    def _open(self, name: str, prefix: str, attributes: bytes) -> None:
        entry = self._entry
        is_empty = attributes.rstrip().endswith(b"/")
        if entry is None:
            self._open_outside(name, prefix, attributes)
            return
        if self._skipped:
            if self._skipped not in _WRITTEN or name not in _AFTER_WRITTEN or prefix:
                return
            self._skipped = ""
        if name == "news":
            entry.news = True
        elif name in _CONTAINERS or name in _WRITTEN:
            self._finish_field()
            self._skipped = "" if is_empty else name
        elif name in FIELDS:
            self._finish_field()
            if name == "link" and b"href" in attributes.lower():
                found = read_attributes(attributes)
                if found.get("href"):
                    entry.add_link(found.get("rel", ""), found.get("type", ""), found["href"])
                    return
            if not is_empty:
                self._field = name
                self._field_prefix = prefix

    def _open_outside(self, name: str, prefix: str, attributes: bytes) -> None:
        """A tag before the first entry, or between entries."""
        if b"xml:base" in attributes and name in ("rss", "feed", "rdf", "channel", "urlset"):
            self._base = read_attributes(attributes).get("xml:base", "")
        if name in ("image", "textinput"):
            self._skipped = name
        elif name == "link" and not prefix and not self._skipped and b"href" not in attributes:
            self._field = name

    def _close(self, name: str) -> None:
        if name == self._field:
            self._finish_field()
        if name == self._skipped:
            self._skipped = ""

    def _finish_field(self) -> None:
        if self._field:
            content = "".join(self._pieces)
            if self._entry is None:
                self.channel_link = self.channel_link or content.strip()
            else:
                is_own = self._field_prefix == self._prefix
                texts = self._entry.texts if is_own else self._entry.foreign
                if content.strip():
                    texts.setdefault(self._field, content.strip())
        self._field = ""
        self._pieces = []

    def _finish_entry(self) -> RawEntry:
        self._finish_field()
        entry = self._entry
        assert entry is not None
        self._entry = None
        self._skipped = ""
        return entry


def _split_name(name: bytes) -> tuple[str, str]:
    """Prefix and local name, in lower case."""
    prefix, _, local = name.decode("utf-8", "ignore").lower().rpartition(":")
    return prefix, local


def read_attributes(text: bytes) -> dict[str, str]:
    """The attributes of a tag, by their names in lower case; the first of a name counts."""
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text[:MAX_FIELD]):
        value = match[2] or match[3] or match[4] or b""
        name = match[1].decode("utf-8", "ignore").lower()
        found.setdefault(name, unescape_entities(value.decode("utf-8", "ignore")).strip())
    return found
