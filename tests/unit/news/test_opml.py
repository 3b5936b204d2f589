"""Lists of feeds, as feed readers exchange them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.errors import ConfigError
from crawlproj.news.opml import OpmlFeed, read_opml, read_opml_file, write_opml
from spiders.site import SiteSpider

A = OpmlFeed("https://example.org/a.xml", "A & B", "https://example.org/")
B = OpmlFeed("https://feeds.example.com/b", "B")
LIST = """<?xml version="1.0" encoding="ISO-8859-1"?><opml version="1.1"><head><title>Mine</title></head><body>
<outline text="News"><outline text="Caf\u00e9"><outline text="x" title="A &amp; B" type="rss"
 xmlUrl="https://example.org/a.xml" htmlUrl="https://example.org/"/></outline>
<outline text="B" xmlUrl='https://feeds.example.com/b'></outline></outline>
<!-- <outline xmlUrl="https://example.org/no"/> --><outline text="again" xmlUrl="https://example.org/a.xml"/>
<outline text="a page" type="link" url="https://example.org/page"/></body></opml>"""


def test_feeds_of_all_folders_are_read_once() -> None:
    assert read_opml(LIST.encode("latin-1")) == [A, B]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (LIST[: LIST.index("<!--")], [A, B]),  # cut
        ("\ufeff\n\n junk " + LIST, [A, B]),
        (LIST.replace("&amp;", "&"), [A, B]),
        (LIST.replace("xmlUrl", "XMLURL").replace("outline", "OUTLINE"), [A, B]),
        (LIST.replace(' xmlUrl="https', ' url="feed:https'), [A, B]),
        (LIST.replace("A &amp; B", "A > B"), [OpmlFeed(A.url, "A > B", A.site), B]),
        (LIST.replace("</outline>", ""), [A, B]),
        (LIST.replace("<!--", "").replace("-->", "").replace("/no", "/a.xml"), [A, B]),
        ('<outline xmlUrl="feed://example.org/f"/>', [OpmlFeed("http://example.org/f")]),
        ('<outline xmlUrl="example.org/f"/>', [OpmlFeed("http://example.org/f")]),
        ("<outline xmlUrl=https://example.org/f />", [OpmlFeed("https://example.org/f")]),
        ('<outline xmlUrl=" https://example.org/\nf"/>', [OpmlFeed("https://example.org/f")]),
        ('<outline xmlUrl="javascript:x"/><outline xmlUrl=""/><outline/><outline', []),
        ('<outline xmlUrl="ftp://example.org/f"/>', []),
        ('<!DOCTYPE o [<!ENTITY a "x">]><opml><outline xmlUrl="&a;&a;"/></opml>', []),
        ("<!DOCTYPE html><p>Not found", []),
        ("", []),
    ],
)
def test_broken_list_gives_what_can_be_read(body: str, expected: list[OpmlFeed]) -> None:
    assert read_opml(body.encode()) == expected


@given(
    st.lists(
        st.builds(OpmlFeed, st.sampled_from([A.url, B.url]), st.text(), st.just(A.site)),
        unique_by=lambda feed: feed.url,
    )
)
def test_what_is_written_is_xml_and_read_again(feeds: list[OpmlFeed]) -> None:
    text = write_opml(feeds, title="All & more")
    ElementTree.fromstring(text.encode())
    again = read_opml(text.encode())
    assert [(feed.url, feed.site) for feed in again] == [(feed.url, feed.site) for feed in feeds]


@given(st.binary())
def test_any_bytes_give_a_list(body: bytes) -> None:
    assert isinstance(read_opml(b"<outline xmlUrl=" + body), list)


def test_titles_survive() -> None:
    assert read_opml(write_opml([A, B]).encode()) == [A, B]


def test_seeds_of_a_list_open_the_scope_for_their_sites(tmp_path: Path) -> None:
    path = tmp_path / "mine.opml"
    path.write_text(write_opml([A, OpmlFeed(B.url, "B", "https://www.example.net/")]))
    spider = SiteSpider(seeds="https://example.org/x", seeds_file=str(path))
    assert spider.seeds == ["https://example.org/x", A.url, B.url]
    assert spider.wants("https://example.net/article")


def test_file_without_feeds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.opml"
    path.write_text("<opml/>")
    with pytest.raises(ConfigError, match="no feeds"):
        read_opml_file(str(path))
    with pytest.raises(ConfigError, match="can't be read"):
        read_opml_file(str(tmp_path / "missing.opml"))
