"""The request that a spider would make for a page, if the original request is not known."""

from __future__ import annotations

from scrapy import Request, Spider
from scrapy.link import Link
from scrapy.spiders import CrawlSpider, SitemapSpider

from crawlproj.scheduling.spider import chooses_links
from crawlproj.urls.canonical import host_of


def has_default_callback(spider: Spider) -> bool:
    """Whether the spider has a method for responses to requests without a callback."""
    return type(spider).parse is not Spider.parse or type(spider)._parse is not Spider._parse


def default_request(spider: Spider, url: str, callback: str = "") -> Request | None:
    """The request for a page by the kind of the spider; None if the spider has no method for it.

    `callback` is the name of a method that takes all such pages.
    """
    if callback:
        return Request(url, callback=getattr(spider, callback))
    if isinstance(spider, SitemapSpider):
        for pattern, method in spider._cbs:
            if pattern.search(url):
                return Request(url, callback=method)
        return None
    if isinstance(spider, CrawlSpider):
        for number, rule in enumerate(spider._rules):
            if rule.link_extractor.matches(url):
                return spider._build_request(number, Link(url))
    if has_default_callback(spider):
        return Request(url)
    return None


def spider_wants(spider: Spider, url: str) -> bool:
    """Whether a page that this spider has not crawled itself is one for it.

    The spider's own method `wants` decides; without one, its `allowed_domains`.
    """
    if chooses_links(spider):
        return bool(spider.wants(url))
    domains = [domain.lower() for domain in getattr(spider, "allowed_domains", None) or ()]
    host = host_of(url)
    return not domains or any(host == domain or host.endswith(f".{domain}") for domain in domains)
