"""Settings as typed values, read once per crawler.

Nonsense is refused here, before anything starts, with the setting's name and what would be right.
Each `parse_...` takes a value as settings have it (a string from the command line, or already of
the right type) and raises ValueError with a text that follows "it must be".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from crawlproj.archive.writer import WriterOptions
from crawlproj.content.changes import ChangeRules
from crawlproj.content.document import LinkLimits
from crawlproj.content.documents.budget import DocumentBudget
from crawlproj.duplicates.rules import BANDS, DuplicateRules
from crawlproj.errors import ConfigError
from crawlproj.frontier.base import ORDERS, CrawlSpec
from crawlproj.politeness.clocks import HostRules, PolitenessRules, ServerRules
from crawlproj.politeness.guard import Guard
from crawlproj.politeness.networks import shipped_networks
from crawlproj.revisit.base import Bounds, RevisitSettings
from crawlproj.revisit.shares import CLASSES
from crawlproj.urls.rules import SiteRevisit
from crawlproj.urls.suffixes import shipped_suffixes

T = TypeVar("T")
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?")
SUFFIX = re.compile(r"[a-z0-9][a-z0-9_-]*")
SECRET = frozenset({"DATABASE_URL", "REDIS_URL"})
"""Settings that may hold a password: they are never quoted."""
ROBOT_NAME = re.compile(r"[A-Za-z0-9_\-.]+(/[A-Za-z0-9_\-.]+)?")
SITE_HOST = re.compile(r"[^\s/:@]+|\[[0-9a-f:.]+\]")
MAX_NAME = 100
MAX_CONTACT = 300
YES = {"1", "true", "yes", "on"}
NO = {"0", "false", "no", "off", "", "none"}


def parse_duration(value: object) -> timedelta:
    """Seconds, or "90s" "20m" "12h" "5d"."""
    match = DURATION.fullmatch(str(value).strip().lower())
    if not match:
        raise ValueError('seconds or a duration such as "90s", "20m", "12h", "5d"')
    try:
        return timedelta(seconds=float(match[1]) * UNITS[match[2]])
    except OverflowError:
        raise ValueError("a shorter duration") from None


def parse_seconds(value: object) -> float:
    return parse_duration(value).total_seconds()


def parse_download_delay(value: object) -> float:
    """Scrapy's setting, which need not be there."""
    return parse_number(value or 0)


def parse_watchdog_timeout(value: object) -> float:
    """A second at least, and what C can count; 0: none."""
    seconds = parse_seconds(value)
    if seconds and not 1 <= seconds <= 86_400:
        raise ValueError('from "1s" to "1d", or 0')
    return seconds


def parse_size(value: object) -> int:
    """Bytes, or "64KB" "100MB" "1GB"."""
    match = SIZE.fullmatch(str(value).strip().lower())
    if not match or not float(match[1]):
        raise ValueError('bytes or a size such as "64KB", "100MB", "1GB"')
    return int(float(match[1]) * 1000 ** " kmgt".index(match[2] or " "))


def parse_boolean(value: object) -> bool:
    text = str(value).strip().lower()
    if text not in YES | NO:
        raise ValueError("True or False")
    return text in YES


def parse_number(value: object) -> float:
    try:
        result = float(str(value))
    except ValueError:
        result = -1.0
    if not 0 <= result < float("inf"):
        raise ValueError("a number, 0 or more")
    return result


def parse_integer(value: object) -> int:
    number = parse_number(value)
    if number != int(number):
        raise ValueError("a whole number, 0 or more")
    return int(number)


def parse_positive(value: object) -> int:
    number = parse_integer(value)
    if not number:
        raise ValueError("a whole number, 1 or more")
    return number


def parse_mapping(value: object) -> dict[str, Any]:
    """A dictionary, also as JSON; nothing is an empty one."""
    if value == "" or value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, Mapping):
        raise ValueError('a dictionary, or JSON such as {"name": "value"}')
    return {str(key): value[key] for key in value}


def parse_shares(value: object) -> dict[str, float]:
    shares = {name: parse_number(share) for name, share in parse_mapping(value).items()}
    if not set(shares) <= set(CLASSES) or sum(shares.values()) > 1.0 + 1e-9:
        raise ValueError(f"shares of {', '.join(CLASSES)} that sum up to 1 at most")
    return shares


def one_of(*names: str) -> Callable[[object], str]:
    """A parser that takes one of these names."""

    def check(value: object) -> str:
        if value not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return str(value)

    return check


