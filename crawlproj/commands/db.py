"""scrapy db: the database itself."""

from __future__ import annotations

import argparse
import sys

from crawlproj.config import Config
from crawlproj.console import COULD_NOT_RUN, FINE, ProjectCommand, complain, say
from crawlproj.embedded import Embedded, running_dsn
from crawlproj.errors import ConfigError
from crawlproj.holders import holders
from crawlproj.migrations import migrate
from crawlproj.store import open_database


class Command(ProjectCommand):
    words = (1, 1)

    def syntax(self) -> str:
        return "migrate | url | stop [--force]"

    def short_desc(self) -> str:
        return "Bring the tables up to date, say where the database is, or stop our own"

    def long_desc(self) -> str:
        return (
            "migrate: make the tables or bring them up to date. url: print the URL for psql and other programs; our own server is"
            " started if need be, and then runs until it is stopped or the next crawl ends. stop: stop our own server."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--force", action="store_true", help="stop it also while others use it")

    def work(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        verbs = {"migrate": self._migrate, "url": self._url, "stop": self._stop}
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
        say(f"Brought up to date: {', '.join(steps)}" if steps else "The tables are up to date.")
        return FINE

    def _url(self, config: Config, opts: argparse.Namespace) -> int:
        if config.database_url:
            say(config.database_url)
            return FINE
        found = running_dsn(config.crawl_dir) if config.crawl_dir.exists() else None
        if found is None:
            embedded = Embedded(config.crawl_dir)
            found = embedded.start()
            embedded.leave_running()
            print("The database was started. It runs until `scrapy db stop`, or until the next crawl ends.", file=sys.stderr)
        say(found)
        return FINE

    def _stop(self, config: Config, opts: argparse.Namespace) -> int:
        if config.database_url:
            raise ConfigError("DATABASE_URL names a server that is not ours to stop")
        if not config.crawl_dir.exists() or running_dsn(config.crawl_dir) is None:
            say("It does not run.")
            return FINE
        users = holders(config.crawl_dir / "pg.lock")
        if Embedded(config.crawl_dir).stop(force=opts.force):
            say("Stopped.")
            return FINE
        who = "; ".join(f"process {pid}: {words}" for pid, words in users.items()) or "another process"
        complain(f"the database is in use and was not stopped (--force stops it all the same). Used by {who}")
        return COULD_NOT_RUN
