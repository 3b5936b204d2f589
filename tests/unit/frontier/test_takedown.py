"""What a rule means, and what it does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crawlproj.errors import ConfigError
from crawlproj.frontier.takedown import TakedownRule, TakedownRules, describe_target, parse_target

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("https://Example.org/a?utm_source=x#y", "https://example.org/a"),
        ("http://example.org", "http://example.org/"),
        ("Example.ORG.", "example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("*.example.org", "*.example.org"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
    ],
)
def test_words_of_users(word: str, meant: str) -> None:
    assert parse_target(word) == meant


@pytest.mark.parametrize(
    "word",
    [
        "",
        "*",
        "*.",
        "a*.org",
        "example.org/a",
        "example.org:80",
        "[::1]:80",
        "ftp://a/",
        "http://",
        "a b",
        "me@a.org",
    ],
)
def test_what_is_not_clear_is_refused(word: str) -> None:
    with pytest.raises(ConfigError):
        parse_target(word)


def test_a_url_is_meant_exactly_a_host_with_all_its_urls() -> None:
    rules = TakedownRules(
        TakedownRule(n, what, "", True, NOW)
        for n, what in enumerate(["https://a.org/x", "b.org", "*.c.org"])
    )
    barred = [
        "https://a.org/x",
        "https://a.org/x#top",
        "http://b.org/",
        "https://B.org:8443/any?thing",
        "http://w.c.org/",
        "http://x.y.c.org/",
    ]
    free = [
        "http://a.org/x",
        "https://a.org/x/",
        "https://a.org/",
        "http://www.b.org/",
        "http://bb.org/",
        "http://c.org/",
        "http://xc.org/",
    ]
    assert [url for url in barred if not rules.is_barred(url)] == []
    assert [url for url in free if rules.is_barred(url)] == []
    assert not TakedownRules().is_barred("https://a.org/x")


def test_of_what_is_not_barred_only_the_past_goes() -> None:
    rules = TakedownRules([TakedownRule(1, "a.org", "", False, NOW)])
    assert rules.removed_by("http://a.org/", NOW) == "a.org"
    assert not rules.removed_by("http://a.org/", NOW + timedelta(microseconds=1))
    assert not rules.is_barred("http://a.org/")
    assert (describe_target("a.org"), describe_target("*.a.org")) == (
        "host a.org",
        "all hosts below a.org",
    )
