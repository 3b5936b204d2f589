"""Which parts of crawlproj a crawl can't do without, whatever a project or a spider sets itself.

Scrapy replaces a whole dict of components by that of a setting with a higher priority, such as a
spider's `custom_settings`. So what others set is merged with ours (`merge_components`); what would
switch off a part that keeps the crawl polite is refused (`check_components`).
"""

from __future__ import annotations

from collections.abc import Container
from importlib import import_module
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from crawlproj.errors import ConfigError

DEFAULTS = "settings.base"
COMPONENTS = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")
CHECKED = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES")
OPTIONAL = frozenset({"middlewares.conditional.ConditionalMiddleware", "pipelines.bus.BusPipeline"})
"""Of ours, what may be switched off."""
SWITCHES = {
    "pipelines.dedup.DedupPipeline": "TEXT_ENABLED and DUPLICATES_ENABLED switch it off",
    "pipelines.warc.WarcPipeline": "WARC_ENABLED switches the archive off",
}
"""What to do instead, where there is something."""


def default_setting(name: str) -> Any:
    """What our own settings say."""
    return getattr(import_module(DEFAULTS), name)


def merge_components(settings: BaseSettings, kept_modules: Container[str] = ()) -> None:
    """Add our components to those that are set, except where these say something else.

    `kept_modules`: modules of components of Scrapy that ours switch off, but that stay as they are.
    """
    for name in COMPONENTS:
        defaults: dict[str, int | None] = default_setting(name)
        if settings.getdict(name) == defaults:
            continue
        for path, order in defaults.items():
            if path.split(".")[-2] not in kept_modules:
                settings.setdefault_in_component_priority_dict(name, load_object(path), order)
    handlers = default_setting("DOWNLOAD_HANDLERS")
    given = settings.getdict("DOWNLOAD_HANDLERS")
    if given != handlers:
        priority = settings.getpriority("DOWNLOAD_HANDLERS") or 0
        settings.set("DOWNLOAD_HANDLERS", {**handlers, **given}, priority)


def switch_on_components(settings: BaseSettings, modules: Container[str]) -> None:
    """Take out of our own settings what switches components of Scrapy off, those of these modules.
    What a spider or the command line switches off stays so.
    """
    for name in COMPONENTS:
        priority = settings.getpriority(name) or 0
        parts = {
            part: order
            for part, order in settings.getdict(name).items()
            if order is not None or str(part).split(".")[-2] not in modules
        }
        if priority <= SETTINGS_PRIORITIES["project"]:
            settings.set(name, parts, priority)


def check_components(settings: BaseSettings) -> None:
    """Raise ConfigError unless all parts are there that a crawl can't do without."""
    _check_scheduler(settings)
    for name in CHECKED:
        orders = {_path_of(part): order for part, order in settings.getdict(name).items()}
        for path in default_setting(name):
            is_needed = not path.startswith("scrapy.") and path not in OPTIONAL
            if is_needed and orders.get(path) is None:
                advice = SWITCHES.get(path, "take that line out")
                raise ConfigError(f"{name}: {path} can't be switched off: {advice}")
    _check_handlers(settings)


def _path_of(component: Any) -> str:
    """The full name of a component, which may be given by another name of the same class."""
    return global_object_name(load_object(component))


def _check_scheduler(settings: BaseSettings) -> None:
    ours = load_object(default_setting("SCHEDULER"))
    given = settings["SCHEDULER"]
    if ours not in load_object(given).__mro__:  # Scrapy calls all schedulers subclasses
        raise ConfigError(
            f"SCHEDULER = {given!r}: take that line out, crawlproj needs its own scheduler"
        )


def _check_handlers(settings: BaseSettings) -> None:
    """Others would ask addresses that may not be asked, and tell no clock."""
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    for scheme in ("http", "https"):
        ours = load_object(default_setting("DOWNLOAD_HANDLERS")[scheme])
        given = handlers.get(scheme)
        if given is None or not issubclass(load_object(given), ours):
            raise ConfigError(
                f"DOWNLOAD_HANDLERS: {scheme!r} must stay {global_object_name(ours)}, or a class "
                f"made from it, but is {given!r}"
            )
