"""Command lines that a user may type next, meaning the same folder and database."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from crawlproj.config import Config

OVERWRITE = re.compile(r"-O|--ov(?:e(?:r(?:w(?:r(?:i(?:t(?:e(?:-\w*)?)?)?)?)?)?)?)?(?==|$)")
"""Scrapy's option that replaces a file, also abbreviated."""
CLOSED = re.compile(r"(?P<name>.*?)(?:-(?P<number>\d{1,3}))?(?P<suffix>\.(?:json|xml)(?::\w+)?)$")
"""Files of a format that has an end."""


def option_words(config: Config, settings: Any) -> str:
    """The options that make another command mean the same folder and database; no password."""
    words = ""
    lasting = os.environ.keys() - make_variables()
    if config.crawl_dir != Path(".crawl").absolute() and "CRAWL_DIR" not in lasting:
        words += f" -s CRAWL_DIR={shlex.quote(str(settings['CRAWL_DIR']))}"
    if config.database_url and "DATABASE_URL" not in lasting:
        words += " -s DATABASE_URL=..."
    return words


def scrapy_program() -> str:
    """The way to call scrapy from here: by name if that finds ours, else by path."""
    own = Path(sys.executable).parent / "scrapy"
    if shutil.which("scrapy") == str(own):
        return "scrapy"
    if not own.exists():
        return f"{sys.executable} -m scrapy"
    here = Path.cwd()
    if own.is_relative_to(here):
        own = own.relative_to(here)
    return str(own)


def make_variables() -> set[str]:
    """The variables of make's command line.

    They are in our environment, but will not be in that of the user's next command.
    """
    return set(re.findall("(?:^| )([A-Z_]+)=", os.environ.get("MAKEFLAGS", "")))


def repeated_command(settings: Any) -> str:
    """The command line that does the same once more, or words for one that is unknown or too long
    to be shown.
    """
    given = _words_after_scrapy(sys.orig_argv)
    words = appending_words(given)
    same = "the same command again"
    if words != given:
        same += ", with -o in place of -O"
    if not words:
        return same
    for name in sorted(make_variables()):
        value = os.environ.get(name)
        if value is not None and settings.get(name) == value:
            words += ["-s", f"{name}={value}"]
    line = shlex.join([re.sub("^((DATABASE|REDIS)_URL=).*", r"\1...", word) for word in words])
    if len(line) >= 160:
        return same
    return f"{scrapy_program()} {line}"


def _words_after_scrapy(argv: list[str]) -> list[str]:
    for number, word in enumerate(argv):
        if word == "scrapy" or word.endswith("/scrapy"):
            return argv[number + 1 :]
    return []


def appending_words(words: list[str]) -> list[str]:
    """The words of a command that adds to its files of items where these words replace them.

    Done again with -O it would leave a file with nothing but what has changed since.
    """
    result: list[str] = []
    for word in words:
        option = OVERWRITE.match(word)
        if result and result[-1] == "-o":
            result.append(_appendable(word))
        elif option is None:
            result.append(word)
        elif word == option[0]:
            result.append("-o")
        else:
            result += ["-o", _appendable(word.removeprefix(option[0]).removeprefix("="))]
    return result


def _appendable(file: str) -> str:
    """The name of a file that may be added to: two lists of JSON in one file are no list."""
    match = CLOSED.match(file)
    if match is None:
        return file
    number = int(match["number"] or 1) + 1
    return f"{match['name']}-{number}{match['suffix']}"
