"""Crawl news sites that a file states: `scrapy crawl news -a sites=FILE.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crawlproj.errors import ConfigError
from crawlproj.news.sites import read_sites
from crawlproj.news.spider import SitesSpider
from crawlproj.news.yaml_file import nearest


class NewsFileSpider(SitesSpider):
    """Hundreds of sites without code: `sites` is the file, relative to the current folder, `only`
    the names of some of its sites, parted by commas.
    """

    name = "news"
    arguments = ("sites", "only", "depth")

    def __init__(self, sites: str | None = None, only: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not sites:
            raise ConfigError(
                "say which sites: -a sites=FILE.yaml, a file such as `sites: [{name: example, "
                "domains: [example.org]}]` (docs/news.md has the whole form)"
            )
        file = read_sites(Path(sites))
        if only is not None:
            names = [name.strip() for name in only.split(",") if name.strip()]
            known = [site.name for site in file.sites]
            unknown = [name for name in names if name not in known]
            if unknown or not names:
                word = (unknown or [""])[0]
                raise ConfigError(f"only: {sites} has no site {word!r}{nearest(word, known)}")
            file = file.choose_sites(names)
        self.use_sites(file.sites, file.warnings)
