"""News spiders: what the attributes of a class say, and what is refused in one line."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from crawlproj.errors import ConfigError, MistakesError
from crawlproj.news.spider import NewsSpider, SitesSpider
from crawlproj.scheduling.spider import (
    KnowsSites,
    LearnsSeeds,
    scope_of,
    seeds_of,
    site_rules_of,
    wants_articles,
)
from spiders.news import NewsFileSpider
from spiders.site import SiteSpider


class ExampleSpider(NewsSpider):
    name = "example"
    domains = ("example.org", "www.example.com")
    sources = "https://feeds.test/example"
    article = r"^/[0-9]{4}/"
    listing = (r"^/news/$", r"/$")
    ignore = r"^/2024/calendar/"
    fields = {"title": "h1::text"}  # noqa: RUF012


def made(**attributes: Any) -> NewsSpider:
    spider: type[NewsSpider] = type(
        "MadeSpider", (NewsSpider,), {"name": "made", "domains": ["example.org"], **attributes}
    )
    return spider()


def test_a_spider_says_what_a_site_is() -> None:
    spider = ExampleSpider()
    assert spider.seeds == [
        "https://example.org/",
        "https://www.example.com/",
        "https://feeds.test/example",
    ]
    site = spider.site_of("https://blog.example.org/2024/x")
    assert site is not None and site.name == "example" and site.fields == {"title": "h1::text"}
    verdicts = [
        site.verdict(f"https://example.org{path}")
        for path in ("/2024/calendar/5", "/2024/05/x", "/news/", "/x")
    ]
    assert verdicts == ["ignore", "article", "listing", ""]
    assert spider.site_of("https://example.net/") is None


def test_what_scheduling_asks_of_a_spider_is_there() -> None:
    spider = ExampleSpider()
    assert isinstance(spider, LearnsSeeds) and isinstance(spider, KnowsSites)
    assert scope_of(spider) is spider.wants
    assert seeds_of(spider) == spider.seeds
    assert wants_articles(spider) and not wants_articles(SiteSpider())
    site = SiteSpider(articles="1")
    assert site.articles and wants_articles(site)
    assert site_rules_of(site, "http://example.org/") is None
    known = site_rules_of(spider, "http://example.org/")
    assert known is not None and known.name == "example"


def test_the_scope_is_the_domains_without_what_is_ignored() -> None:
    spider = ExampleSpider()
    assert spider.wants("https://www.example.org/x")
    assert spider.wants.reason("https://example.org/2024/calendar/5") == "rule"
    assert spider.wants("https://feeds.test/example"), "the source itself"
    assert spider.wants.reason("https://feeds.test/other") == "host"
    spider.learn_seeds(["https://moved.test/feed"])
    assert spider.wants("https://moved.test/feed"), "where a source has moved to"
    assert spider.wants.reason("https://moved.test/") == "host"


def test_start_asks_for_seeds_and_sources_and_logs_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spider = ExampleSpider()
    spider.use_sites(spider.sites, ["something to know"])

    async def urls() -> list[str]:
        return [request.url async for request in spider.start()]

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(urls()) == spider.seeds
    assert [record.message for record in caplog.records] == ["something to know"]


def test_words_of_scrapy_are_understood() -> None:
    class Plain(NewsSpider):
        name = "plain"
        allowed_domains = ("example.org",)
        start_urls = ("http://example.org/news/",)  # type: ignore[assignment]

    spider = Plain()
    assert spider.seeds == ["http://example.org/news/"]
    assert spider.wants("http://www.example.org/")


def test_a_spider_may_be_made_from_another() -> None:
    class Other(ExampleSpider):
        name = "other"
        domains = ("example.net",)
        ignore = ()

    assert Other().sites.verdict("http://example.net/2024/calendar/1") == "article"


def test_pages_are_parsed_by_nobody() -> None:
    assert ExampleSpider().parse(None) is None  # type: ignore[arg-type, func-returns-value]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"domains": []}, "spider made: domains: there are none"),
        ({"domains": ["https://example.org/"]}, "spider made: domains: 'https://example.org/' is"),
        ({"domains": [], "allowed_domains": ["a b"]}, "spider made: allowed_domains: 'a b' is"),
        ({"domains": 5}, "spider made: domains: 5 must be a text or a list"),
        ({"domains": [5]}, "spider made: domains: 5 must be a text that is not empty"),
        ({"seeds": ["nowhere"]}, "spider made: seeds: not a web address: 'nowhere'"),
        ({"seeds": ["http://example.net/"]}, "spider made: seeds: http://example.net/ is in none"),
        ({"sources": [""]}, "spider made: sources: '' must be a text that is not empty"),
        ({"article": "("}, "spider made: article: regex = '(' is not a regular expression"),
        ({"listing": ["x", "(?=y)"]}, "spider made: listing: regex = '(?=y)' is not"),
        ({"ignore": r"https?://example\.org/x"}, "spider made: ignore: regex = "),
        ({"fields": {"titel": "h1"}}, "spider made: fields: an article has no field 'titel': did"),
        ({"fields": {"title": "h1[["}}, "'h1[['"),
        ({"fields": {"title": ""}}, "spider made: fields: 'title': '' must be a selector"),
        ({"fields": ["title"]}, "spider made: fields: ['title'] must be a dictionary"),
        ({"source": "x"}, "spider made: source: unknown attribute; did you mean sources?"),
        ({"articles": "x"}, "spider made: articles: unknown attribute; did you mean article?"),
    ],
)
def test_a_mistake_names_spider_and_attribute(attributes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        made(**attributes)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="unknown argument 'seeds'; there are: depth"):
        ExampleSpider(seeds="http://example.org/")
    with pytest.raises(ConfigError, match="depth = 'x' makes no sense"):
        ExampleSpider(depth="x")
    assert ExampleSpider(depth="3", _job="1").depth == 3


def test_a_file_of_sites_makes_one_spider(tmp_path: Path) -> None:
    path = tmp_path / "sites.yaml"
    path.write_text(
        "sites:\n- {name: a, domains: [a.test], rules: [ignore: {prefix: /x}]}\n"
        "- {name: b, domains: [b.test], sources: ['http://b.test/feed']}\n"
    )
    spider = NewsFileSpider(sites=str(path))
    assert spider.seeds == ["https://a.test/", "https://b.test/", "http://b.test/feed"]
    assert [site.name for site in spider.sites] == ["a", "b"]
    assert spider.wants.reason("http://a.test/x/1") == "rule" and spider.wants("http://b.test/x/1")
    only = NewsFileSpider(sites=str(path), only=" b ,")
    assert [site.name for site in only.sites] == ["b"]
    assert only.wants.reason("http://a.test/") == "host"
    # In another order the scope is the same.
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[2], lines[1]]))
    assert NewsFileSpider(sites=str(path)).wants.rules == spider.wants.rules


def test_bad_arguments_of_the_file_spider_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"-a sites=FILE\.yaml, a file such as `sites: \[\{name"):
        NewsFileSpider()
    with pytest.raises(ConfigError, match="can't be read: No such file"):
        NewsFileSpider(sites="nowhere.yaml")
    path = tmp_path / "sites.yaml"
    path.write_text("sites: [{name: example, domains: [a.test]}]")
    with pytest.raises(ConfigError, match=r"has no site 'exmple': did you mean example\?"):
        NewsFileSpider(sites=str(path), only="exmple")
    with pytest.raises(ConfigError, match="has no site ''; there are: example"):
        NewsFileSpider(sites=str(path), only="")
    with pytest.raises(ConfigError, match="unknown argument 'site'; there are: sites, only, depth"):
        NewsFileSpider(site=str(path))
    path.write_text("sites: [{domain: [a.test]}, {nme: x}]")
    with pytest.raises(MistakesError) as error:
        NewsFileSpider(sites=str(path))
    assert len(error.value.lines) == 2


def test_a_spider_of_no_sites_wants_nothing() -> None:
    class Empty(SitesSpider):
        name = "empty"

    assert not Empty().wants("http://example.org/")
