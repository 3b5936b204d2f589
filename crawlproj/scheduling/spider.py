"""What a spider may offer beyond Scrapy's own Spider. All of it is optional.

- `wants(url)`: which links and redirects of its pages are followed. A spider without it follows
  none of them and yields Requests of its own, as any Scrapy spider does.
- `learn_seeds(urls)`: it decides by its seeds where to go, and takes in those that are known from
  earlier runs, or that a seed has moved to.
- `seeds`: the URLs that it starts from, where they are known before it starts; `roots`: those
  that it starts from if there are no others.
- `wants` may be a `Scope`: then it can be said why a URL is left out, and a changed one is noticed
  at the next start.
- `wants_articles`: pages that are articles come out as items.
- `site_of(url)`: what a person says of the site of a URL: which of its pages are articles, and
  selectors for their fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeGuard, runtime_checkable

from crawlproj.errors import ConfigError
from crawlproj.frontier.base import CrawlSpec
from crawlproj.urls.rules import SiteRevisit, SiteRules
from crawlproj.urls.scope import Scope


@runtime_checkable
class ChoosesLinks(Protocol):
    """A spider that says which links are followed."""

    def wants(self, url: str) -> bool: ...


@runtime_checkable
class LearnsSeeds(Protocol):
    """A spider that decides by its seeds where to go."""

    def learn_seeds(self, urls: Iterable[str]) -> None: ...


@runtime_checkable
class KnowsSites(Protocol):
    """A spider that knows rules of sites, and whether their articles are wanted."""

    wants_articles: bool

    def site_of(self, url: str) -> SiteRules | None: ...


def chooses_links(spider: object) -> TypeGuard[ChoosesLinks]:
    """Does it say which links are followed? The same as isinstance, which is too slow per page."""
    return getattr(spider, "wants", None) is not None


def wants_articles(spider: object) -> bool:
    """Whether articles are to be taken from its pages."""
    return bool(getattr(spider, "wants_articles", False))


def wants_only_articles(spider: object) -> bool:
    """Whether other pages are read only because they may lead to articles."""
    return wants_articles(spider) and bool(getattr(spider, "only_articles", False))


def seeds_of(spider: object) -> list[str]:
    """The URLs that a spider starts from, as far as it says so; `start_urls` is Scrapy's word."""
    return list(getattr(spider, "seeds", None) or getattr(spider, "start_urls", None) or ())


def roots_of(spider: object) -> list[str]:
    """The URLs that a spider starts from if no seeds are given or known."""
    return list(getattr(spider, "roots", None) or ())


def site_rules_of(spider: object, url: str) -> SiteRules | None:
    """What a spider knows of the site of a canonical URL; None if it knows nothing."""
    site_of = getattr(spider, "site_of", None)
    if site_of is None:
        return None
    rules: SiteRules | None = site_of(url)
    return rules


def revisits_of(spider: object) -> dict[str, SiteRevisit]:
    """What a spider's sites say of their revisits, by host or domain."""
    return {
        name: site.revisit
        for site in getattr(spider, "sites", None) or ()
        if site.revisit is not None
        for name in ([site.host] if site.host else site.domains)
    }


def scope_of(spider: object) -> Scope | None:
    """The scope of a spider that has one."""
    wants = getattr(spider, "wants", None)
    return wants if isinstance(wants, Scope) else None


def check_scope(spider: object, spec: CrawlSpec) -> None:
    """Raise ConfigError for a scope without an end, if the crawl has no limit of another kind.

    What limits a run alone, such as CLOSESPIDER_PAGECOUNT, is none: the next run would go on.
    """
    scope = scope_of(spider)
    if scope is None or not scope.rules.is_wide:
        return
    depth = getattr(spider, "depth", 0) or spec.max_depth
    if not (depth or spec.pages or spec.bytes):
        rules = scope.rules
        wide = "everything"
        if not rules.everything:
            wide = f"hosts={rules.hosts}" if rules.hosts else "a domain such as si or co.uk"
        raise ConfigError(
            f"{wide} opens the crawl to any number of hosts, so it needs a limit: -a depth=N, -s "
            "FRONTIER_PAGES=N or -s FRONTIER_BYTES=N (CLOSESPIDER_... limit one run only)"
        )
