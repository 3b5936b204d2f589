"""`scrapy parse`: Scrapy's own, politely and without a crawl, or from the archive."""

from __future__ import annotations

import argparse

from scrapy import Request
from scrapy.commands import parse
from scrapy.exceptions import UsageError
from scrapy.utils.spider import spidercls_for_request
from w3lib.url import is_url

from crawlproj.cli.command import COULD_NOT_RUN, NOTHING_FETCHED, STOPPED, exit_codes, print_error
from crawlproj.cli.oneoff import OneOffCommand, failure_text, was_stopped
from crawlproj.cli.preflight import check_addons, load_spider
from crawlproj.errors import ConfigError


class Command(OneOffCommand, parse.Command):
    def long_desc(self) -> str:
        return (
            "Fetch a URL, run a spider's callback on it and print items and requests. robots.txt, "
            "the guard and the clocks of politeness hold, redirects are followed; no crawl is "
            "begun. Exit codes: 0 fine, 1 could not run or the callback failed, 2 bad usage or "
            "settings, 3 not fetched."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1 or not is_url(args[0]):
            raise UsageError
        with exit_codes():
            self._check_spider(args[0], opts)
        super().run(args, opts)

    def _check_spider(self, url: str, opts: argparse.Namespace) -> None:
        """Raise ConfigError if there is no spider for the URL, if it lacks the callback, or if its
        settings are refused.
        """
        assert self.crawler_process is not None and self.settings is not None
        loader = self.crawler_process.spider_loader
        if opts.spider:
            spidercls = load_spider(loader, opts.spider)
        else:
            found = spidercls_for_request(loader, Request(url))
            if found is None:
                raise ConfigError(
                    f"no spider, or more than one, says that {url} is its own (allowed_domains): "
                    "name one with --spider NAME"
                )
            spidercls = found
        if opts.callback and not callable(getattr(spidercls, opts.callback, None)):
            raise ConfigError(
                f"--callback {opts.callback}: the spider {spidercls.name} has no such method"
            )
        check_addons(self.settings, spidercls)

    def start_parsing(self, url: str, opts: argparse.Namespace) -> None:
        super().start_parsing(url, opts)
        if self.exitcode:
            return
        if not self.first_response and was_stopped(self.pcrawler):
            self.exitcode = STOPPED
        elif not self.first_response:
            print_error(failure_text(self.pcrawler))
            self.exitcode = NOTHING_FETCHED
        elif self.pcrawler.stats.get_value("spider_exceptions/count"):
            print_error("the callback failed: the log says where")
            self.exitcode = COULD_NOT_RUN
