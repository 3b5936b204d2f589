"""Takedown rules: what is to be forgotten is a URL, a host, or all hosts below a name. Which rules
a URL falls under is decided here; `upkeep.takedown` carries them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from crawlproj.database.queries import Queries
from crawlproj.errors import ConfigError
from crawlproj.urls.canonical import canonical_url, host_of

BELOW = "*."


@dataclass(frozen=True, slots=True)
class TakedownRule:
    """One rule. `what` is a canonical URL, a host name, or `*.` and a name. Barred: it is not
    fetched again; else only what was captured until `requested_at` goes.
    """

    id: int
    what: str
    reason: str
    barred: bool
    requested_at: datetime


class TakedownRules:
    """The rules in force; without any, every question is answered at once."""

    def __init__(self, rules: Iterable[TakedownRule] = ()) -> None:
        self.all = tuple(rules)
        self._by_name: dict[str, list[TakedownRule]] = {}
        for rule in self.all:
            self._by_name.setdefault(rule.what, []).append(rule)

    def __bool__(self) -> bool:
        return bool(self.all)

    def matching_rules(self, url: str) -> list[TakedownRule]:
        """All rules that a URL, in whichever spelling, falls under."""
        if not self.all:
            return []
        address = canonical_url(url)
        names: tuple[str, ...] = (url,)
        if address:
            names = (address, *rule_names(host_of(address)))
        return [rule for name in names for rule in self._by_name.get(name, ())]

    def is_barred(self, url: str) -> bool:
        """Whether a URL may be neither fetched nor kept."""
        return any(rule.barred for rule in self.matching_rules(url))

    def removed_by(self, url: str, at: datetime) -> str:
        """What the rule names that removes a capture of this time; empty if it stays."""
        for rule in self.matching_rules(url):
            if rule.barred or at <= rule.requested_at:
                return rule.what
        return ""


@lru_cache(4096)
def rule_names(name: str) -> tuple[str, ...]:
    """The names that a rule for this host may have: its own, and `*.` with each name above it."""
    labels = name.split(".")
    above = [".".join(labels[number:]) for number in range(1, len(labels))]
    return name, *(BELOW + parent for parent in above)


def parse_target(word: str) -> str:
    """The target that a user's word names; ConfigError if that is not clear."""
    if "://" in word:
        url = canonical_url(word)
        if url is None:
            raise ConfigError(f"not a web address: {word[:100]!r}")
        return url
    name = word.removeprefix(BELOW)
    url = None
    if name and not set(name) & set("/?#@*"):
        url = canonical_url(f"http://{name}/")
    has_port = ":" in name and not name.endswith("]")
    if url is None or has_port:
        raise ConfigError(
            f"{word[:100]!r} is no URL (with http:// or https://), no host (example.org) and not "
            "all below one (*.example.org)"
        )
    host = host_of(url)
    if word.startswith(BELOW):
        return BELOW + host
    return host


def is_url(what: str) -> bool:
    return "://" in what


def describe_target(what: str) -> str:
    if is_url(what):
        return what
    if what.startswith(BELOW):
        return f"all hosts below {what.removeprefix(BELOW)}"
    return f"host {what}"


def load_rules(db: Queries) -> TakedownRules:
    """The rules for what workers must not fetch or keep."""
    return TakedownRules(TakedownRule(*row) for row in db.fetch_rows("takedown_in_force"))


def barring_rule(db: Queries, url: str, name: str = "") -> dict[str, Any] | None:
    """The rule that keeps us from a URL, or from all of a host if there is no URL."""
    names = [*rule_names(name)]
    if url:
        names = [url, *rule_names(host_of(url))]
    row = db.fetch_row("takedown_why", names=names)
    if row is None:
        return None
    return dict(zip(("what", "reason", "asked", "ended"), row, strict=True))


def barred_urls(db: Queries, urls: Sequence[str]) -> list[str]:
    """Those of the URLs that were taken down and are not fetched."""
    rules = load_rules(db)
    return [url for url in urls if rules.is_barred(url)]
