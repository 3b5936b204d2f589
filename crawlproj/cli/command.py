"""The base of our commands: clear errors and exit codes, words and URLs checked, JSON printed.

Exit codes: 0 fine; 1 could not run; 2 bad usage, settings or input; 3 ran, but nothing could be
fetched, a rule was broken, or a source is silent; 130 stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from scrapy.addons import AddonManager
from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter

from crawlproj.cli.worker_reports import worker_place
from crawlproj.config import Config, SettingsReader, parse_crawl_name, read_config
from crawlproj.database.connection import Database
from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.formatting import printable
from crawlproj.frontier.takedown import barred_urls
from crawlproj.setting_names import check_setting_names
from crawlproj.urls.canonical import WHAT_IS_RIGHT, typed_url

FINE = 0
COULD_NOT_RUN = 1
BAD_INPUT = 2
NOTHING_FETCHED = 3
STOPPED = 130
RULES_BROKEN = NOTHING_FETCHED
DEFAULT_CRAWL = "site"


class HelpFormatter(ScrapyHelpFormatter):
    """Scrapy's form of --help, for narrow terminals too: usage is wrapped, lines of a description
    stay lines, and text that ends in a colon is not taken for a heading.
    """

    def add_usage(self, usage: str | None, *others: Any, **named: Any) -> None:
        if usage is not None:
            usage = self._wrap(usage, "      ")
        super().add_usage(usage, *others, **named)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.splitlines()
        if len(paragraphs) == 1:
            return super()._fill_text(text, width, indent)
        return "\n".join(self._wrap(paragraph, "    ") for paragraph in paragraphs)

    def _wrap(self, text: str, indent: str) -> str:
        return textwrap.fill(
            text,
            self._width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def _join_parts(self, part_strings: Iterable[str]) -> str:
        """Options begin with blanks, sections don't: only these have headings."""
        parts = list(part_strings)
        if parts and parts[0].startswith(" "):
            return "".join(part for part in parts if part and part is not argparse.SUPPRESS)
        return super()._join_parts(parts)


class ProjectCommand(ScrapyCommand):
    """A command of ours: `execute_command` does the work; an error ends it with one line."""

    requires_project = True
    requires_crawler_process = False
    words: tuple[int, int] = (0, 0)
    """How many words it takes, at least and at most."""

    @abstractmethod
    def execute_command(self, config: Config, words: list[str], opts: argparse.Namespace) -> int:
        """Do what the command is for, and return its exit code."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.formatter_class = HelpFormatter
        super().add_options(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """What Scrapy calls."""
        with exit_codes():
            assert self.settings is not None
            # A project that uses our add-on has our settings only after this.
            AddonManager.load_pre_crawler_settings(self.settings)
            least, most = self.words
            name = type(self).__module__.rpartition(".")[2]
            check_words(args, least, most, usage=f"scrapy {name} {self.syntax()}")
            check_setting_names(self.settings)
            config = read_config(self.settings, DEFAULT_CRAWL)
            self.exitcode = self.execute_command(config, args, opts)

    def crawl_name(self, database: Database, opts: argparse.Namespace) -> str:
        """The crawl that is meant: --crawl, CRAWL_NAME, or the only one there is."""
        assert self.settings is not None
        names: list[str] = [name for (name,) in database.fetch_rows("crawl_names")]
        given = opts.crawl or self.settings.get("CRAWL_NAME")
        if given in names:  # an earlier version may have made it
            return str(given)
        if given:
            return SettingsReader({"--crawl": given})("--crawl", parse_crawl_name)
        if len(names) > 1:
            raise ConfigError(
                f"there are several crawls ({', '.join(names)}): say which with --crawl NAME"
            )
        if not names:
            return DEFAULT_CRAWL
        return names[0]


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_crawl(parser: argparse.ArgumentParser) -> None:
    """Add the option --crawl; `ProjectCommand.crawl_name` reads it."""
    parser.add_argument(
        "--crawl",
        metavar="NAME",
        help="which crawl (default: CRAWL_NAME, or the only one there is)",
    )


def check_words(words: Sequence[str], least: int, most: int, usage: str) -> None:
    """Raise ConfigError for an unknown option, and for too few or too many words.

    Scrapy hands unknown options over as words.
    """
    unknown = [word for word in words if word.startswith("-")]
    if unknown:
        raise ConfigError(f"unknown option {unknown[0]} (usage: {usage})")
    if not least <= len(words) <= most:
        raise ConfigError(f"usage: {usage}")


@contextmanager
def exit_codes(log_file: str | None = None) -> Iterator[None]:
    """A block whose errors end the program, with an exit code and one line, not a traceback."""
    if sys.stdout is None:  # `>&-`
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - it lives as long as the program
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        yield
        flush_output()
    except ConfigError as error:
        for line in error.lines:
            print_error(line, log_file)
        sys.exit(BAD_INPUT)
    except CrawlprojError as error:
        print_error(str(error), log_file)
        sys.exit(COULD_NOT_RUN)
    except KeyboardInterrupt:
        print_error("stopped")
        sys.exit(STOPPED)
    except BrokenPipeError:  # of bytes: `scrapy warc get URL | head`
        discard_output(sys.stdout)
        sys.exit(FINE)
    except OSError as error:  # a full disk, a folder that may not be written to
        text = str(error.strerror or error)
        if error.filename:
            text += f": {error.filename}"
        print_error(text, log_file)
        sys.exit(COULD_NOT_RUN)
    finally:
        # Else Python tries again at its very end, and makes its own exit code of a failure.
        with suppress(OSError):
            flush_output()


def flush_output() -> None:
    """Write what is buffered; a reader that has gone (`| head -1`) does not matter."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output(sys.stdout)


