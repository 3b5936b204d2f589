from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.frontier.base import RobotsRow
from crawlproj.politeness.robots import (
    MAX_BYTES,
    RobotsCache,
    robots_from_row,
    row_from_response,
    same_rules,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TTL = timedelta(hours=24)
DAY = timedelta(days=1)
URL = "https://example.org/a"
RULES = b"User-agent: *\nDisallow: /private"


def row(
    status: int,
    body: bytes = b"",
    earlier: RobotsRow | None = None,
    now: datetime = NOW,
    **headers: str,
) -> RobotsRow:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return row_from_response(URL, "example.org", status, body, now, TTL, earlier, given)


def test_rules_are_obeyed_and_expire() -> None:
    cache = RobotsCache("crawlproj")
    cache.add_row(row(200, b"User-agent: *\nDisallow: /private\nCrawl-delay: 7\nSitemap: /s.xml"))
    robots = cache.get_fresh(URL, NOW)
    assert robots is not None
    assert robots.allows("https://example.org/a", "crawlproj") and not robots.allows(
        "https://example.org/private/x", "crawlproj"
    )
    assert robots.crawl_delay_s("crawlproj") == 7
    assert robots.sitemap_urls() == ["https://example.org/s.xml"]
    assert cache.get_fresh(URL, NOW + TTL) is None


def test_each_robot_is_told_what_is_meant_for_it() -> None:
    robots = robots_from_row(
        row(200, b"User-agent: one\nDisallow: /\n\nUser-agent: two\nDisallow: /b\nCrawl-delay: 3")
    )
    assert [robots.allows(URL, agent) for agent in ("one", "two/1.0", "three")] == [
        False,
        True,
        True,
    ]
    assert [robots.crawl_delay_s(agent) for agent in ("one", "two/1.0", "three")] == [None, 3, None]


@pytest.mark.parametrize("status", [300, 305, 400, 401, 403, 404, 410, 418, 451])
def test_a_missing_file_allows_everything(status: int) -> None:
    missing = row(status, b"User-agent: *\nDisallow: /", earlier=row(200, RULES))
    assert robots_from_row(missing).allows(URL, "crawlproj") and missing.body == ""
    assert missing.expires == NOW + TTL


@pytest.mark.parametrize("status", [0, 429, 500, 502, 503, 599])
def test_a_file_that_cannot_be_reached_forbids_everything_and_is_tried_rarer_and_rarer(
    status: int,
) -> None:
    stored = None
    pauses = []
    for _ in range(30):
        stored = row(status, earlier=stored)
        pauses.append(stored.expires - NOW)
        assert not robots_from_row(stored).allows(URL, "crawlproj")
    assert pauses[0] == timedelta(minutes=1) and pauses[-1] == DAY
    assert all(late == min(2 * early, DAY) for early, late in pairwise(pauses))


def test_rules_that_were_read_before_stay_in_force_while_the_file_cannot_be_reached() -> None:
    stored = row(200, RULES)
    for days in range(90):
        stored = row(503, earlier=stored, now=NOW + days * DAY)
    later = robots_from_row(stored)
    assert later.allows(URL, "crawlproj") and not later.allows(
        "https://example.org/private", "crawlproj"
    )
    assert stored.failures == 90
    assert row(200, RULES, earlier=stored).failures == 0


def test_a_file_that_said_nothing_stays_in_force_too_but_a_missing_one_does_not() -> None:
    for body in (b"", b"<html>Welcome</html>"):
        assert robots_from_row(row(503, earlier=row(200, body))).allows(URL, "crawlproj")
    assert not robots_from_row(row(503, earlier=row(404))).allows(URL, "crawlproj")


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("600", timedelta(seconds=600)),
        (format_datetime(NOW + timedelta(hours=2), usegmt=True), timedelta(hours=2)),
        ("0", timedelta(minutes=1)),
        ("-5", timedelta(minutes=1)),
        ("soon", timedelta(minutes=1)),
        (format_datetime(NOW - DAY, usegmt=True), timedelta(minutes=1)),
        ("99999999999999", DAY),
    ],
)
def test_retry_after_is_honoured_within_reason(header: str, pause: timedelta) -> None:
    assert row(503, retry_after=header).expires - NOW == pause
    assert row(429, retry_after=header).expires - NOW == pause


def test_an_unchanged_file_keeps_its_rules_and_is_good_for_another_day() -> None:
    first = row(200, RULES, etag='"1"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")
    later = NOW + 2 * DAY
    second = row(304, earlier=row(503, earlier=first), now=later, etag='W/"1"')
    assert second == replace(first, fetched=later, expires=later + TTL, etag='W/"1"')


def test_unchanged_since_never_read_is_not_known() -> None:
    for earlier in (None, row(404), row(503)):
        answer = row(304, earlier=earlier)
        assert not robots_from_row(answer).allows(URL, "crawlproj") and answer.expires < NOW + TTL


def test_rules_differ_by_what_they_say_not_by_when_they_were_read() -> None:
    first = row(200, RULES, etag='"1"')
    assert same_rules(first, row(200, RULES, etag='"2"', now=NOW + DAY))
    assert same_rules(first, row(503, earlier=first))
    assert not same_rules(first, row(200, RULES + b"\nAllow: /private/x"))
    assert not same_rules(first, row(404, earlier=first))
    assert not same_rules(row(503), row(404))


def test_the_end_of_a_huge_file_is_not_read() -> None:
    robots = robots_from_row(row(200, RULES + b"\n#" + b"#" * MAX_BYTES + b"\nDisallow: /b\n"))
    assert not robots.allows("https://example.org/private", "crawlproj")
    assert robots.allows("https://example.org/b", "crawlproj")


@given(st.integers(100, 599), st.binary(max_size=100), st.text(max_size=20), st.booleans())
def test_any_answer_can_be_stored(status: int, body: bytes, header: str, known: bool) -> None:
    stored = row(status, body, row(200, RULES) if known else None, retry_after=header)
    assert NOW < stored.expires <= NOW + DAY
    assert isinstance(robots_from_row(stored).allows(URL, "crawlproj"), bool)


def test_of_each_origin_one_forbidden_url_is_tried_again_when_the_rules_expire() -> None:
    cache = RobotsCache("crawlproj")
    assert cache.schedule_probe(URL) is None
    cache.add_row(row(200, RULES))
    assert [cache.schedule_probe(URL) for _ in range(3)] == [NOW + TTL, None, None]
    cache.add_row(row(200, RULES, now=NOW + DAY))
    assert cache.schedule_probe(URL) == NOW + DAY + TTL


def test_the_cache_is_bounded_in_number() -> None:
    cache = RobotsCache("crawlproj", limit=3)
    for number in range(10):
        cache.add_row(
            row_from_response(f"https://h{number}.org/", f"h{number}.org", 404, b"", NOW, TTL)
        )
    assert [cache.get(f"https://h{n}.org/x") is not None for n in range(10)] == [False] * 7 + [
        True
    ] * 3


def test_the_cache_is_bounded_in_size() -> None:
    cache = RobotsCache("crawlproj", characters=100)
    for number in (1, 2, 1, 1, 3):
        cache.add_row(
            row_from_response(f"https://h{number}.org/", f"h{number}.org", 200, b"#" * 45, NOW, TTL)
        )
    assert [cache.get(f"https://h{n}.org/") is not None for n in (1, 2, 3)] == [True, False, True]
    cache.add_row(row_from_response("https://h4.org/", "h4.org", 200, b"#" * 500, NOW, TTL))
    assert [cache.get(f"https://h{n}.org/") is not None for n in (1, 3, 4)] == [False, False, True]
