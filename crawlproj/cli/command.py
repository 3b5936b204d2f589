"""What all commands share: clear errors and exit codes, the database while they run, tables and
JSON.

Exit codes: 0 fine; 1 could not run; 2 bad usage, settings or input; 3 ran, but nothing could be
fetched, or a rule was broken; 130 stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType

from scrapy.addons import AddonManager
from scrapy.commands import ScrapyCommand

from crawlproj.config import Config, read_config
from crawlproj.database.connection import Database
from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.frontier.takedown import barred_urls
from crawlproj.urls.canonical import MAX_URL, canonical_url, host_of

FINE = 0
COULD_NOT_RUN = 1
BAD_INPUT = 2
NOTHING_FETCHED = 3
STOPPED = 130
RULES_BROKEN = NOTHING_FETCHED
DEFAULT_CRAWL = "site"
HOST = re.compile(r"[\w.-]*\w|\[[0-9a-f:]+\]")


class ProjectCommand(ScrapyCommand):
    """A command of ours: `work` does it and returns the exit code; what goes wrong is one line."""

    requires_project = True
    requires_crawler_process = False
    words: tuple[int, int] = (0, 0)
    """How many words it takes, at least and at most."""

    @abstractmethod
    def execute_command(
        self, config: Config, words: list[str], opts: argparse.Namespace
    ) -> int: ...

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with exit_codes():
            assert self.settings is not None
            AddonManager.load_pre_crawler_settings(
                self.settings
            )  # of a project that has joined by the add-on
            check_words(
                args,
                *self.words,
                f"scrapy {type(self).__module__.rpartition('.')[2]} {self.syntax()}",
            )
            self.exitcode = self.execute_command(
                read_config(self.settings, DEFAULT_CRAWL), args, opts
            )

    def crawl_name(self, database: Database, opts: argparse.Namespace) -> str:
        """The crawl that is meant: --crawl, CRAWL_NAME, or the only one there is."""
        assert self.settings is not None
        names = [name for (name,) in database.fetch_rows("crawl_names")]
        if named := opts.crawl or self.settings.get("CRAWL_NAME"):
            return str(named)
        if len(names) > 1:
            raise ConfigError(
                f"there are several crawls ({', '.join(names)}): say which with --crawl NAME"
            )
        return names[0] if names else DEFAULT_CRAWL


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_crawl(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--crawl",
        metavar="NAME",
        help="which crawl (default: CRAWL_NAME, or the only one there is)",
    )


def check_words(words: Sequence[str], least: int, most: int, usage: str) -> None:
    """Scrapy hands unknown options over as words: an option that is not known, or a word too many,
    is refused.
    """
    strange = [word for word in words if word.startswith("-")]
    if strange:
        raise ConfigError(f"unknown option {strange[0]} (usage: {usage})")
    if not least <= len(words) <= most:
        raise ConfigError(f"usage: {usage}")


@contextmanager
def exit_codes(log_file: str | None = None) -> Iterator[None]:
    """Whatever ends the block ends the program: with its exit code, and with one line instead of a
    traceback.
    """
    if sys.stdout is None:  # `>&-`
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - it lives as long as the program
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        yield
        sys.stdout.flush()
    except CrawlprojError as error:
        print_error(str(error), log_file)
        sys.exit(BAD_INPUT if isinstance(error, ConfigError) else COULD_NOT_RUN)
    except KeyboardInterrupt:
        print_error("stopped")
        sys.exit(STOPPED)
    except BrokenPipeError:  # `scrapy plan | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FINE)
    except OSError as error:  # a full disk, a folder that may not be written to
        print_error(
            f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", log_file
        )
        sys.exit(COULD_NOT_RUN)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def print_error(text: str, log_file: str | None = None) -> None:
    """One line, also into a log file that was asked for: under Scrapyd nobody sees the rest."""
    line = f"crawlproj: {' '.join(text.split())}"
    print(line, file=sys.stderr)
    if log_file:
        with suppress(OSError), Path(log_file).open("a") as log:
            print(line, file=log)


def print_lines(lines: str | Sequence[str]) -> None:
    print(lines if isinstance(lines, str) else "\n".join(lines))


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


def read_urls(words: Sequence[str]) -> list[str]:
    """Canonical URLs of the words, all of them good; a bad one is a ConfigError."""
    found = {word: canonical_url(word if "://" in word else f"http://{word}") for word in words}
    bad = [
        word
        for word, url in found.items()
        if url is None or len(url) > MAX_URL or not HOST.fullmatch(host_of(url))
    ]
    if bad:
        raise ConfigError("not a web address: " + "; ".join(repr(word[:100]) for word in bad[:5]))
    return list(dict.fromkeys(url for url in found.values() if url))


def warn_of_forgotten(database: Database, urls: Sequence[str]) -> None:
    for url in barred_urls(database, urls):
        print_error(
            f"{url} was forgotten and is not fetched (scrapy explain says why, scrapy forget "
            "--undo allows it)"
        )


def is_host(word: str) -> bool:
    """A bare name such as example.org, not a URL."""
    return "/" not in word and ":" not in word.removesuffix("]")
