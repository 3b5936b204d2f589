"""Rules of robots.txt files: a table of cases from the RFC and from practice, and what must hold
for any text.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from crawlproj.politeness.robotstxt import (
    MAX_BYTES,
    MAX_PARTS,
    WildcardRule,
    decode_robots,
    equivalent_targets,
    normalize_path,
    parse_sitemaps,
    rules_for,
    url_target,
)

TABLE = tomllib.loads((Path(__file__).parents[2] / "data" / "robots.toml").read_text())
CASES = [(f"{area}: {case['is']}", case) for area, part in TABLE.items() for case in part["cases"]]
HOST = "https://h.org"


def text_of(case: dict[str, Any]) -> str:
    if "bytes" in case:
        return decode_robots(case["bytes"].encode("latin-1"))
    return decode_robots(case["txt"].encode(case.get("encoding", "utf-8")))


def test_the_table_is_long_and_says_each_thing_once() -> None:
    assert len(CASES) >= 140
    assert len({name for name, _ in CASES}) == len(CASES)
    assert not [
        name for name, case in CASES if not {"yes", "no", "delay", "sitemaps"} & case.keys()
    ]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_a_file_says_what_the_table_says(case: dict[str, Any]) -> None:
    text = text_of(case)
    rules = rules_for(text, case.get("agent", "crawlproj"))
    assert {path: rules.allows(HOST + path) for path in case.get("yes", [])} == dict.fromkeys(
        case.get("yes", []), True
    )
    assert {path: rules.allows(HOST + path) for path in case.get("no", [])} == dict.fromkeys(
        case.get("no", []), False
    )
    if "delay" in case:
        assert rules.delay_s == (None if case["delay"] == -1 else case["delay"])
    if "sitemaps" in case:
        assert parse_sitemaps(text, f"{HOST}/robots.txt") == case["sitemaps"]


def test_a_long_file_is_cut_at_a_line_end() -> None:
    start = b"User-agent: *\nDisallow: /a\n"
    filler = b"#" * (MAX_BYTES - len(start) - len(b"\nDisallow: /p"))
    text = decode_robots(start + filler + b"\nDisallow: /private\nDisallow: /b\n")
    rules = rules_for(text, "crawlproj")
    assert [rules.allows(HOST + path) for path in ("/a", "/p", "/private", "/b")] == [
        False,
        True,
        True,
        True,
    ]


def test_a_file_that_is_just_short_enough_is_read_to_its_end() -> None:
    end = b"\nUser-agent: *\nDisallow: /a"
    assert not rules_for(decode_robots(b"#" * (MAX_BYTES - len(end)) + end), "crawlproj").allows(
        f"{HOST}/a"
    )


def test_one_endless_line_says_nothing() -> None:
    assert decode_robots(b"Disallow: /" * MAX_BYTES) == ""


@given(
    st.binary(max_size=300)
    | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_give_rules_and_text_that_can_be_stored(body: bytes) -> None:
    text = decode_robots(body)
    assert "\0" not in text and text.encode().decode() == text
    rules = rules_for("User-agent: *\n" + text, "crawlproj")
    assert rules.allows(f"{HOST}/robots.txt")
    assert isinstance(rules.allows(f"{HOST}/a"), bool)
    assert rules.delay_s is None or 0 <= rules.delay_s <= 1e9
    assert all(url.startswith("http") for url in parse_sitemaps(text, f"{HOST}/robots.txt"))


@given(st.text(max_size=80))
def test_any_address_gets_an_answer(url: str) -> None:
    assert isinstance(rules_for("User-agent: *\nDisallow: /a*b$", "x").allows(url), bool)


@given(st.text(max_size=40))
def test_spelling_is_settled_after_once(path: str) -> None:
    once = normalize_path(path)
    assert once.isascii() and normalize_path(once) == once


# Against a slow matcher that can hardly be wrong

lines = st.lists(
    st.tuples(
        st.sampled_from(["allow", "disallow"]),
        st.text("ab/*$?=.", max_size=7).map(lambda path: "/" + path),
    ),
    max_size=8,
)
paths = st.text("ab/*$?=.", max_size=10).map(lambda path: "/" + path)


def slowly(rules: list[tuple[str, str]], path: str) -> bool:
    """The longest of all rules that fit, each tried as a regular expression; `$` and `*` in
    addresses are encoded.
    """
    best = (0, True)
    for kind, rule in rules:
        anchored = rule.endswith("$")
        body = rule.removesuffix("$").replace("$", "%24")
        pattern = ".*".join(re.escape(part) for part in body.split("*")) + (
            r"\Z" if anchored else ""
        )
        if any(re.match(pattern, form) for form in equivalent_targets(url_target(HOST + path))):
            best = max(best, (len(body) + anchored, kind == "allow"))
    return best[1]


@given(lines, paths)
def test_quick_and_slow_matching_agree(rules: list[tuple[str, str]], path: str) -> None:
    text = "User-agent: *\n" + "\n".join(f"{kind}: {rule}" for kind, rule in rules)
    assert rules_for(text, "crawlproj").allows(HOST + path) == slowly(rules, path)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Allow", "Disallow"]),
            st.text("ab/*.", max_size=7).map(lambda p: "/" + p),
        ),
        max_size=8,
    ),
    st.text("ab/.", max_size=10).map(lambda path: "/a" + path),
)
def test_protego_says_the_same_where_the_rfc_leaves_no_doubt(
    rules: list[tuple[str, str]], path: str
) -> None:
    text = "User-agent: *\n" + "\n".join(f"{kind}: {rule}" for kind, rule in rules)
    assert rules_for(text, "crawlproj").allows(HOST + path) == Protego.parse(text).can_fetch(
        HOST + path, "crawlproj"
    )


class CountingPath(str):
    """A path that counts how often it is searched, since time can't be trusted."""

    searches = 0

    def find(self, *args: Any) -> int:
        type(self).searches += 1
        return super().find(*args)


