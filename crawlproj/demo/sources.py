"""Feeds, sitemaps and robots.txt of a host: pages become known without following links."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crawlproj.demo import render
from crawlproj.demo.articles import combined_version
from crawlproj.demo.model import DemoPage, HostSpec

if TYPE_CHECKING:
    from crawlproj.demo.site import Site

FEED_SIZE = 10


def feed_page(site: Site, age: float) -> DemoPage:
    """The feed: RSS changes when an article appears, Atom also when one of those shown changes."""
    articles = site.articles
    world = site.world
    brand = site.spec.title
    count = articles.published_count(age)
    numbers = articles.kept_numbers(count)[:FEED_SIZE]
    home = site.make_link("/")
    links = tuple(site.teaser_link(n) for n in numbers)
    published = [world.datetime_at(articles.get(n).published) for n in numbers]
    changes = [articles.version_at(n, age)[1] for n in numbers]
    arrived = articles.arrival_age(count)

    def rss() -> bytes:
        texts = [articles.paragraph(n, 0, 0) for n in numbers]
        return render.rss_xml(
            brand, home.target, zip(links, published, texts, strict=True)
        ).encode()

    def atom() -> bytes:
        rows = zip(links, published, map(world.datetime_at, changes), strict=True)
        return render.atom_xml(brand, home.target, rows).encode()

    if site.spec.feed == "rss":
        body = rss
        changed = arrived
    else:
        body = atom
        changed = max([arrived, *changes])
    kind = f"application/{site.spec.feed}+xml; charset=utf-8"
    return DemoPage(
        "feed", changed, combined_version(changed), links=(home, *links), body=body, type=kind
    )


def sitemap_page(site: Site, age: float) -> DemoPage:
    """The sitemap: all articles that there are, with the time of their last change."""
    articles = site.articles
    count = articles.published_count(age)
    numbers = articles.kept_numbers(count)
    changes = [articles.version_at(n, age)[1] for n in numbers]
    links = tuple(site.teaser_link(n) for n in numbers)
    changed = max([articles.arrival_age(count), *changes])

    def body() -> bytes:
        return render.sitemap_xml(
            zip(links, map(site.world.datetime_at, changes), strict=True)
        ).encode()

    return DemoPage(
        "sitemap",
        changed,
        combined_version(changed),
        links=links,
        body=body,
        type="application/xml; charset=utf-8",
    )


def robots_txt(site: Site) -> bytes:
    spec = site.spec
    lines = ["User-agent: greedybot", "Disallow: /", "", "User-agent: *"]
    lines += [f"Disallow: {rule}" for rule in spec.disallow or ("",)]
    lines += [f"Allow: {rule}" for rule in spec.allow]
    if spec.crawl_delay_s:
        lines.append(f"Crawl-delay: {spec.crawl_delay_s:g}")
    sitemaps = site.named_sitemaps
    if sitemaps:
        lines += ["", *(f"Sitemap: {site.world.url(spec.name, path)}" for path in sitemaps)]
    return "\n".join([*lines, ""]).encode()


def is_allowed(spec: HostSpec, target: str) -> bool:
    """Whether robots.txt lets all robots fetch `target`: the longest rule wins, Allow a tie."""
    if target == "/robots.txt":
        return True
    matches = [(len(rule), True) for rule in spec.allow if _matches(rule, target)]
    matches += [(len(rule), False) for rule in spec.disallow if _matches(rule, target)]
    _, allowed = max(matches, default=(0, True))
    return allowed


def _matches(rule: str, target: str) -> bool:
    pattern = re.escape(rule).replace(r"\*", ".*")
    if pattern.endswith(r"\$"):
        pattern = pattern[:-2] + "$"
    return re.match(pattern, target) is not None