def discard_output(stream: TextIO) -> None:
    """Let all that is written to the stream from now on go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def print_error(text: str, log_file: str | None = None) -> None:
    """Print one line, and append it to the log file if there is one: all that Scrapyd shows."""
    place = worker_place()
    who = "crawlproj"
    if place is not None:
        who = f"crawlproj: worker {place.number}"
    line = f"{who}: {printable(' '.join(text.split()))}"
    print_text(line, sys.stderr)
    if log_file:
        with suppress(OSError), Path(log_file).open("a") as log:
            print(line, file=log)


def print_text(text: str, stream: TextIO | None = None, end: str = "\n") -> None:
    """Print to standard output, or to another stream.

    A command does its work and has its exit code, also if nobody reads what it prints to the end
    (`scrapy politeness audit | head -1`).
    """
    stream = stream or sys.stdout
    try:
        print(text, file=stream, end=end)
    except BrokenPipeError:
        discard_output(stream)


def print_lines(lines: str | Sequence[str]) -> None:
    """Print a line, or several at once."""
    if not isinstance(lines, str):
        lines = "\n".join(lines)
    print_text(lines)


def print_json(value: object) -> None:
    """Print a value as JSON; times in ISO 8601."""
    print_text(json.dumps(value, indent=2, ensure_ascii=False, default=_json_value))


def print_json_list(values: Iterable[object]) -> None:
    """Print values as one JSON list while they come: there may be more than memory holds."""
    before = "[\n"
    for value in values:
        print_text(f"{before}{json.dumps(value, ensure_ascii=False, default=_json_value)}", end="")
        before = ",\n"
    print_text("[]" if before == "[\n" else "\n]")


def _json_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


def read_urls(words: Sequence[str]) -> list[str]:
    """The canonical URLs of the words, each once; ConfigError if a word is no web address."""
    urls: dict[str, None] = {}
    bad: dict[str, None] = {}
    for word in words:
        url = typed_url(word.strip())
        if url is None:
            bad[word] = None
        else:
            urls[url] = None
    if bad:
        first_five = list(bad)[:5]
        raise ConfigError(
            "not a web address: "
            + "; ".join(repr(word[:100]) for word in first_five)
            + f" ({WHAT_IS_RIGHT})"
        )
    return list(urls)


def warn_of_forgotten(database: Database, urls: Sequence[str]) -> None:
    """Print a line for each URL that `scrapy forget` has barred."""
    for url in barred_urls(database, urls):
        print_error(
            f"{url} was forgotten and is not fetched (scrapy explain says why, scrapy forget "
            "--undo allows it)"
        )


def is_host(word: str) -> bool:
    """Whether the word is a bare name such as example.org, not a URL."""
    return "/" not in word and ":" not in word.removesuffix("]")
