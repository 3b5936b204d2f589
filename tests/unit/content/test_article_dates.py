"""Dates as pages write them: each is read rightly or not at all."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlproj.content.article_dates import LATEST, normalize_date
from crawlproj.content.article_fields import parse_date

DAY = "2026-11-19"
RIGHT = {
    "2026-11-19T08:57:40+01:00": f"{DAY}T08:57:40+01:00",
    "2026-11-19T08:57:40.123Z": f"{DAY}T08:57:40+00:00",
    "2026-11-19T08:57:40.1234567-0500": f"{DAY}T08:57:40-05:00",
    "2026-11-19 08:57:40 UTC": f"{DAY}T08:57:40+00:00",
    "2026-11-19T08:57": f"{DAY}T08:57:00",
    "20261119T085740Z": f"{DAY}T08:57:40+00:00",
    "20261119": DAY,
    "2026/11/19": DAY,
    "2026.11.19": DAY,
    " 2026-11-19\n": DAY,
    "Thu, 19 Nov 2026 08:57:40 GMT": f"{DAY}T08:57:40+00:00",
    "Thu, 19 Nov 2026 08:57:40 +0100": f"{DAY}T08:57:40+01:00",
    "Thu Nov 19 2026 08:57:40 GMT+0100 (CET)": f"{DAY}T08:57:40+01:00",
    "Thu Nov 19 08:57:40 EST 2026": f"{DAY}T08:57:40-05:00",
    "November 19th, 2026 at 8:57 p.m.": f"{DAY}T20:57:00",
    "Nov. 19, 2026 12:05 AM": f"{DAY}T00:05:00",
    "19.11.2026 08:57": f"{DAY}T08:57:00",
    "19/11/2026": DAY,
    "11/19/2026": DAY,
    "11/11/2026": "2026-11-11",
    "1795078660": f"{DAY}T08:57:40+00:00",
    "1795078660123": f"{DAY}T08:57:40+00:00",
}
WRONG = (
    "",
    "today",
    "2026",
    "2026-11",
    "2026-02-31",
    "2026-13-01",
    "2026-00-00",
    "0000-00-00T00:00:00",
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "1899-12-30",
    "9999-12-31",
    "05/06/2026",
    "31.2.2026",
    "Foo 19, 2026",
    "99999999999999999999",
    "-1795078660",
    "1795078660999999999999",
    "0",
    "NaN",
    "null",
    "{{ article.date }}",
    "2026-11-19" * 20,
)
"""Nothing that is one date, and no other."""
VAGUE_TIMES = (
    "2026-11-19T25:00:00Z",
    "2026-11-19T08:61:00Z",
    "2026-11-19T08:57:00+99:00",
    "2026-11-19T08:57:00 XYZ",
    "2026-11-19 13:00 pm",
)
"""The day is right although the time is none."""


@pytest.mark.parametrize("text", RIGHT)
def test_dates_are_read_as_they_are_meant(text: str) -> None:
    assert normalize_date(text) == RIGHT[text]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_date_or_may_be_two_is_none(text: str) -> None:
    assert normalize_date(text) is None
    assert parse_date(text, None) is None


@pytest.mark.parametrize("text", VAGUE_TIMES)
def test_a_wrong_time_leaves_the_day(text: str) -> None:
    assert normalize_date(text) in (DAY, None)


@pytest.mark.parametrize("value", [None, True, False, [], {}, b"2026-11-19", 1e400, float("nan")])
def test_values_that_are_no_text_are_no_dates(value: object) -> None:
    assert normalize_date(value) is None


def test_a_date_is_not_later_than_the_latest() -> None:
    assert normalize_date("2026-11-19", date(2026, 11, 19)) == "2026-11-19"
    assert normalize_date("2026-11-20", date(2026, 11, 19)) is None
    assert normalize_date("1795165060", date(2026, 11, 19)) is None


def test_a_selected_date_may_be_in_another_language() -> None:
    assert parse_date("Veröffentlicht am 19. November 2026", None) == "2026-11-19"
    assert parse_date("19 de noviembre de 2026", None) == "2026-11-19"
    assert parse_date("19 Tachwedd 2026", None) == "2026-11-19"
    assert parse_date("Aktualisiert: 19.11.2026, 08:57 Uhr", None) == "2026-11-19T08:57:00"
    for text in ("vor 2 Tagen", "3 days ago", "November 2026", "am 05/06/2026", "den 31.2.2026"):
        assert parse_date(text, None) is None, text


@given(
    st.datetimes(datetime(1995, 1, 1), datetime(2049, 12, 31)).map(
        lambda moment: moment.replace(microsecond=0)
    ),
    st.integers(-14 * 60, 14 * 60),
)
def test_every_iso_date_survives(moment: datetime, minutes: int) -> None:
    told = moment.replace(tzinfo=timezone(timedelta(minutes=minutes))).isoformat()
    assert normalize_date(told) == told
    day_only = moment.date().isoformat()
    assert normalize_date(day_only) == day_only
    assert normalize_date(str(int(moment.replace(tzinfo=UTC).timestamp()))) in (
        moment.replace(tzinfo=UTC).isoformat(),
        None,  # fewer than ten digits
    )


@given(
    st.one_of(
        st.text(max_size=60),
        st.text("0123456789-/.:T Z+apmNovGMT,", max_size=40),
        st.floats(),
        st.integers(),
    )
)
@example("9999999999")
@example("2026-11-19T24:00:00+14:00")
def test_whatever_is_read_is_a_date_in_bounds(value: object) -> None:
    found = normalize_date(value)
    if found is not None:
        assert date(1700, 1, 1) <= datetime.fromisoformat(found).date() <= LATEST
        assert normalize_date(found) == found
