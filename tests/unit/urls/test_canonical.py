from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlproj.urls import canonical

ROOT = Path(__file__).resolve().parents[3]
CASES = json.loads((ROOT / "tests/data/urls.json").read_text("utf-8"))
WEB_PLATFORM = ROOT.parent / "shared/data/urls/urltestdata.json"

# fmt: off
PIECES = st.sampled_from((
    "/", "//", ".", "..", "%", "%2e", "%7E", "%2f", "%zz", "?", "&", "=", "#", ";", ":", "@", "\\", " ", "\t", "é", "a",
    "B", "7", ";jsessionid=", "(S(lit3py55t21z5v55vlm25s55))", "utm_x=1", "sid=", "0123456789abcdef" * 2, "-", "_", "~",
    "http:", "https://", "http://", "h.org", "H.", "xn--", "0x7f", ":80", ":443", "[::1]", "\ud800", "+", "*", "$", "(",
    ")", ",",
))
# fmt: on
SOUP = st.lists(PIECES, max_size=12).map("".join)
PLAIN = st.text("abzAZ09/._~-?=&#:+,;@!$()*%2eE|[]", max_size=30)
BASES = st.sampled_from(
    [
        "http://h.org/",
        "https://h.org:8443/a/b/c.html?q=1",
        "http://127.0.0.1/x/",
        "http://h.org/%41/..;jsessionid=1/b",
        "bad",
    ]
)


def slow(base: str | None, href: str) -> str | None:
    return canonical._parse(href, canonical.canonical_url(base) if base else None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["input"]))
def test_canonical_form_is_as_listed(case: dict[str, Any]) -> None:
    base = case["base"]
    url = case["input"]
    found = canonical.join_href(base, url) if base is not None else canonical.canonical_url(url)
    assert found == case["canonical"]
    assert found is None or canonical.canonical_url(found) == found


def test_agrees_with_the_web_platform_tests_on_what_is_a_url() -> None:
    if not WEB_PLATFORM.exists():
        pytest.skip(
            "the shared URL cases are absent; the project's own cases cover the same ground"
        )
    cases = [case for case in json.loads(WEB_PLATFORM.read_text("utf-8")) if isinstance(case, dict)]
    # A host of dots only, or one that is a broken number without its dots, is none for us: dots at
    # the end are dropped.
    dotted = ("http://./", "http://../", "http://foo.09..")
    cases = [
        case
        for case in cases
        if case["input"] not in dotted and (case.get("base") or "http").startswith("http")
    ]
    assert len(cases) > 700
    for case in cases:
        base = case.get("base")
        url = case["input"]
        found = canonical.join_href(base, url) if base else canonical.canonical_url(url)
        good = not case.get("failure") and case["href"].startswith(("http:", "https:"))
        assert (found is not None) == good, case
        assert found is None or canonical.canonical_url(found) == found


@given(SOUP | st.text() | PLAIN.map("http://h.org/".__add__))
@example("http://h/..;jsessionid=1")
@example("http://%%341/%%341?%%341")
def test_canonical_is_idempotent(url: str) -> None:
    once = canonical.canonical_url(url)
    if once is not None:
        assert canonical.canonical_url(once) == once
        assert once.startswith(("http://", "https://")) and "#" not in once and once.isascii()


@given(BASES, SOUP | PLAIN | st.text())
@example("http://h.org/a/b/", "/c/%2e%2E/d")
@example("http://h.org/a/b/", "c/%2e/%41?%zz")
@example("https://h.org/a/b/", "//H.org:443/%7e?b&a")
def test_the_quick_way_to_join_equals_the_slow_way(base: str, href: str) -> None:
    joiner = canonical.Joiner(base)
    assert joiner(href) == slow(base, href)
    assert joiner.join_all([href, href]) == [slow(base, href)] * 2


@given(
    st.tuples(
        st.sampled_from(["http://", "https://"]), st.text("abzA09.:-_x", max_size=12), PLAIN
    ).map("".join)
)
@example("http://a:80/x")
@example("http://1.2.3/x?b=1&a=1")
def test_the_quick_way_to_canonicalise_equals_the_slow_way(url: str) -> None:
    assert canonical.canonical_url(url) == slow(None, url)


@given(BASES, SOUP)
def test_joined_urls_are_canonical(base: str, href: str) -> None:
    found = canonical.join_href(base, href)
    assert found is None or canonical.canonical_url(found) == found


def test_host_and_origin_are_read_from_the_canonical_url() -> None:
    assert canonical.host_of("https://a.org:8443/x:y/") == "a.org"
    assert canonical.origin_of("https://a.org:8443/x:y/") == "https://a.org:8443"
    assert canonical.host_of("http://[::1]:81/") == canonical.host_of("http://[::1]/") == "[::1]"
    assert canonical.origin_of("http://[::1]:81/") == "http://[::1]:81"


@given(st.text(), st.text("ab/:."))
def test_key_is_a_signed_64_bit_number_of_crawl_and_url(crawl: str, url: str) -> None:
    if not crawl.isascii():
        crawl = ascii(crawl)
    assert -(2**63) <= canonical.url_key(crawl, url) < 2**63
    assert (
        canonical.url_key(crawl, url)
        == canonical.url_key(crawl, url)
        != canonical.url_key(crawl + "x", url)
    )


def test_key_stays_the_same_for_ever() -> None:
    assert canonical.url_key("news", "https://example.org/") == 6479691959137736441
