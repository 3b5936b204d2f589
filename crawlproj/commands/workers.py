"""`scrapy workers`: several processes that share one crawl."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from scrapy.exceptions import UsageError
from scrapy.utils.conf import feed_process_params_from_cli

from crawlproj.articles.delays import read_site_delays
from crawlproj.cli.command import ProjectCommand
from crawlproj.cli.next_commands import repeated_command
from crawlproj.cli.pid_file import pid_file
from crawlproj.cli.preflight import PreflightResult, rotate_log, run_preflight
from crawlproj.cli.screen import Screen
from crawlproj.cli.summary import CrawlSummary, format_summary
from crawlproj.cli.worker_reports import CommonReport, numbered_feed
from crawlproj.cli.workers import WorkerGroup
from crawlproj.config import Config, SettingsReader, parse_seconds
from crawlproj.database.connection import Database
from crawlproj.errors import ConfigError, DatabaseError
from crawlproj.formatting import format_count
from crawlproj.frontier.opening import open_for_reading, open_frontier
from crawlproj.reports.facts import status_facts
from crawlproj.scheduling.reading_file import has_hung
from crawlproj.scheduling.snapshot import count_outcomes
from crawlproj.scheduling.source_watch import count_missing

MAX_WORKERS = 64
COUNTING_SHARE = 20
"""Counting the totals takes at most one part in so many of the time: a big database is counted less
often.
"""


class Command(ProjectCommand):
    words = (1, 1)

    def syntax(self) -> str:
        return "SPIDER -n N [-a NAME=VALUE]... [-s NAME=VALUE]... [-o FILE] [--pid-file FILE]"

    def short_desc(self) -> str:
        return "Run a spider in several processes that share one crawl"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. Each has a log of its own, CRAWL_DIR/log/CRAWL-1.log and so on. "
            "Ctrl-C stops all within a few seconds, a second one at once. A worker that is killed "
            "or hangs is started again. Warnings are shown with the worker's number, and a common "
            "summary at the end. With -o items.jsonl the workers write items-1.jsonl, "
            "items-2.jsonl and so on. The exit code is the worst of theirs."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-n", type=int, default=2, metavar="N", help="how many processes (default: 2)"
        )
        parser.add_argument(
            "-a",
            dest="spargs",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="argument of the spider",
        )
        parser.add_argument(
            "-o",
            "--output",
            action="append",
            default=[],
            metavar="FILE",
            help="append items to FILE-1, FILE-2 ... (before the suffix), one per worker",
        )
        parser.add_argument(
            "-O",
            "--overwrite-output",
            action="append",
            default=[],
            metavar="FILE",
            help="the same, but what is in these files goes first",
        )
        parser.add_argument(
            "--pid-file",
            type=Path,
            metavar="FILE",
            help="write the id of this process to FILE while it runs",
        )

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        assert self.settings is not None
        if not 1 <= opts.n <= MAX_WORKERS:
            raise ConfigError(f"-n must be a number from 1 to {MAX_WORKERS}")
        arguments = {}
        for text in opts.spargs:
            name, equals, value = text.partition("=")
            if not equals:
                raise ConfigError(f"-a {text}: use -a NAME=VALUE")
            arguments[name] = value
        self._check_feeds(opts)
        with ExitStack() as stack:
            stack.enter_context(pid_file(opts.pid_file))
            preflight = run_preflight(self.settings, words[0], arguments)
            if preflight.embedded:
                stack.callback(preflight.embedded.close)
            database = stack.enter_context(open_for_reading(preflight.config))
            interval_s = max(0.1, SettingsReader(self.settings)("PANEL_INTERVAL", parse_seconds))
            totals = Totals(database, preflight.config.spec.name, interval_s, say=say_now)
            commands = worker_commands(words[0], opts, preflight)
            log_dir = preflight.config.log_dir
            report = CommonReport(say_now)
            group = WorkerGroup(
                commands,
                say_now,
                lambda process: has_hung(log_dir, process),
                take_report=report.take,
            )
            started = time.monotonic()
            code = group.run(totals)
            report.say_left_out()
            elapsed_s = time.monotonic() - started
            with suppress(DatabaseError):
                self._print_summary(report, database, preflight, elapsed_s=elapsed_s, opts=opts)
            return code

    def _check_feeds(self, opts: argparse.Namespace) -> None:
        """ConfigError for feeds that Scrapy does not take, or that can't be one per worker."""
        assert self.settings is not None
        if not opts.output and not opts.overwrite_output:
            return
        try:
            feeds = feed_process_params_from_cli(
                self.settings, opts.output, overwrite_output=opts.overwrite_output
            )
        except UsageError as error:
            raise ConfigError(str(error)) from None
        if "stdout:" in feeds or "-" in feeds:
            raise ConfigError("-o -: several workers can't share the screen: give a file")

    def _print_summary(
        self,
        report: CommonReport,
        database: Database,
        preflight: PreflightResult,
        elapsed_s: float,
        opts: argparse.Namespace,
    ) -> None:
        """Print what all workers together have done, as `scrapy crawl` does at its end."""
        if not report.ends:
            return
        config = preflight.config
        frontier = open_frontier(database, config, config.spec.name)
        last = report.ends[-1]
        locations = dict(last["locations"])
        locations["Log"] = str(numbered_log(preflight.log_file, "*"))
        feeds = [numbered_feed(feed, "*") for feed in opts.output + opts.overwrite_output]
        if feeds:
            locations["Items"] = ", ".join(feeds)
        again = repeated_command(self.settings)
        stats = report.stats
        crawl = frontier.crawl_id
        # Each worker has counted all of them.
        silent, disagreeing, missed, *_ = count_missing(database, crawl)
        for name, number in (("silent", silent), ("disagreeing", disagreeing), ("missed", missed)):
            if f"sources/{name}" in stats:
                stats[f"sources/{name}"] = number
        since = frontier.now() - timedelta(seconds=elapsed_s)
        delays, slow_sites = read_site_delays(database, crawl, since)
        summary = CrawlSummary(
            config.spec.name,
            report.reason,
            elapsed_s,
            tally=count_outcomes(stats),
            articles_of_day=database.fetch_value("articles_of_day", crawl=crawl),
            freshness=last.get("freshness"),
            age_s=last.get("age_s"),
            notices=report.notices,
            delays=delays,
            slow_sites=slow_sites,
            source_kinds=dict(database.fetch_rows("source_kinds", crawl=crawl)),
            now=frontier.now(),
            counts=frontier.count_urls(),
            outlook=frontier.outlook(),
            examples=report.examples,
            locations=locations,
            commands=dict(last["commands"]) | {"visit again what is due": again},
        )
        for line in format_summary(summary, Screen(sys.stdout, live=False).width):
            say_now(line)


