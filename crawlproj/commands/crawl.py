"""scrapy crawl: Scrapy's own, with everything checked before, and an exit code that tells how it went."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from scrapy.commands import crawl
from scrapy.crawler import Crawler

from crawlproj.console import COULD_NOT_RUN, FINE, NOTHING_FETCHED, STOPPED, check_words, complain, exit_codes
from crawlproj.figures import tally
from crawlproj.preflight import Cleared, preflight, turn_over

if TYPE_CHECKING:
    from scrapy import Spider

BROKEN = frozenset({"scheduler_error", "database_lost"})


class Command(crawl.Command):
    cleared: Cleared
    crawler: Crawler | None = None

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. scrapy crawl site -a seeds=URL[,URL] [-a seeds_file=FILE] [-a include=REGEX] [-a exclude=REGEX]"
            " [-a depth=N]. Exit codes: 0 fine, 1 could not run, 2 bad usage or settings, 3 ran but could fetch nothing,"
            " 130 stopped."
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Called before Scrapy starts anything: the last moment to refuse."""
        super().process_options(args, opts)
        with exit_codes():
            check_words(args, 1, 1, f"scrapy crawl {self.syntax()}")
            self.check(args[0], opts)

    def check(self, spider_name: str, opts: argparse.Namespace) -> None:
        settings = self.settings
        assert settings is not None
        self.cleared = cleared = preflight(settings, spider_name, opts.spargs)
        # PANEL=off (as under Scrapyd) leaves the log where Scrapy has it.
        if settings.get("PANEL") != "off" and not settings.get("LOG_FILE") and settings.getbool("LOG_ENABLED"):
            turn_over(cleared.log_file)
            settings.set("LOG_FILE", str(cleared.log_file), priority="cmdline")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            super().run(args, opts)
        finally:
            if self.cleared.embedded:
                self.cleared.embedded.close()
        self.exitcode = self.outcome()

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        self.crawler = super()._create_crawler(spidercls)
        return self.crawler

    def outcome(self) -> int:
        """The exit code."""
        assert self.crawler_process is not None and self.crawler is not None and self.settings is not None
        log = self.settings.get("LOG_FILE") or "the log"
        if self.crawler_process.bootstrap_failed:
            complain(f"the crawl could not start: see {log}")
            return COULD_NOT_RUN
        stats = self.crawler.stats.get_stats()
        reason, done = stats.get("finish_reason"), tally(stats)
        if reason in BROKEN:
            complain(f"the crawl broke ({reason}): see {log}")
            return COULD_NOT_RUN
        if reason in (None, "shutdown"):
            return STOPPED
        if not done.read and (done.ended or done.robots_unreachable):
            complain("nothing could be fetched")
            return NOTHING_FETCHED
        return FINE
