"""`scrapy demo`: the built-in demo web and a crawl of it."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import threading
import time
from contextlib import suppress

from crawlproj.cli.command import check_words, exit_codes, print_lines
from crawlproj.cli.preflight import check_crawl_dir
from crawlproj.commands import crawl
from crawlproj.config import crawl_dir, read_config
from crawlproj.demo.freshness import VisitedPage, measure_freshness
from crawlproj.demo.session import DemoSession
from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.formatting import format_count, format_duration, format_share
from crawlproj.frontier.opening import open_for_reading

SETTINGS_PRIORITY = 35
"""Stronger than settings files, weaker than -s."""
QUICK_SETTINGS = {
    "CRAWL_NAME": "demo",
    "CRAWL_PATIENCE": "5s",
    "CLOSESPIDER_TIMEOUT": 30,
    "GUARD_ALLOW_PRIVATE": True,
    "POLITENESS_DELAY": 0.3,
    "POLITENESS_SERVER_DELAY": 0.03,
    "POLITENESS_SLOWDOWN": 0.5,
    "POLITENESS_MAX_DELAY": 5,
    "POLITENESS_PAUSE_AFTER": 0,
    "FRONTIER_RETRY_DELAY": "3s",
    "REVISIT_INTERVAL": "20s",
    "REVISIT_MIN": "10s",
    "REVISIT_MAX": "10m",
    "SOURCE_INTERVAL": "5s",
    "SOURCE_MIN": "2s",
    "PANEL_INTERVAL": "3s",
}
"""Settings for a small web on this machine, where a day passes in a minute."""
REACH_SETTINGS = {
    "DNS_HOSTS": '{"*.demo.test": "127.0.0.1"}',
    "GUARD_ALLOW_PRIVATE": "1",
    "POLITENESS_DELAY": "0.3",
    "CRAWL_PATIENCE": "5s",
}
"""What a person sets to crawl the demo web with other commands, and without long waits."""


class Command(crawl.Command):
    session: DemoSession

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Crawl the built-in demo web for half a minute; run it again to see it revisit"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. Some small sites, whose pages appear, change and vanish, are "
            "served on this machine while the command runs. The same web goes on at the next run. "
            "Settings given by -s win over those that make it a quick show. With --serve they are "
            "served until Ctrl-C, and not crawled: for trying spiders."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--port",
            type=int,
            default=0,
            help="port of a new demo web (default: a free one; later the same)",
        )
        parser.add_argument(
            "--serve", action="store_true", help="serve the demo web until Ctrl-C; crawl nothing"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super(crawl.Command, self).process_options(["site"], opts)
        settings = self.settings
        assert settings is not None
        with exit_codes():
            check_words(args, 0, 0, usage=f"scrapy demo {self.syntax()}")
            if opts.spargs:
                raise ConfigError(
                    "scrapy demo takes no -a: to crawl other sites use scrapy crawl site -a "
                    "seeds=URL"
                )
            folder = crawl_dir(settings)
            check_crawl_dir(folder)
            self.session = DemoSession(folder / "demo.json", opts.port)
            self.session.start()
            if opts.serve:
                settings.set("LOG_LEVEL", "WARNING", priority=SETTINGS_PRIORITY)
                return
            demo_settings = {
                **QUICK_SETTINGS,
                "DNS_HOSTS": self.session.dns_hosts,
                "FRONTIER_DEPTH": self.session.depth,
            }
            for name, value in demo_settings.items():
                if name not in os.environ:
                    settings.set(name, value, priority=SETTINGS_PRIORITY)
            opts.spargs = {"seeds": ",".join(self.session.seed_urls), "articles": "1"}
            self.check_start("site", opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with self.session:
            if opts.serve:
                serve_until_signal(self.session)
            else:
                super().run(["site"], opts)
                self._tell_truth()

    def _tell_truth(self) -> None:
        """Say how fresh the copies really are: the demo web knows when its pages have changed."""
        settings = self.settings
        assert settings is not None
        config = read_config(settings, "demo")
        with suppress(CrawlprojError), open_for_reading(config) as database:
            rows = database.fetch_rows_as("visited_pages", VisitedPage, crawl=config.spec.name)
            true = measure_freshness(self.session.web, rows, time.time())
        if true is not None:
            copies = format_count(true.pages, "copy", "copies")
            age = format_duration(true.age_s)
            print_lines(
                [
                    "",
                    "The demo web knows when its pages have changed. In truth "
                    f"{format_share(true.freshness)} of {copies}",
                    f"are up to date, their mean age is {age}.",
                ]
            )


def serve_until_signal(session: DemoSession) -> None:
    """Say where the demo web is and what reaches it; returns when a signal comes."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in REACH_SETTINGS.items())
    print_lines(
        [
            "The demo web is served until Ctrl-C:",
            *(f"  {url}" for url in session.seed_urls),
            "In another terminal, this makes all commands find it:",
            f"  export {words}",
        ]
    )
    stopped.wait()
