"""Crawl whole sites: `scrapy crawl site -a seeds=https://example.org/`."""

from __future__ import annotations

from typing import Any

from crawlproj.news.opml import is_opml_file, read_opml_file
from crawlproj.scheduling.scoped_spider import ScopedSpider, read_flag
from crawlproj.urls.scope import Scope, ScopeRules, read_domains, read_hosts, read_seeds


class SiteSpider(ScopedSpider):
    """Follows the links of the seeds' domains; what each page says is kept by the pipelines.

    `domains`, `hosts` and `everything` open it further, `include` and `exclude` narrow it. With
    `articles` pages that are articles come out as items.
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
        "articles",
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
        articles: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(depth=depth, **kwargs)
        self.articles = read_flag("articles", articles)
        self.wants_articles = self.articles
        sites: list[str] = []
        if seeds_file is not None and is_opml_file(seeds_file):
            feeds = read_opml_file(seeds_file)
            seeds_file = None
            sites = [feed.site for feed in feeds if feed.site]
            self.seeds = list(dict.fromkeys([*read_seeds(seeds, None), *(f.url for f in feeds)]))
        else:
            self.seeds = read_seeds(seeds, seeds_file)
        rules = ScopeRules(
            include=include or "",
            exclude=exclude or "",
            domains=read_domains(domains),
            hosts=read_hosts(hosts),
            everything=read_flag("everything", everything),
        )
        self.wants = Scope(rules)
        self.wants.add_seeds([*self.seeds, *sites])
        self.roots = [f"http://{name}/" for name in sorted(rules.domains)]
