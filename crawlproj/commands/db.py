"""`scrapy db`: migrate the database, print its URL, stop our own server, clean what is old."""

from __future__ import annotations

import argparse
import sys

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
from crawlproj.database.embedded.lock_holders import flock_holders
from crawlproj.database.embedded.server import EmbeddedPostgres, foreign_clients, running_dsn
from crawlproj.database.migrations import migrate
from crawlproj.database.opening import open_database
from crawlproj.errors import ConfigError
from crawlproj.formatting import format_count
from crawlproj.frontier.opening import NoCrawlYet, open_for_reading
from crawlproj.upkeep.clean import CleanResult, clean_storage, preview_clean
from crawlproj.upkeep.retention import read_retention


class Command(ProjectCommand):
    words = (1, 1)

    def syntax(self) -> str:
        return (
            "migrate | url | stop [--force] | clean [-n] [--older AGE [--keep first,last --per "
            "month | --strict]] [--dead AGE] [--logs AGE]"
        )

    def short_desc(self) -> str:
        return (
            "Bring the tables up to date, say where the database is, stop our own, or clean "
            "database and archive"
        )

    def long_desc(self) -> str:
        return (
            "migrate: make the tables or bring them up to date.\n"
            "url: print the URL for psql and other programs; our own server is started if need "
            "be, and then runs until it is stopped.\n"
            "stop: stop our own server.\n"
            "clean: remove what is older than the RETENTION_ settings or these options say, and "
            "put in order what crashed runs left; the last capture of a page stays, except with "
            "--strict. An AGE is a duration such as 365d."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json(parser)
        parser.add_argument("--force", action="store_true", help="stop: also while others use it")
        parser.add_argument(
            "-n", "--dry-run", action="store_true", help="clean: only show what would go"
        )
        parser.add_argument(
            "--older",
            metavar="AGE",
            help="clean: captures that are older go (default: RETENTION_CAPTURES)",
        )
        parser.add_argument(
            "--keep",
            metavar="WHICH",
            help="clean: but not the first, last of each period (RETENTION_KEEP)",
        )
        parser.add_argument(
            "--per",
            metavar="PERIOD",
            help="clean: which is a day, week, month or year (RETENTION_PER)",
        )
        parser.add_argument(
            "--strict",
            action="store_true",
            help="clean: nothing that is older stays (RETENTION_STRICT)",
        )
        parser.add_argument(
            "--dead",
            metavar="AGE",
            help="clean: URLs given up for so long, and never read, go (RETENTION_DEAD)",
        )
        parser.add_argument(
            "--logs", metavar="AGE", help="clean: logs that are older go (RETENTION_LOGS)"
        )

    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        verbs = {
            "migrate": self._migrate,
            "url": self._url,
            "stop": self._stop,
            "clean": self._clean,
        }
        if words[0] not in verbs:
            raise ConfigError(f"usage: scrapy db {self.syntax()}")
        return verbs[words[0]](config, opts)

    def _migrate(self, config: Config, opts: argparse.Namespace) -> int:
        database, embedded = open_database(config.database_url, config.crawl_dir)
        try:
            steps = migrate(database)
        finally:
            database.close()
            if embedded:
                embedded.close()
        if steps:
            print_lines(f"Brought up to date: {', '.join(steps)}")
        else:
            print_lines("The tables are up to date.")
        return FINE

    def _clean(self, config: Config, opts: argparse.Namespace) -> int:
        given = {
            "RETENTION_CAPTURES": opts.older,
            "RETENTION_KEEP": opts.keep,
            "RETENTION_PER": opts.per,
            "RETENTION_DEAD": opts.dead,
            "RETENTION_LOGS": opts.logs,
        }
        if opts.strict:
            given["RETENTION_STRICT"] = "1"
        retention = read_retention(self.settings, given)
        no_crawl = ""
        try:
            with open_for_reading(config) as database:
                if opts.dry_run:
                    now = database.fetch_value("now")
                    result = preview_clean(database, config, retention, now=now)
                else:
                    result = clean_storage(database, config, retention, tell=print_error)
        except NoCrawlYet as error:
            result = CleanResult()
            no_crawl = str(error)
        if opts.json:
            print_json({"dry_run": opts.dry_run, **result.as_dict()})
        else:
            print_lines(no_crawl or as_text(result, opts.dry_run))
        return FINE

    def _url(self, config: Config, opts: argparse.Namespace) -> int:
        if config.database_url:
            print_lines(config.database_url)
            return FINE
        runs = config.crawl_dir.exists() and running_dsn(config.crawl_dir) is not None
        embedded = EmbeddedPostgres(config.crawl_dir)
        dsn = embedded.start()
        embedded.keep_running()
        if not runs:
            print("The database was started. It runs until `scrapy db stop`.", file=sys.stderr)
        print_lines(dsn)
        return FINE

    def _stop(self, config: Config, opts: argparse.Namespace) -> int:
        if config.database_url:
            raise ConfigError("DATABASE_URL names a server that is not ours to stop")
        if not config.crawl_dir.exists() or running_dsn(config.crawl_dir) is None:
            print_lines("It does not run.")
            return FINE
        users = flock_holders(config.crawl_dir / "pg.lock")
        clients = foreign_clients(config.crawl_dir)
        if EmbeddedPostgres(config.crawl_dir).stop(force=opts.force):
            print_lines("Stopped.")
            if clients:
                connections = format_count(clients, "connection")
                print_error(f"{connections} of other programs, such as psql, cut off")
            return FINE
        processes = "; ".join(f"process {pid}: {command}" for pid, command in users.items())
        print_error(
            "the database is in use and was not stopped (--force stops it all the same). Used by "
            f"{processes or 'another process'}"
        )
        return COULD_NOT_RUN


def as_text(result: CleanResult, dry_run: bool) -> list[str]:
    """What was removed, or would be; kinds with nothing removed are left out."""
    lines = []
    if result.records or result.files_rewritten:
        lines.append(
            f"{format_count(result.records, 'record')} of the archive: "
            f"{format_count(result.files_rewritten, 'file')} rewritten, "
            f"{result.files_dropped} dropped, {result.freed_bytes:,} bytes freed"
        )
    if result.waiting:
        lines.append(
            f"{format_count(result.waiting, 'older record')} in files of which too little would "
            "go: they stay for now"
        )
    if result.versions:
        lines.append(format_count(result.versions, "version"))
    if result.urls:
        lines.append(format_count(result.urls, "dead URL"))
    if result.logs:
        lines.append(format_count(result.logs, "log"))
    if result.leftovers:
        lines.append(format_count(result.leftovers, "leftover of a crash", "leftovers of crashes"))
    if not lines:
        return ["There is nothing to clean."]
    heading = "Removed:"
    if dry_run:
        heading = "Would remove:"
    return [heading, *(f"  {line}" for line in lines)]
