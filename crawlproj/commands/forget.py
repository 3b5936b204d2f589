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
    complain,
    say,
    say_json,
)
from crawlproj.config import Config
from crawlproj.database.arrays import array
from crawlproj.database.connection import Database
from crawlproj.errors import ConfigError
from crawlproj.formatting import count, table
from crawlproj.frontier.opening import NoCrawlYet, reading, writing
from crawlproj.frontier.takedown import BELOW, in_words, is_url, target
from crawlproj.upkeep.takedown import ask, carry_out, preview, undo

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

    def work(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        verbs = (opts.undo, opts.list, opts.dry_run, opts.keep_crawling)
        if bool(words) is opts.list or sum(verbs) - (opts.dry_run and opts.keep_crawling) > 1:
            raise ConfigError(f"usage: scrapy forget {self.syntax()}")
        names = list(dict.fromkeys(map(target, words)))
        if opts.list:
            return self._list(config, opts)
        if opts.dry_run:
            return self._preview(config, names, opts)
        with writing(config) as database:
            if opts.undo:
                return self._undo(database, names, opts)
            return self._forget(database, config, names, opts)

    def _forget(
        self, database: Database, config: Config, names: list[str], opts: argparse.Namespace
    ) -> int:
        ids = ask(database, names, opts.reason, barred=not opts.keep_crawling)
        done = carry_out(database, config, complain)
        rows = [row for row in database.rows("takedown_rules") if row[0] in ids]
        if opts.json:
            files = {"rewritten": done.files, "freed_bytes": done.freed}
            say_json({"forgotten": [_values(row) for row in rows], "files": files})
            return FINE
        for _, what, _, barred, _, _, _, urls, versions, records, files in rows:
            found = (
                f"{count(urls, 'URL')}, {count(versions, 'version')}, "
                f"{count(records, 'record')} in {count(files, 'WARC file')}"
            )
            fate = "it is not fetched again" if barred else "it is still fetched"
            say(f"Forgotten: {in_words(what)} ({found}); {fate}.")
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
            for row in database.rows("takedown_neighbours", domains=array(plain))
            if row[0] not in names
        ]:
            say(
                f"Other hosts stay, such as {', '.join(found[:3])}: *.{plain[0]} means all below "
                "it."
            )

    def _preview(self, config: Config, names: list[str], opts: argparse.Namespace) -> int:
        try:
            with reading(config) as database:
                facts = preview(database, config, names)
        except NoCrawlYet:
            facts = preview(None, config, names)
        if opts.json:
            say_json({"would_forget": names, **facts})
            return FINE
        kept = ", ".join(
            count(facts[f"{name}s"], name if name != "url" else "URL")
            for name in ("url", "page", "version")
        )
        say(f"Would forget {', '.join(map(in_words, names))}:")
        say(f"  {kept} in the database")
        say(
            f"  {count(facts['records'], 'record')} ({facts['bytes']:,} bytes) in "
            f"{count(len(facts['files']), 'WARC file')}"
        )
        return FINE

    def _undo(self, database: Database, names: list[str], opts: argparse.Namespace) -> int:
        undone, queued = undo(database, names)
        if opts.json:
            say_json({"undone": undone, "queued": queued})
        elif undone:
            say(
                f"May be fetched again: {', '.join(map(in_words, undone))}; {count(queued, 'URL')} "
                "queued."
            )
        if missing := [name for name in names if name not in undone]:
            complain(f"was not forgotten: {', '.join(missing)}")
        return COULD_NOT_RUN if missing else FINE

    def _list(self, config: Config, opts: argparse.Namespace) -> int:
        try:
            with reading(config) as database:
                rows = [_values(row) for row in database.rows("takedown_rules")]
        except NoCrawlYet:
            rows = []
        if opts.json:
            say_json({"forgotten": rows})
        else:
            cells = [
                [
                    f"{row['asked']:%Y-%m-%d %H:%M}" if name == "asked" else str(row[name])
                    for name in COLUMNS
                ]
                for row in rows
            ]
            say(table(COLUMNS, cells) if rows else "Nothing was forgotten.")
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
