"""`scrapy push`: have URLs fetched ahead of all others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from crawlproj.cli.command import (
    FINE,
    ProjectCommand,
    add_crawl,
    print_lines,
    read_urls,
    warn_of_forgotten,
)
from crawlproj.config import Config
from crawlproj.formatting import format_count
from crawlproj.frontier.base import Found, Lane, NewUrl, StoredUrl
from crawlproj.frontier.opening import open_for_writing, open_frontier
from crawlproj.frontier.seen import depth_score
from crawlproj.scheduling.notifications import PUSHES
from crawlproj.urls.canonical import host_of, url_key


class Command(ProjectCommand):
    words = (1, sys.maxsize)

    def syntax(self) -> str:
        return "URL... [--crawl NAME]"

    def short_desc(self) -> str:
        return "Have URLs fetched ahead of all others, also by a crawl that is running"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_crawl(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        urls = read_urls(words)
        with open_for_writing(config) as database:
            name = self.crawl_name(database, opts)
            frontier = open_frontier(database, config, name, make=True)
            now = frontier.now()
            known = frontier.get_urls([url_key(name, url) for url in urls])
            result = frontier.add([pushed_url(name, url, known) for url in urls])
            warn_of_forgotten(database, urls)
            database.notify(PUSHES, name)
            fate = "they are the first that the next run fetches"
            for crawl, _, leased_servers in database.fetch_rows("status_hosts", now=now):
                if crawl == name and leased_servers:
                    fate = "the running crawl fetches them first"
        print_lines(
            f"Pushed {format_count(len(urls), 'URL')} into crawl {name} ({result.added} not known "
            f"before): {fate}."
        )
        return FINE


def pushed_url(crawl: str, url: str, known: Mapping[int, StoredUrl]) -> NewUrl:
    """The URL for the urgent lane, as deep as it is known to be.

    A new one is no seed, so that its host does not become part of the crawl.
    """
    id_ = url_key(crawl, url)
    depth = 1
    if id_ in known:
        depth = known[id_].depth
    return NewUrl(
        id_,
        url,
        host_of(url),
        depth=depth,
        score=depth_score(depth),
        parent=None,
        lane=Lane.URGENT,
        found=Found.PUSH,
    )
