"""Rules of sites: what they match, which one wins, and which site a URL belongs to."""

from __future__ import annotations

import json
import time

import pytest

from crawlproj.errors import ConfigError
from crawlproj.urls import patterns
from crawlproj.urls.patterns import compile_first_match, compile_pattern, literal_pattern
from crawlproj.urls.rules import MAX_COMPILED, SiteRules, Sites, UrlRule, _compiled
from crawlproj.urls.scope import Scope, ScopeRules


def site(*rules: UrlRule, name: str = "example", domain: str = "example.org") -> SiteRules:
    return SiteRules(name, (domain,), rules=rules)


@pytest.mark.parametrize(
    ("rule", "matching", "other"),
    [
        ({"prefix": "/news/"}, "/news/1?x=2", "/old/news/1"),
        ({"prefix": "/news?page="}, "/news?page=2", "/news/?page=2"),
        ({"prefix": "/a.b"}, "/a.b/c", "/axb/c"),
        ({"prefix": "/č"}, "/%C4%8Daj", "/c"),
        ({"suffix": ".avi"}, "/film.AVI?hd=1", "/film.avi/page"),
        ({"suffix": "/amp/"}, "/2024/x/amp/", "/amp/2024"),
        ({"suffix": ".html"}, "/x.html", "/x?y=z.html"),
        ({"regex": "/[0-9]{4}/[0-9]{2}/"}, "/news/2024/05/x", "/news/24/5/x"),
        ({"regex": "^/[0-9]{4}/"}, "/2024/x", "/news/2024/x"),
        ({"regex": "[?&]print="}, "/x?a=1&print=1", "/print=1"),
        ({"regex": "print"}, "/print/1", "/x"),
    ],
)
def test_a_rule_looks_at_path_and_query(rule: dict[str, str], matching: str, other: str) -> None:
    rules = site(UrlRule("article", **rule))
    assert rules.verdict(f"https://example.org{matching}") == "article"
    assert rules.verdict(f"https://example.org{other}") == ""


def test_the_host_is_not_looked_at() -> None:
    rules = site(UrlRule("article", regex="example"))
    assert rules.verdict("https://example.org/news") == ""


def test_the_first_rule_that_matches_wins() -> None:
    rules = site(
        UrlRule("ignore", prefix="/news/old/"),
        UrlRule("article", prefix="/news/"),
        UrlRule("listing", regex="/$"),
    )
    verdicts = [
        rules.verdict(f"http://example.org{path}") for path in ("/news/old/1", "/news/", "/", "/x")
    ]
    assert verdicts == ["ignore", "article", "listing", ""]
    found = rules.find_rule("http://example.org/news/1")
    assert found is not None and str(found) == "article: {prefix: /news/}"


def test_rules_hold_for_the_host_alone_if_one_is_given() -> None:
    rules = SiteRules(
        "example", ("example.org",), "www.example.org", rules=(UrlRule("article", prefix="/"),)
    )
    assert rules.verdict("https://www.example.org/x") == "article"
    assert rules.verdict("https://blog.example.org/x") == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"verdict": "artcle", "prefix": "/x"}, "'artcle' is no verdict"),
        ({"verdict": "article"}, "exactly one of prefix, suffix and regex"),
        ({"verdict": "article", "prefix": "/x", "regex": "x"}, "exactly one of"),
        ({"verdict": "article", "prefix": "news"}, "must begin as paths do, with /"),
        ({"verdict": "article", "suffix": ".php?x"}, "with the path alone"),
        ({"verdict": "article", "prefix": "/x#y"}, "URLs have no #"),
        ({"verdict": "article", "regex": "("}, "not a regular expression"),
        ({"verdict": "article", "regex": r"(?=x)"}, "there is no lookaround"),
        ({"verdict": "article", "regex": "^https?://example.org/"}, "without https:// and the host"),
        ({"verdict": "article", "regex": "(?:http|https)://x"}, "without https:// and the host"),
        ({"verdict": "article", "regex": "/čaj"}, "write %C4%8D for č"),
    ],
)  # fmt: skip
def test_a_rule_that_makes_no_sense_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        UrlRule(**given)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_url_in_a_query_is_no_scheme() -> None:
    rules = site(UrlRule("ignore", regex="[?&]u=https?://"))
    assert rules.verdict("http://example.org/x?u=http://y") == "ignore"


def test_the_nearest_site_wins() -> None:
    sites = Sites(
        [
            site(),
            site(name="blog", domain="blog.example.org"),
            SiteRules("shop", ("shop.example",), "blog.example.org"),
            site(name="address", domain="192.0.2.1"),
        ]
    )
    assert len(sites) == 4
    found = {
        host: getattr(sites.site_of(host), "name", None)
        for host in (
            "example.org", "www.example.org", "blog.example.org", "x.blog.example.org",
            "shop.example", "ample.org", "org", "192.0.2.1", "",
        )
    }  # fmt: skip
    assert found == {
        "example.org": "example",
        "www.example.org": "example",
        "blog.example.org": "shop",
        "x.blog.example.org": "blog",
        "shop.example": "shop",
        "ample.org": None,
        "org": None,
        "192.0.2.1": "address",
        "": None,
    }
    by_url = sites.site_of("https://www.example.org:8000/x")
    assert by_url is not None and by_url.name == "example"
    assert sites.verdict("https://elsewhere.org/") == ""


