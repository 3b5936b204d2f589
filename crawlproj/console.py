"""What all commands share: clear errors and exit codes, the database while they run, tables and JSON.

Exit codes: 0 fine; 1 could not run; 2 bad usage, settings or input; 3 ran, but nothing could be fetched, or a rule was broken;
130 stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from scrapy.addons import AddonManager
from scrapy.commands import ScrapyCommand

from crawlproj.config import Config, read_config
from crawlproj.db import Database
from crawlproj.errors import ConfigError, CrawlprojError, DatabaseError
from crawlproj.frontier.base import CrawlSpec
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.migrations import migrate, pending
from crawlproj.store import open_database
from crawlproj.takedown import refused
from crawlproj.urls import MAX_URL, canonical, host

FINE, COULD_NOT_RUN, BAD_INPUT, NOTHING_FETCHED, STOPPED = 0, 1, 2, 3, 130
RULES_BROKEN = NOTHING_FETCHED
DEFAULT_CRAWL = "site"
HOST = re.compile(r"[\w.-]*\w|\[[0-9a-f:]+\]")


class NoCrawlYet(CrawlprojError):
    """There is a database, or not even that, but nothing was crawled so far."""


class ProjectCommand(ScrapyCommand):
    """A command of ours: `work` does it and returns the exit code; what goes wrong is one line."""

    requires_project = True
    requires_crawler_process = False
    words: tuple[int, int] = (0, 0)
    """How many words it takes, at least and at most."""

    @abstractmethod
    def work(self, config: Config, words: list[str], opts: argparse.Namespace) -> int: ...

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with exit_codes():
            assert self.settings is not None
            AddonManager.load_pre_crawler_settings(self.settings)  # of a project that has joined by the add-on
            check_words(args, *self.words, f"scrapy {type(self).__module__.rpartition('.')[2]} {self.syntax()}")
            self.exitcode = self.work(read_config(self.settings, DEFAULT_CRAWL), args, opts)

    def crawl_name(self, database: Database, opts: argparse.Namespace) -> str:
        """The crawl that is meant: --crawl, CRAWL_NAME, or the only one there is."""
        assert self.settings is not None
        names = [name for (name,) in database.rows("crawl_names")]
        if named := opts.crawl or self.settings.get("CRAWL_NAME"):
            return str(named)
        if len(names) > 1:
            raise ConfigError(f"there are several crawls ({', '.join(names)}): say which with --crawl NAME")
        return names[0] if names else DEFAULT_CRAWL


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_crawl(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--crawl", metavar="NAME", help="which crawl (default: CRAWL_NAME, or the only one there is)")


def check_words(words: Sequence[str], least: int, most: int, usage: str) -> None:
    """Scrapy hands unknown options over as words: an option that is not known, or a word too many, is refused."""
    strange = [word for word in words if word.startswith("-")]
    if strange:
        raise ConfigError(f"unknown option {strange[0]} (usage: {usage})")
    if not least <= len(words) <= most:
        raise ConfigError(f"usage: {usage}")


@contextmanager
def exit_codes(log_file: str | None = None) -> Iterator[None]:
    """Whatever ends the block ends the program: with its exit code, and with one line instead of a traceback."""
    if sys.stdout is None:  # `>&-`
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - it lives as long as the program
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        yield
        sys.stdout.flush()
    except CrawlprojError as error:
        complain(str(error), log_file)
        sys.exit(BAD_INPUT if isinstance(error, ConfigError) else COULD_NOT_RUN)
    except KeyboardInterrupt:
        complain("stopped")
        sys.exit(STOPPED)
    except BrokenPipeError:  # `scrapy plan | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FINE)
    except OSError as error:  # a full disk, a folder that may not be written to
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", log_file)
        sys.exit(COULD_NOT_RUN)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def complain(text: str, log_file: str | None = None) -> None:
    """One line, also into a log file that was asked for: under Scrapyd nobody sees the rest."""
    line = f"crawlproj: {' '.join(text.split())}"
    print(line, file=sys.stderr)
    if log_file:
        with suppress(OSError), Path(log_file).open("a") as log:
            print(line, file=log)


def say(lines: str | Sequence[str]) -> None:
    print(lines if isinstance(lines, str) else "\n".join(lines))


def say_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


@contextmanager
def reading(config: Config) -> Iterator[Database]:
    """The database, for looking only: nothing is made. NoCrawlYet if there is nothing to look at."""
    if not config.database_url and not (config.crawl_dir / "pg").exists():
        raise NoCrawlYet(f"nothing was crawled yet in {config.crawl_dir}: scrapy crawl site -a seeds=URL, or scrapy demo")
    with _connected(config) as database:
        steps = pending(database)
        if steps and not database.value("migration_table"):
            raise NoCrawlYet("nothing was crawled yet in this database: scrapy crawl site -a seeds=URL, or scrapy demo")
        if steps:
            raise DatabaseError("the tables are older than this code: scrapy db migrate")
        yield database


@contextmanager
def writing(config: Config) -> Iterator[Database]:
    """The database with all its tables, made if need be."""
    with _connected(config) as database:
        migrate(database)
        yield database


@contextmanager
def _connected(config: Config) -> Iterator[Database]:
    database, embedded = open_database(config.database_url, config.crawl_dir)
    try:
        yield database
    finally:
        database.close()
        if embedded:
            embedded.close()


def frontier_of(database: Database, config: Config, name: str, make: bool = False) -> PostgresFrontier:
    """The frontier of a crawl as it is: its order and depth limit are not changed by looking or adding."""
    known = database.row("crawl_named", name=name)
    if known is None and not make:
        names = ", ".join(row[0] for row in database.rows("crawl_names"))
        raise ConfigError(f"there is no crawl {name!r}" + (f"; there are: {names}" if names else " yet"))
    spec: CrawlSpec = replace(config.spec, name=name)
    if known is not None:
        spec = replace(spec, order=known[1], max_depth=known[2])
    frontier = PostgresFrontier(database, spec)
    frontier.open()
    return frontier


def read_urls(words: Sequence[str]) -> list[str]:
    """Canonical URLs of the words, all of them good; a bad one is a ConfigError."""
    found = {word: canonical(word if "://" in word else f"http://{word}") for word in words}
    bad = [word for word, url in found.items() if url is None or len(url) > MAX_URL or not HOST.fullmatch(host(url))]
    if bad:
        raise ConfigError("not a web address: " + "; ".join(repr(word[:100]) for word in bad[:5]))
    return list(dict.fromkeys(url for url in found.values() if url))


def warn_of_forgotten(database: Database, urls: Sequence[str]) -> None:
    for url in refused(database, urls):
        complain(f"{url} was forgotten and is not fetched (scrapy explain says why, scrapy forget --undo allows it)")


def option_words(config: Config, settings: Any) -> str:
    """What a command line needs besides, to mean the same folder and database as this one. Never a password."""
    words = ""
    given, kept = given_to_make(), os.environ.keys()
    if config.crawl_dir != Path(".crawl").absolute() and "CRAWL_DIR" not in kept - given:
        words += f" -s CRAWL_DIR={shlex.quote(str(settings['CRAWL_DIR']))}"
    if config.database_url and "DATABASE_URL" not in kept - given:
        words += " -s DATABASE_URL=..."
    return words


def program() -> str:
    """How the user calls scrapy from here: by name if that finds ours, else by path."""
    own = Path(sys.executable).parent / "scrapy"
    if shutil.which("scrapy") == str(own):
        return "scrapy"
    if not own.exists():
        return f"{sys.executable} -m scrapy"
    here = Path.cwd()
    return str(own.relative_to(here)) if own.is_relative_to(here) else str(own)


def given_to_make() -> set[str]:
    """Variables of make's command line: they are in our environment, but not in that of the user's next command."""
    return set(re.findall("(?:^| )([A-Z_]+)=", os.environ.get("MAKEFLAGS", "")))


def same_again(settings: Any) -> str:
    """The command line that started us, if it is short enough to be shown."""
    words = sys.orig_argv
    at = next((n for n, word in enumerate(words) if word == "scrapy" or word.endswith("/scrapy")), len(words))
    words = words[at + 1 :]
    for name in sorted(given_to_make()) if words else ():
        if (value := os.environ.get(name)) is not None and settings.get(name) == value:
            words += ["-s", f"{name}={value}"]
    line = shlex.join([re.sub("^((DATABASE|REDIS)_URL=).*", r"\1...", word) for word in words])
    return f"{program()} {line}" if 0 < len(line) < 160 else ""


def is_host(word: str) -> bool:
    """A bare name such as example.org, not a URL."""
    return "/" not in word and ":" not in word.removesuffix("]")
