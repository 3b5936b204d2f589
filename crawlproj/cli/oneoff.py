"""What `scrapy shell`, `fetch`, `parse`, `view`, `check` and `bench` have in common: they are
Scrapy's own commands, which ask for single pages without a crawl.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.addons import AddonManager
from scrapy.commands import ScrapyCommand
from scrapy.crawler import Crawler
from scrapy.shell import Shell
from scrapy.utils.spider import DefaultSpider
from w3lib.url import file_uri_to_path

from crawlproj.cli.command import exit_codes, print_error
from crawlproj.cli.preflight import check_contact, check_copies, check_settings
from crawlproj.cli.summary import ADVICE
from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.fetch.pages import reason_of
from crawlproj.oneoff.mode import AT_SETTING, COMMAND_SETTING, FILE_SETTING, PRIORITY
from crawlproj.oneoff.polite_hosts import polite_hosts_of
from crawlproj.reports.versions import parse_time
from crawlproj.urls.canonical import canonical_url

ROBOTS_ADVICE = {
    "robots": "robots.txt forbids it",
    "robots unread": "robots.txt could not be read, so the host is left alone",
}


class OneOffCommand(ScrapyCommand):
    """Mixed into a command of Scrapy's, before it."""

    reads_archive = True
    """Whether it has the option --at."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        if self.reads_archive:
            parser.add_argument(
                "--at",
                metavar="TIME",
                help="read pages from the archive as they were then, such as 2026-03-01, without "
                "the network",
            )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Scrapy calls this before it starts anything: the last moment to refuse."""
        super().process_options(args, opts)
        settings = self.settings
        assert settings is not None
        with exit_codes(settings.get("LOG_FILE")):
            AddonManager.load_pre_crawler_settings(settings)
            check_copies()
            config = check_settings(settings, DefaultSpider.name)
            name = type(self).__module__.rpartition(".")[2]
            settings.set(COMMAND_SETTING, name, PRIORITY)
            at = getattr(opts, "at", None)
            if at:
                settings.set(AT_SETTING, parse_time(at), PRIORITY)
                return
            url = self.first_url(args)
            if url.startswith("file:"):
                check_file(url)
                settings.set(FILE_SETTING, True, PRIORITY)
            elif url:
                check_contact(config, [canonical_url(url) or url])

    def first_url(self, args: list[str]) -> str:
        """The URL that the command asks for first; empty if it asks for none."""
        if not args or "://" not in args[0]:
            return ""
        return args[0]


def check_file(url: str) -> None:
    """Raise ConfigError if a file that is named by its URL can't be read."""
    path = Path(file_uri_to_path(url))
    try:
        path.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror or error}") from None


def was_stopped(crawler: Crawler) -> bool:
    """Whether a signal ended the command before it was done."""
    try:
        return crawler.stats.get_value("finish_reason") in (None, "shutdown")
    except RuntimeError:  # it could not even begin, so there are no stats
        return False


def failure_text(crawler: Crawler) -> str:
    """Why nothing was fetched, in one line."""
    hosts = polite_hosts_of(crawler)
    if not hosts.last_failure:
        if hosts.last_status:
            return f"the server answered with status {hosts.last_status}"
        return "it was not asked for (see the log)"
    url, reason = hosts.last_failure
    kind = reason.partition(":")[0].replace(" ", "_")
    advice = (
        ROBOTS_ADVICE.get(reason) or ADVICE.get(f"failed/{kind}") or ADVICE.get(f"forbidden/{kind}")
    )
    text = f"{url} was not fetched: {reason}"
    if advice:
        text += f" ({advice})"
    return text


class PoliteShell(Shell):
    """Scrapy's shell, which says in one line why something was not fetched."""

    def open_url(self, url: str, redirect: bool) -> bool:
        """Fetch what the shell is opened on; False if it can't be fetched."""
        self.fetch(url, redirect=redirect)
        return self.vars["response"] is not None

    def start_console(self) -> None:
        """Evaluate the code, or let a person type, with the variables that are there."""
        self.start(response=self.vars.get("response"), spider=self.spider)

    def fetch(
        self,
        request_or_url: Request | str,
        spider: Spider | None = None,
        redirect: bool = True,
        **kwargs: Any,
    ) -> None:
        hosts = polite_hosts_of(self.crawler)
        hosts.last_failure = None
        try:
            super().fetch(request_or_url, spider, redirect, **kwargs)
        except CrawlprojError:
            raise
        except Exception as error:
            self.populate_vars(None, None, self.spider)
            if hosts.last_failure is None:
                hosts.note_failure(str(request_or_url), reason_of(error))
        if self.vars["response"] is None:
            print_error(failure_text(self.crawler))