def test_a_thousand_sites_cost_no_more_than_one() -> None:
    many = Sites(
        site(
            *(UrlRule("ignore", regex=f"/[0-9]{{4}}/{part}x{number}/") for part in range(9)),
            UrlRule("article", prefix=f"/{number}/"),
            name=f"s{number}",
            domain=f"s{number}.example",
        )
        for number in range(1000)
    )
    one = Sites(list(many)[:1])

    def microseconds(sites: Sites, numbers: range) -> float:
        urls = [f"https://www.s{number}.example/{number}/a-page" for number in numbers]
        start = time.perf_counter()
        assert {sites.verdict(url) for url in urls} == {"article"}
        return (time.perf_counter() - start) / len(urls) * 1e6

    microseconds(many, range(1000))
    of_many = min(microseconds(many, range(1000)) for _ in range(5))
    of_one = min(microseconds(one, range(1)) for _ in range(1000))
    assert of_many < 10 * of_one + 20
    assert of_many < 50


def test_few_sites_are_kept_compiled() -> None:
    rules = [site(UrlRule("article", prefix="/x")) for _ in range(MAX_COMPILED + 10)]
    for one in rules:
        assert one.verdict("http://example.org/x") == "article"
    assert len(_compiled._kept) == MAX_COMPILED


def test_first_match_is_what_one_after_the_other_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["/a/b", "/b/c?x", "", "/\ud800", "/z", "/č"]
    given = ["^/z", "b", literal_pattern("/a.b"), r"\?x$", "(?i)A", "a{2}", "č"]
    singles = [compile_pattern(pattern, "x") for pattern in given]
    expected = [
        next((number for number, found in enumerate(singles) if found(text)), -1) for text in texts
    ]
    assert -1 in expected and 0 in expected and 6 in expected
    assert [compile_first_match(given)(text) for text in texts] == expected
    monkeypatch.setattr(patterns, "PATTERNS_AT_ONCE", 2)
    assert [compile_first_match(given)(text) for text in texts] == expected
    monkeypatch.setattr(patterns._PatternSet, "first_match", patterns._PatternSet._search_each)
    by_each = compile_first_match(given)
    assert [by_each(text.encode(errors="replace").decode()) for text in texts] == expected


def test_patterns_too_large_for_one_set_are_searched_one_by_one() -> None:
    given = [f"(?:[a-y]{{0,900}}{number}){{1}}z" for number in range(90)]
    first_match = compile_first_match(given)
    assert first_match("abc77z") == 77 - 70  # a 7 before the z is enough
    assert first_match("abc") == -1


def test_an_evil_pattern_does_not_slow_a_verdict() -> None:
    rules = site(UrlRule("article", regex="(a+)+$"), UrlRule("listing", regex="(.*a){20}b"))
    start = time.perf_counter()
    assert rules.verdict("http://example.org/" + "a" * 1900 + "!") == ""
    assert time.perf_counter() - start < 1


def test_rules_narrow_a_scope() -> None:
    ignoring = site(
        UrlRule("article", prefix="/calendar/news"),
        UrlRule("ignore", prefix="/calendar/"),
        UrlRule("listing", prefix="/"),
    )
    part = ignoring.scope_part()
    assert part is not None and len(part.rules) == 2
    wants = Scope(ScopeRules(domains=frozenset({"example.org"}), sites=(part,)))
    wants.add_urls(["http://example.org/calendar/feed", "http://feeds.test/example"])
    assert wants("http://example.org/x") and wants("http://www.example.org/calendar/news/1")
    assert wants.reason("http://example.org/calendar/2024") == "rule"
    assert (
        wants.ignoring_rule("http://example.org/calendar/2024")
        == "ignore: {prefix: /calendar/} of the site example"
    )
    assert wants("http://example.org/calendar/feed") and wants("http://feeds.test/example")
    assert wants.reason("http://feeds.test/other") == "host"
    assert wants.ignoring_rule("http://example.org/x") == ""


def test_a_scope_with_rules_is_stored_and_compared() -> None:
    plain = ScopeRules(domains=frozenset({"example.org"}))
    part = site(UrlRule("ignore", suffix=".avi"), UrlRule("ignore", regex="x")).scope_part()
    other = site(UrlRule("ignore", suffix=".mov")).scope_part()
    assert part is not None and other is not None
    ruled = ScopeRules(domains=plain.domains, sites=(part,))
    assert "sites" not in plain.to_dict()
    again = ScopeRules.from_dict(json.loads(json.dumps(ruled.to_dict())))
    assert again == ruled and again != plain
    assert Scope(again).reason("http://example.org/x.avi") == "rule"
    assert plain.may_want_more_than(ruled) and not ruled.may_want_more_than(plain)
    assert ScopeRules(domains=plain.domains, sites=(other,)).may_want_more_than(ruled)
    assert not ruled.may_want_more_than(again)


def test_a_site_that_ignores_nothing_has_no_part_in_the_scope() -> None:
    assert site(UrlRule("article", prefix="/x")).scope_part() is None
