"""Settings of a run on the archive: what parses and stores items stays, what fetches pages goes.

An add-on comes after the project's own settings, the spider's and those of other add-ons, and can
see which components there are.
"""

from __future__ import annotations

from typing import Any

from scrapy.settings import BaseSettings
from scrapy.utils.python import global_object_name

from crawlproj.components import COMPONENTS, default_setting

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
DECOMPRESSORS = (
    "middlewares.unpacking.UnpackingMiddleware",
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware",
)
ALWAYS_KEPT = (
    *DECOMPRESSORS,
    "crawlproj.extensions.closespider.CloseCrawl",
    "crawlproj.extensions.feedexport.ItemFeeds",
)
ADDED = {
    "EXTENSIONS": {"crawlproj.reextract.progress.Progress": 500},
    "SPIDER_MIDDLEWARES": {
        "crawlproj.reextract.depth.ReextractDepthMiddleware": 10,
        "crawlproj.reextract.articles.ArchivedArticles": 20,
    },
}


class ReextractAddon:
    """Scrapy add-on that takes away all that leads to the network and reads the archive instead."""

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
    """The components of one setting that a run on the archive keeps, with their order.

    Those of ours that work for the frontier go, and so do Scrapy's own downloader middlewares.
    """
    defaults = default_setting(name)
    ours = {path for path in defaults if not path.startswith("scrapy.")}
    kept = {}
    for component, order in components.items():
        if order is None:
            continue
        path = component
        if not isinstance(component, str):
            path = global_object_name(component)
        fetches = name == "DOWNLOADER_MIDDLEWARES" and path.startswith("scrapy.")
        if path in ALWAYS_KEPT or not (fetches or path in ours):
            kept[component] = order
    return kept
