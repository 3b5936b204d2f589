"""scrapy forget: a take-down of a URL or a host."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from crawlproj.cli.command import (
    COULD_NOT_RUN,
    FINE,
    ProjectCommand,
    add_json,
    print_error,
    print_json,
    print_lines,
)
from crawlproj.config import Config
from crawlproj.database.arrays import array_literal
from crawlproj.database.connection import Database
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_count, format_table
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading, open_for_writing
from crawlproj.frontier.takedown import BELOW, describe_target, is_url, parse_target
from crawlproj.upkeep.takedown import carry_out, preview_takedown, store_rules, undo_takedown

COLUMNS = ("what", "asked", "state", "urls", "versions", "records", "reason")


class Command(ProjectCommand):
    words = (0, sys.maxsize)

    def syntax(self) -> str:
        return (
            "URL|HOST... [--reason TEXT] [--keep-crawling] [-n] | --undo URL|HOST... | --list  "
            "[--json]"
        )

    def short_desc(self) -> str:
        return "Remove pages from the database and the archive for good, and fetch them no more"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. A URL is meant exactly, a host with all its URLs but without "
            "names below it; '*.example.org' is"
            " all names below example.org. It holds for all crawls of the database. The removal is "
            "on record in the archive and in"
            " the database. A crawl may be running. If it is stopped in the middle, do it again."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json(parser)
        parser.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
        parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would go")
        parser.add_argument(
            "--keep-crawling",
            action="store_true",
            help="remove what there is, but go on fetching it",
        )
        parser.add_argument(
            "--undo",
            action="store_true",
            help="let it be fetched again; what was removed does not come back",
        )
        parser.add_argument("--list", action="store_true", help="what was forgotten so far")

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        verbs = (opts.undo, opts.list, opts.dry_run, opts.keep_crawling)
        if bool(words) is opts.list or sum(verbs) - (opts.dry_run and opts.keep_crawling) > 1:
            raise ConfigError(f"usage: scrapy forget {self.syntax()}")
        names = list(dict.fromkeys(map(parse_target, words)))
        if opts.list:
            return self._list(config, opts)
        if opts.dry_run:
            return self._preview(config, names, opts)
        with open_for_writing(config) as database:
            if opts.undo:
                return self._undo(database, names, opts)
            return self._forget(database, config, names, opts=opts)

    def _forget(
        self, database: Database, config: Config, names: list[str], opts: argparse.Namespace
    ) -> int:
        ids = store_rules(database, names, opts.reason, barred=not opts.keep_crawling)
        done = carry_out(database, config, print_error)
        rows = [row for row in database.fetch_rows("takedown_rules") if row[0] in ids]
        if opts.json:
            files = {"rewritten": done.files, "freed_bytes": done.freed}
            print_json({"forgotten": [_values(row) for row in rows], "files": files})
            return FINE
        for _, what, _, barred, _, _, _, urls, versions, records, files in rows:
            found = (
                f"{format_count(urls, 'URL')}, {format_count(versions, 'version')}, "
                f"{format_count(records, 'record')} in {format_count(files, 'WARC file')}"
            )
            fate = "it is not fetched again" if barred else "it is still fetched"
            print_lines(f"Forgotten: {describe_target(what)} ({found}); {fate}.")
        self._neighbours(database, names)
        return FINE

    def _neighbours(self, database: Database, names: list[str]) -> None:
        """Who says example.org may not know that www.example.org is another host."""
        plain = [
            name
            for name in names
            if not is_url(name) and not name.startswith(BELOW) and BELOW + name not in names
        ]
        if found := [
            row[0]
            for row in database.fetch_rows("takedown_neighbours", domains=array_literal(plain))
            if row[0] not in names
        ]:
            print_lines(
                f"Other hosts stay, such as {', '.join(found[:3])}: *.{plain[0]} means all below "
                "it."
            )

    def _preview(self, config: Config, names: list[str], opts: argparse.Namespace) -> int:
        try:
            with open_for_reading(config) as database:
                facts = preview_takedown(database, config, names)
        except NoCrawlYet:
            facts = preview_takedown(None, config, names)
        if opts.json:
            print_json({"would_forget": names, **facts})
            return FINE
        kept = ", ".join(
            format_count(facts[f"{name}s"], name if name != "url" else "URL")
            for name in ("url", "page", "version")
        )
        print_lines(f"Would forget {', '.join(map(describe_target, names))}:")
        print_lines(f"  {kept} in the database")
        print_lines(
            f"  {format_count(facts['records'], 'record')} ({facts['bytes']:,} bytes) in "
            f"{format_count(len(facts['files']), 'WARC file')}"
        )
        return FINE

    def _undo(self, database: Database, names: list[str], opts: argparse.Namespace) -> int:
        undone, queued = undo_takedown(database, names)
        if opts.json:
            print_json({"undone": undone, "queued": queued})
        elif undone:
            print_lines(
                f"May be fetched again: {', '.join(map(describe_target, undone))}; {format_count(queued, 'URL')} "
                "queued."
            )
        if missing := [name for name in names if name not in undone]:
            print_error(f"was not forgotten: {', '.join(missing)}")
        return COULD_NOT_RUN if missing else FINE

    def _list(self, config: Config, opts: argparse.Namespace) -> int:
        try:
            with open_for_reading(config) as database:
                rows = [_values(row) for row in database.fetch_rows("takedown_rules")]
        except NoCrawlYet:
            rows = []
        if opts.json:
            print_json({"forgotten": rows})
        else:
            cells = [
                [
                    f"{row['asked']:%Y-%m-%d %H:%M}" if name == "asked" else str(row[name])
                    for name in COLUMNS
                ]
                for row in rows
            ]
            print_lines(format_table(COLUMNS, cells) if rows else "Nothing was forgotten.")
        return FINE


def _values(row: tuple[Any, ...]) -> dict[str, Any]:
    _, what, reason, barred, asked, ended, undone, urls, versions, records, files = row
    state = (
        "not ended" if ended is None else "barred" if barred else "undone" if undone else "removed"
    )
    return {
        "what": what,
        "reason": reason,
        "state": state,
        "barred": barred,
        "asked": asked,
        "ended": ended,
        "undone": undone,
        "urls": urls,
        "versions": versions,
        "records": records,
        "files": files,
    }