def parse_list(value: object) -> list[str]:
    """A list, also as JSON, or as words separated by commas or spaces."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    elif isinstance(value, str):
        value = value.replace(",", " ").split()
    if not isinstance(value, Iterable):
        raise ValueError("a list")
    return [str(word) for word in value]


def parse_kinds(value: object) -> frozenset[str]:
    names = frozenset(parse_list(value))
    if not names <= {"html", "text", "feed", "sitemap", "document", "other", "binary"}:
        raise ValueError("a list of html, text, feed, sitemap, document, other, binary")
    return names


def parse_networks(value: object) -> tuple[str, ...]:
    """Networks in CIDR form; `shipped` is the list that comes with crawlproj."""
    if value == "shipped":
        return tuple(shipped_networks())
    try:
        return tuple(str(ip_network(name)) for name in parse_list(value))
    except ValueError:
        raise ValueError('"shipped", or networks such as 192.0.2.0/24') from None


def parse_suffixes(value: object) -> frozenset[str]:
    """Suffixes of URLs, with or without a dot; `shipped` is the list that comes with crawlproj."""
    if value == "shipped":
        return shipped_suffixes()
    suffixes = [word.lower().removeprefix("*").removeprefix(".") for word in parse_list(value)]
    if not all(map(SUFFIX.fullmatch, suffixes)):
        raise ValueError('"shipped", or suffixes such as jpg, mp4, zip')
    return frozenset(suffixes)


def parse_fraction(value: object) -> float:
    number = parse_number(value)
    if number >= 1:
        raise ValueError("a number from 0 up to, but not including, 1")
    return number


def parse_classes(value: object) -> tuple[timedelta, ...]:
    """Different durations, shortest first."""
    right = 'durations, each more than 0, such as ["1d", "7d", "182d"]'
    try:
        classes = sorted({parse_duration(word) for word in parse_list(value)})
    except ValueError:
        raise ValueError(right) from None
    if not classes or classes[0] <= timedelta(0):
        raise ValueError(right)
    return tuple(classes)


def parse_budget(value: object) -> float | None:
    """Visits per day; nothing: no budget of its own."""
    if value is None or value == "":
        return None
    number = parse_number(value)
    if not number:
        raise ValueError("a number of visits per day, more than 0, or empty")
    return number


def parse_beta(value: object) -> float:
    number = parse_number(value)
    if number > 2:
        raise ValueError("a number from 0 to 2")
    return number


def parse_silence(value: object) -> float:
    number = parse_number(value)
    if 0 < number < 2:
        raise ValueError("0, or a number from 2 on")
    return number


def parse_target(value: object) -> float:
    number = parse_number(value)
    if number > 1:
        raise ValueError("a number from 0 to 1")
    return number


def parse_site_policies(value: object) -> dict[str, SiteRevisit]:
    """What is said of sites, by host."""
    right = 'a dictionary such as {"example.org": {"policy": "uniform", "interval": "1h"}}'
    sites = {}
    for name, entry in parse_mapping(value).items():
        host = name.strip().lower().strip(".")
        if (
            not SITE_HOST.fullmatch(host)
            or not isinstance(entry, Mapping)
            or not set(entry) <= {"policy", "interval"}
        ):
            raise ValueError(right)
        interval = None
        if entry.get("interval"):
            try:
                interval = parse_duration(entry["interval"])
            except ValueError:
                raise ValueError(right) from None
        if interval is not None and interval <= timedelta(0):
            raise ValueError(f"{right}, with an interval of more than 0")
        sites[host] = SiteRevisit(str(entry.get("policy") or ""), interval)
    return sites


def parse_weights(value: object) -> dict[str, float]:
    weights = {name: parse_number(weight) for name, weight in parse_mapping(value).items()}
    known = {"article", "listing", "other", "feed", "sitemap", "document", "text"}
    if not set(weights) <= known or not all(weights.values()):
        raise ValueError(f"weights, each more than 0, of {', '.join(sorted(known))}")
    return weights


def parse_level(value: object) -> int:
    level = parse_integer(value)
    if level > 12:
        raise ValueError("a level of compression from 1 to 12, or 0")
    return level


class SettingsReader:
    """Reads settings by name and parser; the first bad one is a ConfigError."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings

    def __call__(self, name: str, parse: Callable[[object], T]) -> T:
        value = self._settings.get(name)
        given = value
        if given is None:
            given = ""
        try:
            return parse(given)
        except ValueError as error:
            said = name
            if name not in SECRET:
                said = f"{name} = {value!r}"
            raise ConfigError(f"{said} makes no sense: it must be {error}") from None


