"""The parser's target: what is taken from each tag while libxml2 reads a page.

No tree is built. That is cheaper than walking one, cannot keep one alive, and has no quadratic case in depth. This runs
for every tag of every page, so the hot methods are written for speed: `data` is the buffer's own append, elements are
found in one dictionary, and the guard that only few pages need is in a subclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from crawlproj.text.document import Kind
from crawlproj.text.orders import NO_ORDERS, Orders, read
from crawlproj.text.scripts import in_handler

MAX_DEPTH: Final = 1000
"""Beyond it reading stops, in documents with very many tags: closing tags cost libxml2 time in proportion to the depth."""
PATH_DEPTH: Final = 64
MAX_ANCHOR: Final = 200
MAX_CLASS: Final = 60

Attrs: TypeAlias = Mapping[str, str]
RawLink: TypeAlias = tuple[str, Kind, str, str, bool]
RawBlock: TypeAlias = tuple[str, str, bool, float]

_LANDMARKS: Final = {"main": True, "article": True, "nav": False, "footer": False, "aside": False, "dialog": False}
_ROLES: Final = {
    **{"main": True, "article": True, "navigation": False, "contentinfo": False, "complementary": False},
    **{"banner": False, "search": False, "dialog": False, "alertdialog": False},
}
_NOFOLLOW: Final = frozenset(("nofollow", "ugc", "sponsored"))
_FEEDS: Final = ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")
_CONNECTIONS: Final = frozenset(("dns-prefetch", "preconnect", "pingback", "profile"))


class TooDeepError(Exception):
    """Stops the parser; what was read so far is kept."""


class Reader:
    """Collects raw links and blocks, and the head's few facts. A link is listed where its element ends."""

    __slots__ = (
        "agents", "alt", "anchor", "base", "blocks", "buffer", "data", "href", "language", "linked", "links", "main", "mark",
        "nofollow", "path", "robots", "scripts", "skip", "skip_mark", "stack", "tip", "title",
    )  # fmt: skip

    def __init__(self, agents: tuple[str, ...]) -> None:
        self.agents = agents
        self.buffer: list[str] = []
        self.data = self.buffer.append
        self.links: list[RawLink] = []
        self.blocks: list[RawBlock] = []
        self.scripts: list[str] = []
        self.stack: list[tuple[str, bool]] = []
        self.path = self.base = self.title = self.language = ""
        self.href = self.anchor = self.alt = self.tip = ""
        self.main = self.nofollow = False
        self.skip = self.skip_mark = self.mark = self.linked = 0
        self.robots: Orders = NO_ORDERS

    def start(self, tag: str, attrib: Attrs) -> None:
        if attrib and "onclick" in attrib:
            self.links += [(url, "onclick", "", "", False) for url in in_handler(attrib["onclick"])]
        act = _start_of(tag, _open)
        if act is not None:
            act(self, tag, attrib)

    def end(self, tag: str) -> None:
        act = _end_of(tag, _shut)
        if act is not None:
            act(self, tag)

    def flush(self) -> None:
        """A border: the text since the last one is a block, if there is any."""
        buffer = self.buffer
        if self.href:
            self.anchor = self.anchored()
            self.mark = 0
        text = (buffer[0] if len(buffer) == 1 else "".join(buffer)).strip()
        buffer.clear()
        if text:
            if "\n" in text or "  " in text or not text.isascii() or "\t" in text:
                text = " ".join(text.split())
            share = 0.0
            if linked := self.linked:
                self.linked = 0
                share = linked / len(text) if linked < len(text) else 1.0
            self.blocks.append((text, self.path, self.main, share))

    def anchored(self) -> str:
        """Text of the open anchor; the part since the mark is counted as linked."""
        buffer, mark = self.buffer, self.mark
        text = buffer[mark] if len(buffer) == mark + 1 else "".join(buffer[mark:])
        if "\n" in text or "  " in text or not text.isascii() or "\t" in text:
            text = " ".join(text.split())
        self.linked += len(text)
        if self.anchor:
            text = f"{self.anchor} {text}"
        return text[:MAX_ANCHOR] if len(text) > MAX_ANCHOR else text

    def close_anchor(self) -> None:
        text = self.anchored().strip() or self.alt
        self.links.append((self.href, "a", text, self.tip, self.nofollow))
        self.href = ""

    def close(self) -> Reader:
        """The end of the page, also of one that was cut."""
        if self.href:
            self.close_anchor()
        if self.buffer and not self.skip:
            self.flush()
        return self


