"""Which commands ask for single pages, and the settings that they need."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from crawlproj.components import COMPONENTS

COMMANDS = frozenset({"shell", "fetch", "parse", "view", "check", "bench"})
COMMAND_SETTING = "ONE_OFF"
"""The name of the command, set by those of ours."""
AT_SETTING = "ONE_OFF_AT"
"""A time: pages are read from the archive as they were then, not from the network."""
FILE_SETTING = "ONE_OFF_FILE"
"""Whether files of this machine may be read, too."""
PROGRAMS = frozenset({"scrapy", "scrapy.exe", "scrapy.cmdline", "scrapy.__main__"})
PRIORITY = 1_000
"""Above the command line: no setting leads around guard and clocks."""
FIXED: dict[str, Any] = {
    "SCHEDULER": "crawlproj.oneoff.scheduler.OneOffScheduler",
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    "JOBDIR": None,
    "WARC_ENABLED": False,
    "PANEL": "off",
    "AUTOTHROTTLE_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "LOG_FORMATTER": "crawlproj.extensions.logformatter.OneOffFormatter",
}
FILTERED = frozenset({"parse", "bench"})
"""Commands that follow links: a page that is linked twice is asked for once."""
BENCH: dict[str, Any] = {
    "GUARD_ALLOW_PRIVATE": True,
    "POLITENESS_DELAY": 0,
    "POLITENESS_SLOWDOWN": 0,
    "POLITENESS_SERVER_DELAY": 0,
    "POLITENESS_PAUSE_AFTER": 0,
    "LOG_FORMATTER": "crawlproj.extensions.logformatter.QuietFormatter",
}
"""`scrapy bench` asks nothing but a server that it starts itself."""
HANDLER = "crawlproj.oneoff.handler.PoliteHandler"
ARCHIVE_HANDLER = "crawlproj.reextract.versions_handler.VersionsHandler"
FILE_HANDLER = "scrapy.core.downloader.handlers.file.FileDownloadHandler"
LEFT_OUT = frozenset({
    "middlewares.guard.GuardMiddleware",
    "middlewares.robots.RobotsMiddleware",
    "middlewares.conditional.ConditionalMiddleware",
    "middlewares.politeness.PolitenessMiddleware",
    "middlewares.pages.PagesMiddleware",
    "pipelines.dedup.DedupPipeline",
    "pipelines.warc.WarcPipeline",
    "pipelines.store.StorePipeline",
    "pipelines.revisit.RevisitPipeline",
    "pipelines.bus.BusPipeline",
    "crawlproj.extensions.panel.Panel",
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware",
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware",
})  # fmt: skip
"""Components that work for the frontier, and those that others below take the place of."""
ADDED: dict[str, dict[str, int]] = {
    "DOWNLOADER_MIDDLEWARES": {
        "crawlproj.oneoff.middlewares.OneOffMiddleware": 100,
        "crawlproj.oneoff.middlewares.MetaRefreshes": 580,
        "crawlproj.oneoff.middlewares.Redirects": 600,
    },
}
BENCH_EXTENSIONS = {"scrapy.extensions.logstats.LogStats": 0}


def command_of(argv: Sequence[str]) -> str:
    """The command in the words that started this process; empty if that was not `scrapy`."""
    words = list(argv)
    if words and Path(words[0]).name != "scrapy":
        words = _without_interpreter(words)
    if not words or Path(words[0]).name not in PROGRAMS:
        return ""
    return next((word for word in words[1:] if not word.startswith("-")), "")


def _without_interpreter(words: list[str]) -> list[str]:
    """The words without Python and its options: what it runs comes first."""
    position = 1
    while position < len(words) and words[position].startswith("-"):
        option = words[position]
        position += 1
        if option in ("-X", "-W"):
            position += 1
        elif option.endswith("m"):
            break
    return words[position:]


def one_off_command(settings: BaseSettings) -> str:
    """The command that asks for single pages, if it is one.

    Our own commands say so. A project that has only our add-on runs Scrapy's: those are known by
    the words that started the process.
    """
    named: str = settings.get(COMMAND_SETTING) or ""
    if named:
        return named
    command = command_of(sys.orig_argv)
    if command in COMMANDS:
        return command
    return ""


def apply_one_off(settings: BaseSettings, command: str) -> None:
    """Change the settings of a crawl to those of a command that asks for single pages."""
    for name, value in FIXED.items():
        settings.set(name, value, PRIORITY)
    if command in FILTERED:
        settings.set("DUPEFILTER_CLASS", "scrapy.dupefilters.RFPDupeFilter", PRIORITY)
    if command == "bench":
        for name, value in BENCH.items():
            settings.set(name, value, PRIORITY)
    if command != "parse" or not _is_from_command_line(settings, "FEEDS"):
        # A look at one page must not write, or empty, the files that a crawl writes.
        settings.set("FEEDS", {}, PRIORITY)
    for name in COMPONENTS:
        parts = _kept_components(settings, name) | ADDED.get(name, {})
        if name == "EXTENSIONS" and command == "bench":
            parts |= BENCH_EXTENSIONS
        settings.set(f"{name}_BASE", {}, PRIORITY)
        settings.set(name, parts, PRIORITY)
    settings.set("DOWNLOAD_HANDLERS", _handlers(settings, command), PRIORITY)


def _is_from_command_line(settings: BaseSettings, name: str) -> bool:
    return (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["cmdline"]


def _kept_components(settings: BaseSettings, name: str) -> dict[Any, Any]:
    found = settings.get_component_priority_dict_with_base(name)
    return {
        part: order
        for part, order in found.items()
        if order is not None and global_object_name(load_object(part)) not in LEFT_OUT
    }


def _handlers(settings: BaseSettings, command: str) -> dict[str, Any]:
    web = HANDLER
    if settings.get(AT_SETTING) is not None:
        web = ARCHIVE_HANDLER
    handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), "http": web, "https": web}
    if command == "shell" or settings.getbool(FILE_SETTING):
        handlers["file"] = FILE_HANDLER
    return handlers
