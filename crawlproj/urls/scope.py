"""The scope of a crawl: which URLs belong to it, and why others don't; and its seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crawlproj.errors import ConfigError
from crawlproj.urls.canonical import WHAT_IS_RIGHT, canonical_url, host_of, typed_url
from crawlproj.urls.domains import is_public_suffix
from crawlproj.urls.patterns import compile_pattern
from crawlproj.urls.rules import SiteRules, Sites

MAX_NAME = 253
"""Characters of a host name that DNS knows."""
MAX_CACHED = 10_000
"""So many hosts are remembered."""
NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_BETWEEN_URLS = re.compile(r"\s|[,;](?=https?://)", re.I)
_HAS_SCHEME = re.compile("https?://", re.I).match
_COMMENT = re.compile(r"(^|\s)#.*")


def is_below(name: str, domains: frozenset[str] | set[str]) -> bool:
    """Whether a host is one of these domains, or below one."""
    while name not in domains:
        _, dot, name = name.partition(".")
        if not dot:
            return False
    return True


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """A scope as people give it, and as it is stored: a plain value that JSON can hold.

    A host belongs to the crawl if it is that of a seed or below it (`seed_hosts`, without `www.`),
    if it is one of `domains` or below it, if the pattern `hosts` is found in its name, or in any
    case with `everything`. Of such a host's URLs those are wanted in which `include` is found and
    `exclude` is not, and which no rule of `sites` ignores (their `scope_part` is enough).
    """

    include: str = ""
    exclude: str = ""
    domains: frozenset[str] = frozenset()
    hosts: str = ""
    everything: bool = False
    seed_hosts: frozenset[str] = frozenset()
    sites: tuple[SiteRules, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Whether there is no telling where such a crawl ends."""
        return self.everything or bool(self.hosts) or any(map(is_public_suffix, self.domains))

    def to_dict(self) -> dict[str, Any]:
        stored: dict[str, Any] = {
            "include": self.include,
            "exclude": self.exclude,
            "domains": sorted(self.domains),
            "hosts": self.hosts,
            "everything": self.everything,
            "seed_hosts": sorted(self.seed_hosts),
        }
        if self.sites:
            stored["sites"] = [site.to_dict() for site in self.sites]
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ScopeRules:
        """What `to_dict` gave, perhaps that of another version."""
        return cls(
            include=str(stored.get("include", "")),
            exclude=str(stored.get("exclude", "")),
            domains=frozenset(stored.get("domains", ())),
            hosts=str(stored.get("hosts", "")),
            everything=bool(stored.get("everything", False)),
            seed_hosts=frozenset(stored.get("seed_hosts", ())),
            sites=tuple(map(SiteRules.from_dict, stored.get("sites", ()))),
        )

    def may_want_more_than(self, before: ScopeRules) -> bool:
        """Whether there may be URLs that are wanted now and were not before."""
        more_hosts = not before.everything and (
            self.everything
            or self.hosts not in ("", before.hosts)
            or not self.domains <= before.domains | before.seed_hosts
            or not self.seed_hosts <= before.domains | before.seed_hosts
        )
        return (
            more_hosts
            or before.include not in ("", self.include)
            or before.exclude not in ("", self.exclude)
            or before.sites not in ((), self.sites)
        )


