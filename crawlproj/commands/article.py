"""`scrapy article`: what is taken from a page as its article, and where each field came from."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.spider import DefaultSpider

from crawlproj.cli.command import FINE, exit_codes, print_lines, print_text
from crawlproj.cli.page_reader import PageReader
from crawlproj.cli.page_source import (
    SourcePage,
    check_words,
    checked_url,
    is_address,
    page_of_response,
    read_file,
)
from crawlproj.cli.preflight import load_spider
from crawlproj.commands.fetch import Command as FetchCommand
from crawlproj.content.articles import FIELDS, ArticleFields
from crawlproj.content.document import Document
from crawlproj.content.html import parse_page
from crawlproj.content.page_kinds import judge_page
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_table, shorten_line
from crawlproj.news.saved_pages import expected_fields
from crawlproj.news.spider import SitesSpider
from crawlproj.urls.canonical import host_of
from crawlproj.urls.domains import registered_domain
from crawlproj.urls.rules import SiteRules

SHOWN = 100
"""Characters that are shown of a field."""
QUIET_PRIORITY = 35
"""Stronger than settings files, weaker than -L and -s."""


class Command(FetchCommand):
    def syntax(self) -> str:
        return "FILE... | URL [--spider NAME [-a NAME=VALUE]] [--url URL] [--json]"

    def short_desc(self) -> str:
        return "What is taken from a page as its article, and where each field came from"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. The page is a file, or is asked for politely; of several files "
            "each gives a line of JSON. With --spider the selectors of that spider count: of one "
            "for a site, or of the sites of a file (--spider news -a sites=FILE). Exit codes: 0 "
            "fine, 1 could not run, 2 bad usage or settings, 3 not fetched."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-a",
            dest="spargs",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="set an argument of the spider (may be repeated)",
        )
        parser.add_argument("--url", metavar="URL", help="the address of a page in a file")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        if "LOG_LEVEL" not in os.environ:
            # What is shown is short: it must not drown in the log of one request.
            self.settings.set("LOG_LEVEL", "WARNING", priority=QUIET_PRIORITY)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with exit_codes():
            check_words(args, f"scrapy article {self.syntax()}")
            self._spider = self.load_news_spider(opts.spider, opts.spargs)
            if not is_address(args[0]):
                pages = [read_file(name, opts.url or "") for name in args]
                self.take_pages(pages, opts)
                self.exitcode = FINE
        if is_address(args[0]):
            super().run(args, opts)

    def load_news_spider(self, name: str | None, arguments: Sequence[str]) -> SitesSpider | None:
        """The spider of that name with these arguments, made as for a crawl."""
        try:
            given = arglist_to_dict(list(arguments))
        except ValueError:
            raise ConfigError("-a must be NAME=VALUE") from None
        if not name:
            if given:
                raise ConfigError("-a is for a spider: say which, with --spider NAME")
            return None
        assert self.settings is not None
        spidercls = load_spider(get_spider_loader(self.settings), name)
        if not issubclass(spidercls, SitesSpider):
            raise ConfigError(f"the spider {name} is no NewsSpider, so it has no selectors")
        return spidercls(**given)

    def _choose_spider(self, request: Request, opts: argparse.Namespace) -> type[Spider]:
        return DefaultSpider

    def _take_response(self, response: Response, opts: argparse.Namespace) -> None:
        self._has_response = True
        page = page_of_response(response)
        if opts.url:
            page = SourcePage(page.body, checked_url(opts.url), page.charset)
        self.take_pages([page], opts)

    def take_pages(self, pages: Sequence[SourcePage], opts: argparse.Namespace) -> None:
        """Do with the pages what the command is for."""
        with closing(PageReader()) as reader:
            for page in pages:
                site = self.site_of(page)
                fields = reader.read_article(page, site)
                document = parse_page(page.body, page.url, page.charset or None)
                fields = reader.with_found_language(fields, document)
                if opts.json or len(pages) > 1:
                    print_text(json.dumps(as_object(page, fields, site), ensure_ascii=False))
                else:
                    print_lines(as_text(page, fields, document, site))

    def site_of(self, page: SourcePage) -> SiteRules | None:
        """What the chosen spider says of the page's site."""
        if self._spider is None:
            return None
        return self._spider.site_of(page.url)


def as_object(page: SourcePage, fields: ArticleFields, site: SiteRules | None) -> dict[str, Any]:
    """The article as it would come out of a crawl."""
    name = site.name if site is not None else registered_domain(host_of(page.url))
    values = {field: getattr(fields, field) for field in FIELDS}
    return {
        "url": page.url,
        **{field: list(v) if isinstance(v, tuple) else v for field, v in values.items()},
        "site": name,
        "labels": [],
        "origins": dict(fields.origins),
        "alarms": list(fields.alarms),
    }


def as_text(
    page: SourcePage, fields: ArticleFields, document: Document, site: SiteRules | None
) -> list[str]:
    """A line per field; fields that the page does not tell are named at the end."""
    found = expected_fields(fields)
    rows = [
        [field, fields.origins.get(field, ""), _shown(field, found[field])]
        for field in FIELDS
        if field in found
    ]
    lines = [page.url, *_kind_lines(page, document, site)]
    if "text" not in found:
        lines.append("No article could be taken from it.")
        return lines + [f"Alarm: {alarm}" for alarm in fields.alarms]
    lines += format_table(["field", "from", "value"], rows)
    missing = [field for field in FIELDS if field not in found]
    if missing:
        lines.append(f"Not told: {', '.join(missing)}.")
    return lines + [f"Alarm: {alarm}" for alarm in fields.alarms]


def _kind_lines(page: SourcePage, document: Document, site: SiteRules | None) -> list[str]:
    """What kind of page it is taken for in a crawl."""
    rule = site.find_rule(page.url) if site is not None else None
    if rule is not None and rule.verdict in ("article", "listing"):
        return [f"In a crawl it is taken for: {rule.verdict} (rule {rule})"]
    guess = judge_page(document, page.url)
    return [f"In a crawl it is taken for: {guess.kind} ({guess.why})"]


def _shown(field: str, value: Any) -> str:
    if isinstance(value, list):
        value = "; ".join(value)
    text = shorten_line(" ".join(str(value).split()), SHOWN)
    if field == "text":
        paragraphs = len(str(value).splitlines())
        return f"{len(value):,} characters in {paragraphs:,} lines: {text}"
    return text
