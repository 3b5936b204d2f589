"""What servers say of changes, and what can be made of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.frontier.base import Lane, State, Ticket
from crawlproj.items import Page
from crawlproj.scheduling.server_hints import (
    listed_changes,
    met_hints,
    parse_listed,
    read_hints,
    short_date,
    short_tag,
    trusted_change,
)

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
KNOWN = Ticket(
    1,
    "http://a.example/",
    "a.example",
    server=1,
    epoch=1,
    visit=3,
    lane=Lane.REVISIT,
    state=State.WAITING,
    last_read=NOW - 24 * HOUR,
    block_digest=b"x",
    etag='"1"',
    modified=format_datetime(NOW - 48 * HOUR, usegmt=True),
)


def page(status: int = 200, **headers: str) -> Page:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Page(KNOWN, KNOWN.url, status, NOW, headers=names)


def when(at: datetime) -> str:
    return format_datetime(at, usegmt=True)


def test_max_age_goes_before_expires() -> None:
    hints = read_hints(page(cache_control="public, max-age=3600", expires=when(NOW + 9 * HOUR)))
    assert hints is not None and hints.fresh_until == NOW + HOUR
    hints = read_hints(page(expires=when(NOW + 9 * HOUR)))
    assert hints is not None and hints.fresh_until == NOW + 9 * HOUR
    assert read_hints(page()) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"last_modified": "yesterday"},
        {"last_modified": "Mon, 01 Jan 1900 00:00:00 GMT"},
        {"last_modified": "x" * 10_000},
        {"expires": "-1"},
        {"expires": "0"},
        {"cache_control": "max-age=abc"},
    ],
)
def test_what_is_no_date_says_nothing(headers: dict[str, str]) -> None:
    assert read_hints(page(**headers)) is None
    assert trusted_change(page(**headers), KNOWN) is None


def test_a_date_in_the_future_says_nothing_of_a_change() -> None:
    hints = read_hints(page(last_modified=when(NOW + HOUR)))
    assert hints is not None and hints.modified_at is None


@pytest.mark.parametrize(
    ("hours_ago", "trusted"), [(3, True), (30, False), (0, False), (-5, False), (48, False)]
)
def test_a_date_is_trusted_if_it_lies_between_the_visits(hours_ago: int, trusted: bool) -> None:
    at = NOW - hours_ago * HOUR
    assert trusted_change(page(last_modified=when(at)), KNOWN) == (at if trusted else None)


def test_hints_that_were_met() -> None:
    met = met_hints(page(etag='"2"', last_modified=str(KNOWN.modified)), KNOWN)
    assert met == (("etag", True), ("modified", False))
    listed = replace(KNOWN, listed_at=NOW - HOUR, fresh_until=NOW + HOUR)
    assert met_hints(page(304, etag='"1"'), listed) == (("lastmod", True), ("expires", False))
    listed = replace(KNOWN, listed_at=NOW - 50 * HOUR, fresh_until=NOW - HOUR)
    assert met_hints(page(304), listed) == (("lastmod", False), ("expires", True))
    assert met_hints(page(etag='"2"'), replace(KNOWN, block_digest=None)) == ()


def test_long_validators_are_not_kept() -> None:
    assert short_tag(page(etag='"' + "x" * 600 + '"')) is None
    assert short_tag(page(etag='"x"')) == '"x"'
    assert short_date(page(last_modified="x" * 200)) is None


def test_a_sitemap_tells_what_was_changed_since_it_was_read() -> None:
    listed = {
        "new": "2026-11-19T10:00:00Z",
        "day": "2026-11-18",
        "old": "2026-10-01",
        "future": "2027-01-01",
        "wrong": "last week",
    }
    found = listed_changes(listed, NOW - 20 * HOUR, NOW)
    assert found == {
        "new": datetime(2026, 11, 19, 10, tzinfo=UTC),
        "day": datetime(2026, 11, 18, tzinfo=UTC),
    }


@given(st.text(max_size=60) | st.datetimes().map(str))
def test_no_date_breaks_anything(text: str) -> None:
    parse_listed(text)
    read_hints(page(last_modified=text, expires=text, cache_control=text))
    trusted_change(page(last_modified=text), KNOWN)
