"""The demo web `newsweb`: twenty news sites, by which a crawler of news can be judged.

Fourteen have feeds (one stops, one repeats itself, the dates of one are all "now"), some of these
sitemaps, too; six have neither, and of three of these the front page shows nothing new. Seven have
an archive, nine a forum or a calendar without end.
"""

from __future__ import annotations

from dataclasses import replace

from crawlproj.demo.model import HostSpec, NewsSpec, Profile

SPREAD = 50
"""The busiest site publishes so many times as much as the quietest."""
DAILY = 4000.0
"""Articles a day of all sites together: about 2,000 in the twelve hours that are measured."""
MONTHS = 8
"""What an archive holds; fifteen articles a month."""
ARCHIVED_PER_MONTH = 15
RECENT = 12
HOURS = (4.0, 6.0, 18.0, 20.0)
"""When the web begins, on the sites' clocks: twelve hours from any of these hold half a day's
articles, or somewhat more.
"""
SECTIONS = ("world", "business", "sport", "culture")

SITES: tuple[tuple[str, NewsSpec], ...] = (
    ("Agency One", NewsSpec(feed="rss", news_sitemap=True)),
    (
        "Morning Ledger",
        NewsSpec(feed="atom", addresses="dated", variants=("amp_suffix",), calendar=True),
    ),
    ("City Wire", NewsSpec(addresses="id_first", forum=True)),
    (
        "Harbour Post",
        NewsSpec(
            feed="json",
            addresses="id_first",
            variants=("slugs", "amp_query"),
            sitemaps="flat",
            news_sitemap=True,
        ),
    ),
    ("Valley Courier", NewsSpec(feed="rss", addresses="plain", sitemaps="index", forum=True)),
    ("Evening Echo", NewsSpec(feed="rss", feed_fault="stops")),
    ("Coast Gazette", NewsSpec(addresses="dated", archive_months=MONTHS, calendar=True)),
    (
        "Meridian Daily",
        NewsSpec(
            feed="atom",
            variants=("slugs", "amp_prefix", "print"),
            news_sitemap=True,
            archive_months=MONTHS,
        ),
    ),
    ("Lake Tribune", NewsSpec(feed="rss", addresses="id_first", sitemaps="dead")),
    (
        "Orchard News",
        NewsSpec(feed="rss", feed_fault="now", addresses="plain", variants=("print",), forum=True),
    ),
    ("Hill Herald", NewsSpec(front="sections", archive_months=MONTHS)),
    (
        "Bridge Bulletin",
        NewsSpec(feed="json", addresses="dated", calendar=True, archive_months=MONTHS),
    ),
    ("Market Mirror", NewsSpec(feed="atom", feed_fault="repeats", addresses="id_first")),
    ("River Report", NewsSpec(front="sections", addresses="plain", forum=True, calendar=True)),
    ("Northern Star", NewsSpec(feed="rss", variants=("slugs",), sitemaps="flat", forum=True)),
    ("Forest Journal", NewsSpec(feed="atom", addresses="plain", archive_months=MONTHS)),
    ("Island Post", NewsSpec(front="topics", addresses="id_first", archive_months=MONTHS)),
    ("Desert Dispatch", NewsSpec(feed="json", addresses="dated", calendar=True)),
    ("Parish News", NewsSpec(addresses="dated")),
    ("Lighthouse Letter", NewsSpec(feed="rss", archive_months=MONTHS)),
)
"""From the busiest to the quietest."""


def _host(number: int) -> HostSpec:
    title, news = SITES[number]
    ratio = SPREAD ** (-1 / (len(SITES) - 1))
    busiest = DAILY * (1 - ratio) / (1 - ratio ** len(SITES))
    return HostSpec(
        f"paper{number + 1}",
        title,
        f"127.0.0.{number % 5 + 1}",
        sections=SECTIONS[: 2 + number % 3],
        articles=RECENT + news.archive_months * ARCHIVED_PER_MONTH,
        change_s=(0.0, 0.0, 0.0, 14_400.0),
        news=replace(news, daily=busiest * ratio**number, hour=HOURS[number % len(HOURS)]),
    )


NEWS_WEB = Profile(
    "newsweb",
    hosts=tuple(_host(number) for number in range(len(SITES))),
    seeds=tuple(f"paper{number + 1}" for number in range(len(SITES))),
)
