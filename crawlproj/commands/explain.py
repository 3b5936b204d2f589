"""scrapy explain: why a URL or a host is where it is."""

from __future__ import annotations

import argparse
from typing import Any

from crawlproj.cli.command import (
    COULD_NOT_RUN,
    FINE,
    ProjectCommand,
    add_crawl,
    add_json,
    is_host,
    print_json,
    print_lines,
    read_urls,
)
from crawlproj.config import Config
from crawlproj.database.connection import Database
from crawlproj.frontier.opening import open_for_reading, open_frontier
from crawlproj.reports.explain import host_in_words, url_in_words
from crawlproj.reports.facts import host_facts, url_facts
from crawlproj.urls.canonical import url_key


class Command(ProjectCommand):
    words = (1, 1)

    def syntax(self) -> str:
        return "URL|HOST [--json] [--crawl NAME]"

    def short_desc(self) -> str:
        return "Why a URL or a host is where it is, and when it is next"

    def long_desc(self) -> str:
        return f"{self.short_desc()}. Exits with 1 if the crawl does not know it."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json(parser)
        add_crawl(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        word = words[0]
        url = read_urls([word])[0]
        with open_for_reading(config) as database:
            frontier = open_frontier(database, config, self._which(database, opts, word, url=url))
            now = frontier.now()
            if is_host(word):
                facts = host_facts(database, frontier, config, host_name=word.lower().rstrip("."))
                known = facts["known"]
                lines = host_in_words(facts, now)
            else:
                facts = url_facts(database, frontier, config, url=word, canonical=url)
                known = facts["state"] is not None
                lines = url_in_words(facts, now)
        if opts.json:
            print_json(facts)
        else:
            print_lines(lines)
        return FINE if known else COULD_NOT_RUN

    def _which(self, database: Database, opts: argparse.Namespace, word: str, url: str) -> str:
        """Of several crawls, the only one that knows it is meant."""
        assert self.settings is not None
        if not (opts.crawl or self.settings.get("CRAWL_NAME")):
            names = [name for (name,) in database.fetch_rows("crawl_names")]
            query: tuple[str, dict[str, Any]] = (
                "crawls_with_url",
                {"ids": [url_key(name, url) for name in names]},
            )
            if is_host(word):
                query = ("crawls_with_host", {"host": word.lower().rstrip(".")})
            knowing = [name for (name,) in database.fetch_rows(query[0], **query[1])]
            if len(knowing) == 1:
                return str(knowing[0])
        return self.crawl_name(database, opts)
