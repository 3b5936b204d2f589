"""Which captures go, and which never do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from crawlproj.archive.cdxj import IndexEntry, format_timestamp
from crawlproj.errors import ConfigError
from crawlproj.upkeep.retention import (
    PERIODS,
    Retention,
    expired_captures,
    read_retention,
    select_expired,
)
from settings import base

NOW = datetime(2026, 6, 15, tzinfo=UTC)


def entry(at: datetime, status: int = 200, url: str = "http://a/") -> IndexEntry:
    return IndexEntry(
        "a)/", format_timestamp(at), url, "text/html", status, "sha1:X", 10, 0, "a.warc.gz"
    )


def left(
    captures: list[IndexEntry], retention: Retention, current: set[str] | None = None
) -> list[str]:
    assert retention.older is not None
    gone = expired_captures(
        captures, retention, format_timestamp(NOW - retention.older), current or set()
    )
    return [each.timestamp[:8] for each in captures if each not in gone]


def days(*texts: str, status: int = 200) -> list[IndexEntry]:
    return [entry(datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC), status) for text in texts]


def test_what_is_older_goes_except_the_last() -> None:
    year = Retention(timedelta(days=365))
    assert left(days("20240101", "20250101", "20250701", "20260101"), year) == [
        "20250701",
        "20260101",
    ]
    assert left(days("20200101", "20210101"), year) == ["20210101"]
    assert left(days("20200101"), year) == ["20200101"]
    assert left(days("20200101", "20210101", "20220101"), year, {"20200101000000"}) == [
        "20200101",
        "20220101",
    ]


def test_an_error_does_not_stand_for_the_page() -> None:
    captures = [*days("20200101"), *days("20200102"), *days("20210101", status=404)]
    assert left(captures, Retention(timedelta(days=365))) == ["20200102", "20210101"]
    captures = [*days("20200101"), *days("20200131", status=503), *days("20210101")]
    assert left(captures, Retention(timedelta(days=365), frozenset({"last"}))) == [
        "20200101",
        "20210101",
    ]


@pytest.mark.parametrize(
    ("keep", "per", "kept"),
    [
        ({"first"}, "month", ["20240101", "20240205", "20250102"]),
        ({"last"}, "month", ["20240131", "20240205", "20250102"]),
        ({"first", "last"}, "month", ["20240101", "20240131", "20240205", "20250102"]),
        ({"first"}, "year", ["20240101", "20250102"]),
        ({"last"}, "year", ["20240205", "20250102"]),
        ({"last"}, "day", ["20240101", "20240115", "20240131", "20240205", "20250102"]),
        ({"first"}, "week", ["20240101", "20240115", "20240131", "20240205", "20250102"]),
    ],
)
def test_of_each_period_the_first_or_the_last_stays(
    keep: set[str], per: str, kept: list[str]
) -> None:
    captures = days("20240101", "20240115", "20240131", "20240205", "20250102")
    assert left(captures, Retention(timedelta(days=365), frozenset(keep), per)) == kept


@given(
    st.lists(
        st.tuples(st.integers(0, 1500), st.sampled_from([200, 304, 404, 503])),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 1500),
)
def test_the_last_and_the_young_always_stay(captures: list[tuple[int, int]], older: int) -> None:
    found = [
        entry(NOW - timedelta(days=age), status) for age, status in sorted(captures, reverse=True)
    ]
    gone = expired_captures(
        found,
        Retention(timedelta(days=older)),
        format_timestamp(NOW - timedelta(days=older)),
        set(),
    )
    assert found[-1] not in gone
    assert not [each for each in gone if each.at >= NOW - timedelta(days=older)]
    good = [each for each in found if each.status == 200]
    assert not good or good[-1] not in gone


@given(
    st.lists(st.tuples(st.integers(0, 1500), st.sampled_from([200, 304, 404, 503])), min_size=1, max_size=30), st.integers(0, 1500),
    st.sets(st.integers(0, 1500)),
)  # fmt: skip
def test_strictly_all_that_is_older_goes_and_nothing_else(
    captures: list[tuple[int, int]], older: int, current: set[int]
) -> None:
    found = [
        entry(NOW - timedelta(days=age), status) for age, status in sorted(captures, reverse=True)
    ]
    compared = {"http://a/": {format_timestamp(NOW - timedelta(days=age)) for age in current}}
    chosen = select_expired(
        found, Retention(timedelta(days=older), strict=True), NOW, lambda urls: compared
    )
    for each in found:
        assert bool(chosen.removed_by(each.url, each.at)) is (each.at < NOW - timedelta(days=older))


@given(
    st.lists(st.tuples(st.integers(0, 1500), st.sampled_from([200, 404])), min_size=1, max_size=30), st.integers(0, 1500),
    st.sampled_from(["first", "last"]), st.sampled_from(["day", "week", "month", "year"]),
)  # fmt: skip
def test_each_period_that_had_a_capture_keeps_one(
    captures: list[tuple[int, int]], older: int, keep: str, per: str
) -> None:
    found = [
        entry(NOW - timedelta(days=age), status) for age, status in sorted(captures, reverse=True)
    ]
    cutoff = NOW - timedelta(days=older)
    gone = expired_captures(
        found,
        Retention(timedelta(days=older), frozenset({keep}), per),
        format_timestamp(cutoff),
        set(),
    )
    old = [each for each in found if each.at < cutoff]
    periods = {PERIODS[per](each.at) for each in old}
    assert {PERIODS[per](each.at) for each in old if each not in gone} == periods
    good = {PERIODS[per](each.at) for each in old if each.status == 200}
    assert {
        PERIODS[per](each.at) for each in old if each.status == 200 and each not in gone
    } == good


def test_a_selection_knows_captures_by_url_and_second_in_some_files_only() -> None:
    captures = days("20200101", "20210101", "20220101")
    found = select_expired(
        captures, Retention(timedelta(days=1)), NOW, lambda urls: {"http://a/": {"20210101000000"}}
    )
    first = datetime(2020, 1, 1, microsecond=7, tzinfo=UTC)
    assert found.removed_by("http://a/", first)
    assert not found.removed_by("http://b/", first)
    assert not found.removed_by("http://a/", first.replace(year=2021))
    assert found.limited_to_files(["a.warc.gz"]).removed_by("http://a/", first)
    assert not found.limited_to_files(["b.warc.gz"]).removed_by("http://a/", first)


def test_nonsense_is_refused() -> None:
    settings = Settings()
    settings.setmodule(base)
    assert read_retention(settings, {}) == Retention()
    given = {"RETENTION_CAPTURES": "365d", "RETENTION_KEEP": "first,last", "RETENTION_DEAD": "90d"}
    wanted = Retention(
        timedelta(days=365), frozenset({"first", "last"}), "month", timedelta(days=90)
    )
    assert read_retention(settings, {**given, "RETENTION_PER": None}) == wanted
    for name, value in {
        "CAPTURES": "long",
        "KEEP": "middle",
        "PER": "moon",
        "DEAD": "x",
        "LOGS": "1y",
    }.items():
        with pytest.raises(ConfigError, match=f"RETENTION_{name}"):
            read_retention(settings, {f"RETENTION_{name}": value})
        if name not in ("KEEP", "PER"):
            with pytest.raises(ConfigError, match="a shorter duration"):
                read_retention(settings, {f"RETENTION_{name}": "800000d"})
    for name in ("RETENTION_KEEP", "RETENTION_STRICT"):
        with pytest.raises(ConfigError, match="is not set"):
            read_retention(settings, {name: "last" if name.endswith("KEEP") else "1"})
    with pytest.raises(ConfigError, match="choose one"):
        read_retention(settings, {**given, "RETENTION_STRICT": "1"})
