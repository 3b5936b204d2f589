from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawlproj.errors import ConfigError
from crawlproj.urls.scope import Scope, ScopeRules, read_domains, read_hosts, read_seeds


def scope(*seeds: str, **more: Any) -> Scope:
    made = Scope(ScopeRules(**more))
    made.add_seeds(seeds)
    return made


def test_a_crawl_stays_on_the_seeds_domains_and_below() -> None:
    wants = scope("https://www.example.org/news/")
    wanted = ["https://example.org/", "https://www.example.org/x", "http://blog.example.org/"]
    assert all(map(wants, wanted))
    assert not any(map(wants, ["https://example.com/", "https://notexample.org/", "https://org/"]))


def test_include_and_exclude_narrow_it() -> None:
    wants = scope("https://example.org/", include="/news/", exclude=r"\?print")
    assert wants("https://example.org/news/1")
    assert not wants("https://example.org/about")
    assert not wants("https://example.org/news/1?print=1")


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(ConfigError, match="include"):
        Scope(ScopeRules(include="("))


def test_seeds_are_made_canonical_and_listed_once() -> None:
    assert read_seeds("HTTPS://Example.org, example.org/a ,https://example.org/", None) == [
        "https://example.org/",
        "http://example.org/a",
    ]


def test_a_seeds_file_may_have_comments_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_bytes(b"\xef\xbb\xbf# ours\n\nhttps://example.org/\r\nexample.com\n")
    assert read_seeds(None, str(path)) == ["https://example.org/", "http://example.com/"]


@pytest.mark.parametrize(
    "text",
    [
        "ftp://example.org/",
        "https://",
        "https://exa mple.org/",
        "javascript:alert(1)",
        "notaurl",
        "you@example.org",
        "10",
        "example.org example.com",
        "https://example.org/a page.html",
        "http://x/" + "a" * 3000,
    ],
)
def test_every_bad_seed_is_named_with_its_place(text: str, tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(f"https://example.org/\n\n{text}\n")
    with pytest.raises(ConfigError, match="line 3"):
        read_seeds(None, str(path))


@pytest.mark.parametrize("between", [" ", "\t", "  ", ",", ", ", ";", "\u00a0"])
def test_two_urls_on_one_line_are_two(between: str, tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(f"https://a.org/x{between}HTTP://b.org/ # and why\nc.org # a third\n")
    assert read_seeds(None, str(path)) == ["https://a.org/x", "http://b.org/", "http://c.org/"]
    assert read_seeds(f"https://a.org/x{between}http://b.org/", None) == [
        "https://a.org/x",
        "http://b.org/",
    ]


def test_a_fragment_and_a_comma_belong_to_their_url(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text("https://a.org/x,y;z#part\n#https://b.org/\n")
    assert read_seeds(None, str(path)) == ["https://a.org/x,y;z"]


def test_a_missing_binary_or_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x80")
    (tmp_path / "empty").write_text("# nothing\n")
    for name in ("missing", "binary", "empty"):
        with pytest.raises(ConfigError, match=name):
            read_seeds(None, str(tmp_path / name))


def test_domains_hosts_and_everything_open_a_scope() -> None:
    wants = scope(
        "https://example.org/",
        domains=read_domains("gov.si, *.Example.COM."),
        hosts=r"\.cz$",
        exclude="/out/",
    )
    inside = ["http://a.b.gov.si/", "http://gov.si/", "http://example.com:8080/", "http://x.cz:1/"]
    assert all(map(wants, inside))
    assert [wants.reason(url) for url in ("http://notgov.si/", "http://x.cz.org/")] == ["host"] * 2
    assert wants.reason("http://x.cz/out/") == "exclude"
    assert scope(everything=True, include="/in/").reason("http://anywhere.example/") == "include"
    assert scope(everything=True)("http://anywhere.example/")


def test_only_a_scope_without_an_end_is_wide() -> None:
    for domains in ("gov.si", "example.co.uk", "localhost", "127.0.0.1", "a.github.io"):
        assert not ScopeRules(domains=read_domains(domains)).is_wide, domains
    for domains in ("si", "gov.si,co.uk", "test", "github.io"):
        assert ScopeRules(domains=read_domains(domains)).is_wide, domains
    assert ScopeRules(hosts="x").is_wide
    assert ScopeRules(everything=True).is_wide
    assert not ScopeRules(include="x", exclude="y").is_wide


@pytest.mark.parametrize(
    "text", ["", " ", ",", "http://gov.si", "gov.si/", "gov.si,", "gov si", "gov.si:80", ".", "*"]
)
def test_domains_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"domains = .* names such as gov\.si"):
        read_domains(text)


def test_an_empty_pattern_for_hosts_is_refused() -> None:
    with pytest.raises(ConfigError, match="hosts = ''"):
        read_hosts(" ")


def test_a_scope_can_be_stored() -> None:
    wants = scope("https://www.example.org/", domains=frozenset({"gov.si"}), include="/x")
    stored = json.loads(json.dumps(wants.rules.to_dict()))
    assert ScopeRules.from_dict(stored) == wants.rules
    again = Scope(ScopeRules.from_dict(stored))
    assert again("https://example.org/x")
    assert again.reason("https://example.org/") == "include"


def test_a_scope_knows_whether_it_may_want_more_than_another() -> None:
    plain = ScopeRules(seed_hosts=frozenset({"example.org"}))
    more = [
        replace(plain, seed_hosts=frozenset({"example.org", "example.com"})),
        replace(plain, domains=frozenset({"gov.si"})),
        replace(plain, hosts="x"),
        replace(plain, everything=True),
    ]
    for wider in more:
        assert wider.may_want_more_than(plain)
        assert not plain.may_want_more_than(wider)
    for narrower in (replace(plain, include="/x"), replace(plain, exclude="/x")):
        assert not narrower.may_want_more_than(plain)
        assert plain.may_want_more_than(narrower)
        assert replace(plain, include="/y", exclude="/y").may_want_more_than(narrower)
    assert not plain.may_want_more_than(plain)
