"""The base of news spiders. A site's spider states what is its own, and has no `parse`:

    class ExampleSpider(NewsSpider):
        name = "example"
        domains = ["example.org"]
        sources = ["https://example.org/feed.xml"]
        article = r"^/[0-9]{4}/[0-9]{2}/"
        fields = {"title": "h1.headline::text"}

Which links are followed, when pages are visited again, what an article's fields are where the
spider gives no selector, and where all of it is kept, is the business of the rest of crawlproj.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from crawlproj.errors import ConfigError
from crawlproj.news.selectors import check_field, check_selector
from crawlproj.scheduling.scoped_spider import ScopedSpider
from crawlproj.urls.canonical import WHAT_IS_RIGHT, host_of, typed_url
from crawlproj.urls.rules import SiteRules, Sites, UrlRule
from crawlproj.urls.scope import Scope, ScopeRules, is_below, parse_domain

if TYPE_CHECKING:
    import scrapy

PATTERNS = ("ignore", "article", "listing")
"""Attributes that are rules, in the order in which they are tried."""
ATTRIBUTES = ("domains", "seeds", "sources", *PATTERNS, "fields")
MAX_WARNINGS = 20


class SitesSpider(ScopedSpider):
    """Crawls sites by what is said of them; a spider made from it calls `use_sites`.

    Seeds and sources (feeds, sitemaps) are where it begins. Both are sources for the frontier: they
    are visited more often than other pages. They belong to the crawl in any case, also on hosts
    that don't, and also if a rule ignores them; so does what they redirect to.
    """

    wants_articles = True
    only_articles = True
    sites: Sites

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sites = Sites()
        self._warnings: list[str] = []

    def use_sites(self, sites: Iterable[SiteRules], warnings: Sequence[str] = ()) -> None:
        """Take in the sites; `warnings` are logged when the crawl starts."""
        self.sites = Sites(sites)
        self._warnings = list(warnings)
        starts = [url for site in self.sites for url in (*site.seeds, *site.sources)]
        self.seeds = list(dict.fromkeys(starts))
        parts = [part for site in self.sites if (part := site.scope_part()) is not None]
        # In the order of their names: another order in the file changes nothing.
        parts.sort(key=lambda part: part.name)
        self.wants = Scope(ScopeRules(domains=self.sites.domains, sites=tuple(parts)))
        self.wants.add_urls(self.seeds)

    def site_of(self, url: str) -> SiteRules | None:
        """What is known of the site of a canonical URL."""
        return self.sites.site_of(url)

    def widen_scope(self, seeds: Iterable[str]) -> None:
        """Let learned seeds belong to the crawl, but not the hosts that they are on: a feed may be
        on a host of others.
        """
        self.wants.add_urls(seeds)

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for line in self._warnings[:MAX_WARNINGS]:
            self.logger.warning("%s", line)
        async for request in super().start():
            yield request


class NewsSpider(SitesSpider):
    """A news site, by the attributes of the class; each may be a text or a list of them.

    `domains` (or `allowed_domains`): they belong to the site with all hosts below them. `seeds` (or
    `start_urls`; without any, the roots of the domains) and `sources` (feeds, sitemaps): where it
    begins. `article`, `listing`, `ignore`: regular expressions that are searched for in path and
    query of a URL; what is ignored is tried first, then what is an article. `fields`: selectors, by
    field, for what the general extractor gets wrong.
    """

    domains: ClassVar[str | Sequence[str]] = ()
    sources: ClassVar[str | Sequence[str]] = ()
    article: ClassVar[str | Sequence[str]] = ()
    listing: ClassVar[str | Sequence[str]] = ()
    ignore: ClassVar[str | Sequence[str]] = ()
    fields: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_sites([site_of_class(type(self))])


def site_of_class(spider: type[NewsSpider]) -> SiteRules:
    """What the attributes of a spider say. ConfigError names the spider and the attribute."""
    read = _AttributeReader(spider)
    read.check_names()
    domains = read.domains()
    seeds = read.urls("seeds") or read.urls("start_urls")
    for url in seeds:
        if not is_below(host_of(url), frozenset(domains)):
            raise read.mistake("seeds", f"{url} is in none of the domains ({', '.join(domains)})")
    return SiteRules(
        name=spider.name,
        domains=domains,
        seeds=seeds or tuple(f"https://{domain}/" for domain in domains),
        sources=read.urls("sources"),
        rules=tuple(rule for verdict in PATTERNS for rule in read.rules(verdict)),
        fields=read.fields(),
    )


class _AttributeReader:
    """Reads the attributes of a spider's class."""

    def __init__(self, spider: type[NewsSpider]) -> None:
        self._spider = spider

    def mistake(self, attribute: str, text: str) -> ConfigError:
        return ConfigError(f"spider {self._spider.name}: {attribute}: {text}")

    def check_names(self) -> None:
        """Raise ConfigError for an attribute that is nearly one of ours: it would do nothing."""
        own = self._spider.__mro__[: self._spider.__mro__.index(NewsSpider)]
        for name, value in ((name, value) for cls in own for name, value in vars(cls).items()):
            if name.startswith("_") or callable(value) or hasattr(NewsSpider, name):
                continue
            close = get_close_matches(name, ATTRIBUTES, n=1, cutoff=0.8)
            if close and name not in ATTRIBUTES:
                raise self.mistake(name, f"unknown attribute; did you mean {close[0]}?")

    def texts(self, attribute: str) -> list[str]:
        value = getattr(self._spider, attribute, None) or ()
        if isinstance(value, str):
            value = (value,)
        if not isinstance(value, Sequence | set | frozenset):
            raise self.mistake(attribute, f"{value!r} must be a text or a list of texts")
        for text in value:
            if not isinstance(text, str) or not text.strip():
                raise self.mistake(attribute, f"{text!r} must be a text that is not empty")
        return [text.strip() for text in value]

    def domains(self) -> tuple[str, ...]:
        attribute = "domains"
        if not self._spider.domains and getattr(self._spider, "allowed_domains", None):
            attribute = "allowed_domains"
        domains = []
        for word in self.texts(attribute):
            domain = parse_domain(word)
            if domain is None:
                raise self.mistake(
                    attribute,
                    f"{word[:100]!r} is no name of a host: write example.org, without https:// and "
                    "path",
                )
            domains.append(domain)
        if not domains:
            raise self.mistake("domains", 'there are none: give some, such as ["example.org"]')
        return tuple(dict.fromkeys(domains))

    def urls(self, attribute: str) -> tuple[str, ...]:
        urls = []
        for word in self.texts(attribute):
            url = typed_url(word)
            if url is None:
                raise self.mistake(
                    attribute, f"not a web address: {word[:100]!r} ({WHAT_IS_RIGHT})"
                )
            urls.append(url)
        return tuple(dict.fromkeys(urls))

    def rules(self, verdict: str) -> list[UrlRule]:
        try:
            return [UrlRule(verdict, regex=pattern) for pattern in self.texts(verdict)]
        except ConfigError as error:
            raise self.mistake(verdict, str(error)) from None

    def fields(self) -> dict[str, str]:
        given = self._spider.fields
        if not isinstance(given, Mapping):
            raise self.mistake("fields", f"{given!r} must be a dictionary of selectors, by field")
        for field, selector in given.items():
            if not isinstance(field, str) or not isinstance(selector, str) or not selector.strip():
                raise self.mistake("fields", f"{field!r}: {selector!r} must be a selector")
            try:
                check_field(field)
                check_selector(field, selector)
            except ConfigError as error:
                raise self.mistake("fields", str(error)) from None
        return dict(given)