@dataclass(frozen=True, slots=True)
class Config:
    """All settings that our components read, in one value. Fields are named after the settings."""

    database_url: str
    database_patience_s: float
    redis_url: str
    redis_items: bool
    crawl_dir: Path
    continuous: bool
    patience: timedelta
    """How long a crawl waits for hosts that rest before it ends."""
    robot_name: str
    robot_contact: str
    guard: Guard
    dns_hosts: Mapping[str, str]
    rules: PolitenessRules
    shared_networks: tuple[str, ...]
    tenure_s: float
    """How long a worker may hold a server that others wait for."""
    prepare: int
    """How many hosts are asked for their first robots.txt at a time."""
    robots_ttl: timedelta
    spec: CrawlSpec
    flush_s: float
    servers: int
    window: int
    known_urls: int
    retries: int
    retry_delay: timedelta
    gone_limit: int
    shutdown_s: float
    bounds: Bounds
    source_bounds: Bounds
    source_rest: timedelta
    """SOURCE_MIN: start requests that were visited so recently are not asked again."""
    source_old: timedelta
    """SOURCE_OLD: what was published longer ago goes to backfill; 0: nothing does."""
    revisit: RevisitSettings
    """The policy, with the bounds of pages and of sources."""
    revisit_filter: frozenset[str]
    revisit_weights: Mapping[str, float]
    source_silence: float
    """After so many times its usual gap a source is silent; 0: nobody looks."""
    change_rules: ChangeRules
    follow_nofollow: bool
    article_keys: bool
    """Other addresses of an article that was let through are held back."""
    barren_tries: int
    """Of so many like pages one must be an article or lead to one; 0: none must."""
    suffixes: frozenset[str]
    """Links to URLs with these suffixes are recorded, not followed."""
    link_limits: LinkLimits
    log_requests: bool
    log_requests_bytes: int
    watchdog_timeout_s: float
    """0: no watchdog."""
    warc: WriterOptions | None
    """None: nothing is archived."""
    obey_noarchive: bool
    documents: DocumentBudget | None
    """None: documents such as PDF are not read."""
    text: bool
    """The text of pages is kept."""
    language: bool
    duplicates: DuplicateRules
    article_processes: int
    """Processes that take articles from pages; 0: none are taken."""
    article_labels: Callable[[Any], Iterable[str]] | None
    """The user's own classifier of articles."""

    @property
    def user_agent(self) -> str:
        if not self.robot_contact:
            return self.robot_name
        return f"{self.robot_name} (+{self.robot_contact})"

    @property
    def log_dir(self) -> Path:
        return self.crawl_dir / "log"

    @property
    def warc_dir(self) -> Path:
        return self.crawl_dir / "warc"


def _page_bounds(read: SettingsReader) -> Bounds:
    """The bounds of pages. An interval shorter than REVISIT_MIN is its own lower bound: whoever
    wants all pages more often says so once.
    """
    interval = read("REVISIT_INTERVAL", parse_duration)
    shortest = read("REVISIT_MIN", parse_duration)
    longest = read("REVISIT_MAX", parse_duration)
    if not timedelta(0) < shortest <= longest:
        raise ConfigError(
            f"REVISIT_MIN = {shortest} must be more than 0 and at most REVISIT_MAX = {longest}"
        )
    if not timedelta(0) < interval <= longest:
        raise ConfigError(
            f"REVISIT_INTERVAL = {interval} must be more than 0 and at most REVISIT_MAX = {longest}"
        )
    return Bounds(interval, min(shortest, interval), longest)


def _source_bounds(read: SettingsReader, pages: Bounds) -> Bounds:
    """The bounds of sources. A source is never asked less often than a page, so that shorter
    intervals for pages hold for sources too.
    """
    interval = read("SOURCE_INTERVAL", parse_duration)
    shortest = read("SOURCE_MIN", parse_duration)
    if not timedelta(0) < shortest <= interval:
        raise ConfigError(
            f"SOURCE_MIN = {shortest} must be more than 0 and at most SOURCE_INTERVAL = {interval}"
        )
    first = min(interval, pages.interval)
    return Bounds(first, min(shortest, pages.shortest), max(first, pages.longest))


