from __future__ import annotations

import time

import pytest

from crawlproj.errors import ConfigError
from crawlproj.urls.patterns import compile_pattern


@pytest.mark.parametrize(
    ("text", "found", "not_found"),
    [
        ("/news/", "https://example.org/news/1", "https://example.org/old"),
        (r"\?print", "https://example.org/?print=1", "https://example.org/print"),
        (r"^https://[^/]+/(\d{4})/\d\d/", "https://example.org/2026/11/x", "https://e.org/26/11/"),
        (r"(?i)\.PDF$", "https://example.org/a.pdf", "https://example.org/a.pdf?x"),
        (r"a{0,2}b$", "https://example.org/aab", "https://example.org/ab/"),
        (r"/(?P<part>de|fr)/", "https://example.org/fr/", "https://example.org/en/"),
        (r"stra[sß]e", "https://example.org/straße", "https://example.org/strae"),
        (r"\d\d", "https://example.org/12", "https://example.org/\u0661\u0662"),
        ("\\.org/.$", "https://example.org/é", "https://example.org/ab"),
        ("[y]", "https://example.org/\udcff/y", "https://example.org/\udcff"),
    ],
)
def test_a_pattern_is_searched_for_anywhere(text: str, found: str, not_found: str) -> None:
    is_found = compile_pattern(text, "include")
    assert is_found(found)
    assert not is_found(not_found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(?=a)", "no lookaround"),
        ("(?!a)", "no lookaround"),
        ("/x(?<=a)", "no lookaround"),
        ("(?<!a)", "no lookaround"),
        (r"(a)\1", "no backreference"),
        ("(?P<x>a)(?P=x)", "no backreference"),
        ("(?(1)a|b)", "no condition"),
        ("(?>a)", "no atomic group"),
        ("a++", "no possessive quantifier"),
        ("(?x) a", r"no such group or flag: '(?x'"),
        (r"a\Z", r"written $ or \z"),
        ("\\u00e9", r"\x{e9}"),
        ("a{,5}", "written {0,5}"),
        ("(a{100}){100}", "up to 1000"),
        ("|".join(f"{n}.{{900}}" for n in range(500)), "too large"),
        ("(", "missing )"),
        ("[a", "missing ]"),
        ("*a", "no argument for repetition"),
        ("\udcff.", "not text in UTF-8"),
        ("(\n", "missing )"),
    ],
)
def test_what_can_not_be_searched_quickly_is_refused_in_one_line(
    text: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError) as refused:
        compile_pattern(text, "exclude")
    message = str(refused.value)
    assert message.startswith(f"exclude = {text[:100]!r}"[:-1])
    assert reason in message
    assert len(message) < 500
    assert message.isprintable()
    assert capfd.readouterr() == ("", "")


def test_a_pattern_and_a_url_that_fit_badly_take_no_time() -> None:
    is_found = compile_pattern(r"^(\w+-?)+/$", "include")
    began = time.process_time()
    assert not is_found("a" * 2000)
    assert time.process_time() - began < 1
