"""How the demo web looks: HTML, feeds, sitemaps and pictures from titles, texts and links."""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Iterable
from datetime import datetime
from email.utils import format_datetime
from html import escape

from crawlproj.demo.model import DemoLink

NOISE = "<!--noise-->"
"""Where a noisy host puts something different into each response."""

CSS = """
:root{--c:%s;--l:%s}
*{box-sizing:border-box}
body{margin:0;font:17px/1.6 Georgia,serif;color:#222;background:#fafaf7}
header.top{background:var(--c);color:#fff;padding:1.2rem 2rem}
header.top a{color:#fff;text-decoration:none}
.brand{font-size:2rem;font-weight:bold;letter-spacing:.02em}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:1.2rem;padding:0;margin:.5rem 0 0;\
font:15px sans-serif}
.wrap{max-width:60rem;margin:0 auto}
.cols{display:grid;grid-template-columns:2fr 1fr;gap:2.5rem;padding:1.5rem 2rem}
h1{line-height:1.2;font-size:2.1rem;margin:.4rem 0}
a{color:var(--c)}
.meta{color:#777;font:14px sans-serif}
.card{display:flex;gap:1rem;padding:.9rem 0;border-bottom:1px solid #e4e2da}
.card img{width:120px;height:80px;border-radius:4px}
.card h2{font-size:1.15rem;line-height:1.3;margin:0 0 .2rem}
.card p{margin:0;font-size:.92rem;color:#555}
figure{margin:1rem 0}
figure img{width:100%%;border-radius:6px}
aside{background:var(--l);padding:1rem 1.3rem;border-radius:6px;align-self:start;\
font:15px/1.5 sans-serif}
aside ul{padding-left:1.1rem}
footer{border-top:3px solid var(--c);padding:1rem 2rem;font:14px sans-serif;color:#666}
@media(max-width:700px){.cols{grid-template-columns:1fr}
}
"""


def host_css(name: str) -> str:
    hue = zlib.crc32(name.encode()) % 360 / 360
    return CSS % (_hex_colour(hue, 0.28), _hex_colour(hue, 0.93))


def _hex_colour(hue: float, lightness: float) -> str:
    rgb = colorsys.hls_to_rgb(hue, lightness, 0.45)
    return "#" + "".join(f"{round(part * 255):02x}" for part in rgb)


def link_html(link: DemoLink, text: str = "") -> str:
    href = escape(link.written_href)
    label = text or escape(link.text)
    if link.kind == "onclick":
        return f'<button type="button" onclick="location.href=\'{href}\'">{label}</button>'
    if link.kind == "script":
        return f'<script>var page = "{link.written_href}"; /* {label} */</script>'
    if link.kind == "iframe":
        return f'<iframe src="{href}" title="{label}" width="100%" height="120"></iframe>'
    if link.kind == "area":
        return (
            f'<map name="m"><area shape="rect" coords="0,0,60,40" href="{href}" '
            f'alt="{label}"></map>'
        )
    if link.kind == "img":
        return f'<img src="{href}" alt="{label}">'
    rel = ""
    if link.nofollow:
        rel = ' rel="nofollow"'
    return f'<a href="{href}"{rel}>{label}</a>'


def list_html(links: Iterable[DemoLink]) -> str:
    return "<ul>" + "".join(f"<li>{link_html(link)}</li>\n" for link in links) + "</ul>"


def head_link(link: DemoLink) -> str:
    if link.kind == "amphtml":
        return f'<link rel="amphtml" href="{escape(link.written_href)}">'
    if link.kind == "feed":
        kind = "application/rss+xml"
        if link.target.endswith(".atom"):
            kind = "application/atom+xml"
        elif link.target.endswith(".json"):
            kind = "application/feed+json"
        return (
            f'<link rel="alternate" type="{kind}" title="{escape(link.text)}" '
            f'href="{escape(link.written_href)}">'
        )
    return f'<link rel="canonical" href="{escape(link.written_href)}">'


def paragraphs_html(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(text, quote=False)}</p>\n" for text in texts)


