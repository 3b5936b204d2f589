"""`scrapy fetch`: Scrapy's own, politely and without a crawl, or from the archive."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.commands import fetch
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.http import Response
from scrapy.utils.datatypes import SequenceExclude
from scrapy.utils.spider import DefaultSpider, spidercls_for_request
from w3lib.url import is_url

from crawlproj.cli.command import (
    COULD_NOT_RUN,
    FINE,
    NOTHING_FETCHED,
    STOPPED,
    exit_codes,
    print_error,
)
from crawlproj.cli.oneoff import OneOffCommand, failure_text, was_stopped
from crawlproj.cli.preflight import check_addons, load_spider
from crawlproj.commands.crawl import run_to_end
from crawlproj.errors import CrawlprojError


class Command(OneOffCommand, fetch.Command):
    _has_response = False

    def long_desc(self) -> str:
        return (
            "Fetch a URL and print it. robots.txt, the guard and the clocks of politeness hold, "
            "redirects are followed; nothing is stored, and no crawl is begun. Exit codes: 0 fine, "
            "1 could not run, 2 bad usage or settings, 3 not fetched."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1 or not is_url(args[0]):
            raise UsageError
        assert self.crawler_process is not None
        request = self._make_request(args[0], opts)
        with exit_codes():
            spidercls = self._choose_spider(request, opts)

        async def start(self: Spider) -> AsyncIterator[Any]:
            yield request

        spidercls.start = start  # type: ignore[method-assign]
        crawler = self.crawler_process.create_crawler(spidercls)
        failure = run_to_end(self.crawler_process, crawler, {}, close=lambda: None)
        with exit_codes():
            self.exitcode = self._report_outcome(crawler, failure)

    def _make_request(self, url: str, opts: argparse.Namespace) -> Request:
        """The request as Scrapy's own command makes it: the response is printed, whatever its
        status, except that redirects are followed unless that is not wanted.
        """
        meta: dict[str, Any] = {"handle_httpstatus_list": SequenceExclude(range(300, 400))}
        if opts.no_redirect:
            meta = {"handle_httpstatus_all": True}
        return Request(
            url, self._take_response, cb_kwargs={"opts": opts}, meta=meta, dont_filter=True
        )

    def _choose_spider(self, request: Request, opts: argparse.Namespace) -> type[Spider]:
        assert self.crawler_process is not None and self.settings is not None
        loader = self.crawler_process.spider_loader
        spidercls: type[Spider] = DefaultSpider
        if opts.spider:
            spidercls = load_spider(loader, opts.spider)
        else:
            spidercls = spidercls_for_request(loader, request, spidercls)
        check_addons(self.settings, spidercls)
        return spidercls

    def _take_response(self, response: Response, opts: argparse.Namespace) -> None:
        self._has_response = True
        self._print_response(response, opts)

    def _report_outcome(self, crawler: Crawler, failure: BaseException | None) -> int:
        """The exit code; prints a line if it is not 0."""
        if isinstance(failure, CrawlprojError):
            raise failure
        if failure is not None:
            print_error(f"it could not start: {type(failure).__name__}: {failure}")
            return COULD_NOT_RUN
        if not self._has_response and was_stopped(crawler):
            return STOPPED
        if not self._has_response:
            print_error(failure_text(crawler))
            return NOTHING_FETCHED
        return FINE
