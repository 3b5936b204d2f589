"""`scrapy reextract`: a spider's parsing run again on the archive, without the network."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, suppress

from scrapy.addons import AddonManager
from scrapy.commands import BaseRunSpiderCommand
from scrapy.crawler import Crawler
from scrapy.spiderloader import get_spider_loader

from crawlproj.archive import Archive
from crawlproj.archive.open_file import OPEN, SUFFIX, plain_name
from crawlproj.cli.command import (
    COULD_NOT_RUN,
    FINE,
    NOTHING_FETCHED,
    STOPPED,
    check_words,
    exit_codes,
    print_error,
)
from crawlproj.cli.preflight import (
    check_copies,
    check_folder,
    check_log,
    check_settings,
    make_spider,
    rotate_log,
)
from crawlproj.cli.screen import WITHOUT_SCREEN
from crawlproj.commands.crawl import run_to_end
from crawlproj.config import Config
from crawlproj.errors import ArchiveError, ConfigError, CrawlprojError
from crawlproj.formatting import format_count
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading
from crawlproj.reextract.addon import PRIORITY
from crawlproj.reextract.captures import VERSIONS, ReextractOptions
from crawlproj.reextract.scheduler import OPTIONS_SETTING
from crawlproj.reports.versions import parse_time

ADDON = "crawlproj.reextract.addon.ReextractAddon"
ADDON_ORDER = 1_000_000


class Command(BaseRunSpiderCommand):
    requires_project = True

    def syntax(self) -> str:
        return (
            "SPIDER [--since TIME] [--until TIME] [--versions last|all] [--callback NAME] [-a "
            "NAME=VALUE]... [-o FILE]"
        )

    def short_desc(self) -> str:
        return "Run a spider's parsing again on the archive, without the network"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. Callbacks, spider middlewares, item pipelines, feeds, -a, -o "
            "and -s work as in scrapy crawl; nothing is asked over the network, and neither the "
            "archive nor the frontier is changed. Articles are taken again, too, if the spider "
            "wants them, and mended in the database. What the archive can't answer is counted and "
            "left out. Exit codes: 0 fine, 1 could not run, 2 bad usage, 3 no capture was found, "
            "130 stopped."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--since",
            metavar="TIME",
            help="captures of that time and later, such as 2026-03-01 (default: all)",
        )
        parser.add_argument(
            "--until", metavar="TIME", help="captures of that time and earlier (default: all)"
        )
        parser.add_argument(
            "--versions", default="last", metavar="last|all", help="of each page (default: last)"
        )
        parser.add_argument(
            "--callback",
            default="",
            metavar="NAME",
            help="method for pages whose request nobody has noted",
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Scrapy calls this before it starts anything: the last moment to refuse."""
        super().process_options(args, opts)
        assert self.settings is not None
        self._held = ExitStack()
        with exit_codes(self.settings.get("LOG_FILE")):
            check_words(args, 1, 1, usage=f"scrapy reextract {self.syntax()}")
            self.check_start(args[0], opts)

    def check_start(self, name: str, opts: argparse.Namespace) -> None:
        settings = self.settings
        assert settings is not None
        AddonManager.load_pre_crawler_settings(settings)
        check_copies()
        config = check_settings(settings, name)
        make_spider(settings, name, opts.spargs)
        options = self.read_options(name, opts)
        check_archive(config)
        check_folder(config.log_dir)
        check_log(settings)
        # Held open until the end, so that our own server is started once, not twice.
        with suppress(NoCrawlYet):
            self._held.enter_context(open_for_reading(config))
        settings.set(OPTIONS_SETTING, options, PRIORITY)
        settings.set("ADDONS", {**settings.getdict("ADDONS"), ADDON: ADDON_ORDER}, PRIORITY)
        if (
            settings.get("PANEL") not in WITHOUT_SCREEN
            and not settings.get("LOG_FILE")
            and settings.getbool("LOG_ENABLED")
        ):
            log_file = config.log_dir / f"reextract-{plain_name(config.spec.name)}.log"
            rotate_log(log_file)
            settings.set("LOG_FILE", str(log_file), priority="cmdline")

    def read_options(self, name: str, opts: argparse.Namespace) -> ReextractOptions:
        assert self.settings is not None
        spider = get_spider_loader(self.settings).load(name)
        if opts.versions not in VERSIONS:
            raise ConfigError(
                f"--versions {opts.versions}: it must be one of {', '.join(VERSIONS)}"
            )
        if opts.callback and not callable(getattr(spider, opts.callback, None)):
            raise ConfigError(f"--callback {opts.callback}: the spider {name} has no such method")
        since = None
        until = None
        if opts.since:
            since = parse_time(opts.since)
        if opts.until:
            until = parse_time(opts.until)
        if since and until and since > until:
            raise ConfigError(f"--since {opts.since} is later than --until {opts.until}")
        return ReextractOptions(since, until, opts.versions, callback=opts.callback)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.crawler_process is not None
        crawler = self._create_crawler(args[0])
        failure = run_to_end(self.crawler_process, crawler, opts.spargs, close=self._held.close)
        with exit_codes():
            self.exitcode = self.report_outcome(crawler, failure)

    def report_outcome(self, crawler: Crawler, failure: BaseException | None) -> int:
        """The exit code of the run; prints a line if it is not 0."""
        assert self.settings is not None
        log = self.settings.get("LOG_FILE") or "the log"
        if isinstance(failure, CrawlprojError):
            raise failure
        if failure is not None:
            print_error(f"it could not start: {type(failure).__name__}: {failure} (see {log})")
            return COULD_NOT_RUN
        stats = crawler.stats.get_stats()
        if stats.get("scheduler/errors"):
            print_error(f"it broke: see {log}")
            return COULD_NOT_RUN
        if stats.get("finish_reason") in (None, "shutdown"):
            return STOPPED
        if not stats.get("reextract/captures"):
            print_error(
                "no capture of this crawl was found in the archive (-s CRAWL_NAME=NAME if it was "
                "not named like the spider)"
            )
            return NOTHING_FETCHED
        return FINE


def check_archive(config: Config) -> None:
    """ArchiveError if there is no closed WARC file."""
    if Archive(config.warc_dir).closed_files():
        return
    text = f"there is no archive in {config.warc_dir}"
    open_files = len(list(config.warc_dir.glob(f"*{SUFFIX}{OPEN}")))
    if open_files:
        text += (
            f", only {format_count(open_files, 'file')} being written or left open by a kill "
            "(scrapy warc repair closes those)"
        )
    raise ArchiveError(text)