def card_html(link: DemoLink, picture: DemoLink, when: datetime, summary: str) -> str:
    return (
        f'<div class="card">{link_html(picture)}<div><h2>{link_html(link)}</h2>'
        f'<div class="meta">{when:%d %B %Y, %H:%M}</div>'
        f"<p>{escape(summary, quote=False)}</p></div></div>\n"
    )


def page_html(
    brand: str,
    title: str,
    main: str,
    *,
    style: str,
    home: DemoLink,
    nav: Iterable[DemoLink] = (),
    aside: str = "",
    footer: Iterable[DemoLink] = (),
    head: str = "",
    noise: bool = False,
) -> str:
    """A whole HTML page: head, coloured top with navigation, main column, side box, footer."""
    if aside:
        aside = f"<aside>{aside}</aside>"
    mark = ""
    if noise:
        mark = NOISE
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f"<title>{escape(title)} | {escape(brand)}</title>\n"
        '<meta name="viewport" content="width=device-width, '
        f'initial-scale=1">{head}\n<style>{style}</style></head>\n'
        '<body><header class="top"><div class="wrap"><div '
        f'class="brand">{link_html(home)}</div><nav>{list_html(nav)}</nav>'
        f'{mark}</div></header>\n<div class="wrap cols"><main>{main}</main>{aside}</div>\n'
        f'<footer><div class="wrap">{list_html(footer)}'
        f"<p>{escape(brand)}: a demo web, all of it made up.</p>"
        f"{mark}</div></footer></body></html>\n"
    )


def noise_html(token: str, count: int, clock: str) -> bytes:
    """What a noisy page shows instead of `NOISE`."""
    return (
        f'<div class="meta" data-token="{token}">It is {clock}. You are visitor number {count}.'
        f'<input type="hidden" name="csrf" value="{token}"></div>'
    ).encode()


def rss_xml(brand: str, home: str, entries: Iterable[tuple[DemoLink, datetime, str]]) -> str:
    body = "".join(
        f"<item><title>{escape(link.text)}</title><link>{escape(link.target)}</link>"
        f'<guid isPermaLink="true">{escape(link.target)}</guid>'
        f"<pubDate>{format_datetime(when, usegmt=True)}</pubDate>"
        f"<description>{escape(text)}</description></item>\n"
        for link, when, text in entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel>'
        f"<title>{escape(brand)}</title><link>{escape(home)}</link>"
        f"<description>News</description>\n{body}</channel></rss>\n"
    )


def atom_xml(brand: str, home: str, entries: Iterable[tuple[DemoLink, datetime, datetime]]) -> str:
    body = "".join(
        f"<entry><title>{escape(link.text)}</title><link "
        f'href="{escape(link.target)}"/><id>{escape(link.target)}</id>'
        f"<published>{published.isoformat()}</published>"
        f"<updated>{updated.isoformat()}</updated></entry>\n"
        for link, published, updated in entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<title>{escape(brand)}</title><id>{escape(home)}</id><link "
        f'href="{escape(home)}"/>\n{body}</feed>\n'
    )


def sitemap_xml(entries: Iterable[tuple[DemoLink, datetime]]) -> str:
    body = "".join(
        f"<url><loc>{escape(link.target)}</loc><lastmod>{when.isoformat()}</lastmod></url>\n"
        for link, when in entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<urlset '
        f'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{body}</urlset>\n'
    )


def picture_svg(name: str) -> str:
    """A small landscape for an article, as SVG."""
    number = zlib.crc32(name.encode())
    hue = number % 360
    sun = 60 + number // 360 % 240
    hill = 90 + number // 7 % 60
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 200">'
        f'<rect width="360" height="200" fill="hsl({hue},45%,82%)"/><circle cx="{sun}" cy="60" '
        'r="26" fill="#fff6d8"/>'
        f'<path d="M0 {hill} Q90 {hill - 50} 180 {hill} T360 {hill} V200 H0Z" '
        f'fill="hsl({hue},35%,55%)"/>'
        f'<path d="M0 {hill + 40} Q120 {hill} 220 {hill + 40} T360 {hill + 30} V200 H0Z" '
        f'fill="hsl({hue},35%,38%)"/>'
        "</svg>\n"
    )
