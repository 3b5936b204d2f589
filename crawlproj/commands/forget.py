"""`scrapy forget`: a take-down of URLs or hosts."""

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
from crawlproj.upkeep.takedown import (
    StoredRule,
    carry_out,
    preview_takedown,
    store_rules,
    stored_rules,
    undo_takedown,
)

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
            "names below it; '*.example.org' is all names below example.org. It holds for all "
            "crawls of the database. The removal is on record in the archive and in the database. "
            "A crawl may be running. If it is stopped in the middle, do it again."
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
        modes = opts.undo + opts.list + (opts.dry_run or opts.keep_crawling)
        if bool(words) is opts.list or modes > 1:
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
        result = carry_out(database, config, print_error)
        rules = [rule for rule in stored_rules(database) if rule.id in ids]
        if opts.json:
            files = {"rewritten": result.files, "freed_bytes": result.freed}
            print_json({"forgotten": [rule_values(rule) for rule in rules], "files": files})
            return FINE
        for rule in rules:
            print_lines(describe_removal(rule))
        self._print_neighbours(database, names)
        return FINE

    def _print_neighbours(self, database: Database, names: list[str]) -> None:
        """Name hosts below: who says example.org may not know that www.example.org is another."""
        hosts = [
            name
            for name in names
            if not is_url(name) and not name.startswith(BELOW) and BELOW + name not in names
        ]
        rows = database.fetch_rows("takedown_neighbours", domains=array_literal(hosts))
        neighbours = [name for (name,) in rows if name not in names]
        if neighbours:
            print_lines(
                f"Other hosts stay, such as {', '.join(neighbours[:3])}: *.{hosts[0]} means all "
                "below it."
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
        print_lines(f"Would forget {', '.join(map(describe_target, names))}:")
        print_lines(
            f"  {format_count(facts['urls'], 'URL')}, {format_count(facts['pages'], 'page')}, "
            f"{format_count(facts['versions'], 'version')} in the database"
        )
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
                f"May be fetched again: {', '.join(map(describe_target, undone))}; "
                f"{format_count(queued, 'URL')} queued."
            )
        missing = [name for name in names if name not in undone]
        if missing:
            print_error(f"was not forgotten: {', '.join(missing)}")
            return COULD_NOT_RUN
        return FINE

    def _list(self, config: Config, opts: argparse.Namespace) -> int:
        try:
            with open_for_reading(config) as database:
                rows = [rule_values(rule) for rule in stored_rules(database)]
        except NoCrawlYet:
            rows = []
        if opts.json:
            print_json({"forgotten": rows})
        elif rows:
            for row in rows:
                row["asked"] = f"{row['asked']:%Y-%m-%d %H:%M}"
            cells = [[str(row[name]) for name in COLUMNS] for row in rows]
            print_lines(format_table(COLUMNS, cells))
        else:
            print_lines("Nothing was forgotten.")
        return FINE


def describe_removal(rule: StoredRule) -> str:
    """A sentence that says what a rule has removed."""
    removed = (
        f"{format_count(rule.urls, 'URL')}, {format_count(rule.versions, 'version')}, "
        f"{format_count(rule.records, 'record')} in {format_count(rule.files, 'WARC file')}"
    )
    fate = "it is still fetched"
    if rule.barred:
        fate = "it is not fetched again"
    return f"Forgotten: {describe_target(rule.what)} ({removed}); {fate}."


def rule_values(rule: StoredRule) -> dict[str, Any]:
    """A rule as it is printed as JSON."""
    return {
        "what": rule.what,
        "reason": rule.reason,
        "state": rule_state(rule),
        "barred": rule.barred,
        "asked": rule.requested_at,
        "ended": rule.ended_at,
        "undone": rule.undone_at,
        "urls": rule.urls,
        "versions": rule.versions,
        "records": rule.records,
        "files": rule.files,
    }


def rule_state(rule: StoredRule) -> str:
    if rule.ended_at is None:
        return "not ended"
    if rule.barred:
        return "barred"
    if rule.undone_at:
        return "undone"
    return "removed"
