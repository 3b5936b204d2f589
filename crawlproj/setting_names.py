"""Misspelt settings: a name that nobody knows and that is nearly one of ours is refused, since it
would do nothing, and nobody would notice.

Projects and their add-ons have settings of their own, and other programs environment variables. So
only what is given on the command line is judged by all of our names. In files, in spiders and in
the environment it must be nearly a name that begins as only ours do.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings

from crawlproj.errors import ConfigError

OUR_PREFIXES = (
    "CRAWL_",
    "DOCUMENTS_",
    "FRONTIER_",
    "GUARD_",
    "POLITENESS_",
    "RETENTION_",
    "REVISIT_",
    "ROBOTS_",
    "ROBOT_",
    "SOURCE_",
    "WARC_",
    "WATCHDOG_",
)
"""Beginnings of names that others hardly have."""
OUR_WORDS = tuple(prefix for prefix in OUR_PREFIXES if prefix not in ("CRAWL_", "SOURCE_"))
"""Those that even on their own mean us: any other name with them is a mistake, if it is given on
the command line.
"""
LONG = 10
"""A name of so many letters may have two mistakes, a shorter one only one."""


def check_setting_names(
    settings: BaseSettings,
    environment: Mapping[str, str] = os.environ,
    foreign_project: bool = False,
) -> None:
    """Raise ConfigError if a setting or an environment variable is one of ours, misspelt.

    `foreign_project`: the command line may have settings of that project, too.
    """
    ours: frozenset[str] = import_module("settings.base").OURS
    special = [name for name in sorted(ours) if name.startswith(OUR_PREFIXES)]
    for name in sorted(_unknown_names(settings, ours)):
        given_to_us = settings.getpriority(name) == SETTINGS_PRIORITIES["cmdline"]
        if given_to_us and not foreign_project:
            meant = nearest_name(name, ours)
            if not meant and name.startswith(OUR_WORDS):
                meant = next(iter(get_close_matches(name, sorted(ours), n=1, cutoff=0.0)), "")
        else:
            meant = _misspelt(name, special)
        if meant:
            raise ConfigError(
                f"there is no setting {name}: {meant} is the nearest (see docs/settings.md)"
            )
    for name in sorted(environment):
        if name not in ours and name.isupper() and (meant := _misspelt(name, special)):
            raise ConfigError(
                f"there is no setting {name}, which the environment has: {meant} is the nearest"
            )


def _unknown_names(settings: Iterable[Any], ours: Collection[str]) -> Iterable[str]:
    for name in settings:
        if not isinstance(name, str) or not name.isupper():
            continue
        if name not in ours and not hasattr(default_settings, name):
            yield name


def _misspelt(name: str, names: Iterable[str]) -> str:
    """The name that is meant; not if it is only another number, such as CRAWL_DIRS."""
    meant = nearest_name(name, names)
    if meant and name.rstrip("S") == meant.rstrip("S"):
        return ""
    return meant


def nearest_name(name: str, names: Iterable[str]) -> str:
    """That of the names which differs by a mistake or two; empty if none does."""
    best = ""
    least = 1 + (1 if len(name) < LONG else 2)
    for known in names:
        if abs(len(known) - len(name)) < least:
            number = count_mistakes(name, known)
            if number < least:
                best = known
                least = number
    return best


def count_mistakes(one: str, other: str) -> int:
    """Letters that are missing, too many, wrong, or change places with the next."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            number = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                number = min(number, before[j - 2] + 1)
            row.append(number)
        before = last
        last = row
    return last[-1]
