"""The checks before a crawl: whatever can be known to be wrong is said then, in one line."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.spiderloader import SpiderLoaderProtocol, get_spider_loader
from scrapy.utils.misc import load_object

from crawlproj.addon import CrawlprojAddon, ProjectAddon
from crawlproj.cli.command import print_error
from crawlproj.cli.screen import MODES
from crawlproj.config import Config, SettingsReader, one_of, parse_seconds, read_config
from crawlproj.database.connection import Database
from crawlproj.database.embedded.server import EmbeddedPostgres
from crawlproj.database.migrations import migrate
from crawlproj.database.opening import open_database
from crawlproj.errors import ConfigError, CrawlprojError
from crawlproj.fetch.resolver import Resolver, look_up
from crawlproj.frontier.base import CrawlSpec
from crawlproj.frontier.postgres import PostgresFrontier
from crawlproj.install_check import different_folders
from crawlproj.politeness.guard import StaticNames
from crawlproj.private_files import make_crawl_dir, make_private_folder, open_private
from crawlproj.revisit.policies import choose_policy
from crawlproj.scheduling.spider import LearnsSeeds, check_scope, roots_of, seeds_of
from crawlproj.urls.canonical import host_of

LOG_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """What a crawl that may start needs.

    `embedded` is held until the crawl has ended, so that the server does not stop and start again
    in between.
    """

    config: Config
    embedded: EmbeddedPostgres | None
    log_file: Path


def run_preflight(
    settings: BaseSettings, spider_name: str | type[Spider], arguments: Mapping[str, str]
) -> PreflightResult:
    """Check everything that a crawl needs. The spider is given by its name, or as its class.

    ConfigError if a setting or an argument is wrong; another CrawlprojError if the crawl can't run
    here and now.
    """
    check_copies()
    spidercls = spider_name
    if isinstance(spidercls, str):
        check_settings(settings, spidercls)
        spidercls = load_spider(get_spider_loader(settings), spidercls)
    settings = settings_of(spidercls, settings)
    config = check_settings(settings, spidercls.name)
    spider = make_spider(settings, spidercls, arguments)
    check_addons(settings, spidercls)
    check_scope(spider, config.spec)
    seeds = seeds_of(spider) or roots_of(spider)
    check_contact(config, seeds)
    check_crawl_dir(config.crawl_dir)
    check_folder(config.log_dir)
    check_log(settings)
    needs_stored_seeds = isinstance(spider, LearnsSeeds) and not seeds and not config.redis_url
    embedded = check_database(config, needs_stored_seeds)
    log_name = re.sub(r"[^\w.-]", "_", config.spec.name) + ".log"
    return PreflightResult(config, embedded, config.log_dir / log_name)


def check_copies() -> None:
    """Raise CrawlprojError if our packages come from different folders."""
    folders = different_folders()
    if folders:
        sources = "; ".join(f"{name} from {folder}" for name, folder in folders.items())
        raise CrawlprojError(
            f"two copies of the code are mixed on the path: {sources}. Remove one, or change "
            "PYTHONPATH"
        )


def check_settings(settings: BaseSettings, spider_name: str) -> Config:
    """Read and check the settings, also those that only the panel and the policy use."""
    config = read_config(settings, spider_name)
    read = SettingsReader(settings)
    read("PANEL", one_of(*MODES))
    read("PANEL_INTERVAL", parse_seconds)
    choose_policy(config.revisit)
    for name, address in config.dns_hosts.items():
        try:
            ip_address(str(address))
        except ValueError:
            raise ConfigError(
                f"DNS_HOSTS: {address!r}, given for {name!r}, is not an IP address"
            ) from None
    return config


def load_spider(loader: SpiderLoaderProtocol, name: str) -> type[Spider]:
    """The spider of that name; ConfigError if there is none."""
    try:
        return loader.load(name)
    except KeyError:
        names = ", ".join(sorted(loader.list()))
        raise ConfigError(f"there is no spider {name!r}; there are: {names}") from None


def settings_of(spidercls: type[Spider], settings: BaseSettings) -> BaseSettings:
    """The settings with those of the spider itself (`custom_settings`), as its crawl has them."""
    final = settings.copy()
    spidercls.update_settings(final)
    return final


def make_spider(
    settings: BaseSettings, spidercls: str | type[Spider], arguments: Mapping[str, str]
) -> Any:
    """The spider, made once on trial: it refuses arguments that make no sense.

    Of spiders that are not ours the class is returned: making one may have effects.
    """
    if isinstance(spidercls, str):
        spidercls = load_spider(get_spider_loader(settings), spidercls)
    if not issubclass(spidercls, LearnsSeeds):
        return spidercls
    return spidercls(**arguments)


def check_addons(settings: BaseSettings, spider: Any) -> None:
    """Raise ConfigError if a spider's own settings leave out our add-on, which merges them with
    those that keep the crawl polite, or if they can't be merged.
    """
    final = settings_of(spider, settings)
    addons = [load_object(addon) for addon in final.getdict("ADDONS")]
    ours = [addon for addon in addons if addon in (ProjectAddon, CrawlprojAddon)]
    if not ours:
        raise ConfigError(
            "ADDONS: those of the spider leave out crawlproj's: put "
            "'crawlproj.addon.ProjectAddon': 0 into them"
        )
    ours[0]().update_settings(final)


def check_contact(config: Config, seeds: Sequence[str]) -> None:
    """Raise ConfigError for a crawl of others without ROBOT_CONTACT, and for a seed whose address
    the guard will refuse.
    """
    if not config.robot_contact and not config.guard.allow_private:
        raise ConfigError(
            "ROBOT_CONTACT is empty: say who crawls, e.g. -s ROBOT_CONTACT=mailto:you@example.org, "
            "so that sites can reach you"
            " (without it only this machine may be crawled, with GUARD_ALLOW_PRIVATE=1)"
        )
    resolver = Resolver(StaticNames(dict(config.dns_hosts)))
    hosts = list(dict.fromkeys(map(host_of, seeds)))
    try:
        for name in hosts:
            address = resolver.known_address(name)
            if not config.robot_contact and not _is_loopback(address or look_up(name) or ""):
                raise ConfigError(
                    "ROBOT_CONTACT is empty: without it only this machine may be crawled, not "
                    f"{name}"
                )
            refusal = ""
            if address:
                refusal = config.guard.refusal_reason(address)
            if refusal:
                raise ConfigError(
                    f"the host {name} is refused: {refusal} (GUARD_ALLOW_PRIVATE=1 allows "
                    "private addresses)"
                )
    finally:
        resolver.close()


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_crawl_dir(folder: Path) -> None:
    """Make CRAWL_DIR if need be, for its user alone, and write to it."""
    with suppress(OSError):  # `check_folder` says what is wrong
        if make_crawl_dir(folder):
            print_error(f"{folder} was open to other users of this machine; it is private now")
    check_folder(folder)


def check_folder(folder: Path) -> None:
    """Make the folder if need be, and write to it: permissions do not always tell the truth."""
    try:
        make_private_folder(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except (FileExistsError, NotADirectoryError):
        raise CrawlprojError(f"CRAWL_DIR: cannot write to {folder}: it is not a folder") from None
    except OSError as error:
        why = error.strerror or error
        raise CrawlprojError(f"CRAWL_DIR: cannot write to {folder}: {why}") from None


def check_log(settings: BaseSettings) -> None:
    """Check LOG_LEVEL, and that LOG_FILE can be written."""
    level = str(settings.get("LOG_LEVEL"))
    if not level.isdigit() and level not in logging.getLevelNamesMapping():
        raise ConfigError(
            f"LOG_LEVEL = {level!r} makes no sense: it must be DEBUG, INFO, WARNING, ERROR or "
            "CRITICAL"
        )
    if file := settings.get("LOG_FILE"):
        try:
            Path(file).open("a").close()
        except OSError as error:
            raise CrawlprojError(
                f"LOG_FILE: cannot write to {file}: {error.strerror or error}"
            ) from None


def check_database(config: Config, needs_stored_seeds: bool) -> EmbeddedPostgres | None:
    """Check that the database is there, recent enough, migrated, and has seeds if it must.

    Returns the embedded server, if it is used, still held.
    """
    database, embedded = open_database(config.database_url, config.crawl_dir)
    try:
        migrate(database)
        if needs_stored_seeds and not has_seeds(database, config.spec):
            raise ConfigError(
                "no seeds: give some with -a seeds=URL[,URL] or -a seeds_file=FILE,"
                f" or add them once with: scrapy seeds add URL --crawl {config.spec.name}"
            )
    except BaseException:
        database.close()
        if embedded:
            embedded.close()
        raise
    database.close()
    return embedded


def has_seeds(database: Database, spec: CrawlSpec) -> bool:
    """Whether the database holds seeds of this crawl; a crawl that it lacks is not made."""
    if database.fetch_row("crawl_named", name=spec.name) is None:
        return False
    frontier = PostgresFrontier(database, spec)
    frontier.open()
    return bool(frontier.seed_urls())


def rotate_log(log_file: Path) -> None:
    """Set a log aside that has grown very long, so that a new one begins; make it, for its user
    alone.
    """
    if log_file.exists() and log_file.stat().st_size > LOG_BYTES:
        log_file.replace(log_file.with_suffix(".log.1"))
    os.close(open_private(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