def _revisit_settings(read: SettingsReader, pages: Bounds, sources: Bounds) -> RevisitSettings:
    return RevisitSettings(
        policy=read("REVISIT_POLICY", str),
        bounds=replace(pages, sources=sources),
        increase=read("REVISIT_INCREASE", parse_number),
        decrease=read("REVISIT_DECREASE", parse_fraction),
        classes=read("REVISIT_CLASSES", parse_classes),
        budget=read("REVISIT_BUDGET", parse_budget),
        beta=read("REVISIT_BETA", parse_beta),
        freshness_target=read("REVISIT_FRESHNESS_TARGET", parse_target),
        sites=read("REVISIT_SITES", parse_site_policies),
        args=read("REVISIT_ARGS", parse_mapping),
    )


def read_config(settings: Any, crawl_name: str) -> Config:
    read = SettingsReader(settings)
    contact = read("ROBOT_CONTACT", parse_contact)
    bounds = _page_bounds(read)
    source_bounds = _source_bounds(read, bounds)
    source_rest = read("SOURCE_MIN", parse_duration)
    return Config(
        database_url=read("DATABASE_URL", str),
        database_patience_s=read("DATABASE_PATIENCE", parse_seconds),
        redis_url=read("REDIS_URL", parse_redis_url),
        redis_items=read("REDIS_ITEMS", parse_boolean),
        crawl_dir=crawl_dir(settings),
        continuous=read("CRAWL_CONTINUOUS", parse_boolean),
        patience=read("CRAWL_PATIENCE", parse_duration),
        robot_name=read("ROBOT_NAME", parse_robot_name),
        robot_contact=contact,
        guard=Guard(read("GUARD_ALLOW_PRIVATE", parse_boolean), bool(contact)),
        dns_hosts=read("DNS_HOSTS", parse_mapping),
        rules=PolitenessRules(_host_rules(read), _server_rules(read)),
        tenure_s=read("FRONTIER_TENURE", parse_seconds),
        shared_networks=read("POLITENESS_SHARED_NETWORKS", parse_networks),
        prepare=max(1, read("FRONTIER_PREPARE", parse_integer)),
        robots_ttl=read("ROBOTS_TTL", parse_duration),
        spec=_crawl_spec(read, read("CRAWL_NAME", parse_crawl_name) or _spider_name(crawl_name)),
        flush_s=read("FRONTIER_FLUSH", parse_seconds),
        servers=max(1, read("FRONTIER_SERVERS", parse_integer)),
        window=max(1, read("FRONTIER_WINDOW", parse_integer)),
        known_urls=read("FRONTIER_KNOWN_URLS", parse_integer),
        retries=read("FRONTIER_RETRIES", parse_integer),
        retry_delay=read("FRONTIER_RETRY_DELAY", parse_duration),
        gone_limit=max(1, read("FRONTIER_GONE_LIMIT", parse_integer)),
        shutdown_s=read("CRAWL_SHUTDOWN", parse_seconds),
        bounds=bounds,
        source_bounds=source_bounds,
        source_rest=source_rest,
        source_old=read("SOURCE_OLD", parse_duration),
        revisit=_revisit_settings(read, bounds, source_bounds),
        revisit_filter=read("REVISIT_FILTER", parse_kinds),
        revisit_weights=read("REVISIT_WEIGHTS", parse_weights),
        source_silence=read("SOURCE_SILENCE", parse_silence),
        change_rules=ChangeRules(min_letters=read("CHANGE_MIN", parse_number)),
        suffixes=read("URL_SUFFIXES", parse_suffixes),
        follow_nofollow=read("FOLLOW_NOFOLLOW", parse_boolean),
        article_keys=read("ARTICLE_KEYS", parse_boolean),
        barren_tries=read("BARREN_TRIES", parse_integer),
        link_limits=_link_limits(read),
        log_requests=read("LOG_REQUESTS", parse_boolean),
        log_requests_bytes=read("LOG_REQUESTS_MAX_SIZE", parse_size),
        watchdog_timeout_s=read("WATCHDOG_TIMEOUT", parse_watchdog_timeout),
        warc=_archive_options(read),
        obey_noarchive=read("WARC_OBEY_NOARCHIVE", parse_boolean),
        documents=_document_budget(read),
        text=read("TEXT_ENABLED", parse_boolean),
        language=read("LANGUAGE_ENABLED", parse_boolean),
        duplicates=_duplicate_rules(read),
        article_processes=read("ARTICLE_PROCESSES", parse_article_processes),
        article_labels=read("ARTICLE_LABELS", parse_function),
    )


