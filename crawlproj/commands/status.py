"""scrapy status: what each crawl knows."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from crawlproj.archive.open_file import plain_name
from crawlproj.archive.open_file import sizes as archive_sizes
from crawlproj.cli.command import FINE, ProjectCommand, add_json, say, say_json
from crawlproj.config import Config
from crawlproj.formatting import count, table, volume, when
from crawlproj.frontier.opening import NoCrawlYet, reading
from crawlproj.reports.facts import status

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

    def work(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        try:
            with reading(config) as database:
                now: datetime = database.value("now")
                crawls = status(database, now)
                sizes = archive_sizes(config.warc_dir)
                for name, crawl in crawls.items():
                    crawl["warc_bytes"] = sizes[plain_name(name)]
        except NoCrawlYet as nothing:
            say_json({"crawls": {}}) if opts.json else say(str(nothing))
            return FINE
        if opts.json:
            say_json({"crawls": crawls})
        else:
            say(as_text(crawls, now))
        return FINE


def as_text(crawls: dict[str, dict[str, Any]], now: datetime) -> list[str]:
    if not crawls:
        return ["Nothing was crawled yet: scrapy crawl site -a seeds=URL, or scrapy demo"]
    rows = [
        [name, *(f"{crawl['urls'][column]:,}" for column in COLUMNS)]
        for name, crawl in crawls.items()
    ]
    lines = [*table(["crawl", *COLUMNS], rows), ""]
    for name, crawl in crawls.items():
        due = f"{count(crawl['due_now'], 'URL')} due now" if crawl["due_now"] else "nothing due now"
        if crawl["next_due"]:
            due += f", the next at {when(crawl['next_due'], now)}"
        servers = (
            f", {count(crawl['leased_servers'], 'server')} in use by a running crawl"
            if crawl["leased_servers"]
            else ""
        )
        held = (
            f"{count(crawl['urls']['documents'], 'page')} read in "
            f"{count(crawl['versions'], 'version')}"
        )
        kept = f"; archive of {volume(crawl['warc_bytes'])}" if crawl["warc_bytes"] else ""
        lines.append(f"{name}: {held}; {due}; {count(crawl['hosts'], 'host')}{servers}{kept}.")
    return lines
