"""A crawl of news sites that publish all the time, judged by their server's log: every article soon
after it is published, also where nothing but a front page tells of it, and beside bait without end.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from crawlproj.demo import DemoServer, Profile, find_profile
from crawlproj.demo.news_truth import BAIT_KINDS
from tests.support.crawling import run_crawl
from tests.support.news_judge import (
    fetches_per_article,
    judge_crawl,
    scaled_settings,
    share_of,
    write_sites,
)

SPEED = 600.0
RUN_S = 45.0
GRACE_S = 8.0
"""Articles of the last seconds (80 minutes of the web's time) need not be there yet."""
HOUR_S = 3600.0
TITLES = ("Agency One", "City Wire", "Meridian Daily", "River Report", "Lighthouse Letter")
"""Feeds, slugs and an archive; two have no feed, and a forum or a calendar."""
BAIT_SHARE = 0.9
"""So much of the requests to sites with bait may go into it while there is nothing else to do."""


def choose_web() -> Profile:
    hosts = [
        dataclasses.replace(host, news=dataclasses.replace(host.news, daily=400.0, hour=8.0))
        for host in find_profile("newsweb").hosts
        if host.title in TITLES and host.news is not None
    ]
    return Profile("few", tuple(hosts), tuple(host.name for host in hosts))


@pytest.mark.proof
def test_articles_are_fetched_soon_after_they_are_published(
    database_url: str, tmp_path: Path
) -> None:
    with DemoServer(choose_web(), speed=SPEED) as demo:
        sites = tmp_path / "sites.yaml"
        sites.write_text(write_sites(demo.web))
        settings = {
            **scaled_settings(SPEED),
            "DATABASE_URL": database_url,
            "DNS_HOSTS": demo.dns_hosts,
            "CLOSESPIDER_TIMEOUT": RUN_S,
            "ARTICLE_PROCESSES": 0,
        }
        result = run_crawl(["news", "-a", f"sites={sites}"], settings, tmp_path / "c", RUN_S + 40)
        figures, truth = judge_crawl(demo.log.records(), demo.web, until=time.time())
    assert result.code == 0, result.stderr + result.log
    every = truth.articles_at(figures.ended - GRACE_S)
    new = [article for article in every if article.published > figures.begun]
    feeds = [article for article in new if article.in_feed]
    no_feed = [article for article in new if not truth.has_source(article.host)]
    assert len(feeds) > 100 and len(no_feed) > 60
    assert share_of(feeds, figures.first)[2] >= 0.99
    assert share_of(no_feed, figures.first)[2] >= 0.95

    # What was published two hours later was fetched later, too.
    for host in truth.sites:
        came = sorted(
            (article.published, figures.first[host, article.number])
            for article in feeds
            if article.host == host and (host, article.number) in figures.first
        )
        for published, at in came:
            later = [other for when, other in came if (when - published) * SPEED > 2 * HOUR_S]
            assert all(at <= other for other in later)

    archived = [article for article in every if not article.sources]
    assert share_of(archived, figures.first)[2] > 0.5
    bait = sum(fetch.truth.kind in BAIT_KINDS for fetch in figures.fetches)
    assert bait < BAIT_SHARE * len(figures.fetches)
    assert fetches_per_article(figures)[-1] <= 2