_configs: WeakKeyDictionary[Any, Config] = WeakKeyDictionary()


def config_of(crawler: Any) -> Config:
    """The settings of a crawler, read once: they are frozen before its components are made."""
    config = _configs.get(crawler)
    if config is None:
        spider = crawler.spider or crawler.spidercls
        config = _configs[crawler] = read_config(crawler.settings, spider.name or "")
    return config


def crawl_dir(settings: Any) -> Path:
    """CRAWL_DIR as an absolute path.

    A relative one is refused under Scrapyd, whose jobs start in a folder of Scrapyd's.
    """
    path = Path(settings.get("CRAWL_DIR") or ".crawl")
    if not path.is_absolute() and settings.getbool("CRAWL_DIR_ABSOLUTE"):
        raise ConfigError(f"CRAWL_DIR = {str(path)!r} must be an absolute path under Scrapyd")
    return path.absolute()


def parse_redis_url(value: object) -> str:
    """A URL of which every client reads the same parts: one that it can't read may have parts of
    the password in its error.
    """
    text = str(value)
    if text and not text.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("a URL such as redis://host:6379/0, rediss://... or unix:///path")
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - it raises if there is none
        unclear = "@" in parts.path + parts.query + parts.fragment or "#" in text
    except ValueError:
        unclear = True
    if unclear or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError(
            "a URL such as redis://user:password@host:6379/0 (in a password write / as %2F, @ as "
            "%40, : as %3A, # as %23, ? as %3F)"
        )
    return text


def parse_robot_name(value: object) -> str:
    text = str(value)
    if not ROBOT_NAME.fullmatch(text) or len(text) > MAX_NAME:
        raise ValueError("a plain product name such as crawlproj or crawlproj/1.0")
    return text


def parse_contact(value: object) -> str:
    """A contact goes into the User-Agent header of each request."""
    text = str(value).strip()
    if not text.isprintable() or len(text) > MAX_CONTACT:
        raise ValueError(f"one line of at most {MAX_CONTACT} characters that can be printed")
    return text


def parse_crawl_name(value: object) -> str:
    """A name goes into names of files, onto terminals and into the log."""
    text = str(value)
    is_plain = text.isprintable() and text == text.strip() and "/" not in text
    if not is_plain or len(text) > MAX_NAME or text in (".", ".."):
        raise ValueError(
            f"a name of at most {MAX_NAME} characters that can be printed, without a slash"
        )
    return text


def _spider_name(name: str) -> str:
    """The spider's name, as the name of its crawl."""
    try:
        return parse_crawl_name(name)
    except ValueError as error:
        raise ConfigError(
            f"the spider's name {name!r} can't name its crawl: that must be {error} (CRAWL_NAME "
            "gives it another)"
        ) from None


def _host_rules(read: SettingsReader) -> HostRules:
    """A spider that asks for a longer pause in Scrapy's own words (DOWNLOAD_DELAY, or its attribute
    `download_delay`, which Scrapy makes that setting of) gets it.
    """
    return HostRules(
        delay_s=max(
            read("POLITENESS_DELAY", parse_seconds), read("DOWNLOAD_DELAY", parse_download_delay)
        ),
        slowdown=read("POLITENESS_SLOWDOWN", parse_number),
        max_delay_s=read("POLITENESS_MAX_DELAY", parse_seconds),
        max_crawl_delay_s=read("ROBOTS_MAX_CRAWL_DELAY", parse_seconds),
    )


def _server_rules(read: SettingsReader) -> ServerRules:
    return ServerRules(
        delay_s=read("POLITENESS_SERVER_DELAY", parse_seconds),
        hosts=max(1, read("POLITENESS_HOSTS_PER_SERVER", parse_integer)),
        pause_after=read("POLITENESS_PAUSE_AFTER", parse_integer),
        pause_s=read("POLITENESS_PAUSE", parse_seconds),
    )


def _link_limits(read: SettingsReader) -> LinkLimits:
    return LinkLimits(
        links=read("LINKS_PER_PAGE", parse_positive),
        characters=read("LINKS_CHARACTERS", parse_positive),
    )


