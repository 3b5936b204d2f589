"""What is to be forgotten: a URL, a host, or all hosts below a name. Rules as values, and how they
are told from each other.
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
    """`what` is a canonical URL, a host name, or `*.` and a name. Barred: it is not fetched again;
    else only what was captured until `asked` goes.
    """

    id: int
    what: str
    reason: str
    barred: bool
    requested_at: datetime


class TakedownRules:
    """Those in force; without any, everything is quick."""

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
        names = (address, *rule_names(host_of(address))) if address else (url,)
        return [rule for name in names for rule in self._by_name.get(name, ())]

    def is_barred(self, url: str) -> bool:
        """It may not be fetched, nor kept."""
        return any(rule.barred for rule in self.matching_rules(url))

    def removed_by(self, url: str, at: datetime) -> str:
        """What a capture goes with; empty if it stays."""
        return next(
            (
                rule.what
                for rule in self.matching_rules(url)
                if rule.barred or at <= rule.requested_at
            ),
            "",
        )


@lru_cache(4096)
def rule_names(name: str) -> tuple[str, ...]:
    """Under what a rule may name a host: itself, and all that it is below of."""
    labels = name.split(".")
    return name, *(BELOW + ".".join(labels[number:]) for number in range(1, len(labels)))


def parse_target(word: str) -> str:
    """What a word of a user means; ConfigError if that is not clear."""
    if "://" in word:
        url = canonical_url(word)
        if url is None:
            raise ConfigError(f"not a web address: {word[:100]!r}")
        return url
    name = word.removeprefix(BELOW)
    url = canonical_url(f"http://{name}/") if name and not set(name) & set("/?#@*") else None
    if url is None or (":" in name and not name.endswith("]")):
        raise ConfigError(
            f"{word[:100]!r} is no URL (with http:// or https://), no host (example.org) and not "
            "all below one (*.example.org)"
        )
    return (BELOW if word.startswith(BELOW) else "") + host_of(url)


def is_url(what: str) -> bool:
    return "://" in what


def describe_target(what: str) -> str:
    if is_url(what):
        return what
    return (
        f"all hosts below {what.removeprefix(BELOW)}" if what.startswith(BELOW) else f"host {what}"
    )


def load_rules(db: Queries) -> TakedownRules:
    """What workers must not fetch or keep."""
    return TakedownRules(TakedownRule(*row) for row in db.fetch_rows("takedown_in_force"))


def barring_rule(db: Queries, url: str, name: str = "") -> dict[str, Any] | None:
    """The rule that keeps us from a URL, or from all of a host if there is no URL."""
    names = [url, *rule_names(host_of(url))] if url else [*rule_names(name)]
    row = db.fetch_row("takedown_why", names=names)
    return (
        dict(zip(("what", "reason", "asked", "ended"), row, strict=True))
        if row is not None
        else None
    )


def barred_urls(db: Queries, urls: Sequence[str]) -> list[str]:
    """Those of the URLs that were forgotten and are not fetched."""
    rules = load_rules(db)
    return [url for url in urls if rules.is_barred(url)]
