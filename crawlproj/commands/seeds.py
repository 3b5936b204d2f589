"""`scrapy seeds`: the URLs where crawls begin."""

from __future__ import annotations

import argparse
import shlex
import sys

from scrapy.spiderloader import get_spider_loader

from crawlproj.cli.command import (
    DEFAULT_CRAWL,
    FINE,
    ProjectCommand,
    add_crawl,
    add_json,
    print_json,
    print_lines,
    read_urls,
    warn_of_forgotten,
)
from crawlproj.cli.next_commands import option_words, scrapy_program
from crawlproj.config import Config
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_count
from crawlproj.frontier.base import Found, NewUrl
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading, open_for_writing, open_frontier
from crawlproj.frontier.seen import depth_score
from crawlproj.news.opml import is_opml_file, read_opml_file
from crawlproj.scheduling.notifications import SEEDS
from crawlproj.urls.canonical import host_of, url_key


class Command(ProjectCommand):
    words = (1, sys.maxsize)

    def syntax(self) -> str:
        return "add URL|FILE.opml... | list [--json]  [--crawl NAME]"

    def short_desc(self) -> str:
        return "Add or list the URLs where a crawl begins"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json(parser)
        add_crawl(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        verb, *rest = words
        if verb == "add" and rest:
            return self._add(config, rest, opts)
        if verb == "list" and not rest:
            return self._list(config, opts)
        raise ConfigError(f"usage: scrapy seeds {self.syntax()}")

    def _add(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        urls = _read_words(words)
        with open_for_writing(config) as database:
            name = self.crawl_name(database, opts)
            frontier = open_frontier(database, config, name, make=True)
            result = frontier.add(
                [
                    NewUrl(
                        url_key(name, url),
                        url,
                        host_of(url),
                        depth=0,
                        score=depth_score(0),
                        found=Found.SEED,
                    )
                    for url in urls
                ]
            )
            warn_of_forgotten(database, urls)
            database.notify(SEEDS, name)
            hint = f"Start with: {self._start_command(config, name)}"
            if database.fetch_value("status_has_workers", name=name):
                hint = "The running crawl takes them up."
        print_lines(
            f"{format_count(len(urls), 'seed')} for crawl {name}, {result.added} not known before. "
            f"{hint}"
        )
        return FINE

    def _start_command(self, config: Config, crawl: str) -> str:
        """The command that runs this crawl: by the spider of that name, or else by another."""
        assert self.settings is not None
        spiders = get_spider_loader(self.settings).list()
        command = f"{scrapy_program()} crawl "
        if crawl in spiders:
            command += shlex.quote(crawl)
        elif DEFAULT_CRAWL in spiders or len(spiders) == 1:
            spider = DEFAULT_CRAWL if DEFAULT_CRAWL in spiders else spiders[0]
            command += f"{spider} -s CRAWL_NAME={shlex.quote(crawl)}"
        else:
            command += f"SPIDER -s CRAWL_NAME={shlex.quote(crawl)}"
        return command + option_words(config, self.settings)

    def _list(self, config: Config, opts: argparse.Namespace) -> int:
        try:
            with open_for_reading(config) as database:
                name = self.crawl_name(database, opts)
                seeds = open_frontier(database, config, name).seed_urls()
        except NoCrawlYet:
            seeds = []
        if opts.json:
            print_json({"seeds": seeds})
        else:
            print_lines(seeds or "No seeds yet: scrapy seeds add URL")
        return FINE


def _read_words(words: list[str]) -> list[str]:
    """The URLs that are given, and the feeds of OPML files and their sites, each once: what a feed
    lists may be on another host than the feed.
    """
    urls: dict[str, None] = dict.fromkeys(read_urls([w for w in words if not is_opml_file(w)]))
    for word in words:
        if is_opml_file(word):
            feeds = read_opml_file(word)
            urls.update(dict.fromkeys(feed.url for feed in feeds))
            urls.update(dict.fromkeys(feed.site for feed in feeds if feed.site))
    return list(urls)
