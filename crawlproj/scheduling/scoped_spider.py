"""The base of the general spiders: they say where a crawl begins and what belongs to it, and the
rest of crawlproj does all else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import scrapy

from crawlproj.config import parse_boolean, parse_integer
from crawlproj.errors import ConfigError
from crawlproj.urls.scope import Scope

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class ScopedSpider(scrapy.Spider):
    """Follows the links that its scope wants; what each page says is kept by the pipelines.

    A spider made from it sets `wants` and `seeds` when it is made, and `roots` if there is
    somewhere to begin without seeds. `arguments` are those that it takes by `-a`.
    """

    arguments: ClassVar[tuple[str, ...]] = ("depth",)
    wants: Scope
    seeds: list[str]
    roots: list[str]
    wants_articles = False
    """Whether pages that are articles come out as items."""

    def __init__(self, *, depth: str | None = None, **kwargs: Any) -> None:
        check_arguments(kwargs, self.arguments)
        super().__init__(**kwargs)
        self.depth = read_depth(depth)
        self.wants = Scope()
        self.seeds = []
        self.roots = []
        self._stored_seeds: dict[str, None] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        depth = read_depth(kwargs.get("depth"))
        if depth:
            crawler.settings.set("FRONTIER_DEPTH", depth, priority="spider")
        return super().from_crawler(crawler, *args, **kwargs)

    def learn_seeds(self, urls: Iterable[str]) -> None:
        """Take in seeds that are known from before, or that a seed has moved to.

        Where there are none at all, the crawl begins at its roots.
        """
        learned = list(urls)
        # Each once: a seed that has moved says so on each visit.
        self._stored_seeds |= dict.fromkeys(learned)
        self.widen_scope(learned)
        if not self._stored_seeds and not self.seeds:
            self.seeds = self.roots

    def widen_scope(self, seeds: Iterable[str]) -> None:
        """Let learned seeds belong to the crawl: here, with all of their hosts."""
        self.wants.add_seeds(seeds)

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url in self.seeds:
            yield scrapy.Request(url)
        if not self.seeds:
            # Those of earlier runs, which are all learned before the start.
            for url in list(self._stored_seeds):
                yield scrapy.Request(url, meta={"stored_seed": True})

    def parse(self, response: Response) -> None:
        """Yield nothing: links and text are taken by the pipelines."""


def check_arguments(given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise ConfigError for an argument that a spider does not take. Scrapyd gives `_job`."""
    unknown = sorted(name for name in given if name != "name" and not name.startswith("_"))
    if unknown:
        raise ConfigError(f"unknown argument {unknown[0]!r}; there are: {', '.join(known)}")


def read_flag(name: str, word: str | None) -> bool:
    """An argument that is 1 or 0."""
    try:
        return parse_boolean(word or "0")
    except ValueError as error:
        raise ConfigError(f"{name} = {word!r} makes no sense: it must be {error}") from None


def read_depth(depth: str | None) -> int:
    """The depth that the crawl is limited to; 0: it is not limited."""
    try:
        return parse_integer(depth or 0)
    except ValueError as error:
        raise ConfigError(f"depth = {depth!r} makes no sense: it must be {error}") from None
