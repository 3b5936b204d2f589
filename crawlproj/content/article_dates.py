"""Dates of articles, as pages write them, in ISO 8601.

A date is right or it is none: what may be read in two ways, what no calendar has and what a
program writes that knows no date (1970-01-01) is None. A time and an offset stay if they are given.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

EARLIEST: Final = date(1700, 1, 1)
LATEST: Final = date(2050, 1, 1)
"""Who knows when a page was fetched can say what is too late for it."""
MAX_LENGTH: Final = 100
_NO_DATES: Final = frozenset({date(1970, 1, 1), date(1899, 12, 30), date(1900, 1, 1)})
"""The first day of some calendars of computers."""

_ISO: Final = re.compile(
    r"""
    (?P<year>\d{4}) (?: (?P<mark>[-/.]) (?P<month>\d{1,2}) (?P=mark) (?P<day>\d{1,2})
                      | (?P<month2>\d{2}) (?P<day2>\d{2}) )
    (?: T [ ]? (?P<time>\d{1,2} :? \d{2} (?!\d*[-/]\d{2}[-/]) .*)
      | [ ,_]+ (?:at[ ]|-[ ])? (?P<time2>\d{1,2}:\d{2} .*)
      | [TZ]? )
    """,
    re.X | re.I,
)
_TIME: Final = re.compile(
    r"""
    (?P<hour>\d{1,2}) :? (?P<minute>\d{2}) (?: :? (?P<second>\d{2}) (?: [.,]\d{1,9} )? )?
    \s* (?P<half>[ap]\.?m\.?)? \s* (?P<zone>\S.*)?
    """,
    re.X | re.I,
)
_OFFSET: Final = re.compile(
    r"(?:GMT|UTC)? ?(?P<sign>[+\u2212-])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?(?: ?\(.*\))?", re.I
)
_ZONES: Final = {
    "z": 0,
    "gmt": 0,
    "ut": 0,
    "utc": 0,
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
    "cet": 1,
    "cest": 2,
    "msk": 3,
}
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan january",
            "feb february",
            "mar march",
            "apr april",
            "may",
            "jun june",
            "jul july",
            "aug august",
            "sep sept september",
            "oct october",
            "nov november",
            "dec december",
        ),
        1,
    )
    for name in names.split()
}
_WEEKDAY: Final = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?,?\s+)?"
_ENGLISH: Final = (
    # Tue, 19 Nov 2026 08:57:40 +0100
    re.compile(
        _WEEKDAY + r"(?P<day>\d{1,2})(?:st|nd|rd|th)?[\s-]+(?P<month>[a-z]{3,9})\.?,?[\s-]+"
        r"(?P<year>\d{4})(?:,?\s+(?:at\s+)?(?P<time>\d{1,2}:.*))?",
        re.I,
    ),
    # November 19, 2026 8:57 AM; Thu Nov 19 2026 08:57:40 GMT+0100 (CET)
    re.compile(
        _WEEKDAY + r"(?P<month>[a-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+"
        r"(?P<year>\d{4})(?:,?\s+(?:at\s+)?(?P<time>\d{1,2}:.*))?",
        re.I,
    ),
    # Thu Nov 19 08:57:40 CET 2026
    re.compile(
        _WEEKDAY + r"(?P<month>[a-z]{3})\s+(?P<day>\d{1,2})\s+"
        r"(?P<time>\d{1,2}:\d{2}:\d{2}(?: [a-z]{1,4})?)\s+(?P<year>\d{4})",
        re.I,
    ),
)
_DAY_FIRST: Final = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4})"
    r"(?:,?\s+(?:-\s+)?(?P<time>\d{1,2}:.*))?"
)
_EPOCH: Final = re.compile(r"\d{10}(?:\d{3})?(?:\.\d+)?")


def normalize_date(value: object, latest: date = LATEST) -> str | None:
    """A date in ISO 8601, with time and offset if it has them; None if this is no date."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = " ".join(str(value)[: MAX_LENGTH + 1].split())
    if not 6 <= len(text) <= MAX_LENGTH or not text.isprintable():
        return None
    try:
        return _read_date(text, latest)
    except (ValueError, OverflowError):  # the 31st of February
        return None


def _read_date(text: str, latest: date) -> str | None:
    if _EPOCH.fullmatch(text):
        return _read_epoch(text, latest)
    match = _ISO.fullmatch(text)
    if match:
        month = match["month"] or match["month2"]
        day = match["day"] or match["day2"]
        found = date(int(match["year"]), int(month), int(day))
        return _with_time(found, match["time"] or match["time2"], latest)
    for pattern in _ENGLISH:
        match = pattern.fullmatch(text)
        if match:
            if match["month"].lower() not in _MONTHS:
                return None
            found = date(int(match["year"]), _MONTHS[match["month"].lower()], int(match["day"]))
            return _with_time(found, match["time"], latest)
    match = _DAY_FIRST.fullmatch(text)
    if match:
        first = int(match["first"])
        second = int(match["second"])
        if match["mark"] != "." and first <= 12 and second <= 12 and first != second:
            return None  # day and month, or month and day?
        if match["mark"] != "." and second > 12:
            first, second = second, first
        return _with_time(date(int(match["year"]), second, first), match["time"], latest)
    return None


def _read_epoch(text: str, latest: date) -> str | None:
    """Seconds since 1970, or milliseconds."""
    digits = text.partition(".")[0]
    seconds = int(digits)
    if len(digits) == 13:
        seconds //= 1000
    moment = datetime.fromtimestamp(seconds, UTC)
    if moment.year < 1990 or not _is_possible(moment.date(), latest):
        return None
    return moment.isoformat()


def _with_time(day: date, time: str | None, latest: date) -> str | None:
    """The day, with its time if that is one."""
    if not _is_possible(day, latest):
        return None
    match = _TIME.fullmatch(time.strip()) if time else None
    if not match:
        return day.isoformat()
    hour = int(match["hour"])
    minute = int(match["minute"])
    second = int(match["second"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            return day.isoformat()
        hour = hour % 12
        if match["half"].lower().startswith("p"):
            hour += 12
    if hour > 23 or minute > 59 or second > 59:
        return day.isoformat()
    moment = datetime(day.year, day.month, day.day, hour, minute, second)
    if match["zone"]:
        offset = _read_offset(match["zone"].strip())
        if offset is None:
            return day.isoformat()
        moment = moment.replace(tzinfo=timezone(offset))
    return moment.isoformat()


def _read_offset(zone: str) -> timedelta | None:
    if zone.lower() in _ZONES:
        return timedelta(hours=_ZONES[zone.lower()])
    match = _OFFSET.fullmatch(zone)
    if not match:
        return None
    offset = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0))
    if offset > timedelta(hours=14) or int(match["minutes"] or 0) > 59:
        return None
    return offset if match["sign"] == "+" else -offset


def _is_possible(day: date, latest: date) -> bool:
    return EARLIEST <= day <= latest and day not in _NO_DATES