@dataclass(slots=True, eq=False)
class Scope:
    """The rule that decides which URLs a crawl wants: `scope(url)`. It grows with its seeds, or by
    single URLs (`add_urls`), which are wanted whatever the rules say.

    ConfigError if a pattern is none.
    """

    rules: ScopeRules = field(default_factory=ScopeRules)
    _include: Callable[[str], bool] | None = field(init=False, default=None)
    _exclude: Callable[[str], bool] | None = field(init=False, default=None)
    _pattern: Callable[[str], bool] | None = field(init=False, default=None)
    _domains: set[str] = field(init=False, default_factory=set)
    _hosts: dict[str, bool] = field(init=False, default_factory=dict)
    _urls: set[str] = field(init=False, default_factory=set)
    _sites: Sites | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        rules = self.rules
        if rules.include:
            self._include = compile_pattern(rules.include, "include")
        if rules.exclude:
            self._exclude = compile_pattern(rules.exclude, "exclude")
        if rules.hosts:
            self._pattern = compile_pattern(rules.hosts, "hosts")
        if rules.sites:
            self._sites = Sites(rules.sites)
        self._domains.update(rules.domains, rules.seed_hosts)

    def add_seeds(self, urls: Iterable[str]) -> None:
        """Widen the scope by the hosts of these URLs."""
        names = frozenset(host_of(url).removeprefix("www.") for url in urls)
        if names <= self.rules.seed_hosts:
            return
        self.rules = replace(self.rules, seed_hosts=self.rules.seed_hosts | names)
        self._domains.update(names)
        self._hosts.clear()

    def add_urls(self, urls: Iterable[str]) -> None:
        """Let single URLs be wanted; others of their hosts are not for that."""
        self._urls.update(urls)

    def __call__(self, url: str) -> bool:
        return not self.reason(url)

    def reason(self, url: str) -> str:
        """Why a URL is left out: "host", "include", "exclude" or "rule"; empty if it is wanted."""
        if url in self._urls:
            return ""
        name = host_of(url)
        inside = self._hosts.get(name)
        if inside is None:
            if len(self._hosts) > MAX_CACHED:
                self._hosts.clear()
            inside = self.has_host(name)
            self._hosts[name] = inside
        if not inside:
            return "host"
        if self._include is not None and not self._include(url):
            return "include"
        if self._exclude is not None and self._exclude(url):
            return "exclude"
        if self._sites is not None and self._sites.verdict(url) == "ignore":
            return "rule"
        return ""

    def ignoring_rule(self, url: str) -> str:
        """The rule that ignores a URL, with the name of its site; empty if none does."""
        site = self._sites.site_of(url) if self._sites is not None else None
        rule = site.find_rule(url) if site is not None else None
        if site is None or rule is None or rule.verdict != "ignore":
            return ""
        return f"{rule} of the site {site.name}"

    def has_host(self, name: str) -> bool:
        """Whether URLs of this host may belong to the crawl."""
        if len(name) > MAX_NAME:
            return False
        if self.rules.everything or is_below(name, self._domains):
            return True
        return self._pattern is not None and self._pattern(name)


def read_domains(domains: str | None) -> frozenset[str]:
    """Domains, separated by commas; ConfigError names the first that is none."""
    if domains is None:
        return frozenset()
    names = set()
    for word in domains.split(","):
        name = parse_domain(word.strip())
        if name is None:
            raise ConfigError(
                f"domains = {word.strip()[:100]!r} makes no sense: it must be names such as "
                "gov.si, separated by commas, without http:// and path"
            )
        names.add(name)
    return frozenset(names)


def parse_domain(word: str) -> str | None:
    """One domain in the form that hosts of canonical URLs have: `*.Gov.si.` is `gov.si`. None if it
    is none.
    """
    bare = word.removeprefix("*").strip(".")
    url = None
    if bare and not re.search(r"[\s/:@?#]", bare):
        url = canonical_url(f"http://{bare}/")
    if url is None or not NAME.fullmatch(host_of(url)) or len(host_of(url)) > MAX_NAME:
        return None
    return host_of(url)


def read_hosts(pattern: str | None) -> str:
    """The pattern that host names are searched for; ConfigError if it is empty."""
    if pattern is not None and not pattern.strip():
        raise ConfigError(
            "hosts = '' makes no sense: it must be a regular expression for names of hosts, such "
            "as '\\.cz$'"
        )
    return pattern or ""


def read_seeds(seeds: str | None, seeds_file: str | None) -> list[str]:
    """The canonical seeds of both sources, in order; ConfigError names those that are bad."""
    words = [
        (f"seeds, number {number}", word)
        for number, part in enumerate((seeds or "").split(","), 1)
        for word in _split_urls(part)
    ]
    if seeds_file:
        words += _file_lines(Path(seeds_file))
    good: dict[str, None] = {}
    bad = []
    for origin, word in words:
        url = typed_url(word)
        if url is None:
            bad.append(f"{origin}: {word[:100]!r}")
        else:
            good[url] = None
    if bad:
        message = "not a web address: " + "; ".join(bad[:5])
        if len(bad) > 5:
            message += f" (and {len(bad) - 5} more)"
        raise ConfigError(f"{message} ({WHAT_IS_RIGHT})")
    return list(good)


def _split_urls(line: str) -> list[str]:
    """The URLs of a line: several if each says http or https, else the line is one word."""
    words = [word for word in _BETWEEN_URLS.split(line) if word]
    if len(words) > 1 and not all(map(_HAS_SCHEME, words)):
        return [line.strip()]
    return [word.rstrip(",;") if len(words) > 1 else word for word in words]


def _file_lines(path: Path) -> list[tuple[str, str]]:
    """The URLs of a file, each with the number of its line; no comments (`# ...`)."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"seeds_file {str(path)!r} can't be read: {why}") from None
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", line)
        lines += [(f"{path}, line {number}", word) for word in _split_urls(line)]
    if not lines:
        raise ConfigError(f"seeds_file {str(path)!r} has no URLs")
    return lines