def worker_commands(
    spider: str, opts: argparse.Namespace, preflight: PreflightResult
) -> dict[int, list[str]]:
    """The command line of each worker: the options that were given to us, and a log of its own."""
    start = [sys.executable, "-m", "scrapy", "crawl", spider]
    for text in opts.spargs:
        start += ["-a", text]
    for text in opts.set:
        start += ["-s", text]
    if opts.loglevel:
        start += ["-L", opts.loglevel]
    for text in opts.output:
        start += ["-o", text]
    for text in opts.overwrite_output:
        start += ["-O", text]
    start += ["-s", "PANEL=off"]
    commands = {}
    for number in range(1, opts.n + 1):
        log = rotated_log(preflight.log_file, number)
        commands[number] = [*start, "-s", f"LOG_FILE={log}"]
    return commands


def rotated_log(log_file: Path, number: int) -> Path:
    log = numbered_log(log_file, number)
    rotate_log(log)
    return log


def numbered_log(log_file: Path, number: int | str) -> Path:
    return log_file.with_name(f"{log_file.stem}-{number}.log")


def say_now(text: str) -> None:
    """Print a line; a screen that is gone (a closed terminal or pipe) stops no crawl."""
    Screen(sys.stdout, live=False).print_line(text)


class Totals:
    """Prints a line now and then with what all workers together have done."""

    def __init__(
        self, database: Database, crawl: str, interval_s: float, say: Callable[[str], None]
    ) -> None:
        self._database = database
        self._crawl = crawl
        self._interval_s = interval_s
        self._say = say
        self._started = time.monotonic()
        self._next = self._started + interval_s

    def __call__(self, running: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        with suppress(DatabaseError):
            crawls = status_facts(self._database, self._database.fetch_value("now"))
            if self._crawl in crawls:
                workers = format_count(running, "worker")
                totals = self._totals(crawls[self._crawl])
                self._say(f"{now - self._started:.0f} s  {workers}: {totals}")
        self._next = time.monotonic() + max(
            self._interval_s, COUNTING_SHARE * (time.monotonic() - now)
        )

    def _totals(self, crawl: dict[str, Any]) -> str:
        urls = crawl["urls"]
        return (
            f"{format_count(urls['known'], 'URL')} known, {urls['fetched']:,} visited, "
            f"{urls['documents']:,} pages read; {crawl['due_now']:,} due now; "
            f"{format_count(crawl['leased_servers'], 'server')} in use"
        )