class GuardedReader(Reader):
    """Reads documents with very many tags, and stops in the depth."""

    __slots__ = ("depth",)

    def __init__(self, agents: tuple[str, ...]) -> None:
        super().__init__(agents)
        self.depth = 0

    def start(self, tag: str, attrib: Attrs) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeepError
        super().start(tag, attrib)

    def end(self, tag: str) -> None:
        self.depth -= 1
        super().end(tag)


def _open(reader: Reader, tag: str, attrib: Attrs) -> None:
    """A non-inline element starts: a border between blocks."""
    if reader.skip:
        return
    if reader.buffer:
        reader.flush()
    path = reader.path
    reader.stack.append((path, reader.main))
    if attrib:
        if "class" in attrib and (names := attrib["class"].split(None, 1)):
            tag = f"{tag}.{names[0][:MAX_CLASS]}"
        if "role" in attrib:
            reader.main = _ROLES.get(attrib["role"].strip().lower(), reader.main)
    if len(reader.stack) <= PATH_DEPTH:
        reader.path = f"{path}/{tag}" if path else tag


def _shut(reader: Reader, tag: str) -> None:
    if reader.skip:
        return
    if reader.buffer:
        reader.flush()
    if reader.stack:
        reader.path, reader.main = reader.stack.pop()


def _landmark(reader: Reader, tag: str, attrib: Attrs) -> None:
    if reader.skip:
        return
    _open(reader, tag, attrib)
    if "role" not in attrib:
        reader.main = _LANDMARKS[tag]


def _break(reader: Reader, tag: str, attrib: Attrs) -> None:
    if reader.buffer and not reader.skip:
        reader.flush()


def _html(reader: Reader, tag: str, attrib: Attrs) -> None:
    reader.language = reader.language or (attrib.get("lang") or attrib.get("xml:lang") or "").strip()[:40]


def _a(reader: Reader, tag: str, attrib: Attrs) -> None:
    if reader.href:
        reader.close_anchor()
    href = attrib.get("href")
    if not href or href[0] == "#":
        return
    rel = attrib.get("rel")
    nofollow = rel is not None and not _NOFOLLOW.isdisjoint(rel.lower().split())
    tip = attrib.get("title", "")
    if reader.skip:
        reader.links.append((href, "a", "", tip, nofollow))
        return
    reader.href, reader.nofollow, reader.tip, reader.anchor, reader.alt = href, nofollow, tip, "", ""
    reader.mark = len(reader.buffer)


def _a_end(reader: Reader, tag: str) -> None:
    if reader.href and not reader.skip:
        reader.close_anchor()


def _area(reader: Reader, tag: str, attrib: Attrs) -> None:
    if href := attrib.get("href"):
        nofollow = not _NOFOLLOW.isdisjoint(attrib.get("rel", "").lower().split())
        reader.links.append((href, "area", attrib.get("alt", "")[:MAX_ANCHOR], attrib.get("title", ""), nofollow))


def _img(reader: Reader, tag: str, attrib: Attrs) -> None:
    alt, tip = attrib.get("alt", ""), attrib.get("title", "")
    if alt:
        alt = " ".join(alt.split())[:MAX_ANCHOR]
        reader.alt = reader.alt or alt
    if src := attrib.get("src"):
        reader.links.append((src, "img", alt, tip, False))
    if lazy := attrib.get("data-src"):
        reader.links.append((lazy, "img", alt, tip, False))
    if "srcset" in attrib and (candidate := _first_candidate(attrib["srcset"])):
        reader.links.append((candidate, "img", alt, tip, False))


def _first_candidate(srcset: str | None) -> str | None:
    found = srcset.split(None, 1) if srcset else None
    return found[0].rstrip(",") if found else None


def _media(reader: Reader, tag: str, attrib: Attrs) -> None:
    if src := attrib.get("src") or attrib.get("data"):
        reader.links.append((src, "iframe" if tag in ("iframe", "frame") else "media", "", attrib.get("title", ""), False))
    if candidate := _first_candidate(attrib.get("srcset")):
        reader.links.append((candidate, "img", "", "", False))


