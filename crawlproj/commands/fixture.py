"""`scrapy fixture`: a page is saved with what is taken from it, as a test of a site's spider."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from scrapy.crawler import Crawler
from scrapy.http import Response

from crawlproj.cli.command import NOTHING_FETCHED, exit_codes, print_error, print_lines
from crawlproj.cli.page_reader import PageReader
from crawlproj.cli.page_source import SourcePage, checked_url, is_address
from crawlproj.commands.article import Command as ArticleCommand
from crawlproj.commands.article import as_text
from crawlproj.content.html import parse_page
from crawlproj.errors import ConfigError
from crawlproj.news.saved_pages import EXPECTED_ENDING, FOLDER, GENERAL, save_page

PAGE_STATUS: Final = 200


class Command(ArticleCommand):
    _refusal = ""

    def syntax(self) -> str:
        return "NAME URL|FILE [--url URL]"

    def short_desc(self) -> str:
        return "Save a page with what a spider takes from it, as a test of that spider"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. It goes to {FOLDER}/NAME/, where the tests find it: read the "
            ".json file, and correct it where the spider is wrong. A page of the same URL is "
            "replaced."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--folder", metavar="FOLDER", default=str(FOLDER), help=f"default: {FOLDER}"
        )

    def first_url(self, args: list[str]) -> str:
        return super().first_url(args[1:])

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with exit_codes():
            if len(args) != 2:
                raise ConfigError(f"usage: scrapy fixture {self.syntax()}")
            name, source = args
            if not is_address(source) and not opts.url:
                raise ConfigError("whose page is it? Give its address: --url URL")
            self._check_site(name, opts.url or source)
        opts.spider = name
        super().run([source], opts)

    def _check_site(self, name: str, url: str) -> None:
        """Raise ConfigError for a page of another site, of which the spider's selectors say
        nothing.
        """
        if name in GENERAL:
            raise ConfigError(
                f"the spider {name} has no site of its own, so no test of it: a saved page is for "
                "a spider of its own (scrapy genspider -t news), scrapy article shows what the "
                "selectors of a file of sites give"
            )
        spider = self.load_news_spider(name, ())
        assert spider is not None
        if spider.site_of(checked_url(url)) is None:
            domains = ", ".join(sorted(spider.sites.domains))
            raise ConfigError(
                f"{url[:200]} is not on the site of the spider {name}, which is {domains}"
            )

    def _take_response(self, response: Response, opts: argparse.Namespace) -> None:
        if response.status == PAGE_STATUS:
            super()._take_response(response, opts)
        else:
            self._refusal = f"nothing was saved: {response.url} came with status {response.status}"

    def _report_outcome(self, crawler: Crawler, failure: BaseException | None) -> int:
        if self._refusal:
            print_error(self._refusal)
            return NOTHING_FETCHED
        return super()._report_outcome(crawler, failure)

    def take_pages(self, pages: Sequence[SourcePage], opts: argparse.Namespace) -> None:
        with closing(PageReader()) as reader:
            for page in pages:
                site = self.site_of(page)
                fields = reader.read_article(page, site)
                path = save_page(opts.spider, page, fields, Path(opts.folder))
                document = parse_page(page.body, page.url, page.charset or None)
                print_lines(as_text(page, fields, document, site))
                expected = path.with_name(path.name.removesuffix(".html.gz") + EXPECTED_ENDING)
                print_lines(["", f"Saved as {path}; what is expected of it: {expected}"])
