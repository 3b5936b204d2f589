"""The YAML file that states sites, of which `scrapy crawl news -a sites=FILE` makes a crawl:

    sites:
      - name: example
        domains: [example.org]
        sources: ["https://example.org/feed.xml"]
        rules:
          - ignore: {prefix: /calendar/}
          - article: {regex: "/[0-9]{4}/[0-9]{2}/"}
        fields: {title: "h1::text"}

Every mistake in it is told with its line and column, and nothing is read of a file that has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from crawlproj.config import parse_crawl_name, parse_duration
from crawlproj.news.selectors import check_field, check_selector
from crawlproj.news.yaml_file import Entry, Mistakes, NodeReader, compose_yaml, nearest, read_text
from crawlproj.revisit.policies import POLICY_NAMES
from crawlproj.urls.canonical import WHAT_IS_RIGHT, host_of, typed_url
from crawlproj.urls.rules import MATCHERS, VERDICTS, SiteRevisit, SiteRules, UrlRule
from crawlproj.urls.scope import is_below, parse_domain

KEYS: Final = (
    "name",
    "domains",
    "host",
    "seeds",
    "sources",
    "rules",
    "fields",
    "revisit",
    "parameters",
    "redirects",
    "accept",
)
LATER: Final = frozenset({"parameters", "redirects", "accept", "nostore", "nofollow"})
"""Keys and verdicts that are checked, and take effect in a later version."""
URLS_EXAMPLE: Final = '["https://example.org/"]'
PARAMETER_WORDS: Final = ("required", "optional", "dropped")
_CONTENT_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]*/(?:\*|[a-z0-9][a-z0-9.+-]*)")


@dataclass(frozen=True, slots=True)
class SitesFile:
    """The sites of a file, and what a person should know of it: a line each."""

    sites: tuple[SiteRules, ...]
    warnings: tuple[str, ...] = ()

    def choose_sites(self, names: Iterable[str]) -> SitesFile:
        """Those of these names alone; KeyError with the first name that none has."""
        by_name = {site.name: site for site in self.sites}
        return SitesFile(tuple(by_name[name] for name in dict.fromkeys(names)), self.warnings)


def read_sites(path: Path) -> SitesFile:
    """The sites of a file; ConfigError if it can't be read, MistakesError if it has mistakes."""
    return parse_sites(read_text(path, "the file of sites"), str(path))


def parse_sites(text: str, source: str) -> SitesFile:
    """The sites of a text; `source` names it where a mistake is told."""
    mistakes = Mistakes(source)
    root = compose_yaml(text, source)
    if root is None:
        mistakes.add_at(0, 0, "the file is empty: it must begin with `sites:`, then a list of them")
        mistakes.raise_any()
    sites = _SitesReader(mistakes)
    found = sites.read_root(root)
    mistakes.raise_any()
    return SitesFile(found, tuple(sites.warnings(source, found)))


@dataclass(slots=True)
class _SiteDraft:
    """What is known of a site while its entry is read."""

    domains: dict[str, Any] = field(default_factory=dict)
    """Each with the node that names it."""
    host: str = ""
    seeds: dict[str, Any] = field(default_factory=dict)


