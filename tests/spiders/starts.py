"""Spiders with starts of all kinds, as the manuals have them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import Response
from scrapy.spiders import SitemapSpider


class Plain(scrapy.Spider):
    """Scrapy's own start, by start_urls."""

    name = "start_plain"

    def __init__(self, base: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.base = base
        self.start_urls = [f"{base}/"]

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, self.article)

    def article(self, response: Response) -> Iterator[dict[str, str]]:
        yield {"url": response.url}


class Own(Plain):
    """A start of its own, with a plain Request."""

    name = "start_own"

    async def start(self) -> AsyncIterator[scrapy.Request]:
        yield scrapy.Request(f"{self.base}/")


class Form(Plain):
    """A start by POST, with a callback."""

    name = "start_form"

    async def start(self) -> AsyncIterator[scrapy.Request]:
        yield scrapy.FormRequest(
            f"{self.base}/search", formdata={"q": "news"}, callback=self.parse, cb_kwargs={}
        )


class Map(SitemapSpider):
    """A sitemap that is known."""

    name = "start_map"
    sitemap = "/sitemap.xml"

    def __init__(self, base: str, **kwargs: Any) -> None:
        self.sitemap_urls = [f"{base}{self.sitemap}"]
        super().__init__(**kwargs)

    def parse(self, response: Response) -> Iterator[dict[str, str]]:
        yield {"url": response.url}


class RobotsMap(Map):
    """Sitemaps that a robots.txt names."""

    name = "start_robots_map"
    sitemap = "/robots.txt"
