from __future__ import annotations

import pytest

from crawlproj.errors import ConfigError
from crawlproj.frontier.base import CrawlSpec
from crawlproj.scheduling.spider import check_scope
from spiders.site import SiteSpider


@pytest.mark.parametrize("wide", [{"hosts": r"\.cz$"}, {"everything": "1"}, {"domains": "si"}])
def test_a_scope_without_an_end_needs_a_limit(wide: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"needs a limit: -a depth=N, -s FRONTIER_PAGES=N"):
        check_scope(SiteSpider(seeds="http://example.cz/", **wide), CrawlSpec("site"))
    check_scope(SiteSpider(**wide, depth="3"), CrawlSpec("site"))
    limits = ({"max_depth": 3}, {"pages": 9}, {"bytes": 9})
    for limit in limits:
        check_scope(SiteSpider(**wide), CrawlSpec("site", **limit))  # type: ignore[arg-type]
    check_scope(SiteSpider(domains="gov.si"), CrawlSpec("site"))


def test_a_crawl_without_seeds_begins_at_the_roots_of_its_domains() -> None:
    spider = SiteSpider(domains="gov.si,example.org")
    spider.learn_seeds([])
    assert spider.seeds == ["http://example.org/", "http://gov.si/"]
    for known in (SiteSpider(domains="gov.si"), SiteSpider(domains="gov.si", seeds="a.gov.si")):
        given = list(known.seeds)
        known.learn_seeds(["http://b.gov.si/"])
        assert known.seeds == given


def test_arguments_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="everything = 'perhaps' makes no sense"):
        SiteSpider(everything="perhaps")
    with pytest.raises(ConfigError, match=r"hosts = .* not a regular expression"):
        SiteSpider(hosts="(")
