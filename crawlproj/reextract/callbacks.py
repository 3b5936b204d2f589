"""What a spider would ask for a page with, if nobody has noted it."""

from __future__ import annotations

from scrapy import Request, Spider
from scrapy.link import Link
from scrapy.spiders import CrawlSpider, SitemapSpider

from crawlproj.urls.canonical import host_of


def has_default(spider: Spider) -> bool:
    """Whether it has a method for pages that say nothing of a callback."""
    return type(spider).parse is not Spider.parse or type(spider)._parse is not Spider._parse


def default_request(spider: Spider, url: str, callback: str = "") -> Request | None:
    """None if the spider would not know what to do with it. `callback` is the name of a method that
    takes them all.
    """
    if callback:
        return Request(url, callback=getattr(spider, callback))
    if isinstance(spider, SitemapSpider):
        return next(
            (Request(url, callback=own) for pattern, own in spider._cbs if pattern.search(url)),
            None,
        )
    if isinstance(spider, CrawlSpider):
        for number, rule in enumerate(spider._rules):
            if rule.link_extractor.matches(url):
                return spider._build_request(number, Link(url))
    return Request(url) if has_default(spider) else None


def spider_wants(spider: Spider, url: str) -> bool:
    """Is a page that was not crawled by this spider one for it?"""
    if (own := getattr(spider, "wants", None)) is not None:
        return bool(own(url))
    domains = [domain.lower() for domain in getattr(spider, "allowed_domains", None) or ()]
    name = host_of(url)
    return not domains or any(name == domain or name.endswith(f".{domain}") for domain in domains)
