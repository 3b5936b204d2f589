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


def option_words(config: Config, settings: Any) -> str:
    """What a command line needs besides, to mean the same folder and database as this one. Never a
    password.
    """
    words = ""
    given = make_variables()
    kept = os.environ.keys()
    if config.crawl_dir != Path(".crawl").absolute() and "CRAWL_DIR" not in kept - given:
        words += f" -s CRAWL_DIR={shlex.quote(str(settings['CRAWL_DIR']))}"
    if config.database_url and "DATABASE_URL" not in kept - given:
        words += " -s DATABASE_URL=..."
    return words


def scrapy_program() -> str:
    """How the user calls scrapy from here: by name if that finds ours, else by path."""
    own = Path(sys.executable).parent / "scrapy"
    if shutil.which("scrapy") == str(own):
        return "scrapy"
    if not own.exists():
        return f"{sys.executable} -m scrapy"
    here = Path.cwd()
    return str(own.relative_to(here)) if own.is_relative_to(here) else str(own)


def make_variables() -> set[str]:
    """Variables of make's command line: they are in our environment, but not in that of the user's
    next command.
    """
    return set(re.findall("(?:^| )([A-Z_]+)=", os.environ.get("MAKEFLAGS", "")))


def current_command(settings: Any) -> str:
    """The command line that started us, if it is short enough to be shown."""
    words = sys.orig_argv
    at = next(
        (n for n, word in enumerate(words) if word == "scrapy" or word.endswith("/scrapy")),
        len(words),
    )
    words = words[at + 1 :]
    for name in sorted(make_variables()) if words else ():
        if (value := os.environ.get(name)) is not None and settings.get(name) == value:
            words += ["-s", f"{name}={value}"]
    line = shlex.join([re.sub("^((DATABASE|REDIS)_URL=).*", r"\1...", word) for word in words])
    return f"{scrapy_program()} {line}" if 0 < len(line) < 160 else ""