def _archive_options(read: SettingsReader) -> WriterOptions | None:
    if not read("WARC_ENABLED", parse_boolean):
        return None
    return WriterOptions(
        max_bytes=read("WARC_MAX_SIZE", parse_size),
        max_age_s=read("WARC_MAX_AGE", parse_seconds),
        level=read("WARC_LEVEL", parse_level),
    )


def _document_budget(read: SettingsReader) -> DocumentBudget | None:
    if not read("DOCUMENTS_ENABLED", parse_boolean):
        return None
    budget = DocumentBudget(
        read("DOCUMENTS_TIMEOUT", parse_seconds),
        read("DOCUMENTS_MEMORY", parse_size),
        read("DOCUMENTS_MAX_SIZE", parse_size),
        max_waiting_bytes=read("DOCUMENTS_MAX_WAITING", parse_size),
    )
    if budget.timeout_s < 1 or budget.memory < 100_000_000:
        raise ConfigError(
            "DOCUMENTS_TIMEOUT must be 1s or more, and DOCUMENTS_MEMORY 100MB or more: the reader "
            "itself needs some"
        )
    return budget


def parse_threshold(value: object) -> float:
    number = parse_number(value)
    if not 0.5 <= number <= 1:
        raise ValueError("a number from 0.5 to 1")
    return number


def parse_num_perm(value: object) -> int:
    number = parse_positive(value)
    if number % BANDS or not 4 * BANDS <= number <= 1024:
        raise ValueError(f"a multiple of {BANDS} from {4 * BANDS} to 1024")
    return number


def parse_article_processes(value: object) -> int:
    number = parse_integer(value)
    if not 0 <= number <= 64:
        raise ValueError("a number from 0 to 64")
    return number


def parse_function(value: object) -> Callable[[Any], Iterable[str]] | None:
    """What a dotted path names; None if it is empty."""
    if not value:
        return None
    found = value
    if isinstance(value, str):
        module, _, name = value.rpartition(".")
        try:
            found = getattr(import_module(module), name)
        except Exception as error:
            raise ValueError(f"the dotted path of a function ({error})") from None
    if not callable(found):
        raise ValueError("the dotted path of a function")
    return found


def _duplicate_rules(read: SettingsReader) -> DuplicateRules:
    """Near duplicates and paragraphs are compared on the stored texts, so these must be kept."""
    exact = read("DUPLICATES_ENABLED", parse_boolean)
    near = read("NEARDUP_ENABLED", parse_boolean) and exact
    paragraphs = read("PARAGRAPH_ENABLED", parse_boolean) and exact
    text = read("TEXT_ENABLED", parse_boolean)
    return DuplicateRules(
        exact=exact,
        near=near and text,
        paragraphs=paragraphs and text,
        threshold=read("NEARDUP_THRESHOLD", parse_threshold),
        num_perm=read("NEARDUP_NUM_PERM", parse_num_perm),
        shingle=read("NEARDUP_SHINGLE", parse_positive),
        paragraph_threshold=read("PARAGRAPH_THRESHOLD", parse_threshold),
        scope=read("DUPLICATE_SCOPE", one_of("site", "crawl", "all")),
        keep_all=read("DUPLICATE_KEEP", one_of("canonical", "all")) == "all",
        drop_items=read("DUPLICATE_ITEMS", one_of("keep", "drop")) == "drop",
    )


def _crawl_spec(read: SettingsReader, name: str) -> CrawlSpec:
    lease = read("FRONTIER_LEASE", parse_duration)
    timeout = read("DOWNLOAD_TIMEOUT", parse_seconds)
    if lease.total_seconds() <= timeout:
        raise ConfigError(
            f"FRONTIER_LEASE = {lease.total_seconds():g} s must be longer than DOWNLOAD_TIMEOUT = "
            f"{timeout:g} s"
        )
    return CrawlSpec(
        name=name,
        order=read("FRONTIER_ORDER", one_of(*ORDERS)),
        shares=read("FRONTIER_SHARES", parse_shares),
        max_depth=read("FRONTIER_DEPTH", parse_integer),
        max_hops=read("REDIRECT_MAX_TIMES", parse_integer),
        domain_hosts=read("FRONTIER_DOMAIN_HOSTS", parse_integer),
        host_pages=read("FRONTIER_HOST_PAGES", parse_integer),
        host_bytes=read("FRONTIER_HOST_BYTES", parse_integer),
        pages=read("FRONTIER_PAGES", parse_integer),
        bytes=read("FRONTIER_BYTES", parse_integer),
        lease=lease,
    )
