"""What a person says of a site: where it lives, where to begin, and what its URLs are.

A site has one ordered list of rules; the first that matches a URL says what is to be done with it:

| verdict  | means                                                                     |
|----------|---------------------------------------------------------------------------|
| article  | the page is an article                                                    |
| listing  | the page lists articles: a front page, a section, an archive              |
| follow   | the page belongs to the crawl, and nothing is said of its kind            |
| ignore   | the URL is left out of the crawl, unless it is a seed or a source          |
| nostore  | the page is read for its links, but not kept; checked, not in force yet   |
| nofollow | the page is kept, but its links are not followed; checked, not in force yet |

A rule looks at what stands behind the host, in the canonical form: path and query for `prefix` and
`regex` (which is searched for anywhere in them, so `^` is the start of the path), the path alone
for `suffix` (capitals count as small letters there). The host is not theirs: it is what the site
is found by.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from crawlproj.errors import ConfigError
from crawlproj.urls.canonical import host_of
from crawlproj.urls.patterns import compile_first_match, compile_pattern, literal_pattern

VERDICTS: Final = ("article", "listing", "follow", "ignore", "nostore", "nofollow")
MATCHERS: Final = ("prefix", "suffix", "regex")
MAX_COMPILED = 2_000
"""The rules of so many sites are kept compiled."""
_ASCII: Final = "".join(map(chr, range(33, 127)))
_BEGINS_WITH_SCHEME = re.compile(r"[\^(?:|)]*http[(?:|)https]*:(?:\\?/){2}").match


@dataclass(frozen=True, slots=True)
class UrlRule:
    """One rule: a verdict, and exactly one of prefix, suffix and regex.

    ConfigError if it can't be one. Letters beyond ASCII in prefix and suffix are escaped, as they
    are in URLs.
    """

    verdict: str
    prefix: str = ""
    suffix: str = ""
    regex: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ConfigError(
                f"{self.verdict!r} is no verdict: it must be one of {', '.join(VERDICTS)}"
            )
        if sum(map(bool, (self.prefix, self.suffix, self.regex))) != 1:
            raise ConfigError("a rule has exactly one of prefix, suffix and regex")
        if self.prefix and not self.prefix.startswith("/"):
            raise ConfigError(
                f"prefix = {self.prefix!r} makes no sense: it must begin as paths do, with /"
            )
        if "?" in self.suffix or "#" in self.prefix + self.suffix:
            raise ConfigError(
                f"{self.matcher} = {self.text!r} never matches: a suffix is compared with the path "
                "alone, without the query, and URLs have no #"
            )
        if self.regex:
            _check_regex(self.regex)
        # The class is frozen to all others.
        object.__setattr__(self, "prefix", quote(self.prefix, safe=_ASCII))
        object.__setattr__(self, "suffix", quote(self.suffix, safe=_ASCII))

    @property
    def matcher(self) -> str:
        """Which one it has: prefix, suffix or regex."""
        return next(name for name in MATCHERS if getattr(self, name))

    @property
    def text(self) -> str:
        return self.prefix or self.suffix or self.regex

    @property
    def pattern(self) -> str:
        """The regular expression that is searched for in path and query."""
        if self.prefix:
            return "^" + literal_pattern(self.prefix)
        if self.suffix:
            return f"(?i)^[^?]*{literal_pattern(self.suffix)}(?:\\?|$)"
        return self.regex

    def __str__(self) -> str:
        """The rule as it is written in a file."""
        return f"{self.verdict}: {{{self.matcher}: {self.text}}}"

    def to_dict(self) -> dict[str, Any]:
        return {self.verdict: {self.matcher: self.text}}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Mapping[str, str]]) -> UrlRule:
        ((verdict, matcher),) = stored.items()
        return cls(verdict, **matcher)


def _check_regex(regex: str) -> None:
    """Raise ConfigError for a regular expression that RE2 refuses, or that can never match."""
    if _BEGINS_WITH_SCHEME(regex):
        raise ConfigError(
            f"regex = {regex!r} never matches: it is searched for in path and query, without "
            "https:// and the host"
        )
    letter = next((letter for letter in regex if not letter.isascii()), "")
    if letter:
        raise ConfigError(
            f"regex = {regex!r} never matches: letters beyond ASCII are escaped in URLs, write "
            f"{quote(letter, errors='replace')} for {letter}"
        )
    compile_pattern(regex, "regex")


@dataclass(frozen=True, slots=True)
class SiteRevisit:
    """When the pages of a site are visited again: by a policy, an interval, or both of its own."""

    policy: str = ""
    interval: timedelta | None = None


@dataclass(frozen=True, slots=True)
class SiteRules:
    """All that a person says of one site. Everything in it has been checked, and URLs are
    canonical.

    `domains` belong to the site with all hosts below them. The rules hold for `host` alone, if one
    is given. `fields` are selectors of articles, by field.
    """

    name: str
    domains: tuple[str, ...]
    host: str = ""
    seeds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    rules: tuple[UrlRule, ...] = ()
    fields: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    revisit: SiteRevisit | None = None

    def verdict(self, url: str) -> str:
        """What the first rule says that matches a canonical URL; empty if none does."""
        rule = self.find_rule(url)
        if rule is None:
            return ""
        return rule.verdict

    def find_rule(self, url: str) -> UrlRule | None:
        """The first rule that matches a canonical URL."""
        if not self.rules or (self.host and host_of(url) != self.host):
            return None
        number = _compiled.first_match(self.rules, url[url.index("/", 8) :])
        if number < 0:
            return None
        return self.rules[number]

    def scope_part(self) -> SiteRules | None:
        """What of it decides which URLs belong to the crawl; None if none of them is ignored."""
        last = max(
            (number for number, rule in enumerate(self.rules) if rule.verdict == "ignore"),
            default=-1,
        )
        if last < 0:
            return None
        return SiteRules(self.name, self.domains, self.host, rules=self.rules[: last + 1])

    def to_dict(self) -> dict[str, Any]:
        """Its `scope_part` as a value that JSON can hold."""
        return {
            "name": self.name,
            "domains": list(self.domains),
            "host": self.host,
            "rules": [rule.to_dict() for rule in self.rules],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> SiteRules:
        return cls(
            stored["name"],
            tuple(stored["domains"]),
            stored["host"],
            rules=tuple(map(UrlRule.from_dict, stored["rules"])),
        )


class _CompiledRules:
    """Rules are compiled when a URL of their site comes for the first time, and kept while they are
    among those that were used last. They are found by identity, which is quicker than by value.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[tuple[UrlRule, ...], Callable[[str], int]]] = (
            OrderedDict()
        )

    def first_match(self, rules: tuple[UrlRule, ...], target: str) -> int:
        kept = self._kept.get(id(rules))
        if kept is None:
            # The rules are held as well: no others can have their id then.
            kept = (rules, compile_first_match([rule.pattern for rule in rules]))
            self._kept[id(rules)] = kept
            if len(self._kept) > MAX_COMPILED:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(id(rules))
        return kept[1](target)


_compiled = _CompiledRules()


class Sites:
    """Sites, found by their hosts: of a thousand as quickly as of one.

    The nearest wins: one whose `host` it is, then the one with the longest of the domains that the
    host is in.
    """

    def __init__(self, sites: Iterable[SiteRules] = ()) -> None:
        self._sites = tuple(sites)
        self._by_domain = {domain: site for site in self._sites for domain in site.domains}
        self._by_host = {site.host: site for site in self._sites if site.host}

    def __iter__(self) -> Iterator[SiteRules]:
        return iter(self._sites)

    def __len__(self) -> int:
        return len(self._sites)

    @property
    def domains(self) -> frozenset[str]:
        return frozenset(self._by_domain)

    def site_of(self, url_or_host: str) -> SiteRules | None:
        """The site of a canonical URL, or of a host."""
        name = url_or_host
        if "/" in name:
            name = host_of(name)
        site = self._by_host.get(name)
        while site is None and name:
            site = self._by_domain.get(name)
            name = name.partition(".")[2]
        return site

    def verdict(self, url: str) -> str:
        """What the rules of its site say of a canonical URL; empty if they say nothing."""
        site = self.site_of(url)
        if site is None:
            return ""
        return site.verdict(url)
