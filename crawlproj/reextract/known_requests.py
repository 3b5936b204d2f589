"""What the database knows of the requests of a crawl. It is only read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crawlproj.database.connection import Database
from crawlproj.urls.canonical import url_key

BATCH_ROWS = 500
LOWEST_ID = -(2**63)


@dataclass(frozen=True, slots=True)
class KnownRequests:
    """The requests of one crawl in its database."""

    database: Database
    crawl: str
    crawl_id: int

    @classmethod
    def for_crawl(cls, database: Database, crawl: str) -> KnownRequests | None:
        """The requests of a crawl; None if the database does not know that crawl."""
        crawl_id = database.fetch_value("crawl_named", name=crawl)
        if crawl_id is None:
            return None
        return cls(database, crawl, crawl_id)

    def seed_urls(self) -> list[str]:
        return [url for (url,) in self.database.fetch_rows("seeds", crawl=self.crawl_id)]

    def known_depths(self, urls: Sequence[str]) -> dict[str, int]:
        """The depths of those URLs that the crawl knows as plain pages, by URL.

        A URL that is only part of a spider's own request is not among them.
        """
        urls_by_id = {url_key(self.crawl, url): url for url in urls}
        rows = self.database.fetch_rows("known_depths", ids=list(urls_by_id))
        return {urls_by_id[id_]: depth for id_, depth in rows}

    def spider_requests(self) -> Iterator[tuple[dict[str, Any], int]]:
        """The spider's own requests that were made, with their depths; in flat memory."""
        last_id = LOWEST_ID
        while rows := self.database.fetch_rows(
            "made_requests", crawl=self.crawl_id, after=last_id, count=BATCH_ROWS
        ):
            for id_, request, depth in rows:
                yield request, depth
                last_id = id_
