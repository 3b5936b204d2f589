"""Feeds and sitemaps of a news site, also those that are of no use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from crawlproj.demo import render
from crawlproj.demo.articles import combined_version
from crawlproj.demo.model import DemoLink, DemoPage
from crawlproj.demo.site import LONG_AGO

if TYPE_CHECKING:
    from crawlproj.demo.news_site import NewsSite

FEED_SIZE = 25
STOPS_AFTER_S = 2 * 3600.0
REPEATS_EVERY_S = 300.0
"""A feed that repeats itself is a new one so often: the same entries in another order."""
NEWS_SITEMAP_S = 2 * 86_400.0
PARTS = 4
"""Sitemaps of an index; an article is in that of the rest of its number."""
DEAD_PARTS = 60

Entry = tuple[DemoLink, datetime, str]


def listed_numbers(site: NewsSite, path: str, age: float) -> tuple[int, ...]:
    """The articles that a feed or sitemap lists at an age, newest first."""
    articles = site.news_articles
    if path == site.feed_path:
        if site.news.feed_fault == "stops":
            age = min(age, STOPS_AFTER_S)
        elif site.news.feed_fault == "repeats":
            age = 0.0
        count = articles.published_count(age)
        return tuple(range(count - 1, max(articles.archived, count - FEED_SIZE) - 1, -1))
    count = articles.published_count(age)
    recent = range(count - 1, articles.archived - 1, -1)
    if path == "/news-sitemap.xml" and site.news.news_sitemap:
        return tuple(n for n in recent if articles.get(n).published > age - NEWS_SITEMAP_S)
    if path == "/sitemap.xml" and site.news.sitemaps == "flat":
        return tuple(recent)
    if site.news.sitemaps == "index" and path in part_paths(site):
        part = part_paths(site).index(path)
        return tuple(n for n in recent if n % PARTS == part)
    return ()


def part_paths(site: NewsSite) -> tuple[str, ...]:
    """The sitemaps that the site's index names."""
    if site.news.sitemaps == "index":
        return tuple(f"/sitemap-{number}.xml" for number in range(PARTS))
    if site.news.sitemaps == "dead":
        return tuple(f"/sitemap-{number}.xml" for number in range(DEAD_PARTS))
    return ()


def source_page(site: NewsSite, path: str, age: float) -> DemoPage | None:
    """The feed or sitemap under a path; None if there is none."""
    if path == "/sitemap.xml" and site.news.sitemaps in ("index", "dead"):
        return _index_page(site, age)
    if path.startswith("/sitemap-") and (
        site.news.sitemaps == "dead" or path not in part_paths(site)
    ):
        return None
    numbers = listed_numbers(site, path, age)
    place = "sitemap"
    changed = site.articles.arrival_age(numbers[0] + 1) if numbers else LONG_AGO
    if path == site.feed_path:
        place = "feed"
        if site.news.feed_fault == "repeats":
            step = int(age / REPEATS_EVERY_S)
            changed = step * REPEATS_EVERY_S
            turn = step % len(numbers)
            numbers = numbers[turn:] + numbers[:turn]
        elif site.news.feed_fault == "now":
            changed = age
    links = [site.link_in(number, place) for number in numbers]
    dates = [site.world.datetime_at(site.articles.get(n).published) for n in numbers]
    if place == "feed" and site.news.feed_fault == "now":
        dates = [site.world.datetime_at(age)] * len(numbers)
    texts = [site.articles.paragraph(n, 0, 0)[:200] for n in numbers]
    entries = list(zip(links, dates, texts, strict=True))
    kind = "application/xml; charset=utf-8"
    if place == "feed":
        write = {"rss": _rss, "atom": _atom, "json": _json_feed}[site.news.feed or "rss"]
        kind = {"json": "application/feed+json"}.get(
            site.news.feed, f"application/{site.news.feed}+xml; charset=utf-8"
        )
    elif path == "/news-sitemap.xml":
        write = _news_sitemap
    else:
        write = _sitemap
    return DemoPage(
        place,
        changed,
        combined_version(changed),
        links=tuple(links),
        body=partial(write, site, entries),
        type=kind,
    )


def _index_page(site: NewsSite, age: float) -> DemoPage:
    links = tuple(site.make_link(path, kind="sitemap") for path in part_paths(site))
    changed = LONG_AGO
    if site.news.sitemaps == "index":
        changed = site.articles.arrival_age(site.articles.published_count(age))

    def body() -> bytes:
        rows = "".join(f"<sitemap><loc>{link.target}</loc></sitemap>\n" for link in links)
        return (
            '<?xml version="1.0" encoding="utf-8"?>\n<sitemapindex '
            f'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</sitemapindex>\n'
        ).encode()

    return DemoPage(
        "sitemap",
        changed,
        combined_version(changed),
        links=links,
        body=body,
        type="application/xml; charset=utf-8",
    )


def _rss(site: NewsSite, entries: Sequence[Entry]) -> bytes:
    return render.rss_xml(site.spec.title, site.make_link("/").target, entries).encode()


def _atom(site: NewsSite, entries: Sequence[Entry]) -> bytes:
    rows = [(link, when, when) for link, when, _ in entries]
    return render.atom_xml(site.spec.title, site.make_link("/").target, rows).encode()


def _json_feed(site: NewsSite, entries: Sequence[Entry]) -> bytes:
    items = [
        {
            "id": link.target,
            "url": link.target,
            "title": link.text,
            "summary": text,
            "date_published": when.isoformat(),
        }
        for link, when, text in entries
    ]
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": site.spec.title,
        "home_page_url": site.make_link("/").target,
        "items": items,
    }
    return json.dumps(feed).encode()


def _sitemap(site: NewsSite, entries: Sequence[Entry]) -> bytes:
    return render.sitemap_xml([(link, when) for link, when, _ in entries]).encode()


def _news_sitemap(site: NewsSite, entries: Sequence[Entry]) -> bytes:
    rows = "".join(
        f"<url><loc>{link.target}</loc><news:news><news:publication><news:name>{site.spec.title}"
        "</news:name><news:language>en</news:language></news:publication>"
        f"<news:publication_date>{when.isoformat()}</news:publication_date>"
        f"<news:title>{link.text}</news:title></news:news></url>\n"
        for link, when, _ in entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<urlset '
        'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
        f'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">\n{rows}</urlset>\n'
    ).encode()
