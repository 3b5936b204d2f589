"""What the frontier knows of the requests of a crawl. It is only read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crawlproj.database.connection import Database
from crawlproj.urls.canonical import url_key

PAGE = 500
FIRST = -(2**63)


@dataclass(frozen=True, slots=True)
class KnownRequests:
    """Of one crawl, in its database."""

    database: Database
    crawl: str
    number: int

    @classmethod
    def for_crawl(cls, database: Database, crawl: str) -> KnownRequests | None:
        """None if the database does not know that crawl."""
        found = database.fetch_row("crawl_named", name=crawl)
        return cls(database, crawl, found[0]) if found is not None else None

    def seed_urls(self) -> list[str]:
        return [url for (url,) in self.database.fetch_rows("seeds", crawl=self.number)]

    def known_depths(self, urls: Sequence[str]) -> dict[str, int]:
        """Those of the URLs that are URLs of the crawl, not only part of a spider's own requests,
        and how deep they are.
        """
        ids = {url_key(self.crawl, url): url for url in urls}
        return {
            ids[number]: depth
            for number, depth in self.database.fetch_rows("known_depths", ids=list(ids))
        }

    def spider_requests(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Requests of the spider's own that were made, with their depths; in flat memory."""
        last = FIRST
        while rows := self.database.fetch_rows(
            "made_requests", crawl=self.number, after=last, count=PAGE
        ):
            yield from ((request, depth) for _, request, depth in rows)
            last = rows[-1][0]
