from __future__ import annotations

import pytest

from crawlproj.config import parse_suffixes
from crawlproj.urls.suffixes import has_suffix, shipped_suffixes


@pytest.mark.parametrize(
    "path", ["a.jpg", "A.JPEG?w=1", "b/film.mp4", "x.tar.gz", "x.zip?y=/z.html", "data.gz", "p.EXE"]
)
def test_media_are_known_by_their_suffix(path: str) -> None:
    assert has_suffix(f"http://example.org/{path}", shipped_suffixes())


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a.html",
        "jpg",
        "a.jpg/",
        "page?file=a.jpg",
        "a.pdf",
        "a.docx",
        "data.csv",
        "sitemap.xml.gz",
        "Feed.RSS.GZ",
        "wiki/File:Map.jpg",
        "wiki/Node.js",
        "v1.2",
        "shop.asp",
    ],
)
def test_pages_documents_feeds_and_sitemaps_are_not_media(path: str) -> None:
    assert not has_suffix(f"http://example.org/{path}", shipped_suffixes())
    assert not has_suffix("http://example.zip/", shipped_suffixes())


def test_suffixes_are_shipped_given_or_none() -> None:
    assert parse_suffixes("shipped") == shipped_suffixes()
    assert parse_suffixes("") == frozenset()
    assert parse_suffixes([".JPG", "*.mp4", "zip"]) == parse_suffixes("jpg, mp4 zip")
    with pytest.raises(ValueError, match="suffixes such as"):
        parse_suffixes("a/b")
