"""Add-ons, which Scrapy calls when a spider's own settings are known: what is missing is merged.

`ProjectAddon` is that of crawlproj's own settings. `CrawlprojAddon` brings crawlproj into an
existing Scrapy project with one line, ADDONS = {"crawlproj.addon.CrawlprojAddon": 100}. It sets
everything with the priority of add-ons, below the project's own settings: what a project sets
itself, it keeps. Scrapy's own components stay on, except those whose work the frontier does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrapy.settings import BaseSettings

from crawlproj.components import (
    DEFAULTS,
    check_components,
    merge_components,
    switch_on_components,
)
from crawlproj.errors import CrawlprojError
from crawlproj.install_check import different_folders, package_files
from crawlproj.oneoff.mode import apply_one_off, one_off_command
from crawlproj.scheduling.spider import chooses_links
from crawlproj.setting_names import check_setting_names

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

SCRAPY_SETTINGS = (
    "SCHEDULER",
    "DUPEFILTER_CLASS",
    "CONCURRENT_REQUESTS",
    "CONCURRENT_REQUESTS_PER_DOMAIN",
    "CONCURRENT_ITEMS",
    "DOWNLOAD_DELAY",
    "DOWNLOAD_TIMEOUT",
    "DOWNLOAD_MAXSIZE",
    "DOWNLOAD_WARNSIZE",
    "REDIRECT_MAX_TIMES",
    "SCRAPER_SLOT_MAX_ACTIVE_SIZE",
    "ROBOTSTXT_OBEY",
    "TELNETCONSOLE_ENABLED",
    "REMOTE_CONTROL_ENABLED",
    "LOG_FORMATTER",
)
"""Settings of Scrapy that crawlproj must change; cookies, referers and log level stay."""
KEPT_MODULES = (
    "offsite",
    "httpauth",
    "httpproxy",
    "stats",
    "depth",
    "referer",
    "urllength",
    "metacopy",
    "logstats",
)
"""Modules of Scrapy's components that are off for our general spiders, but stay on for others."""
REDIS_PIPELINE = "scrapy_redis.pipelines.RedisPipeline"


GENERAL_SETTINGS = {"COOKIES_ENABLED": False, "REFERER_ENABLED": False}
"""Settings of Scrapy for spiders that leave the choice of links to the frontier."""


class ProjectAddon:
    """Of this project itself: components that a spider or the command line sets come on top of
    ours, and don't replace them.

    Spiders that choose links for the frontier (`wants`) do without the parts of Scrapy that are of
    no use to them, and cost time for every page. An ordinary spider gets them all: cookies,
    referers, `allowed_domains`, DEPTH_LIMIT.
    """

    def __init__(self, spider: Spider | type[Spider] | None = None) -> None:
        self._is_ordinary = spider is not None and not chooses_links(spider)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        # A spider may make its `wants` of its arguments: the class does not tell.
        return cls(crawler.spider or crawler.spidercls)

    def update_settings(self, settings: BaseSettings) -> None:
        check_setting_names(settings)
        if self._is_ordinary:
            modules = [name for name in KEPT_MODULES if name != "logstats"]
            switch_on_components(settings, modules)
            merge_components(settings, modules)
        else:
            merge_components(settings)
            for name, value in GENERAL_SETTINGS.items():
                settings.set(name, value, "addon")
        check_components(settings)
        _adapt_to_command(settings)


class CrawlprojAddon:
    """The add-on for other projects. Scrapy makes one per crawl.

    It calls `update_pre_crawler_settings` first, once per process.
    """

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        files = {name: file for name, file in package_files().items() if name != "spiders"}
        folders = different_folders(files)
        if folders:
            found = "; ".join(f"{name} from {folder}" for name, folder in folders.items())
            raise CrawlprojError(
                "crawlproj needs its own packages, but the path has others of their names first: "
                f"{found}"
            )
        base = import_module(DEFAULTS)
        for name in (*base.OURS, *SCRAPY_SETTINGS):
            settings.set(name, getattr(base, name), "addon")
        settings.set("PANEL", "off", "addon")  # the log is on the screen already
        settings.set("ITEM_PROCESSOR", "crawlproj.extensions.feedexport.SpiderItems", "addon")

    def update_settings(self, settings: BaseSettings) -> None:
        check_setting_names(settings, foreign_project=True)
        self.update_pre_crawler_settings(settings)
        merge_components(settings, KEPT_MODULES)
        check_components(settings)
        self._remove_redis_pipeline(settings)
        _adapt_to_command(settings)

    def _remove_redis_pipeline(self, settings: BaseSettings) -> None:
        """Switch off scrapy-redis's own pipeline, which would send every item a second time."""
        pipelines: dict[Any, Any] = settings.getdict("ITEM_PIPELINES")
        if REDIS_PIPELINE in pipelines:
            settings.set(
                "ITEM_PIPELINES",
                pipelines | {REDIS_PIPELINE: None},
                _priority(settings, "ITEM_PIPELINES"),
            )


def _adapt_to_command(settings: BaseSettings) -> None:
    """Leave the frontier out of a command that asks for single pages, such as `scrapy fetch`."""
    command = one_off_command(settings)
    if command:
        apply_one_off(settings, command)


def _priority(settings: BaseSettings, name: str) -> int:
    return settings.getpriority(name) or 0
