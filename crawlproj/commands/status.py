"""`scrapy status`: what each crawl knows."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from crawlproj.archive.open_file import plain_name
from crawlproj.archive.open_file import sizes_by_prefix as archive_sizes
from crawlproj.cli.command import FINE, ProjectCommand, add_json, print_json, print_lines
from crawlproj.config import Config
from crawlproj.formatting import format_bytes, format_count, format_table, format_when
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading
from crawlproj.reports.facts import status_facts

COLUMNS = (
    "known",
    "new",
    "waiting",
    "retry",
    "moved",
    "gone",
    "retired",
    "forbidden",
    "ignored",
    "dead",
)


class Command(ProjectCommand):
    def syntax(self) -> str:
        return "[--json]"

    def short_desc(self) -> str:
        return "What each crawl knows: its URLs by state, and what is due"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        try:
            with open_for_reading(config) as database:
                now: datetime = database.fetch_value("now")
                crawls = status_facts(database, now)
                sizes = archive_sizes(config.warc_dir)
                for name, crawl in crawls.items():
                    crawl["warc_bytes"] = sizes[plain_name(name)]
        except NoCrawlYet as no_crawl:
            if opts.json:
                print_json({"crawls": {}})
            else:
                print_lines(str(no_crawl))
            return FINE
        if opts.json:
            print_json({"crawls": crawls})
        else:
            print_lines(as_text(crawls, now))
        return FINE


def as_text(crawls: dict[str, dict[str, Any]], now: datetime) -> list[str]:
    """A table of URLs by state, and a line per crawl."""
    if not crawls:
        return ["Nothing was crawled yet: scrapy crawl site -a seeds=URL, or scrapy demo"]
    rows = [
        [name, *(f"{crawl['urls'][column]:,}" for column in COLUMNS)]
        for name, crawl in crawls.items()
    ]
    lines = [*format_table(["crawl", *COLUMNS], rows), ""]
    for name, crawl in crawls.items():
        lines.append(f"{name}: {describe_crawl(crawl, now)}.")
    return lines


def describe_crawl(crawl: dict[str, Any], now: datetime) -> str:
    """`N pages read in N versions; N URLs due now, ...; N hosts, ...; archive of N MB`."""
    text = (
        f"{format_count(crawl['urls']['documents'], 'page')} read in "
        f"{format_count(crawl['versions'], 'version')}"
    )
    if crawl["due_now"]:
        text += f"; {format_count(crawl['due_now'], 'URL')} due now"
    else:
        text += "; nothing due now"
    if crawl["next_due"]:
        text += f", the next at {format_when(crawl['next_due'], now)}"
    text += f"; {format_count(crawl['hosts'], 'host')}"
    if crawl["leased_servers"]:
        text += f", {format_count(crawl['leased_servers'], 'server')} in use by a running crawl"
    if crawl["warc_bytes"]:
        text += f"; archive of {format_bytes(crawl['warc_bytes'])}"
    return text
