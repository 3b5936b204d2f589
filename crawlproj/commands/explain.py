"""`scrapy explain`: why a URL or a host is in its state, and when it is next."""

from __future__ import annotations

import argparse
from contextlib import nullcontext

from crawlproj.archive import Archive
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
from crawlproj.reports.changes import last_masked, masked_values
from crawlproj.reports.explain import host_in_words, url_in_words
from crawlproj.reports.facts import crawls_knowing, host_facts, url_facts
from crawlproj.reports.versions import find_versions
from crawlproj.urls.canonical import host_of


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
            name = self._choose_crawl(database, opts, word, url=url)
            frontier = open_frontier(database, config, name)
            now = frontier.now()
            if is_host(word):
                facts = host_facts(database, frontier, config, host_name=host_name(word))
                known = facts["known"] or facts["state"] is not None
                lines = host_in_words(facts, now)
            else:
                facts = url_facts(database, frontier, config, url=word, canonical=url)
                known = facts["state"] is not None
                if facts.get("visits", 0) > 1:
                    facts["masked"] = self._masked(config, url, database)
                lines = url_in_words(facts, now)
        if opts.json:
            print_json(facts)
        else:
            print_lines(lines)
        if not known:
            return COULD_NOT_RUN
        return FINE

    def _masked(self, config: Config, url: str, database: Database) -> list[dict[str, object]]:
        """What of the last visit differs and does not count, as far as the archive has it."""
        if not config.warc_dir.is_dir():
            return []
        archive = Archive(config.warc_dir)
        entries = find_versions(archive, url, lambda: nullcontext(database))
        change = last_masked(archive, entries, config.change_rules)
        if change is None:
            return []
        return masked_values(change)

    def _choose_crawl(
        self, database: Database, opts: argparse.Namespace, word: str, url: str
    ) -> str:
        """The name of the crawl: the only one that knows the word, if none was given."""
        assert self.settings is not None
        if not opts.crawl and not self.settings.get("CRAWL_NAME"):
            if is_host(word):
                rows = database.fetch_rows("crawls_with_host", host=host_name(word))
                rows = rows or database.fetch_rows("explain_leaving", host=host_name(word))
            else:
                rows = [(name,) for name in crawls_knowing(database, url)]
                rows = rows or database.fetch_rows("explain_leaving", host=host_of(url))
            knowing = [name for (name,) in rows]
            if len(knowing) == 1:
                return str(knowing[0])
        return self.crawl_name(database, opts)


def host_name(word: str) -> str:
    return word.lower().rstrip(".")
