"""Crawl whole sites: `scrapy crawl site -a seeds=https://example.org/`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Self

import scrapy

from crawlproj.config import parse_boolean, parse_integer
from crawlproj.errors import ConfigError
from crawlproj.urls.scope import Scope, ScopeRules, read_domains, read_hosts, read_seeds

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class SiteSpider(scrapy.Spider):
    """Follows the links of the seeds' domains; what each page says is kept by the pipelines.

    `domains`, `hosts` and `everything` open it further, `include` and `exclude` narrow it.
    """

    name = "site"
    arguments = (
        "seeds",
        "seeds_file",
        "domains",
        "hosts",
        "everything",
        "include",
        "exclude",
        "depth",
    )

    def __init__(
        self,
        seeds: str | None = None,
        seeds_file: str | None = None,
        include: str | None = None,
        exclude: str | None = None,
        depth: str | None = None,
        domains: str | None = None,
        hosts: str | None = None,
        everything: str | None = None,
        **kwargs: Any,
    ) -> None:
        # Scrapyd gives _job.
        unknown = sorted(name for name in kwargs if name != "name" and not name.startswith("_"))
        if unknown:
            raise ConfigError(
                f"unknown argument {unknown[0]!r}; there are: {', '.join(self.arguments)}"
            )
        super().__init__(**kwargs)
        self.depth = read_depth(depth)
        self.seeds = read_seeds(seeds, seeds_file)
        rules = ScopeRules(
            include=include or "",
            exclude=exclude or "",
            domains=read_domains(domains),
            hosts=read_hosts(hosts),
            everything=read_everything(everything),
        )
        self.wants = Scope(rules)
        self.wants.add_seeds(self.seeds)
        self._stored_seeds: list[str] = []
        self.roots = [f"http://{name}/" for name in sorted(rules.domains)]

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        depth = read_depth(kwargs.get("depth"))
        if depth:
            crawler.settings.set("FRONTIER_DEPTH", depth, priority="spider")
        return super().from_crawler(crawler, *args, **kwargs)

    def learn_seeds(self, urls: Iterable[str]) -> None:
        """Take in seeds that are known from before, or that a seed has moved to.

        Where there are none at all, the crawl begins at the roots of its domains.
        """
        learned = list(urls)
        self._stored_seeds += learned
        self.wants.add_seeds(learned)
        if not self._stored_seeds and not self.seeds:
            self.seeds = self.roots

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url in self.seeds:
            yield scrapy.Request(url)
        if not self.seeds:
            # Those of earlier runs, which are all learned before the start.
            for url in list(self._stored_seeds):
                yield scrapy.Request(url, meta={"stored_seed": True})

    def parse(self, response: Response) -> None:
        """Yield nothing: links and text are taken by the pipelines."""


def read_everything(word: str | None) -> bool:
    """Whether the crawl is open to every host."""
    try:
        return parse_boolean(word or "0")
    except ValueError as error:
        raise ConfigError(f"everything = {word!r} makes no sense: it must be {error}") from None


def read_depth(depth: str | None) -> int:
    """The depth that the crawl is limited to; 0: it is not limited."""
    try:
        return parse_integer(depth or 0)
    except ValueError as error:
        raise ConfigError(f"depth = {depth!r} makes no sense: it must be {error}") from None
