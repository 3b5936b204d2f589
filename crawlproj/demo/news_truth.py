"""What is true of the news sites of a demo web at any moment: which articles exist, since when,
what lists them, and what each URL is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from crawlproj.demo import news_sources
from crawlproj.demo.news_site import NewsSite
from crawlproj.demo.site import canonical_target
from crawlproj.demo.web import Web

ARTICLE_KINDS = frozenset({"article", "slug", "amp", "print"})
SOURCE_KINDS = frozenset({"feed", "sitemap", "front", "section"})
BAIT_KINDS = frozenset({"forum", "calendar"})


@dataclass(frozen=True, slots=True)
class NewsArticle:
    """`published` is unix time. `sources`: the paths of the feed, sitemaps, front page and section
    that list it when it is published, or at the first moment if it is older; without any it is in
    the archive.
    """

    host: str
    number: int
    url: str
    published: float
    sources: tuple[str, ...]
    in_feed: bool


@dataclass(frozen=True, slots=True)
class UrlTruth:
    """What a URL is: article, slug, amp or print (other addresses of an article), feed, sitemap,
    front, section, archive, forum, calendar, robots, page, image, or missing. `number`: of the
    article, if it is one's.
    """

    kind: str
    number: int | None = None


class NewsTruth:
    """The truth about those hosts of a web that are news sites, by full host name."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.sites = {
            site.spec.host: site for site in web.sites.values() if isinstance(site, NewsSite)
        }
        self._sources = lru_cache(maxsize=100_000)(self._find_sources)

    def count_at(self, host: str, at: float) -> int:
        """How many articles the host has published by a moment (unix time)."""
        return self.sites[host].articles.published_count(self.web.world.age_at(at))

    def articles_at(self, at: float) -> list[NewsArticle]:
        """All articles that exist at a moment, of all sites, by site from the oldest."""
        return [
            self.article(host, number)
            for host in self.sites
            for number in range(self.count_at(host, at))
        ]

    def article(self, host: str, number: int) -> NewsArticle:
        site = self.sites[host]
        sources = self._sources(host, number)
        return NewsArticle(
            host,
            number,
            site.article_url(number),
            published=self.web.world.unix_time(site.articles.get(number).published),
            sources=sources,
            in_feed=site.feed_path in sources,
        )

    def _find_sources(self, host: str, number: int) -> tuple[str, ...]:
        site = self.sites[host]
        age = max(0.0, site.articles.get(number).published)
        return tuple(
            path for path in self.source_paths(host) if number in site.listed_numbers(path, age)
        )

    def source_paths(self, host: str) -> tuple[str, ...]:
        """The paths of all that lists new articles of a host."""
        site = self.sites[host]
        parts = news_sources.part_paths(site) if site.news.sitemaps == "index" else ()
        return (*site.source_paths, *parts, *site.list_paths)

    def lists(self, host: str, path: str, number: int, at: float) -> bool:
        """Whether a source of the host lists an article at a moment."""
        return number in self.sites[host].listed_numbers(path, self.web.world.age_at(at))

    def has_source(self, host: str) -> bool:
        """Whether the host has a feed or sitemaps, be they of use or not."""
        return bool(self.sites[host].source_paths)

    def judge(self, host: str, target: str, at: float) -> UrlTruth:
        """What stands under a path (with its query) of a host at a moment."""
        site = self.sites[host]
        key = canonical_target(target)
        page = site.find_page(key, self.web.world.age_at(at))
        if page is None:
            return UrlTruth("missing")
        number = None
        if page.kind in ARTICLE_KINDS:
            found = site.number_under(key)
            number = found[0] if found else None
        return UrlTruth(page.kind, number)
