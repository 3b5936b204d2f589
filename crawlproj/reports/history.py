"""What a crawl did over time, for `scrapy status --history`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from crawlproj.articles.delays import summarize_counts
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
    "weight",
    "weight_changed",
    "delays",
    "freshness",
    "age_s",
)
UNITS: Final = (("minute", timedelta(minutes=ROWS)), ("hour", timedelta(hours=ROWS)))


def crawl_history(db: Queries, crawl: str, now: datetime) -> dict[str, Any]:
    """The figures of a crawl by minute, hour or day, whichever shows most of it in some rows; the
    newest first. Each row has the columns of `crawl_stat`, and what follows from them: visits to
    known pages that found nothing changed (`wasted`, a number and a share), which part found a
    change by the weights of the pages (`change_ratio`), and how soon articles were fetched.
    """
    began: datetime | None = db.fetch_value("crawl_history_start", name=crawl)
    unit = "day"
    for name, span in UNITS:
        if began is None or now - began <= span:
            unit = name
            break
    rows = db.fetch_rows("crawl_history", name=crawl, unit=unit, limit=ROWS)
    return {
        "unit": unit,
        "rows": [_as_values(dict(zip(COLUMNS, row, strict=True))) for row in rows],
    }


def _as_values(row: dict[str, Any]) -> dict[str, Any]:
    delays = summarize_counts(row.pop("delays"))
    row |= revisit_values(
        row["changed"], row["unchanged"], row.pop("weight"), row.pop("weight_changed")
    )
    row |= {"delay_p50_s": None, "delay_p95_s": None}
    if delays is not None:
        row |= {"delay_p50_s": round(delays.p50_s, 2), "delay_p95_s": round(delays.p95_s, 2)}
    return row


def revisit_values(
    changed: int, unchanged: int, weight: int, weight_changed: int
) -> dict[str, Any]:
    """What became of the visits to known pages, by numbers and by weights."""
    revisits = changed + unchanged
    values: dict[str, Any] = {
        "revisits": revisits,
        "wasted": unchanged,
        "wasted_share": None,
        "change_ratio": None,
    }
    if revisits:
        values["wasted_share"] = round(unchanged / revisits, 4)
    if weight:
        values["change_ratio"] = round(weight_changed / weight, 4)
    return values
