"""What the frontier knows of the requests of a crawl. It is only read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crawlproj.database.connection import Database
from crawlproj.urls.canonical import key

PAGE = 500
FIRST = -(2**63)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Of one crawl, in its database."""

    database: Database
    crawl: str
    number: int

    @classmethod
    def of(cls, database: Database, crawl: str) -> Ledger | None:
        """None if the database does not know that crawl."""
        found = database.row("crawl_named", name=crawl)
        return cls(database, crawl, found[0]) if found is not None else None

    def seeds(self) -> list[str]:
        return [url for (url,) in self.database.rows("seeds", crawl=self.number)]

    def depths(self, urls: Sequence[str]) -> dict[str, int]:
        """Those of the URLs that are URLs of the crawl, not only part of a spider's own requests,
        and how deep they are.
        """
        ids = {key(self.crawl, url): url for url in urls}
        return {
            ids[number]: depth
            for number, depth in self.database.rows("known_depths", ids=list(ids))
        }

    def requests(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Requests of the spider's own that were made, with their depths; in flat memory."""
        last = FIRST
        while rows := self.database.rows(
            "made_requests", crawl=self.number, after=last, count=PAGE
        ):
            yield from ((request, depth) for _, request, depth in rows)
            last = rows[-1][0]
