from __future__ import annotations

from datetime import UTC, datetime, timedelta

from crawlproj.frontier.base import RobotsRow
from crawlproj.robots import MAX_BYTES, RobotsCache, answered, read

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TTL = timedelta(hours=24)
URL = "https://example.org/a"


def row(status: int, body: bytes = b"", earlier: RobotsRow | None = None) -> RobotsRow:
    return answered(URL, "example.org", status, body, NOW, TTL, earlier)


def test_rules_are_obeyed_and_expire() -> None:
    cache = RobotsCache("crawlproj")
    cache.put(row(200, b"User-agent: *\nDisallow: /private\nCrawl-delay: 7\nSitemap: https://example.org/s.xml"))
    robots = cache.current(URL, NOW)
    assert robots is not None
    assert robots.allows("https://example.org/a", "crawlproj") and not robots.allows("https://example.org/private/x", "crawlproj")
    assert robots.crawl_delay_s("crawlproj") == 7
    assert robots.sitemaps() == ["https://example.org/s.xml"]
    assert cache.current(URL, NOW + TTL) is None


def test_a_missing_file_allows_everything() -> None:
    for status in (400, 401, 403, 404, 410):
        assert read(row(status, b"User-agent: *\nDisallow: /")).allows(URL, "crawlproj")


def test_a_file_that_cannot_be_reached_forbids_everything_and_is_tried_rarer_and_rarer() -> None:
    for status in (0, 429, 500, 503):
        first = row(status)
        second = row(status, earlier=first)
        assert not read(first).allows(URL, "crawlproj")
        assert second.expires - NOW == 2 * (first.expires - NOW)


def test_rules_that_were_read_before_stay_in_force_while_the_file_cannot_be_reached() -> None:
    good = row(200, b"User-agent: *\nDisallow: /private")
    later = read(row(503, earlier=good))
    assert later.allows(URL, "crawlproj") and not later.allows("https://example.org/private", "crawlproj")


def test_a_byte_order_mark_does_not_hide_the_first_line_and_the_end_of_a_huge_file_is_not_read() -> None:
    body = b"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n" + b"#" * MAX_BYTES + b"\nDisallow: /b\n"
    robots = read(row(200, body))
    assert not robots.allows("https://example.org/a", "crawlproj")
    assert robots.allows("https://example.org/b", "crawlproj")


def test_request_rate_counts_like_a_crawl_delay() -> None:
    assert read(row(200, b"User-agent: *\nRequest-rate: 1/10\nCrawl-delay: 3")).crawl_delay_s("crawlproj") == 10
    assert read(row(200, b"User-agent: *\nCrawl-delay: NaN")).crawl_delay_s("crawlproj") in (None,)


def test_the_cache_is_bounded() -> None:
    cache = RobotsCache("crawlproj", limit=3)
    for number in range(10):
        cache.put(answered(f"https://h{number}.org/", f"h{number}.org", 404, b"", NOW, TTL))
    assert [cache.get(f"https://h{n}.org/x") is not None for n in range(10)] == [False] * 7 + [True] * 3
