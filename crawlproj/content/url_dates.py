"""What a URL says of time: the day, month or year in its path, and the number of a page of a list.

They are hints, and only what can be meant: /2026/11/05/ is a day, /20261105 too, /p/2019 is none.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

MAX_PATH: Final = 500
KEPT_URLS: Final = 4_096
"""The dates of so many URLs are kept: links to what is old stand on many pages of a site."""
FIRST_YEAR: Final = 1990
LAST_YEAR: Final = 2100
LISTS: Final = r"page|paged|seite|pagina|strona|sida|side|p"
_DIGIT: Final = re.compile(r"\d").search
_MONTHS: Final = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_NAME: Final = rf"(?P<name>{'|'.join(_MONTHS)})[a-z]{{0,6}}"
_DAY: Final = re.compile(
    rf"(?<!\d){_YEAR}(?P<mark>[/._-])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)(?!\d)"
).search
_NAMED_DAY: Final = re.compile(rf"/{_YEAR}/{_NAME}/(?P<day>\d\d?)(?!\d)").search
_COMPACT_DAY: Final = re.compile(
    rf"[/_-]{_YEAR}(?P<month>\d\d)(?P<day>\d\d)(?:\d{{4}}|\d{{6}})?(?!\d)"
).search
_MONTH: Final = re.compile(rf"/{_YEAR}[/._-](?P<month>\d\d?)(?=[/.]|$)").search
_NAMED_MONTH: Final = re.compile(rf"/{_YEAR}[/._-]{_NAME}(?=[/.]|$)").search
_ONLY_YEAR: Final = re.compile(rf"/{_YEAR}(?:/|\.[a-z]{{2,5}})?$").search
_PAGE_PATH: Final = re.compile(rf"/(?:{LISTS})[/._-]?(\d{{1,6}})(?:/|\.[a-z]{{2,5}})?$").search
_PAGE_QUERY: Final = re.compile(rf"(?:^|&)(?:{LISTS})=(\d{{1,6}})(?=&|$)").search


class UrlDate(NamedTuple):
    """From when until when a page was published, by its URL; `exact`: it is one day."""

    start: datetime
    end: datetime
    exact: bool


@lru_cache(maxsize=KEPT_URLS)
def read_url_date(url: str) -> UrlDate | None:
    """The date in the path of an absolute URL; None if there is none."""
    path = _path_of(url)
    if _DIGIT(path) is None:
        return None
    for search in (_DAY, _NAMED_DAY, _COMPACT_DAY, _MONTH, _NAMED_MONTH, _ONLY_YEAR):
        found = search(path)
        if found is not None:
            date = _date_of(found.groupdict())
            if date is not None:
                return date
    return None


def read_page_number(url: str) -> int | None:
    """Which page of a list it is, by its query or the end of its path; None: it does not say."""
    _, _, query = url.partition("#")[0].partition("?")
    found = _PAGE_QUERY(query[:MAX_PATH].lower())
    if found is None:
        found = _PAGE_PATH(_path_of(url))
    if found is None:
        return None
    return int(found[1])


def _path_of(url: str) -> str:
    _, _, rest = url.partition("://")
    _, slash, path = rest.partition("#")[0].partition("?")[0].partition("/")
    return (slash + path)[:MAX_PATH].lower()


def _date_of(parts: dict[str, str]) -> UrlDate | None:
    year = int(parts["year"])
    if not FIRST_YEAR <= year < LAST_YEAR:
        return None
    month = 1
    if parts.get("name"):
        month = _MONTHS.index(parts["name"]) + 1
    elif parts.get("month"):
        month = int(parts["month"])
    else:
        return UrlDate(_midnight(year), _midnight(year + 1), exact=False)
    try:
        if parts.get("day"):
            day = _midnight(year, month, int(parts["day"]))
            return UrlDate(day, day + timedelta(days=1), exact=True)
        start = _midnight(year, month)
    except ValueError:
        return None
    return UrlDate(start, _midnight(year + month // 12, month % 12 + 1), exact=False)


def _midnight(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)
