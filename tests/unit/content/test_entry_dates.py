"""Dates of entries, as feeds write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.entry_dates import parse_entry_date

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MORNING = datetime(2026, 11, 19, 7, 57, 40, tzinfo=UTC)
"""19 November 2026, 8:57:40 in Berlin."""
MINUTE = MORNING.replace(second=0)
LOCAL = MORNING.replace(hour=8)
"""The same without a zone, so taken for UTC."""
DAY = datetime(2026, 11, 19, tzinfo=UTC)

RIGHT = {
    # RFC 822 and its mistakes
    "Thu, 19 Nov 2026 08:57:40 +0100": MORNING,
    "Thu, 19 Nov 2026 07:57:40 GMT": MORNING,
    "Thu, 19 Nov 2026 07:57:40 Z": MORNING,
    "Thu, 19 Nov 2026 08:57:40 CET": MORNING,
    "Thu, 19 Nov 2026 08:57:40 +01:00": MORNING,
    "Thu, 19 Nov 2026 08:57:40 GMT+0100": MORNING,
    "Thu, 19 Nov 2026 08:57:40 UTC+1": MORNING,
    "Thu, 19 Nov 2026 08:57:40 CET+0100": MORNING,
    "Thu, 19 Nov 2026 02:57:40 EST": MORNING,
    "Thu, 19 Nov 2026 13:27:40 IST": MORNING,
    "Thu, 19 Nov 2026 08:57:40": LOCAL,
    "Thu, 19 Nov 2026 08:57:40 XYZ": LOCAL,
    "Thu, 19 Nov 2026 08:57 +0100": MINUTE,
    "Mon, 19 Nov 2026 08:57:40 +0100": MORNING,
    "Thursday, 19 November 2026 08:57:40 +0100": MORNING,
    "Thu,19 Nov 2026 08:57:40 +0100": MORNING,
    "Thu 19 Nov 2026 08:57:40 +0100": MORNING,
    "19 Nov 2026 08:57:40 +0100": MORNING,
    "19 Nov 26 08:57:40 +0100": MORNING,
    "  Thu,\n 19  Nov 2026\t08:57:40   +0100 ": MORNING,
    "thu, 19 NOV 2026 8:57:40 +0100": MORNING,
    "Thu, 19 Nov 2026 08:57:40.123 +0100": MORNING,
    "Thu, 19 Nov 2026 08:57:40 0100": MORNING,
    "Thu, Nov 19 2026 08:57:40 +0100": MORNING,
    "Thu, 19 Nov 2026 08:57:40 AM +0100": MORNING,
    "Thu, 19 Nov 2026": DAY,
    "Thu, 19 Nov 2026 24:00:00 GMT": datetime(2026, 11, 20, tzinfo=UTC),
    "Thu, 19 Nov 2026 07:57:60 GMT": MORNING.replace(second=59),
    # RFC 850, asctime, date(1), JavaScript, Americans
    "Thursday, 19-Nov-26 07:57:40 GMT": MORNING,
    "19-Nov-2026 07:57": MINUTE,
    "Thu Nov 19 07:57:40 2026": MORNING,
    "Thu Nov 19 08:57:40 CET 2026": MORNING,
    "Thu Nov 19 2026 08:57:40 GMT+0100 (Central European Standard Time)": MORNING,
    "November 19, 2026 7:57 AM": MINUTE,
    "Nov 19th, 2026 at 7:57 a.m. GMT": MINUTE,
    "19 November 2026, 07:57 UTC": MINUTE,
    "07:57, 19 November 2026": MINUTE,
    "2026 Nov 19 07:57:40": MORNING,
    "11/19/2026 7:57:40 AM": MORNING,
    "19/11/2026 07:57:40": MORNING,
    "11/19/26 07:57": MINUTE,
    "05/05/2026": datetime(2026, 5, 5, tzinfo=UTC),
    # ISO 8601
    "2026-11-19T07:57:40Z": MORNING,
    "2026-11-19T08:57:40+01:00": MORNING,
    "2026-11-19T08:57:40+0100": MORNING,
    "2026-11-19T08:57:40+01": MORNING,
    "2026-11-19T08:57:40 01:00": MORNING,
    "2026-11-19T08:57:40 +01:00": MORNING,
    "2026-11-19T08:57:40\N{MINUS SIGN}01:00": MORNING.replace(hour=9),
    "2026-11-19T08:57:40.123456789+01:00": MORNING,
    "2026-11-19T08:57:40,5+01:00": MORNING,
    "2026-11-19t07:57:40z": MORNING,
    "2026-11-19 07:57:40": MORNING,
    "2026-11-19 07:57:40 UTC": MORNING,
    "2026-11-19 at 07:57": MINUTE,
    "2026-11-19T8:57+01:00": MINUTE,
    "2026-11-19T0757Z": MINUTE,
    "2026-11-19T075740Z": MORNING,
    "2026-11-19T07Z": MORNING.replace(minute=0, second=0),
    "20261119T075740Z": MORNING,
    "20261119T085740+0100": MORNING,
    "20261119075740": MORNING,
    "202611190757": MINUTE,
    "20261119": DAY,
    "2026-11-19": DAY,
    "2026-11-19Z": DAY,
    "2026-11-19T": DAY,
    "2026/11/19 07:57": MINUTE,
    "2026.11.19": DAY,
    "2026-323": DAY,
    "2026-323T07:57:40Z": MORNING,
    # epochs
    "1795075060": MORNING,
    "1795075060123": MORNING,
    "1795075060.5": MORNING,
    "1795075060123456": MORNING,
    # languages
    "19.11.2026": DAY,
    "19. 11. 2026 07:57": MINUTE,
    "05.06.2026": datetime(2026, 6, 5, tzinfo=UTC),
    "19.11.26 07:57": MINUTE,
    "Do, 19 Nov 2026 08:57:40 +0100": MORNING,
    "Donnerstag, 19. November 2026, 07:57 Uhr": MINUTE,
    "Di, 3 M\u00e4r 2026 07:00:00 GMT": datetime(2026, 3, 3, 7, tzinfo=UTC),
    "1. Dezember 2025": datetime(2025, 12, 1, tzinfo=UTC),
    "jeu., 19 nov. 2026 08:57:40 +0100": MORNING,
    "4 ao\u00fbt 2026 \u00e0 7h57": datetime(2026, 8, 4, 7, 57, tzinfo=UTC),
    "mar, 17 nov 2026 07:00:00": datetime(2026, 11, 17, 7, tzinfo=UTC),
    "mar., 3 mars 2026 07:00:00": datetime(2026, 3, 3, 7, tzinfo=UTC),
    "19 de noviembre de 2026": DAY,
    "1 de enero de 2026": datetime(2026, 1, 1, tzinfo=UTC),
    "\u010dt, 19. listopadu 2026 07:57": MINUTE,
    "1. \u010dervence 2026": datetime(2026, 7, 1, tzinfo=UTC),
    "1. \u010dervna 2026": datetime(2026, 6, 1, tzinfo=UTC),
    "19 \u043d\u043e\u044f\u0431\u0440\u044f 2026, 07:57": MINUTE,
    "3 \u043c\u0430\u044f 2026 \u0433.": datetime(2026, 5, 3, tzinfo=UTC),
}

NONE = [
    "",
    "now",
    "yesterday",
    "2 hours ago",
    "Thu, 19 Nov 2027 08:57:40 +0100",  # a year ahead
    "2026-11-22",
    "Sat, 06 Nov 1982 08:49:37 GMT",
    "1970-01-01T00:00:00Z",
    "Thu, 01 Jan 1970 00:00:00 +0000",
    "0000-00-00 00:00:00",
    "0001-01-01T00:00:00",
    "05/06/2026",
    "05-06-2026 08:57",
    "19/11/26",  # 2019, November 26?
    "2026-02-31",
    "31 Feb 2026",
    "2026-13-01",
    "2026-11",
    "2026",
    "2026-W47-4",
    "2026-366",
    "2026-11-19T25:00:00Z",
    "2026-11-19T07:61:00Z",
    "2026-11-19/2026-11-20",
    "19 - 21 Nov 2026",
    "19 Oct - 21 Nov 2026",
    "Nov 2026",
    "19 Nov",
    "08:57:40",
    "Thu, 19 Foo 2026 08:57:40 GMT",
    "1795075060123456789",
    "17950750601",
    "2034111908",
    "x" * 300,
    "Thu, 19 Nov 2026 08:57:40 +0100" + "x" * 100,
    "\0\0\0\0\0\0\0\0",
    "\u00b2\u00b3\u00b9 Nov 2026",
]


@pytest.mark.parametrize("text", RIGHT)
def test_date_is_read(text: str) -> None:
    assert parse_entry_date(text, NOW) == RIGHT[text]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_entry_date(text, NOW) is None


def test_a_day_ahead_is_allowed() -> None:
    assert parse_entry_date("2026-11-21T11:59:59Z", NOW)
    assert parse_entry_date("2026-11-21T12:00:01Z", NOW) is None


@given(st.text(max_size=120) | st.from_regex(r"[A-Za-z0-9:.,+\-/ T]{6,60}", fullmatch=True))
def test_any_text_gives_a_possible_moment_or_none(text: str) -> None:
    moment = parse_entry_date(text, NOW)
    if moment is not None:
        assert moment.tzinfo is UTC
        assert datetime(1990, 1, 1, tzinfo=UTC) <= moment <= NOW + timedelta(days=1)


ZONES = st.integers(-48, 56).map(lambda quarters: timezone(timedelta(minutes=15 * quarters)))
MOMENTS = st.datetimes(datetime(1990, 1, 3), datetime(2026, 11, 19), timezones=ZONES).map(
    lambda moment: moment.replace(microsecond=0)
)


@given(MOMENTS)
def test_what_is_written_is_read_again(moment: datetime) -> None:
    expected = moment.astimezone(UTC)
    for text in (
        format_datetime(moment),
        moment.isoformat(),
        moment.isoformat(" "),
        moment.strftime("%Y%m%dT%H%M%S%z"),
        moment.strftime("%A, %d-%b-%Y %H:%M:%S %z"),
        moment.strftime("%B %d, %Y %I:%M:%S %p %z"),
        moment.strftime("%a %b %d %Y %H:%M:%S GMT%z"),
        expected.ctime(),
        str(int(expected.timestamp() * 1000)),
    ):
        assert parse_entry_date(text, NOW) == expected, text
