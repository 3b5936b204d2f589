"""Feeds, sitemaps and robots.txt of a host: where a crawler learns of pages without following
links.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crawlproj.demo import render
from crawlproj.demo.articles import stamp
from crawlproj.demo.model import HostSpec, Page

if TYPE_CHECKING:
    from crawlproj.demo.site import Site

FEED_SIZE = 10


def feed(site: Site, age: float) -> Page:
    """RSS changes when an article appears, Atom also when one of those shown changes."""
    articles = site.articles
    world = site.world
    brand = site.spec.title
    count = articles.count(age)
    numbers = articles.kept(count)[:FEED_SIZE]
    home = site.link("/")
    links = tuple(site.teaser(n) for n in numbers)
    published = [world.when(articles.get(n).published) for n in numbers]
    changes = [articles.state(n, age)[1] for n in numbers]
    arrived = articles.arrived(count)

    def rss() -> bytes:
        texts = [articles.paragraph(n, 0, 0) for n in numbers]
        return render.rss(brand, home.target, zip(links, published, texts, strict=True)).encode()

    def atom() -> bytes:
        rows = zip(links, published, map(world.when, changes), strict=True)
        return render.atom(brand, home.target, rows).encode()

    body, changed = (rss, arrived) if site.spec.feed == "rss" else (atom, max([arrived, *changes]))
    kind = f"application/{site.spec.feed}+xml; charset=utf-8"
    return Page("feed", changed, stamp(changed), (home, *links), body, type=kind)


def sitemap(site: Site, age: float) -> Page:
    """All articles that stand, with the time of their last change."""
    articles = site.articles
    count = articles.count(age)
    numbers = articles.kept(count)
    changes = [articles.state(n, age)[1] for n in numbers]
    links = tuple(site.teaser(n) for n in numbers)
    changed = max([articles.arrived(count), *changes])

    def body() -> bytes:
        return render.sitemap(zip(links, map(site.world.when, changes), strict=True)).encode()

    return Page(
        "sitemap", changed, stamp(changed), links, body, type="application/xml; charset=utf-8"
    )


def robots(site: Site) -> bytes:
    spec = site.spec
    lines = ["User-agent: greedybot", "Disallow: /", "", "User-agent: *"]
    lines += [f"Disallow: {rule}" for rule in spec.disallow or ("",)] + [
        f"Allow: {rule}" for rule in spec.allow
    ]
    lines += [f"Crawl-delay: {spec.crawl_delay_s:g}"] if spec.crawl_delay_s else []
    lines += ["", f"Sitemap: {site.world.url(spec.name, '/sitemap.xml')}"] if spec.sitemap else []
    return "\n".join([*lines, ""]).encode()


def allowed(spec: HostSpec, target: str) -> bool:
    """Whether robots.txt lets everybody ask for `target`: the longest rule that fits decides, Allow
    wins a tie.
    """
    fits = [(len(rule), True) for rule in spec.allow if _fits(rule, target)]
    fits += [(len(rule), False) for rule in spec.disallow if _fits(rule, target)]
    return target == "/robots.txt" or max(fits, default=(0, True))[1]


def _fits(rule: str, target: str) -> bool:
    pattern = re.escape(rule).replace(r"\*", ".*")
    return re.match(pattern[:-2] + "$" if pattern.endswith(r"\$") else pattern, target) is not None
