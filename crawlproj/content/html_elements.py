"""What each element means to the reader: a border between blocks, a link, a fact, or no text at
all.

Elements without an entry are borders: what is not known to be inline ends a block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from crawlproj.content.robots_directives import parse_robots_meta
from crawlproj.content.script_urls import find_handler_urls

if TYPE_CHECKING:
    from crawlproj.content.document import LinkKind
    from crawlproj.content.html_target import HtmlTarget

PATH_DEPTH: Final = 64
MAX_ANCHOR: Final = 200
MAX_CLASS: Final = 60

Attrs: TypeAlias = Mapping[str, str]
Start: TypeAlias = "Callable[[HtmlTarget, str, Attrs], None]"
End: TypeAlias = "Callable[[HtmlTarget, str], None]"

_LANDMARKS: Final = {
    "main": True,
    "article": True,
    "nav": False,
    "footer": False,
    "aside": False,
    "dialog": False,
}
_ROLES: Final = {
    "main": True,
    "article": True,
    "navigation": False,
    "contentinfo": False,
    "complementary": False,
    "banner": False,
    "search": False,
    "dialog": False,
    "alertdialog": False,
}
_NOFOLLOW: Final = frozenset(("nofollow", "ugc", "sponsored"))
_FEEDS: Final = (
    "application/rss+xml",
    "application/atom+xml",
    "application/feed+json",
    "application/rdf+xml",
)
_CONNECTIONS: Final = frozenset(("dns-prefetch", "preconnect", "pingback", "profile"))


def open_block(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    """A non-inline element starts: a border between blocks."""
    if reader.skip:
        return
    if reader.buffer:
        reader.flush_block()
    path = reader.path
    reader.stack.append((path, reader.main))
    if attrib:
        if "class" in attrib and (names := attrib["class"].split(None, 1)):
            tag = f"{tag}.{names[0][:MAX_CLASS]}"
        if "role" in attrib:
            reader.main = _ROLES.get(attrib["role"].strip().lower(), reader.main)
    if len(reader.stack) <= PATH_DEPTH:
        reader.path = f"{path}/{tag}" if path else tag


def close_block(reader: HtmlTarget, tag: str) -> None:
    if reader.skip:
        return
    if reader.buffer:
        reader.flush_block()
    if reader.stack:
        reader.path, reader.main = reader.stack.pop()


def _landmark(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if reader.skip:
        return
    open_block(reader, tag, attrib)
    if "role" not in attrib:
        reader.main = _LANDMARKS[tag]


def _break(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if reader.buffer and not reader.skip:
        reader.flush_block()


def _html(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    reader.language = (
        reader.language or (attrib.get("lang") or attrib.get("xml:lang") or "").strip()[:40]
    )


def _a(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if reader.href:
        reader.close_anchor()
    href = attrib.get("href")
    if not href or href[0] == "#":
        return
    if href[0] in "jJ" and href[:11].lower() == "javascript:":
        reader.links += [(url, "onclick", "", "", False) for url in find_handler_urls(href)]
        return
    rel = attrib.get("rel")
    nofollow = rel is not None and not _NOFOLLOW.isdisjoint(rel.lower().split())
    tip = attrib.get("title", "")
    if reader.skip:
        reader.links.append((href, "a", "", tip, nofollow))
        return
    reader.href = href
    reader.nofollow = nofollow
    reader.tip = tip
    reader.anchor = ""
    reader.alt = ""
    reader.mark = len(reader.buffer)


def _a_end(reader: HtmlTarget, tag: str) -> None:
    if reader.href and not reader.skip:
        reader.close_anchor()


def _area(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if href := attrib.get("href"):
        nofollow = not _NOFOLLOW.isdisjoint(attrib.get("rel", "").lower().split())
        reader.links.append(
            (href, "area", attrib.get("alt", "")[:MAX_ANCHOR], attrib.get("title", ""), nofollow)
        )


def _img(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    alt = attrib.get("alt", "")
    tip = attrib.get("title", "")
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


def _media(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if src := attrib.get("src") or attrib.get("data"):
        kind: LinkKind = "iframe" if tag in ("iframe", "frame") else "media"
        reader.links.append((src, kind, "", attrib.get("title", ""), False))
    if candidate := _first_candidate(attrib.get("srcset")):
        reader.links.append((candidate, "img", "", "", False))


def _player(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    open_block(reader, tag, attrib)
    _media(reader, tag, attrib)


def _base(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    reader.base = reader.base or attrib.get("href", "")


def _link(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    href = attrib.get("href")
    rel = set(attrib.get("rel", "").lower().split())
    if href and rel.isdisjoint(_CONNECTIONS):
        reader.links.append(
            (
                href,
                _link_kind(rel, attrib.get("type", "").lower()),
                "",
                attrib.get("title", ""),
                False,
            )
        )


def _link_kind(rel: set[str], content_type: str) -> LinkKind:
    if "canonical" in rel:
        return "canonical"
    if "feed" in rel or ("alternate" in rel and content_type.startswith(_FEEDS)):
        return "feed"
    if "sitemap" in rel:
        return "sitemap"
    if "next" in rel or "prev" in rel:
        return "next"
    return "alternate" if rel & {"alternate", "amphtml"} and "stylesheet" not in rel else "link"


def _meta(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    content = attrib.get("content")
    name = (attrib.get("name") or attrib.get("http-equiv") or "").strip().lower()
    if not content or not name:
        return
    if name in reader.agents:
        reader.robots |= parse_robots_meta(content)
    elif name == "refresh":
        _, _, target = content.partition("=")
        if "url" in content[: len(content) - len(target)].lower() and (
            url := target.strip().strip("'\"")
        ):
            reader.links.append((url, "refresh", "", "", False))
    elif name in ("content-language", "language"):
        reader.language = reader.language or content.partition(",")[0].strip()[:40]


def _skip(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    """No text from here on, until its end; links are taken (noscript holds many)."""
    if not reader.skip:
        reader.skip_mark = len(reader.buffer)
    reader.skip += 1


def _skip_end(reader: HtmlTarget, tag: str) -> None:
    reader.skip -= 1
    if not reader.skip and len(reader.buffer) > reader.skip_mark:
        if tag == "script":
            reader.scripts += reader.buffer[reader.skip_mark :]
        elif tag == "title" and not reader.title:
            reader.title = " ".join("".join(reader.buffer[reader.skip_mark :]).split())
        del reader.buffer[reader.skip_mark :]


def _script(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    _skip(reader, tag, attrib)
    if src := attrib.get("src"):
        reader.links.append((src, "script", "", "", False))


def _embedded(reader: HtmlTarget, tag: str, attrib: Attrs) -> None:
    _skip(reader, tag, attrib)
    _media(reader, tag, attrib)


# fmt: off
_INLINE: Final = (
    "abbr", "acronym", "b", "bdi", "bdo", "big", "body", "cite", "code", "data", "del", "dfn", "em",
    "font", "head", "i", "ins", "kbd", "label", "mark", "nobr", "picture", "q", "rp", "rt", "ruby",
    "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    "input", "param", "track", "col", "path", "use", "g",
)
_SKIPPED: Final = (
    "style", "template", "noscript", "svg", "math", "title", "textarea", "noembed", "noframes",
)
_VOID: Final[dict[str, Start]] = {
    "br": _break, "hr": _break, "img": _img, "link": _link, "meta": _meta, "base": _base,
    "area": _area, "source": _media, "embed": _media, "frame": _media, "html": _html,
}
_HOLDING: Final[dict[str, Start]] = {"script": _script, "iframe": _embedded, "object": _embedded}
STARTS: Final[dict[str, Start | None]] = {
    **dict.fromkeys(_INLINE), **_VOID, **dict.fromkeys(_LANDMARKS, _landmark),
    **dict.fromkeys(_SKIPPED, _skip), **_HOLDING, "a": _a, "video": _player, "audio": _player,
}
ENDS: Final[dict[str, End | None]] = {
    **dict.fromkeys(_INLINE), **dict.fromkeys(_VOID),
    **dict.fromkeys((*_SKIPPED, *_HOLDING), _skip_end), "a": _a_end,
}
# fmt: on