def test_stars_without_end_are_searched_once_each() -> None:
    CountingPath.searches = 0
    rule = WildcardRule(0, False, ("/", *["a"] * 5_000, "b"), False)
    assert not rule.matches(CountingPath("/" + "a" * 10_000))
    assert CountingPath.searches == 5_001
    CountingPath.searches = 0
    assert not rule.matches(CountingPath("/" + "a" * 2_000))
    assert CountingPath.searches == 2_001, "it ends where nothing more is found"


def test_a_file_full_of_stars_is_read() -> None:
    rules = rules_for("User-agent: *\nDisallow: /" + "*a" * 1_900 + "b", "crawlproj")
    assert rules.allows(f"{HOST}/" + "a" * 1_980)
    assert not rules.allows(f"{HOST}/" + "a" * 1_980 + "b")
    rules = rules_for("User-agent: *\nDisallow: /" + "*a" * 100_000 + "b", "crawlproj")
    assert rules.wildcards == [], "no URL is so long"


def test_stars_of_all_rules_are_limited_and_what_is_cut_forbids_more() -> None:
    stars = "".join(f"Disallow: /{n}{'*a' * 900}b\n" for n in range(MAX_PARTS // 900 + 1))
    rules = rules_for(f"User-agent: *\n{stars}Disallow: /late/*x\nAllow: /*\n", "crawlproj")
    assert sum(len(rule.parts) for rule in rules.wildcards) <= MAX_PARTS
    assert not rules.allows(f"{HOST}/late/y")
    assert rules.allows(f"{HOST}/y")


def test_bytes_and_characters_of_any_kind_have_one_spelling() -> None:
    every_byte = bytes(set(range(256)) - set(b"\0\n\r#"))
    text = decode_robots(b"User-agent: *\nDisallow: /" + every_byte + b"\xe3\x81\x82%zz%41%2a%")
    assert text.encode(), "a database can store it"
    (rule,) = rules_for(text, "crawlproj").wildcards
    spelled = "*".join(rule.parts)
    assert spelled.endswith("%E3%81%82%25zzA%2A%25")
    for byte in every_byte:
        if byte not in b"*/?":
            assert normalize_path(f"%{byte:02x}") in spelled