class _SitesReader:
    """Reads the nodes of one file."""

    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._nodes = NodeReader(mistakes)
        self._names: dict[str, int] = {}
        self._domains: dict[str, str] = {}
        self._later: set[str] = set()

    def read_root(self, root: Any) -> tuple[SiteRules, ...]:
        top = self._nodes.read_mapping(root, "the file", ("sites",))
        if "sites" not in top:
            self._mistakes.add(root, "there is no key `sites:` with a list of sites")
            return ()
        key, value = top["sites"]
        items = self._nodes.read_list(value, "sites", "- name: example")
        if self._nodes.is_empty_list(value):
            self._mistakes.add(key, "there are no sites in the list")
        sites = [self._read_site(item) for item in items]
        return tuple(site for site in sites if site is not None)

    def warnings(self, source: str, sites: Sequence[SiteRules]) -> list[str]:
        lines = []
        if self._later:
            lines.append(
                f"{source}: {', '.join(sorted(self._later))} are checked, but take effect in a "
                "later version"
            )
        ignored = [
            f"{url} ({site.name})"
            for site in sites
            for url in (*site.seeds, *site.sources)
            if site.verdict(url) == "ignore"
        ]
        if ignored:
            shown = ", ".join(ignored[:5])
            if len(ignored) > 5:
                shown += f" and {len(ignored) - 5:,} more"
            lines.append(
                f"{source}: rules ignore seeds or sources, which are read all the same: {shown}"
            )
        return lines

    def _read_site(self, node: Any) -> SiteRules | None:
        entries = self._nodes.read_mapping(node, "a site", KEYS)
        if not entries:
            return None
        self._later |= LATER & set(entries)
        draft = _SiteDraft()
        self._read_domains(node, entries, draft)
        name = self._read_name(node, entries, draft)
        sources = self._read_urls(entries.get("sources"), "sources")
        site = SiteRules(
            name=name,
            domains=tuple(draft.domains),
            host=draft.host,
            seeds=tuple(draft.seeds),
            sources=tuple(sources),
            rules=self._read_rules(entries.get("rules")),
            fields=self._read_fields(entries.get("fields")),
            revisit=self._read_revisit(entries.get("revisit")),
        )
        if "seeds" in entries and not site.seeds and not site.sources:
            self._mistakes.add(
                entries["seeds"].key, "a site without seeds and sources has no start"
            )
        self._check_parameters(entries.get("parameters"))
        self._check_redirects(entries.get("redirects"))
        self._check_accept(entries.get("accept"))
        return site

    def _read_domains(self, node: Any, entries: Mapping[str, Entry], draft: _SiteDraft) -> None:
        """Domains, host and seeds, each of which may stand for the others."""
        if "host" in entries:
            draft.host = self._read_domain(entries["host"].value, "host") or ""
        if "seeds" in entries:
            draft.seeds = self._read_urls(entries["seeds"], "seeds")
        if "domains" in entries:
            key, value = entries["domains"]
            items = self._nodes.read_list(value, "domains", "[example.org]")
            for item in items:
                domain = self._read_domain(item, "domains")
                if domain is not None:
                    draft.domains[domain] = item
            if self._nodes.is_empty_list(value):
                self._mistakes.add(key, "a site must have domains, such as [example.org]")
        elif draft.host:
            draft.domains = {draft.host: entries["host"].value}
        else:
            draft.domains = {
                host_of(url).removeprefix("www."): item for url, item in draft.seeds.items()
            }
        if not draft.domains and not {"domains", "host", "seeds"} & set(entries):
            self._mistakes.add(node, "a site must have domains, such as domains: [example.org]")
        if not draft.domains:
            return
        domains = frozenset(draft.domains)
        if draft.host and not is_below(draft.host, domains):
            self._mistakes.add(
                entries["host"].value, f"the host {draft.host} is in none of the site's domains"
            )
        for url, item in draft.seeds.items():
            if not is_below(host_of(url), domains):
                self._mistakes.add(
                    item, f"the seed {url} is in none of the site's domains ({', '.join(domains)})"
                )
        self._check_taken(draft, entries)
        if "seeds" not in entries:
            draft.seeds = dict.fromkeys(f"https://{domain}/" for domain in draft.domains)

    def _check_taken(self, draft: _SiteDraft, entries: Mapping[str, Entry]) -> None:
        """Note domains that a site before has."""
        taken = dict(draft.domains)
        if draft.host:
            taken[draft.host] = entries["host"].value
        for domain, item in taken.items():
            where = self._domains.get(domain)
            if where is not None:
                self._mistakes.add(item, f"{domain} belongs to the site {where} already")
        for domain, item in taken.items():
            line = item.start_mark.line + 1
            self._domains.setdefault(domain, f"in line {line}")

    def _read_domain(self, node: Any, what: str) -> str | None:
        word = self._nodes.read_text(node, what)
        if word is None:
            return None
        domain = parse_domain(word.strip())
        if domain is None:
            self._mistakes.add(
                node,
                f"{what}: {word[:100]!r} is no name of a host: write example.org, without https:// "
                "and path",
            )
        return domain

    def _read_name(self, node: Any, entries: Mapping[str, Entry], draft: _SiteDraft) -> str:
        """The name, or else the host or the first domain."""
        name: str | None = draft.host or next(iter(draft.domains), "")
        place = node
        if "name" in entries:
            place = entries["name"].value
            name = self._nodes.read_text(place, "name")
        if not name:
            return ""
        try:
            parse_crawl_name(name)
        except ValueError as error:
            self._mistakes.add(place, f"name: it must be {error}")
        if "," in name:
            self._mistakes.add(place, "name: it must have no comma")
        if name in self._names:
            self._mistakes.add(
                place, f"there is a site {name!r} already, in line {self._names[name]}"
            )
        self._names.setdefault(name, place.start_mark.line + 1)
        return name

    def _read_urls(self, entry: Entry | None, what: str) -> dict[str, Any]:
        """Canonical URLs, each with its node."""
        urls: dict[str, Any] = {}
        if entry is None:
            return urls
        for node, word in self._nodes.read_texts(entry.value, what, URLS_EXAMPLE):
            url = typed_url(word.strip())
            if url is None:
                self._mistakes.add(
                    node, f"{what}: not a web address: {word[:100]!r} ({WHAT_IS_RIGHT})"
                )
            else:
                urls[url] = node
        return urls

    def _read_rules(self, entry: Entry | None) -> tuple[UrlRule, ...]:
        if entry is None:
            return ()
        items = self._nodes.read_list(entry.value, "rules", "- article: {prefix: /news/}")
        rules = [self._read_rule(item) for item in items]
        return tuple(rule for rule in rules if rule is not None)

    def _read_rule(self, node: Any) -> UrlRule | None:
        entries = self._nodes.read_mapping(node, "a rule", VERDICTS)
        if not entries:
            return None
        if len(entries) > 1:
            second = list(entries.values())[1]
            self._mistakes.add(
                second.key, "a rule has one verdict: begin the next rule with a dash of its own"
            )
            return None
        ((verdict, (_, value)),) = entries.items()
        matchers = self._nodes.read_mapping(value, verdict, MATCHERS)
        if len(matchers) != 1:
            if matchers:
                self._mistakes.add(value, "a rule has exactly one of prefix, suffix and regex")
            return None
        ((matcher, (_, place)),) = matchers.items()
        text = self._nodes.read_text(place, matcher)
        if text is None:
            return None
        if verdict in LATER:
            self._later.add(verdict)
        rule: UrlRule | None = self._nodes.read_checked(
            place, lambda: UrlRule(verdict, **{matcher: text})
        )
        return rule

    def _read_fields(self, entry: Entry | None) -> dict[str, str]:
        fields: dict[str, str] = {}
        if entry is None:
            return fields
        for name, (key, value) in self._nodes.read_mapping(entry.value, "fields").items():
            selector = self._nodes.read_text(value, name)
            known = self._is_right(key, check_field, name)
            if (
                selector is not None
                and known
                and self._is_right(value, check_selector, name, selector)
            ):
                fields[name] = selector
        return fields

    def _is_right(self, node: Any, check: Callable[..., None], *words: str) -> bool:
        def right() -> bool:
            check(*words)
            return True

        return bool(self._nodes.read_checked(node, right))

    def _read_revisit(self, entry: Entry | None) -> SiteRevisit | None:
        if entry is None:
            return None
        entries = self._nodes.read_mapping(entry.value, "revisit", ("policy", "interval"))
        policy = ""
        interval = None
        if "policy" in entries:
            node = entries["policy"].value
            policy = self._nodes.read_text(node, "policy") or ""
            if policy and policy not in POLICY_NAMES:
                self._mistakes.add(
                    node, f"unknown policy {policy[:100]!r}{nearest(policy, POLICY_NAMES)}"
                )
        if "interval" in entries:
            interval = self._read_interval(entries["interval"].value)
        return SiteRevisit(policy, interval)

    def _read_interval(self, node: Any) -> timedelta | None:
        text = self._nodes.read_text(node, "interval")
        if text is None:
            return None
        try:
            interval = parse_duration(text)
        except ValueError as error:
            self._mistakes.add(
                node, f"interval = {text[:100]!r} makes no sense: it must be {error}"
            )
            return None
        if not interval:
            self._mistakes.add(node, "interval must be more than 0")
        return interval

    def _check_parameters(self, entry: Entry | None) -> None:
        if entry is None:
            return
        for name, (_, value) in self._nodes.read_mapping(entry.value, "parameters").items():
            what = f"the parameter {name}"
            if self._nodes.is_text(value):
                word = self._nodes.read_text(value, what)
                if word is not None and word not in PARAMETER_WORDS:
                    self._mistakes.add(
                        value,
                        f"{what}: one of {', '.join(PARAMETER_WORDS)}, or {{allowed: [...]}}",
                    )
                continue
            allowed = self._nodes.read_mapping(value, what, ("allowed",))
            if "allowed" in allowed:
                self._nodes.read_texts(allowed["allowed"].value, "allowed", "[cz, en]")

    def _check_redirects(self, entry: Entry | None) -> None:
        if entry is None:
            return
        items = self._nodes.read_list(entry.value, "redirects", '- {from: "/", to: "/index.html"}')
        for item in items:
            ends = self._nodes.read_mapping(item, "a redirect", ("from", "to"))
            for name in ("from", "to"):
                if ends and name not in ends:
                    self._mistakes.add(item, f"a redirect has no key `{name}`")
            for name, (_, value) in ends.items():
                text = self._nodes.read_text(value, name)
                if text is not None and not text.startswith("/") and typed_url(text) is None:
                    self._mistakes.add(
                        value,
                        f"{name} = {text[:100]!r} is neither a path such as /index.html nor a URL",
                    )

    def _check_accept(self, entry: Entry | None) -> None:
        if entry is None:
            return
        for node, text in self._nodes.read_texts(entry.value, "accept", "[text/html]"):
            if not _CONTENT_TYPE.fullmatch(text.lower()):
                self._mistakes.add(
                    node,
                    f"accept: {text[:100]!r} is no type of content such as text/html or text/*",
                )
