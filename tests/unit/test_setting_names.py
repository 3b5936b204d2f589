from __future__ import annotations

import pytest
from scrapy.settings import Settings, default_settings

from crawlproj.addon import CrawlprojAddon, ProjectAddon
from crawlproj.errors import ConfigError
from crawlproj.setting_names import check_setting_names, count_mistakes, nearest_name
from settings.base import OURS


def check(name: str, priority: str) -> None:
    check_setting_names(Settings({name: 1}, priority=priority), {})


@pytest.mark.parametrize("priority", ["cmdline", "spider", "project"])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("POLITNESS_DELAY", "POLITENESS_DELAY"),
        ("POLITENESS_DLEAY", "POLITENESS_DELAY"),
        ("REVISIT_INTERVALL", "REVISIT_INTERVAL"),
        ("FRONTEIR_PAGES", "FRONTIER_PAGES"),
        ("CRAWL_NMAE", "CRAWL_NAME"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_nearest_name(
    name: str, meant: str, priority: str
) -> None:
    with pytest.raises(ConfigError, match=f"no setting {name}: {meant} is the nearest"):
        check(name, priority)
    for addon in (ProjectAddon(), CrawlprojAddon()):
        with pytest.raises(ConfigError, match=f"{meant} is the nearest"):
            addon.update_settings(Settings({name: 1}, priority=priority))


def test_more_is_refused_on_the_command_line() -> None:
    for name in ("DATABASE_URI", "CRAWL_DIRS", "FRONTIER_SPEED", "WARC_DIR", "PANELS"):
        with pytest.raises(ConfigError, match="is the nearest"):
            check(name, "cmdline")


@pytest.mark.parametrize(
    "name",
    [
        "MY_CRAWL_DIR",
        "CRAWL_DIRS",
        "CRAWL_ID",
        "DATABASE_URI",
        "FRONTIER_SPEED",
        "REDIS_HOST",
        "REDIS_ITEMS_KEY",
        "PAGES",
        "USER_AGENTS",
        "AZURE_ACCOUNT_URL",
    ],
)
def test_settings_of_other_projects_are_left_alone(name: str) -> None:
    check(name, "project")
    check(name, "spider")
    check_setting_names(Settings({name: 1}, priority="cmdline"), {}, foreign_project=True)
    check_setting_names(Settings(), {name: "1"})


def test_the_environment_is_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"POLITNESS_DELAY, which the environment has"):
        check_setting_names(Settings(), {"POLITNESS_DELAY": "5"})
    check_setting_names(Settings(), dict.fromkeys(OURS, "1") | {"politness_delay": "5", "PATH": ""})


def test_no_setting_of_scrapy_is_near_to_one_of_ours() -> None:
    names = [name for name in dir(default_settings) if name.isupper()]
    settings = Settings()
    for name in names:
        settings.set(name, getattr(default_settings, name), "cmdline")
    check_setting_names(settings, {})


def test_mistakes_are_counted() -> None:
    assert [count_mistakes("DELAY", word) for word in ("DELAY", "DLEAY", "DELY", "DELAYS")] == [
        0,
        1,
        1,
        1,
    ]
    assert nearest_name("PAGES", ["PANEL"]) == ""
