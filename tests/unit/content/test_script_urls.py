"""URLs in script text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content import script_urls

PARTS = (
    "http",
    "https",
    ":",
    "/",
    "//",
    "\\",
    '"',
    "'",
    "`",
    "a",
    "bc",
    "d.html",
    ".php",
    "?x=1",
    " ",
    "\n",
    "{",
    "é",
    "x.js",
)
SOUP = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)
ABSOLUTE = re.compile(r"(?<=[\"'`])https?://[^\s\"'`<>\\{}$]{4,2000}(?=[\"'`])")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("", []),
        ("no slash", []),
        ('"https://a.org/b"', ["https://a.org/b"]),
        ('"https:\\/\\/a.org\\/b"', ["https://a.org/b"]),
        ("f('/a/b.html', `/c/d/`, \"/e\", '/f.js')", ["/a/b.html", "/c/d/"]),
        ("'/a/b/' \"/c/d/\" 'http://e.org/'", ["http://e.org/", "/c/d/", "/a/b/"]),
        ("https://a.org/b", []),
        ("'xhttp://a.org/b'", []),
        ("'http://a.org/x.PNG?1' 'https://schema.org/Thing'", []),
        ("'http://a.org/x' 'http://a.org/x'", ["http://a.org/x"]),
        # The scheme is not looked for at the other end of the text.
        ("://a.org/b' \"http", []),
    ],
)
def test_quoted_urls_of_pages_are_found(code: str, found: list[str]) -> None:
    assert script_urls.find_script_urls(code) == found


def test_the_first_few_pages_are_taken_and_pictures_do_not_count() -> None:
    code = " ".join(
        f"'http://a.org/{n}.png' 'http://a.org/{n}'" for n in range(2 * script_urls.MAX_LINKS)
    )
    assert script_urls.find_script_urls(code) == [
        f"http://a.org/{n}" for n in range(script_urls.MAX_LINKS)
    ]


@given(SOUP)
def test_absolute_urls_are_those_of_one_slow_pattern(code: str) -> None:
    wanted = [
        url
        for url in dict.fromkeys(ABSOLUTE.findall(code.replace("\\/", "/")))
        if not url.partition("?")[0].endswith(".js")
    ]
    assert [url for url in script_urls.find_script_urls(code) if url.startswith("http")] == wanted


def test_only_so_many_slashes_are_tried() -> None:
    noise = "'/a " * script_urls.MAX_MARKS
    assert script_urls.find_script_urls(noise[4:] + "'/a/b/'") == ["/a/b/"]
    assert script_urls.find_script_urls(noise + "'/a/b/'") == []
