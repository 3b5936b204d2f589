"""The demo web of news sites is what the judge takes it for."""

from __future__ import annotations

import json
from collections import deque

import pytest

from crawlproj.demo import Web, find_profile
from crawlproj.demo.clock import EPOCH
from crawlproj.demo.news_site import NewsSite
from crawlproj.demo.news_truth import BAIT_KINDS, NewsTruth

HOUR_S = 3600.0
END = EPOCH + 12 * HOUR_S


@pytest.fixture(scope="module")
def truth() -> NewsTruth:
    return NewsTruth(Web(find_profile("newsweb")))


def site_called(truth: NewsTruth, title: str) -> NewsSite:
    return next(site for site in truth.sites.values() if site.spec.title == title)


def read(truth: NewsTruth, site: NewsSite, path: str, age: float) -> str:
    page = site.find_page(path, age)
    assert page is not None
    return page.body().decode()


def test_twenty_sites_publish_two_thousand_articles_in_a_rhythm(truth: NewsTruth) -> None:
    new = [article for article in truth.articles_at(END) if article.published > EPOCH]
    assert 1800 < len(new) < 2400
    assert len(truth.sites) == 20
    assert sum(bool(site.feed_path) for site in truth.sites.values()) == 14
    assert sum(not truth.has_source(host) for host in truth.sites) == 6
    rates = sorted(site.news.daily for site in truth.sites.values())
    assert rates[-1] / rates[0] == pytest.approx(50)
    busy = site_called(truth, "Agency One")
    hours = [
        busy.articles.published_count(h * HOUR_S) - busy.articles.published_count((h - 1) * HOUR_S)
        for h in range(1, 24)
    ]
    assert max(hours) > 8 * min(hours)


def test_some_articles_are_on_pages_of_sections_only(truth: NewsTruth) -> None:
    for title, clicks in (("Hill Herald", 1), ("River Report", 1), ("Island Post", 2)):
        site = site_called(truth, title)
        assert site.news.front != "new"
        number = site.articles.published_count(HOUR_S) - 1
        sources = truth.article(site.spec.host, number).sources
        assert sources and "/" not in sources
        near = {link.written_href for link in site.nav_links}
        assert (f"/{site.spec.sections[0]}" in near) == (clicks == 1)
        assert site.articles.get(number).path not in read(truth, site, "/", HOUR_S)
        assert site.articles.get(number).path in read(truth, site, sources[0], HOUR_S)


def test_every_address_of_an_article_is_known_as_its(truth: NewsTruth) -> None:
    kinds = set()
    for host, site in truth.sites.items():
        number = site.spec.articles - 1
        paths = {site.address_in(number, place) for place in ("front", "feed", "sitemap")}
        paths |= {link.written_href for link in site.other_links(number)}
        own = site.articles.get(number).path
        for path in paths:
            found = truth.judge(host, path, EPOCH)
            assert found.number == number
            assert (found.kind == "article") == (path == own)
            kinds.add(found.kind)
            assert f'rel="canonical" href="{site.article_url(number)}"' in read(
                truth, site, path, 0.0
            )
        unpublished = site.articles.published_count(0.0) + 3
        site.articles.published_count(12 * HOUR_S)
        if site.articles.published_count(12 * HOUR_S) > unpublished:
            path = site.articles.get(unpublished).path
            assert truth.judge(host, path, EPOCH).kind == "missing"
    assert kinds == {"article", "slug", "amp", "print"}


def test_archived_articles_are_six_clicks_deep_and_linked_from_nowhere_else(
    truth: NewsTruth,
) -> None:
    site = site_called(truth, "Hill Herald")
    depths = {"/": 0}
    queue = deque(["/"])
    while queue:
        path = queue.popleft()
        page = site.find_page(path, HOUR_S)
        assert page is not None
        for link in page.links:
            split = truth.web.split_url(link.target)
            if split and split[1] not in depths and link.kind == "a":
                depths[split[1]] = depths[path] + 1
                queue.append(split[1])
    archived = [
        depths[site.articles.get(number).path] for number in range(site.news_articles.archived)
    ]
    assert len(archived) == 120
    assert max(archived) == 6 and min(archived) == 4


def test_bait_links_bait_for_ever(truth: NewsTruth) -> None:
    site = site_called(truth, "River Report")
    assert {"/forum/", "/calendar/2026/01/"} <= {link.written_href for link in site.nav_links}
    for path in ("/forum/", "/calendar/2026/01/"):
        met = {path}
        for _ in range(30):
            page = site.find_page(path, 0.0)
            assert page is not None and page.kind in BAIT_KINDS
            new = [
                link.written_href
                for link in page.links
                if link.written_href.startswith(path[:6]) and link.written_href not in met
            ]
            path = new[0]
            met.add(path)


def test_feeds_that_are_of_no_use(truth: NewsTruth) -> None:
    early, late = 3 * HOUR_S, 9 * HOUR_S
    stops = site_called(truth, "Evening Echo")
    assert read(truth, stops, "/feed.xml", early) == read(truth, stops, "/feed.xml", late)
    repeats = site_called(truth, "Market Mirror")
    pages = [read(truth, repeats, "/news.atom", age) for age in (early, late + 300)]
    assert pages[0] != pages[1]
    assert sorted(pages[0].split("<entry>")[1:])[0][:80] in pages[1]
    numbers = [repeats.listed_numbers("/news.atom", age) for age in (early, late)]
    assert numbers[0] == numbers[1]
    now = site_called(truth, "Orchard News")
    dates = [read(truth, now, "/feed.xml", age).split("<pubDate>")[1:] for age in (early, late)]
    assert len({each.partition("<")[0] for each in dates[1]}) == 1
    assert dates[0][0][:25] != dates[1][0][:25]
    missed = [a for a in truth.articles_at(END) if a.published > EPOCH and not a.in_feed]
    assert {a.host for a in missed if truth.has_source(a.host)} == {
        stops.spec.host,
        repeats.spec.host,
    }


def test_sources_of_all_kinds(truth: NewsTruth) -> None:
    feed = json.loads(read(truth, site_called(truth, "Harbour Post"), "/feed.json", HOUR_S))
    assert feed["items"][0]["url"].startswith("http://")
    index = site_called(truth, "Valley Courier")
    parts = {path for path in truth.source_paths(index.spec.host) if "sitemap-" in path}
    listed = [number for path in parts for number in index.listed_numbers(path, HOUR_S)]
    assert sorted(listed) == list(range(index.articles.published_count(HOUR_S)))
    dead = site_called(truth, "Lake Tribune")
    page = dead.find_page("/sitemap.xml", 0.0)
    assert page is not None and len(page.links) > 20
    assert dead.find_page("/sitemap-1.xml", 0.0) is None
    assert "news:publication_date" in read(
        truth, site_called(truth, "Agency One"), "/news-sitemap.xml", HOUR_S
    )
