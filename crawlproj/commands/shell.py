"""`scrapy shell`: Scrapy's own, politely and without a crawl, on a file, or from the archive."""

from __future__ import annotations

import argparse
import time

from scrapy import Request, Spider
from scrapy.commands import shell
from scrapy.utils.spider import DefaultSpider, spidercls_for_request
from scrapy.utils.url import guess_scheme

from crawlproj.cli.command import FINE, NOTHING_FETCHED, check_words, exit_codes
from crawlproj.cli.oneoff import OneOffCommand, PoliteShell
from crawlproj.cli.preflight import check_addons, load_spider

START_S = 10.0
"""So long the engine may take to start."""


class Command(OneOffCommand, shell.Command):
    def long_desc(self) -> str:
        return (
            "An interactive console on a URL or file. Use ./file.html syntax or a full path for a "
            "local file. robots.txt, the guard and the clocks of politeness hold, also for each "
            "fetch(), and redirects are followed; nothing is stored, and no crawl is begun. Exit "
            "codes: 0 fine, 1 could not run, 2 bad usage or settings, 3 not fetched."
        )

    def first_url(self, args: list[str]) -> str:
        check_words(args, 0, 1, usage=f"scrapy shell {self.syntax()}")
        if not args:
            return ""
        return guess_scheme(args[0])

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with exit_codes():
            self.exitcode = self._run_shell(self.first_url(args), opts)

    def _run_shell(self, url: str, opts: argparse.Namespace) -> int:
        assert self.crawler_process is not None
        crawler = self.crawler_process._create_crawler(self._choose_spider(url, opts))
        crawler._apply_settings()
        loop = None
        if crawler.settings.getbool("TWISTED_REACTOR_ENABLED"):
            self._init_with_reactor(crawler)
        else:
            self._init_without_reactor(crawler)
            loop = self._get_reactorless_loop()
        deadline = time.monotonic() + START_S
        while not crawler.engine.running and time.monotonic() < deadline:
            time.sleep(0.01)
        console = PoliteShell(crawler, update_vars=self.update_vars, code=opts.code, loop=loop)
        if url and not console.open_url(url, redirect=not opts.no_redirect):
            return NOTHING_FETCHED
        console.start_console()
        return FINE

    def _choose_spider(self, url: str, opts: argparse.Namespace) -> type[Spider]:
        assert self.crawler_process is not None and self.settings is not None
        loader = self.crawler_process.spider_loader
        spidercls: type[Spider] = DefaultSpider
        if opts.spider:
            spidercls = load_spider(loader, opts.spider)
        elif url:
            spidercls = spidercls_for_request(loader, Request(url), spidercls, log_multiple=True)
        check_addons(self.settings, spidercls)
        return spidercls