def _base(reader: Reader, tag: str, attrib: Attrs) -> None:
    reader.base = reader.base or attrib.get("href", "")


def _link(reader: Reader, tag: str, attrib: Attrs) -> None:
    href = attrib.get("href")
    rel = set(attrib.get("rel", "").lower().split())
    if href and rel.isdisjoint(_CONNECTIONS):
        reader.links.append((href, _link_kind(rel, attrib.get("type", "").lower()), "", attrib.get("title", ""), False))


def _link_kind(rel: set[str], content_type: str) -> Kind:
    if "canonical" in rel:
        return "canonical"
    if "feed" in rel or ("alternate" in rel and content_type.startswith(_FEEDS)):
        return "feed"
    if "sitemap" in rel:
        return "sitemap"
    if "next" in rel or "prev" in rel:
        return "next"
    return "alternate" if rel & {"alternate", "amphtml"} and "stylesheet" not in rel else "link"


def _meta(reader: Reader, tag: str, attrib: Attrs) -> None:
    content = attrib.get("content")
    name = (attrib.get("name") or attrib.get("http-equiv") or "").strip().lower()
    if not content or not name:
        return
    if name in reader.agents:
        reader.robots |= read(content)
    elif name == "refresh":
        _, _, target = content.partition("=")
        if "url" in content[: len(content) - len(target)].lower() and (url := target.strip().strip("'\"")):
            reader.links.append((url, "refresh", "", "", False))
    elif name in ("content-language", "language"):
        reader.language = reader.language or content.partition(",")[0].strip()[:40]


def _skip(reader: Reader, tag: str, attrib: Attrs) -> None:
    """No text from here on, until its end; links are taken (noscript holds many)."""
    if not reader.skip:
        reader.skip_mark = len(reader.buffer)
    reader.skip += 1


def _skip_end(reader: Reader, tag: str) -> None:
    reader.skip -= 1
    if not reader.skip and len(reader.buffer) > reader.skip_mark:
        if tag == "script":
            reader.scripts += reader.buffer[reader.skip_mark :]
        elif tag == "title" and not reader.title:
            reader.title = " ".join("".join(reader.buffer[reader.skip_mark :]).split())
        del reader.buffer[reader.skip_mark :]


def _script(reader: Reader, tag: str, attrib: Attrs) -> None:
    _skip(reader, tag, attrib)
    if src := attrib.get("src"):
        reader.links.append((src, "script", "", "", False))


def _embedded(reader: Reader, tag: str, attrib: Attrs) -> None:
    _skip(reader, tag, attrib)
    _media(reader, tag, attrib)


_Start: TypeAlias = Callable[[Reader, str, Attrs], None]
_End: TypeAlias = Callable[[Reader, str], None]
# fmt: off
_INLINE: Final = (
    "abbr", "acronym", "b", "bdi", "bdo", "big", "body", "cite", "code", "data", "del", "dfn", "em", "font", "head", "i",
    "ins", "kbd", "label", "mark", "nobr", "picture", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike",
    "strong", "sub", "sup", "time", "tt", "u", "var", "wbr", "input", "param", "track", "col", "path", "use", "g",
)
_SKIPPED: Final = (
    "script", "style", "template", "noscript", "svg", "math", "title", "textarea", "iframe", "noembed", "noframes", "object",
)
# fmt: on
_VOID: Final[dict[str, _Start]] = {
    **{"br": _break, "hr": _break, "img": _img, "link": _link, "meta": _meta, "base": _base, "area": _area},
    **{"source": _media, "embed": _media, "frame": _media, "html": _html},
}
_STARTS: Final[dict[str, _Start | None]] = {
    **dict.fromkeys(_INLINE), **_VOID, **dict.fromkeys(_LANDMARKS, _landmark), **dict.fromkeys(_SKIPPED, _skip), "a": _a,
    "script": _script, "iframe": _embedded, "object": _embedded,
}  # fmt: skip
_ENDS: Final[dict[str, _End | None]] = {
    **dict.fromkeys(_INLINE), **dict.fromkeys(_VOID), **dict.fromkeys(_SKIPPED, _skip_end), "a": _a_end,
}  # fmt: skip
_start_of: Final = _STARTS.get
_end_of: Final = _ENDS.get
