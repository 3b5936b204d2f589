from __future__ import annotations

from pathlib import Path

import pytest

from crawlproj.errors import ConfigError
from crawlproj.urls.scope import Scope, read_seeds


def scope(*seeds: str, **more: str) -> Scope:
    made = Scope(**more)
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
        Scope(include="(")


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
