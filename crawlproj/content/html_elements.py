"""What each HTML element means: a border between blocks, a link, a fact, or no text at all.

`STARTS` and `ENDS` say what is done when an element starts and ends; None is nothing. Elements
without an entry are borders: what is not known to be inline ends a block. This runs for every tag
of every page, so it is written for speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from crawlproj.content.page_signs import (
    DATE_NAMES,
    MAX_SIGN,
    MAX_TYPES,
    find_json_ld_types,
    note_type,
)
from crawlproj.content.robots_directives import parse_robots_meta
from crawlproj.content.script_urls import find_handler_urls

if TYPE_CHECKING:
    from crawlproj.content.document import LinkKind
    from crawlproj.content.html_target import HtmlTarget

PATH_DEPTH: Final = 64
MAX_ANCHOR: Final = 200
MAX_CLASS: Final = 60
MAX_LANGUAGE: Final = 35
MAX_TITLE: Final = 10_000
"""Characters that are read of a title."""
MAX_META: Final = 2_000
"""Characters that are read of a description."""

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
CLOSING_ROLES: Final = tuple(role for role, main in _ROLES.items() if not main)
CLOSING_TAGS: Final = (*(tag for tag, main in _LANDMARKS.items() if not main), "header")
"""What stands in one of these is no content, unless it is in a main or article inside."""
_NOFOLLOW: Final = frozenset(("nofollow", "ugc", "sponsored"))
_FEEDS: Final = frozenset(
    (
        "application/rss+xml",
        "application/atom+xml",
        "application/feed+json",
        "application/rdf+xml",
        "application/rss",
        "application/atom",
        "application/x.atom+xml",
        "application/xml",
        "text/rss",
        "text/xml",
    )
)
_CONNECTIONS: Final = frozenset(("dns-prefetch", "preconnect", "pingback", "profile"))


def open_block(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    """A non-inline element starts: a border between blocks."""
    if target.skip_depth:
        return
    if target.buffer:
        target.flush_block()
    path = target.path
    target.stack.append((path, target.in_main))
    if attrib:
        if "class" in attrib:
            classes = attrib["class"].split(None, 1)
            if classes:
                tag = f"{tag}.{classes[0][:MAX_CLASS]}"
        if "role" in attrib:
            role = attrib["role"].strip().lower()
            if role in _ROLES:
                target.in_main = _ROLES[role]
                tag = f"{tag}@{role}" if "." in tag else f"{tag}.@{role}"
    if len(target.stack) <= PATH_DEPTH:
        target.path = f"{path}/{tag}" if path else tag


def close_block(target: HtmlTarget, tag: str) -> None:
    """A non-inline element ends: a border, too."""
    if target.skip_depth:
        return
    if target.buffer:
        target.flush_block()
    if target.stack:
        target.path, target.in_main = target.stack.pop()


def _landmark(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if target.skip_depth:
        return
    open_block(target, tag, attrib)
    if "role" not in attrib:
        target.in_main = _LANDMARKS[tag]
    if tag == "article":
        target.article_elements += 1
    if "itemtype" in attrib:
        _itemtype(target, attrib)


def _break(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if target.buffer and not target.skip_depth:
        target.flush_block()


def _html(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if not target.language:
        language = attrib.get("lang") or attrib.get("xml:lang") or ""
        target.language = language.strip()[:40]
    if "itemtype" in attrib:
        _itemtype(target, attrib)


def _body(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    """A start that is no border: the body's classes are noted."""
    if "class" in attrib:
        target.body_class = attrib["class"][:MAX_SIGN].lower()
    if "itemtype" in attrib:
        _itemtype(target, attrib)


def _itemtype(target: HtmlTarget, attrib: Attrs) -> None:
    if len(target.types) < MAX_TYPES:
        target.types += note_type(attrib["itemtype"][:MAX_SIGN])


