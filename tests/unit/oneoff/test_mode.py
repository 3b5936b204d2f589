"""Which commands ask for single pages, and what becomes of their settings."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from crawlproj.addon import CrawlprojAddon, ProjectAddon
from crawlproj.oneoff.mode import COMMAND_SETTING, COMMANDS, command_of


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("python -m scrapy fetch http://a.test/", "fetch"),
        ("/venv/bin/python /venv/bin/scrapy --nolog shell", "shell"),
        ("/venv/bin/scrapy crawl shell", "crawl"),
        ("python -X dev -um scrapy view x", "view"),
        ("python -m scrapy.cmdline fetch x", "fetch"),
        ("python -m pytest -k scrapy fetch", ""),
        ("python script.py", ""),
        ("python -m scrapy", ""),
    ],
)
def test_the_command_is_read_from_the_words_of_the_process(line: str, command: str) -> None:
    assert command_of(line.split()) == command


def project_settings(command: str, **more: Any) -> Settings:
    """Our project's settings for a command, after the add-on."""
    settings = Settings()
    settings.setmodule("settings.base", priority="project")
    settings.setdict(more, priority="spider")
    if command:
        settings.set(COMMAND_SETTING, command, 1_000)
    ProjectAddon().update_settings(settings)
    return settings


def parts(settings: Settings, name: str) -> set[str]:
    found = settings.get_component_priority_dict_with_base(name)
    return {
        global_object_name(load_object(part)) for part, order in found.items() if order is not None
    }


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_single_page_has_no_frontier_and_keeps_what_a_project_adds(command: str) -> None:
    own = {"ITEM_PIPELINES": {"tests.spiders.own.Recorder": 1}}
    settings = project_settings(command, **own)
    assert settings["SCHEDULER"] == "crawlproj.oneoff.scheduler.OneOffScheduler"
    assert parts(settings, "ITEM_PIPELINES") == {"tests.spiders.own.Recorder"}
    down = parts(settings, "DOWNLOADER_MIDDLEWARES")
    assert {
        "crawlproj.oneoff.middlewares.OneOffMiddleware",
        "middlewares.identity.IdentityMiddleware",
    } <= down
    assert not {name for name in down if name.endswith(("RetryMiddleware", "PolitenessMiddleware"))}
    assert "middlewares.pages.PagesMiddleware" not in parts(settings, "SPIDER_MIDDLEWARES")
    assert "crawlproj.extensions.panel.Panel" not in parts(settings, "EXTENSIONS")
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    assert handlers["https"] == "crawlproj.oneoff.handler.PoliteHandler"
    assert bool(handlers["file"]) == (command == "shell")
    assert not settings.getbool("WARC_ENABLED")
    assert settings.getbool("GUARD_ALLOW_PRIVATE") == (command == "bench")


def test_a_crawl_is_left_as_it_is() -> None:
    settings = project_settings("")
    assert settings["SCHEDULER"] == "crawlproj.scheduling.scheduler.CrawlScheduler"


def test_only_files_of_the_command_line_are_written() -> None:
    feeds = {"items.json": {"format": "json", "overwrite": True}}
    assert project_settings("parse", FEEDS=feeds).getdict("FEEDS") == {}
    settings = Settings()
    settings.setmodule("settings.base", priority="project")
    settings.set("FEEDS", feeds, "cmdline")
    settings.set(COMMAND_SETTING, "parse", 1_000)
    ProjectAddon().update_settings(settings)
    assert settings.getdict("FEEDS") == feeds


def test_scrapys_own_commands_are_known_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.orig_argv", ["/venv/bin/python", "/venv/bin/scrapy", "parse", "x"])
    settings = Settings({"BOT_NAME": "shop"})
    CrawlprojAddon().update_settings(settings)
    assert settings["SCHEDULER"] == "crawlproj.oneoff.scheduler.OneOffScheduler"
    assert settings["DUPEFILTER_CLASS"] == "scrapy.dupefilters.RFPDupeFilter"
