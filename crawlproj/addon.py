"""The add-on brings crawlproj into an existing Scrapy project with one line of its settings.

The line is ADDONS = {"crawlproj.addon.CrawlprojAddon": 100}. Everything is set with the priority of
add-ons, below the project's own settings: what a project sets itself, it keeps. Scrapy's own
components stay on, except those whose work the frontier does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.install_check import different_folders, package_files

DEFAULTS = "settings.base"
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
"""Modules of Scrapy's components that are off in our own settings, but stay on with the add-on."""
COMPONENTS = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")
REDIS_PIPELINE = "scrapy_redis.pipelines.RedisPipeline"


class CrawlprojAddon:
    """The add-on. Scrapy makes one per crawl.

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
        self.update_pre_crawler_settings(settings)
        base = import_module(DEFAULTS)
        if settings["SCHEDULER"] != base.SCHEDULER:
            raise ConfigError(
                f"SCHEDULER = {settings['SCHEDULER']!r}: take that line out, crawlproj needs its "
                "own scheduler"
            )
        for name in COMPONENTS:
            for path, order in getattr(base, name).items():
                module = path.split(".")[-2]
                if module not in KEPT_MODULES:
                    settings.setdefault_in_component_priority_dict(name, load_object(path), order)
        handlers = {**base.DOWNLOAD_HANDLERS, **settings.getdict("DOWNLOAD_HANDLERS")}
        settings.set("DOWNLOAD_HANDLERS", handlers, _priority(settings, "DOWNLOAD_HANDLERS"))
        self._remove_redis_pipeline(settings)

    def _remove_redis_pipeline(self, settings: BaseSettings) -> None:
        """Switch off scrapy-redis's own pipeline, which would send every item a second time."""
        pipelines: dict[Any, Any] = settings.getdict("ITEM_PIPELINES")
        if REDIS_PIPELINE in pipelines:
            settings.set(
                "ITEM_PIPELINES",
                pipelines | {REDIS_PIPELINE: None},
                _priority(settings, "ITEM_PIPELINES"),
            )


def _priority(settings: BaseSettings, name: str) -> int:
    return settings.getpriority(name) or 0
