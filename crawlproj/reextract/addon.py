"""Settings of a run on the archive: nothing that asks, paces or stores, but all that a project
parses and keeps its items with.

An add-on comes after the project's own settings, the spider's and those of other add-ons, and can
see which components there are.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from scrapy.settings import BaseSettings
from scrapy.utils.python import global_object_name

from crawlproj.addon import DEFAULTS

PRIORITY = 1_000
"""Above the command line: no setting leads to the network."""
FIXED: dict[str, Any] = {
    "SCHEDULER": "crawlproj.reextract.scheduler.ArchiveScheduler",
    "DOWNLOADER": "crawlproj.extensions.overrides.DirectDownloader",
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    "JOBDIR": None,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_SLOTS": {},
    "AUTOTHROTTLE_ENABLED": False,
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "CONCURRENT_REQUESTS_PER_IP": 0,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
}
HANDLER = "crawlproj.reextract.handler.ArchiveHandler"
COMPONENTS = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")
UNPACKS = (
    "middlewares.unpacking.UnpackingMiddleware",
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware",
)
STAY = (
    *UNPACKS,
    "crawlproj.extensions.closespider.CloseCrawl",
    "crawlproj.extensions.feedexport.ItemFeeds",
)
ADDED = {
    "EXTENSIONS": {"crawlproj.reextract.progress.Progress": 500},
    "SPIDER_MIDDLEWARES": {"crawlproj.reextract.depth.ReextractDepthMiddleware": 10},
}


class ReextractAddon:
    def update_settings(self, settings: BaseSettings) -> None:
        for name, value in FIXED.items():
            settings.set(name, value, PRIORITY)
        for name in COMPONENTS:
            found = kept_components(name, settings.getwithbase(name))
            settings.set(f"{name}_BASE", {}, PRIORITY)
            settings.set(name, found | ADDED.get(name, {}), PRIORITY)
        settings.set("DOWNLOAD_HANDLERS_BASE", {}, PRIORITY)
        settings.set("DOWNLOAD_HANDLERS", {"http": HANDLER, "https": HANDLER}, PRIORITY)


def kept_components(name: str, components: BaseSettings) -> dict[Any, Any]:
    """Without those of ours that work for the frontier, and without Scrapy's own on the way to the
    network.
    """
    ours = {
        path for path in getattr(import_module(DEFAULTS), name) if not path.startswith("scrapy.")
    }
    found = {}
    for component, place in components.items():
        path = component if isinstance(component, str) else global_object_name(component)
        asks = name == "DOWNLOADER_MIDDLEWARES" and path.startswith("scrapy.")
        if place is not None and (path in STAY or not (asks or path in ours)):
            found[component] = place
    return found
