"""What a crawl did over time, for `scrapy status --history`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from crawlproj.database.queries import Queries

ROWS: Final = 48
COLUMNS: Final = (
    "at",
    "fetches",
    "failed",
    "new",
    "changed",
    "unchanged",
    "copies",
    "articles",
    "article_versions",
    "useful",
    "bytes",
    "freshness",
    "age_s",
)
UNITS: Final = (("minute", timedelta(minutes=ROWS)), ("hour", timedelta(hours=ROWS)))


def crawl_history(db: Queries, crawl: str, now: datetime) -> dict[str, Any]:
    """The figures of a crawl by minute, hour or day, whichever shows most of it in some rows; the
    newest first.
    """
    began: datetime | None = db.fetch_value("crawl_history_start", name=crawl)
    unit = "day"
    for name, span in UNITS:
        if began is None or now - began <= span:
            unit = name
            break
    rows = db.fetch_rows("crawl_history", name=crawl, unit=unit, limit=ROWS)
    return {"unit": unit, "rows": [dict(zip(COLUMNS, row, strict=True)) for row in rows]}
