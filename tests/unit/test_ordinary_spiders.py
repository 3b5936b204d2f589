"""What an ordinary spider has in this project that the general ones do without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import scrapy
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name
from scrapy.utils.test import get_crawler

from crawlproj.addon import ProjectAddon
from crawlproj.cli.preflight import settings_of
from spiders.site import SiteSpider

OFFSITE = "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware"
DEPTH = "scrapy.spidermiddlewares.depth.DepthMiddleware"
LOGSTATS = "scrapy.extensions.logstats.LogStats"


class Ordinary(scrapy.Spider):
    name = "ordinary"


class Unbound(scrapy.Spider):
    name = "unbound"
    custom_settings = {  # noqa: RUF012
        "DOWNLOADER_MIDDLEWARES": {OFFSITE: None},
        "COOKIES_ENABLED": False,
        "ROBOT_CONTACT": "mailto:a@example.org",
    }


@pytest.fixture
def project() -> Iterator[Settings]:
    settings = Settings()
    settings.setmodule("settings.local", priority="project")
    yield settings


def final_settings(project: Settings, spider: scrapy.Spider) -> Any:
    """As in a crawl of this spider."""
    crawler = get_crawler(type(spider))
    crawler.spider = spider
    settings = settings_of(type(spider), project)
    ProjectAddon.from_crawler(crawler).update_settings(settings)
    return settings


def components(settings: Any, name: str) -> set[str]:
    found = settings.get_component_priority_dict_with_base(name)
    return {
        global_object_name(load_object(part)) for part, order in found.items() if order is not None
    }


def test_an_ordinary_spider_has_scrapy_s_own_parts(project: Settings) -> None:
    settings = final_settings(project, Ordinary())
    assert settings.getbool("COOKIES_ENABLED") and settings.getbool("REFERER_ENABLED")
    down = components(settings, "DOWNLOADER_MIDDLEWARES")
    assert {OFFSITE, "middlewares.politeness.PolitenessMiddleware"} <= down
    assert "scrapy.downloadermiddlewares.retry.RetryMiddleware" not in down
    assert DEPTH in components(settings, "SPIDER_MIDDLEWARES")
    assert LOGSTATS not in components(settings, "EXTENSIONS")


def test_general_spiders_do_without_them(project: Settings) -> None:
    settings = final_settings(project, SiteSpider("http://a.org/"))
    assert not settings.getbool("COOKIES_ENABLED") and not settings.getbool("REFERER_ENABLED")
    assert OFFSITE not in components(settings, "DOWNLOADER_MIDDLEWARES")
    assert DEPTH not in components(settings, "SPIDER_MIDDLEWARES")


def test_what_a_spider_switches_off_itself_stays_off(project: Settings) -> None:
    settings = final_settings(project, Unbound())
    assert not settings.getbool("COOKIES_ENABLED")
    assert OFFSITE not in components(settings, "DOWNLOADER_MIDDLEWARES")
    assert "middlewares.guard.GuardMiddleware" in components(settings, "DOWNLOADER_MIDDLEWARES")


def test_settings_of_a_spider_count_before_it_starts(project: Settings) -> None:
    """A contact that only the spider has is one."""
    assert not project.get("ROBOT_CONTACT")
    assert settings_of(Unbound, project)["ROBOT_CONTACT"] == "mailto:a@example.org"
    assert not project.get("ROBOT_CONTACT")
