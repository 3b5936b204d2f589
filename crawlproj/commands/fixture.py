"""`scrapy fixture`: a page is saved with what is taken from it, as a test of a site's spider."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from crawlproj.cli.command import exit_codes, print_lines
from crawlproj.cli.page_source import SourcePage, is_address
from crawlproj.commands.article import Command as ArticleCommand
from crawlproj.commands.article import as_text
from crawlproj.errors import ConfigError
from crawlproj.news.saved_pages import FOLDER, save_page


class Command(ArticleCommand):
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
        opts.spider = name
        super().run([source], opts)

    def take_pages(self, pages: Sequence[SourcePage], opts: argparse.Namespace) -> None:
        for page in pages:
            site = self.site_of(page)
            fields = self.extract(page, site)
            path = save_page(opts.spider, page, fields, Path(opts.folder))
            print_lines(as_text(page, fields, site))
            expected = path.with_name(path.name.removesuffix(".html.gz") + ".json")
            print_lines(["", f"Saved as {path}; what is expected of it: {expected}"])
