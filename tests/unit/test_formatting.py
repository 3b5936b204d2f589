"""Figures and times in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.formatting import (
    format_bytes,
    format_count,
    format_duration,
    format_table,
    format_time,
    format_when,
    shorten_line,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0001, "0 s"),
        (0.003, "0.003 s"),
        (0.01, "0.01 s"),
        (0.0949, "0.09 s"),
        (0.096, "0.1 s"),
        (0.54, "0.5 s"),
        (9.96, "10 s"),
        (24, "24 s"),
        (190, "3 min 10 s"),
        (3600, "1 h"),
        (86_400 * 5 + 1, "5 d 1 s"),
    ],
)
def test_a_span_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert (
        format_duration(seconds)
        == format_duration(timedelta(seconds=seconds))
        == format_duration(-seconds)
        == text
    )


def test_a_time_says_how_far_it_is() -> None:
    assert format_when(NOW + timedelta(seconds=24), NOW).endswith("(in 24 s)")
    assert format_when(NOW - timedelta(minutes=2), NOW).endswith("(2 min ago)")
    assert format_when(NOW, NOW).endswith("(now)")


def test_another_day_has_its_date() -> None:
    assert len(format_time(NOW, NOW)) == len("12:00:00")
    assert format_time(NOW + timedelta(days=3), NOW).startswith("2026-03-04")


def test_one_is_singular() -> None:
    assert (
        format_count(1, "page"),
        format_count(1204, "page"),
        format_count(2, "try", "tries"),
    ) == (
        "1 page",
        "1,204 pages",
        "2 tries",
    )


@given(st.text(), st.integers(3, 200))
def test_short_text_is_one_line_that_fits(text: str, width: int) -> None:
    line = shorten_line(text, width)
    assert len(line) <= width
    assert "\n" not in line
    assert len(" ".join(text.split())) > width or line == " ".join(text.split())


def test_columns_of_figures_stand_to_the_right() -> None:
    assert format_table(["crawl", "known"], [["site", "1,204"], ["news", "7"]]) == [
        "crawl  known",
        "site   1,204",
        "news       7",
    ]


def test_volumes() -> None:
    assert [format_bytes(size) for size in (0, 1, 999, 12_345, 6_700_000, 8.9e9)] == [
        "0 bytes", "1 byte", "999 bytes", "12.3 KB", "6.7 MB", "8.9 GB"
    ]  # fmt: skip
