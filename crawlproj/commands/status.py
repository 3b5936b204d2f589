"""scrapy status: what each crawl knows."""

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
        except NoCrawlYet as nothing:
            print_json({"crawls": {}}) if opts.json else print_lines(str(nothing))
            return FINE
        if opts.json:
            print_json({"crawls": crawls})
        else:
            print_lines(as_text(crawls, now))
        return FINE


def as_text(crawls: dict[str, dict[str, Any]], now: datetime) -> list[str]:
    if not crawls:
        return ["Nothing was crawled yet: scrapy crawl site -a seeds=URL, or scrapy demo"]
    rows = [
        [name, *(f"{crawl['urls'][column]:,}" for column in COLUMNS)]
        for name, crawl in crawls.items()
    ]
    lines = [*format_table(["crawl", *COLUMNS], rows), ""]
    for name, crawl in crawls.items():
        due = (
            f"{format_count(crawl['due_now'], 'URL')} due now"
            if crawl["due_now"]
            else "nothing due now"
        )
        if crawl["next_due"]:
            due += f", the next at {format_when(crawl['next_due'], now)}"
        servers = (
            f", {format_count(crawl['leased_servers'], 'server')} in use by a running crawl"
            if crawl["leased_servers"]
            else ""
        )
        held = (
            f"{format_count(crawl['urls']['documents'], 'page')} read in "
            f"{format_count(crawl['versions'], 'version')}"
        )
        kept = f"; archive of {format_bytes(crawl['warc_bytes'])}" if crawl["warc_bytes"] else ""
        lines.append(
            f"{name}: {held}; {due}; {format_count(crawl['hosts'], 'host')}{servers}{kept}."
        )
    return lines
