"""`scrapy export`: what was crawled leaves in a file."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO

from crawlproj.cli.command import FINE, ProjectCommand, add_crawl, print_error
from crawlproj.config import Config
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_count
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading, open_frontier
from crawlproj.items import Article
from crawlproj.reports.changes import CHANGE_FIELDS, iterate_changes
from crawlproj.reports.export import BEGINNING, iterate_articles
from crawlproj.reports.versions import parse_time

WHAT: Final[dict[str, str]] = {"articles": "article", "changes": "change"}
"""What can be written, and what one of it is called."""
FORMATS: Final = ("jsonl", "csv")
ARTICLE_FIELDS: Final = tuple(field.name for field in fields(Article))
JOINED: Final = "; "
"""Between the values of a field that has several, in a table."""


class Command(ProjectCommand):
    def syntax(self) -> str:
        return (
            "--what articles|changes [--format jsonl|csv] [-o FILE] [--since TIME] [--crawl NAME]"
        )

    def short_desc(self) -> str:
        return "Write articles, or how pages have changed, into a file"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}, or to standard output: one JSON object a line, or a table for "
            "spreadsheets. Articles come in the order of their last change, changes page by page."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--what", metavar="WHAT", help=f"what is written: {', '.join(WHAT)}")
        parser.add_argument(
            "--format",
            metavar="FORMAT",
            help=f"{' or '.join(FORMATS)} (default: as the name of the file ends, else jsonl)",
        )
        parser.add_argument(
            "-o", dest="file", metavar="FILE", help="the file; one that is there is replaced"
        )
        parser.add_argument(
            "--since",
            metavar="TIME",
            help="only what is new or has changed since (2026-11-18T12:00)",
        )
        add_crawl(parser)

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        if opts.what not in WHAT:
            given = f"--what {opts.what}" if opts.what else "--what is missing"
            raise ConfigError(f"{given}: one of {', '.join(WHAT)}")
        chosen = _format_of(opts.format, opts.file)
        since: datetime | None = None
        if opts.since:
            since = parse_time(opts.since)
        try:
            with open_for_reading(config) as database, _open_file(opts.file) as out:
                crawl = open_frontier(database, config, self.crawl_name(database, opts)).crawl_id
                if opts.what == "changes":
                    rows = iterate_changes(database, crawl, since or BEGINNING)
                    names: Sequence[str] = CHANGE_FIELDS
                else:
                    rows = iterate_articles(database, crawl, since)
                    names = ARTICLE_FIELDS
                number = _write(rows, names, chosen=chosen, out=out)
        except NoCrawlYet as no_crawl:
            print_error(str(no_crawl))
            return FINE
        if opts.file:
            print_error(f"{format_count(number, WHAT[opts.what])} in {opts.file}")
        return FINE


def _format_of(given: str | None, file: str | None) -> str:
    """The format that is asked for, or that the file's name tells."""
    if given is None:
        ending = Path(file or "").suffix.removeprefix(".").lower()
        return ending if ending in FORMATS else FORMATS[0]
    if given not in FORMATS:
        raise ConfigError(f"--format {given}: one of {', '.join(FORMATS)}")
    return given


@contextmanager
def _open_file(name: str | None) -> Iterator[TextIO]:
    """The file, which takes the place of an older one only when it is complete."""
    if not name:
        yield sys.stdout
        return
    path = Path(name)
    if path.is_dir():
        raise ConfigError(f"-o {name}: this is a folder")
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as out:
            yield out
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _write(
    rows: Iterable[dict[str, object]], names: Sequence[str], chosen: str, out: TextIO
) -> int:
    number = 0
    if chosen == "jsonl":
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            number += 1
        return number
    table = csv.writer(out)
    table.writerow(names)
    for row in rows:
        table.writerow([_cell(row[name]) for name in names])
        number += 1
    return number


def _cell(value: object) -> object:
    if isinstance(value, list):
        return JOINED.join(map(str, value))
    return value
