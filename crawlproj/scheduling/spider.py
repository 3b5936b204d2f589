"""What a spider may offer beyond Scrapy's own Spider. All of it is optional.

- `wants(url)`: which links and redirects of its pages are followed. A spider without it follows
  none of them and yields Requests of its own, as any Scrapy spider does.
- `learn_seeds(urls)`: it decides by its seeds where to go, and takes in those that are known from
  earlier runs, or that a seed has moved to.
- `seeds`: the URLs that it starts from, where they are known before it starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeGuard, runtime_checkable


@runtime_checkable
class ChoosesLinks(Protocol):
    """A spider that says which links are followed."""

    def wants(self, url: str) -> bool: ...


@runtime_checkable
class LearnsSeeds(Protocol):
    """A spider that decides by its seeds where to go."""

    def learn_seeds(self, urls: Iterable[str]) -> None: ...


def chooses_links(spider: object) -> TypeGuard[ChoosesLinks]:
    """Does it say which links are followed? The same as isinstance, which is too slow per page."""
    return getattr(spider, "wants", None) is not None


def seeds_of(spider: object) -> list[str]:
    """The URLs that a spider starts from, as far as it says so; `start_urls` is Scrapy's word."""
    return list(getattr(spider, "seeds", None) or getattr(spider, "start_urls", None) or ())
