"""`scrapy crawl`: Scrapy's own command, with all checks before it and a telling exit code."""

from __future__ import annotations

import argparse
import faulthandler
import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from scrapy import Spider
from scrapy.addons import AddonManager
from scrapy.commands import crawl
from scrapy.crawler import Crawler

from crawlproj.cli.command import (
    COULD_NOT_RUN,
    FINE,
    NOTHING_FETCHED,
    RULES_BROKEN,
    STOPPED,
    check_words,
    exit_codes,
    print_error,
)
from crawlproj.cli.preflight import PreflightResult, rotate_log, run_preflight
from crawlproj.cli.screen import WITHOUT_SCREEN
from crawlproj.errors import CrawlprojError
from crawlproj.formatting import format_count
from crawlproj.scheduling.snapshot import Tally, count_outcomes

BROKEN = frozenset({"scheduler_error", "database_lost", "archive_lost"})


class Command(crawl.Command):
    preflight: PreflightResult

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. scrapy crawl site -a seeds=URL[,URL] [-a seeds_file=FILE] [-a "
            "domains=NAME[,NAME]] [-a hosts=REGEX] [-a everything=1] [-a include=REGEX] [-a "
            "exclude=REGEX] [-a depth=N] [-a articles=1]. scrapy crawl news -a sites=FILE.yaml [-a "
            "only=NAME[,NAME]] [-a depth=N]. Exit codes: 0 fine, 1 could not run, 2 bad usage or "
            "settings, 3 ran but could fetch nothing or a source is silent, 130 stopped."
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Scrapy calls this before it starts anything: the last moment to refuse."""
        super().process_options(args, opts)
        assert self.settings is not None
        with exit_codes(self.settings.get("LOG_FILE")):
            check_words(args, 1, 1, usage=f"scrapy crawl {self.syntax()}")
            self.check_start(args[0], opts)

    def check_start(self, spider: str | type[Spider], opts: argparse.Namespace) -> None:
        settings = self.settings
        assert settings is not None
        AddonManager.load_pre_crawler_settings(settings)
        self.preflight = run_preflight(settings, spider, opts.spargs)
        # PANEL=log (as under Scrapyd) and PANEL=off leave the log where Scrapy has it.
        if (
            settings.get("PANEL") not in WITHOUT_SCREEN
            and not settings.get("LOG_FILE")
            and settings.getbool("LOG_ENABLED")
        ):
            log_file = self.preflight.log_file
            rotate_log(log_file)
            settings.set("LOG_FILE", str(log_file), priority="cmdline")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self.run_spider(args[0], opts)

    def run_spider(self, spider: str | type[Spider], opts: argparse.Namespace) -> None:
        """Run a spider, given by its name or as its class, to its end."""
        assert self.crawler_process is not None
        crawler = self._create_crawler(spider)
        with ExitStack() as stack:
            if self.preflight.embedded:
                stack.callback(self.preflight.embedded.close)
            failure = run_to_end(self.crawler_process, crawler, opts.spargs, close=stack.close)
        with exit_codes():
            self.exitcode = self.report_outcome(crawler, failure)

    def report_outcome(self, crawler: Crawler, failure: BaseException | None) -> int:
        """The exit code of the crawl; prints a line if it is not 0."""
        assert self.settings is not None
        log = self.settings.get("LOG_FILE") or "the log"
        if isinstance(failure, CrawlprojError):
            raise failure
        if failure is not None:
            print_error(
                f"the crawl could not start: {type(failure).__name__}: {failure} (see {log})"
            )
            return COULD_NOT_RUN
        stats = crawler.stats.get_stats()
        reason = stats.get("finish_reason")
        done = count_outcomes(stats)
        if reason in BROKEN or stats.get("scheduler/errors"):
            print_error(
                f"the crawl broke ({reason}): see {log}; what was not stored is fetched again by "
                "the next run"
            )
            return COULD_NOT_RUN
        if reason is None:
            print_error("stopped at once: what was not stored yet is fetched again by the next run")
        if reason in (None, "shutdown"):
            return STOPPED
        if reason == "unresolved":
            print_error(f"nothing could be fetched: {stats.get('dns/unresolved')}")
            return NOTHING_FETCHED
        if not done.pages_read and (done.urls_ended or done.robots_unreachable):
            print_error("nothing could be fetched")
            return NOTHING_FETCHED
        trouble = describe_trouble(done)
        if trouble and not self.settings.getbool("CRAWL_CONTINUOUS"):
            print_error(f"{trouble}: scrapy sources says which")
            return RULES_BROKEN
        return FINE


def describe_trouble(done: Tally) -> str:
    """What is wrong with the sources of a crawl, so that it may miss pages; empty: nothing."""
    parts = []
    if done.silent_sources:
        silent = format_count(done.silent_sources, "source brings", "sources bring")
        parts.append(f"{silent} nothing any more")
    if done.disagreeing_sources:
        lacking = format_count(done.disagreeing_sources, "source lists", "sources list")
        parts.append(f"{lacking} nothing of what others of the same site bring")
    return ", ".join(parts)


def run_to_end(
    process: Any, crawler: Crawler, arguments: dict[str, str], close: Callable[[], object]
) -> BaseException | None:
    """Run the one crawl of a process, then call `close`; returns why it could not start, if so."""
    task = process.crawl(crawler, **arguments)
    try:
        process.start()
    finally:
        faulthandler.cancel_dump_traceback_later()  # of the watchdog, if its crawl was cut off
        if not has_ended(crawler):
            # It was cut off in the middle: what its threads log now is of no use.
            logging.disable()
        close()
    return failure_of(task)


def has_ended(crawler: Crawler) -> bool:
    try:
        return crawler.stats.get_value("finish_reason") is not None
    except RuntimeError:  # it could not even begin, so there are no stats
        return False


def failure_of(task: Any) -> BaseException | None:
    """The exception of a crawl that failed before or while it was set up."""
    if task.done() and not task.cancelled():
        failure: BaseException | None = task.exception()
        return failure
    return None
