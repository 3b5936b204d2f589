"""`scrapy plan`: what would be fetched next."""

from __future__ import annotations

import argparse
from datetime import datetime

from crawlproj.cli.command import FINE, ProjectCommand, add_crawl, add_json, print_json, print_lines
from crawlproj.config import Config
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_table, format_when
from crawlproj.frontier.opening import open_for_reading, open_frontier
from crawlproj.reports.plan import MAX_PLANNED, PlannedUrl, plan_urls

DEFAULT_COUNT = 20


class Command(ProjectCommand):
    def syntax(self) -> str:
        return "[-n N] [--json] [--crawl NAME]"

    def short_desc(self) -> str:
        return "The next URLs in the order in which they would be fetched"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}, and when. A forecast for one worker: what pages say, and "
            "when they answer, may change it."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-n",
            type=int,
            default=DEFAULT_COUNT,
            metavar="N",
            help=f"how many, up to {MAX_PLANNED} (default {DEFAULT_COUNT})",
        )
        add_json(parser)
        add_crawl(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        if not 1 <= opts.n <= MAX_PLANNED:
            raise ConfigError(
                f"-n {opts.n} makes no sense: it must be a number from 1 to {MAX_PLANNED}"
            )
        with open_for_reading(config) as database:
            name = self.crawl_name(database, opts)
            frontier = open_frontier(database, config, name)
            now = frontier.now()
            found = plan_urls(database, name, config, count=opts.n, now=now)
        if opts.json:
            print_json([as_json(planned) for planned in found])
        else:
            print_lines(as_text(found, name, now))
        return FINE


def as_json(planned: PlannedUrl) -> dict[str, object]:
    return {
        "at": planned.at,
        "url": planned.url,
        "host": planned.host,
        "lane": planned.lane.name.lower(),
        "state": planned.state,
        "due": planned.due,
        "depth": planned.depth,
        "score": planned.score,
    }


def as_text(found: list[PlannedUrl], name: str, now: datetime) -> list[str]:
    if not found:
        return [
            f"Crawl {name} has nothing to fetch, now or later. Give it a page: scrapy push URL "
            f"--crawl {name}"
        ]
    rows = []
    for planned in found:
        when = format_when(planned.at or now, now)
        rows.append([when, planned.lane.name.lower(), str(planned.depth), planned.url])
    return format_table(["at", "lane", "depth", "url"], rows)
