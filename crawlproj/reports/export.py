"""What leaves the database in a file: articles, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from crawlproj.content.language import NOT_JUDGED, UNDETERMINED
from crawlproj.database.connection import Database
from crawlproj.items import Article

PIECE: Final = 100
"""Articles; one may have megabytes."""
BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
LEAST_ID: Final = -(1 << 63)


class _ArticleRow(NamedTuple):
    """The columns of query `export_articles`."""

    page: int
    changed_at: datetime
    title: str | None
    text: str
    date: str | None
    modified: str | None
    fields: dict[str, Any]
    site: str
    version: int
    language: str
    addresses: list[str]


def iterate_articles(
    database: Database, crawl: int, since: datetime | None = None
) -> Iterator[dict[str, object]]:
    """The articles of a crawl as they pass the pipelines, those that changed first first; `since`
    leaves out those that are older. They are read piece by piece, however many there are.
    """
    moment = since or BEGINNING
    page = LEAST_ID
    while True:
        rows = database.fetch_rows_as(
            "export_articles", _ArticleRow, crawl=crawl, since=moment, after=page, limit=PIECE
        )
        for row in rows:
            yield asdict(_item_of(row))
        if len(rows) < PIECE:
            return
        moment = rows[-1].changed_at
        page = rows[-1].page


def _item_of(row: _ArticleRow) -> Article:
    language: str | None = row.language
    if language in (NOT_JUDGED, UNDETERMINED):
        language = row.fields.get("language")
    url, *others = row.addresses
    return Article(
        url,
        row.title,
        row.text,
        date=row.date,
        modified=row.modified,
        authors=row.fields.get("authors", []),
        language=language,
        section=row.fields.get("section"),
        keywords=row.fields.get("keywords", []),
        place=row.fields.get("place"),
        image=row.fields.get("image"),
        canonical=row.fields.get("canonical"),
        site=row.site,
        labels=row.fields.get("labels", []),
        version=row.version,
        addresses=others,
    )