def _time(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    target.time_elements += 1


def _a(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    if target.anchor_href:
        target.close_anchor()
    href = attrib.get("href")
    if not href or href[0] == "#":
        return
    if href[0] in "jJ" and href[:11].lower() == "javascript:":
        target.links += [(url, "onclick", "", "", False, "") for url in find_handler_urls(href)]
        return
    nofollow = "rel" in attrib and not _NOFOLLOW.isdisjoint(attrib["rel"].lower().split())
    title = attrib["title"] if "title" in attrib else ""  # noqa: SIM401 - twice as fast as get
    hreflang = _language(attrib["hreflang"]) if "hreflang" in attrib else ""
    if target.skip_depth:
        target.links.append((href, "a", "", title, nofollow, hreflang))
        return
    target.anchor_href = href
    target.anchor_nofollow = nofollow
    target.anchor_title = title
    target.anchor_hreflang = hreflang
    target.anchor_text = ""
    target.anchor_alt = ""
    target.anchor_start = len(target.buffer)


def _language(hreflang: str) -> str:
    """The language that a link names: one word."""
    words = hreflang.split(None, 1)
    return words[0][:MAX_LANGUAGE] if words else ""


def _a_end(target: HtmlTarget, tag: str) -> None:
    if target.anchor_href and not target.skip_depth:
        target.close_anchor()


def _area(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    href = attrib.get("href")
    if href:
        text = attrib.get("alt", "")[:MAX_ANCHOR]
        nofollow = not _NOFOLLOW.isdisjoint(attrib.get("rel", "").lower().split())
        target.links.append((href, "area", text, attrib.get("title", ""), nofollow, ""))


def _img(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    alt = attrib.get("alt", "")
    title = attrib.get("title", "")
    if alt:
        alt = " ".join(alt.split())[:MAX_ANCHOR]
        target.anchor_alt = target.anchor_alt or alt
    src = attrib.get("src")
    if src:
        target.links.append((src, "img", alt, title, False, ""))
    lazy_src = attrib.get("data-src")
    if lazy_src:
        target.links.append((lazy_src, "img", alt, title, False, ""))
    if "srcset" in attrib:
        candidate = _first_candidate(attrib["srcset"])
        if candidate:
            target.links.append((candidate, "img", alt, title, False, ""))


def _first_candidate(srcset: str) -> str:
    """The first URL of a srcset; empty if there is none."""
    words = srcset.split(None, 1)
    if not words:
        return ""
    return words[0].rstrip(",")


def _media(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    src = attrib.get("src") or attrib.get("data")
    if src:
        kind: LinkKind = "iframe" if tag in ("iframe", "frame") else "media"
        target.links.append((src, kind, "", attrib.get("title", ""), False, ""))
    candidate = _first_candidate(attrib.get("srcset", ""))
    if candidate:
        target.links.append((candidate, "img", "", "", False, ""))


def _player(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    open_block(target, tag, attrib)
    _media(target, tag, attrib)


def _base(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    target.base = target.base or attrib.get("href", "")


def _link(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    href = attrib.get("href")
    rel = set(attrib.get("rel", "").lower().split())
    if href and rel.isdisjoint(_CONNECTIONS):
        kind = _link_kind(rel, attrib.get("type", "").lower())
        hreflang = _language(attrib["hreflang"]) if "hreflang" in attrib else ""
        target.links.append((href, kind, "", attrib.get("title", ""), False, hreflang))


def _bare_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip()


def _link_kind(rel: set[str], content_type: str) -> LinkKind:
    if "canonical" in rel:
        return "canonical"
    if "feed" in rel or ("alternate" in rel and _bare_type(content_type) in _FEEDS):
        return "feed"
    if "sitemap" in rel:
        return "sitemap"
    if "next" in rel or "prev" in rel:
        return "next"
    if ("alternate" in rel or "amphtml" in rel) and "stylesheet" not in rel:
        return "alternate"
    return "link"


def _meta(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    content = attrib.get("content")
    name = attrib.get("name") or attrib.get("http-equiv") or attrib.get("property") or ""
    name = name.strip().lower()
    if not content or not name:
        return
    if name in target.agents:
        target.robots |= parse_robots_meta(content)
    elif name == "refresh":
        before, _, rest = content.partition("=")
        url = rest.strip().strip("'\"")
        if "url" in before.lower() and url:
            target.links.append((url, "refresh", "", "", False, ""))
    elif name in ("content-language", "language"):
        target.language = target.language or content.partition(",")[0].strip()[:40]
    elif name in ("description", "og:description"):
        target.description = target.description or " ".join(content[:MAX_META].split())
    elif name == "keywords":
        target.keywords = target.keywords or " ".join(content[:MAX_META].split())
    elif name == "og:type":
        target.og_type = target.og_type or content[:MAX_SIGN].strip().lower()
    elif name in DATE_NAMES:
        target.published = target.published or content[:MAX_SIGN].strip()


def _skip(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    """The element's text is dropped; its links are taken (noscript holds many)."""
    if not target.skip_depth:
        target.skip_start = len(target.buffer)
    target.skip_depth += 1


def _skip_end(target: HtmlTarget, tag: str) -> None:
    target.skip_depth -= 1
    if not target.skip_depth and len(target.buffer) > target.skip_start:
        if tag == "script":
            code = "".join(target.buffer[target.skip_start :])
            target.scripts.append(code)
            if target.in_json_ld and len(target.types) < MAX_TYPES:
                target.types += find_json_ld_types(code)
        elif tag == "title" and not target.title:
            title = "".join(target.buffer[target.skip_start :])[:MAX_TITLE]
            target.title = " ".join(title.split())
        del target.buffer[target.skip_start :]


def _script(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    _skip(target, tag, attrib)
    target.in_json_ld = "type" in attrib and "ld+json" in attrib["type"]
    src = attrib.get("src")
    if src:
        target.links.append((src, "script", "", "", False, ""))


def _embedded(target: HtmlTarget, tag: str, attrib: Attrs) -> None:
    _skip(target, tag, attrib)
    _media(target, tag, attrib)


# fmt: off
_INLINE: Final = (
    "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "head", "i", "ins", "kbd", "label", "mark", "nobr", "picture", "q", "rp", "rt", "ruby",
    "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr",
    "input", "param", "track", "col", "path", "use", "g",
)
_SKIPPED: Final = (
    "style", "template", "noscript", "svg", "math", "title", "textarea", "noembed", "noframes",
)
_VOID: Final[dict[str, Start]] = {
    "br": _break, "hr": _break, "img": _img, "link": _link, "meta": _meta, "base": _base,
    "area": _area, "source": _media, "embed": _media, "frame": _media, "html": _html,
    "body": _body, "time": _time,
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
