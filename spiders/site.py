"""Crawl whole sites: `scrapy crawl site -a seeds=https://example.org/`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Self

import scrapy

from crawlproj.config import parse_integer
from crawlproj.errors import ConfigError
from crawlproj.urls.scope import Scope, read_seeds

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class SiteSpider(scrapy.Spider):
    """Follows the links of the seeds' domains; what each page says is kept by the pipelines."""

    name = "site"

    def __init__(
        self,
        seeds: str | None = None,
        seeds_file: str | None = None,
        include: str | None = None,
        exclude: str | None = None,
        depth: str | None = None,
        **kwargs: Any,
    ) -> None:
        # Scrapyd gives _job.
        unknown = sorted(name for name in kwargs if name != "name" and not name.startswith("_"))
        if unknown:
            raise ConfigError(
                f"unknown argument {unknown[0]!r}; there are: seeds, seeds_file, include, exclude, "
                "depth"
            )
        super().__init__(**kwargs)
        self.depth = read_depth(depth)
        self.seeds = read_seeds(seeds, seeds_file)
        self.wants = Scope(include, exclude)
        self.wants.add_seeds(self.seeds)
        self._stored_seeds: list[str] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        depth = read_depth(kwargs.get("depth"))
        if depth:
            crawler.settings.set("FRONTIER_DEPTH", depth, priority="spider")
        return super().from_crawler(crawler, *args, **kwargs)

    def learn_seeds(self, urls: Iterable[str]) -> None:
        """Take in seeds that are known from before, or that a seed has moved to."""
        learned = list(urls)
        self._stored_seeds += learned
        self.wants.add_seeds(learned)

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url in self.seeds:
            yield scrapy.Request(url)
        if not self.seeds:
            # Those of earlier runs, which are all learned before the start.
            for url in list(self._stored_seeds):
                yield scrapy.Request(url, meta={"stored_seed": True})

    def parse(self, response: Response) -> None:
        """Yield nothing: links and text are taken by the pipelines."""


def read_depth(depth: str | None) -> int:
    """The depth that the crawl is limited to; 0: it is not limited."""
    try:
        return parse_integer(depth or 0)
    except ValueError as error:
        raise ConfigError(f"depth = {depth!r} makes no sense: it must be {error}") from None
