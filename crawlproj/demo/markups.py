"""How the articles of a host are written, by name: clean HTML, or as sites really are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from html import escape

from crawlproj.demo import render
from crawlproj.demo.articles import DemoArticle
from crawlproj.demo.model import DemoLink


@dataclass(frozen=True, slots=True)
class ArticleParts:
    """What a page of an article is made of. `changed`: its last change; None: it never did."""

    item: DemoArticle
    texts: tuple[str, ...]
    published: datetime
    changed: datetime | None
    picture: DemoLink
    inline: tuple[DemoLink, ...]
    related: tuple[DemoLink, ...]


@dataclass(frozen=True, slots=True)
class ArticleHtml:
    """The parts of the page that are the article's own."""

    main: str
    aside: str
    meta: str


def write_clean(parts: ArticleParts) -> ArticleHtml:
    """All that there is to say is said by elements and metadata that are made for it."""
    item = parts.item
    published = parts.published
    note = ""
    if parts.changed is not None:
        note = f" Updated {parts.changed:%d %B, %H:%M:%S}."
    main = (
        f'<article><h1>{item.title}</h1><p class="meta">By {item.author}, '
        f'<time datetime="{published.isoformat()}">'
        f"{published:%d %B %Y, %H:%M}</time>.{note}</p>"
        f"<figure>{render.link_html(parts.picture)}</figure>"
        f"{render.paragraphs_html(parts.texts[:2])}{_see_also(parts.inline)}"
        f"{render.paragraphs_html(parts.texts[2:])}</article>"
    )
    meta = (
        f'<meta name="author" content="{item.author}"><meta property="og:title" '
        f'content="{item.title}">'
        '<meta property="article:published_time" '
        f'content="{published.isoformat()}">'
        f'<meta property="article:section" content="{item.section}">'
    )
    return ArticleHtml(main, "<h3>Related</h3>" + render.list_html(parts.related), meta)


def write_bare(parts: ArticleParts) -> ArticleHtml:
    """A small paper's: no metadata; date and author are below the text, as people write them, and
    another date is above it.
    """
    item = parts.item
    first, *rest = parts.texts
    note = ""
    if parts.changed is not None:
        note = f'<p class="mended">Mended on {parts.changed:%d.%m.%Y at %H:%M:%S}</p>'
    main = (
        '<p class="since">Every morning since 02.03.1998</p>'
        f'<div class="story"><h1>{item.title}</h1>'
        f"<p>{escape(first, quote=False)}</p>{_see_also(parts.inline)}"
        f"{render.paragraphs_html(rest)}"
        f'<p class="sign">(<b>{item.author}</b>; <i>{parts.published:%d.%m.%Y}</i>)</p>{note}</div>'
    )
    return ArticleHtml(main, "", "")


def write_odd(parts: ArticleParts) -> ArticleHtml:
    """What a system for everything makes: boxes in boxes, and JSON-LD that is half right. Its dates
    are the only ones, its headline is one for search engines, its author is the paper.
    """
    item = parts.item
    about = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": f"{item.section.upper()} NEWS: {item.title[:30].rstrip()} - read more",
        "datePublished": parts.published.isoformat(),
        "author": {"@type": "Organization", "name": "Echo Newsroom"},
    }
    if parts.changed is not None:
        about["dateModified"] = parts.changed.isoformat()
    boxes = "".join(
        f'<div class="b b{number % 3}"><div class="tx">{escape(text, quote=False)}</div></div>\n'
        for number, text in enumerate(parts.texts)
    )
    main = (
        f'<div class="hd"><div class="kick">{item.section.capitalize()}</div>'
        f'<div class="big">{item.title}</div></div>'
        f'<div class="by">Words: <b>{item.author}</b></div>'
        f'<div class="pic">{render.link_html(parts.picture)}</div>'
        f'<div class="bx">{boxes}</div>{_see_also(parts.inline)}'
        f'<div class="more"><h1>Also in the Echo</h1>{render.list_html(parts.related)}</div>'
    )
    meta = f'<script type="application/ld+json">{json.dumps(about)}</script>'
    return ArticleHtml(main, "", meta)


def _see_also(links: tuple[DemoLink, ...]) -> str:
    return "".join(f"<p>See also: {render.link_html(link)}.</p>" for link in links)


MARKUPS: dict[str, Callable[[ArticleParts], ArticleHtml]] = {
    "clean": write_clean,
    "bare": write_bare,
    "odd": write_odd,
}
