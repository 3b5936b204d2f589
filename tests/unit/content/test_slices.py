"""Pages in slices: the same result as at once, wherever they are cut, and never more than the limits
allow.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlproj.content import charset, document, feeds, html, html_target, slices
from crawlproj.content.document import Block, Document, LinkLimits
from crawlproj.content.feeds import parse_entries, parse_entries_in_slices
from crawlproj.content.html import parse_in_slices, parse_page
from crawlproj.content.slices import BIG_BODY, Slices, run_at_once
from crawlproj.content.text_urls import find_text_urls
from crawlproj.politeness.robotstxt import MAX_SITEMAPS, parse_sitemaps
from crawlproj.urls.canonical import Joiner

URL = "https://example.org/a/b"
AGENTS = ("robots",)
HTML_WORDS = st.sampled_from(
    (
        "<p>", "</p>", "<div class='a b'>", "</div>", "<a href=/x>", "<a href='y?b&amp;a' title=t>",
        "</a>", "<b>", "</i>", "<br>", "<base href='/base/'>", "<main>", "</main>", "<title>",
        "</title>", "<script>", "</script>", "'/s/t/u.html' ", '"https://é.org/x" ', "<style>",
        "</style>", "<!-- c -->", "<!--", "-->", "<img src=i alt='a  b'>", "&amp;", "&eacute;", "&#x41;",
        "&", "<", ">", "x", " ", "\n\n", "wört", "漢字", "\U0001f600", "\u200b", "\r", "ΑΣ", "Σ\u200d",
        "<meta name=robots content=noindex>", "<meta charset=koi8-r>", "<table><tr><td>", "</table>",
        "<noscript>", "</noscript>", "<p onclick=\"location='/o'\">", "<![CDATA[", "]]>", "<?xml", "\0",
    )
)  # fmt: skip
FEED_WORDS = st.sampled_from(
    (
        "<item>", "</item>", "<link>", "</link>", "/a", "/b", "https://é.org/", "<title>t</title>",
        "<url><loc>c</loc></url>", "<guid>http://g/</guid>", "<link href='x'/>", "&amp;", "<![CDATA[",
        "]]>", "<!-- c -->", "<news:news xmlns:news='n'>", "</news:news>", "<rdf xml:base='/z/'>",
    )
)  # fmt: skip


def count_slices(work: Slices[object]) -> int:
    """After how many slices the work is done."""
    return sum(1 for _ in work) + 1


@contextmanager
def cut_small(piece: int, characters: int) -> Iterator[None]:
    """Every page is big, pieces are tiny and texts of some characters long."""
    with ExitStack() as stack:
        for module in (html, charset, feeds):
            stack.enter_context(patch.object(module, "BIG_BODY", 1))
        for module in (html, html_target, document, slices):
            stack.enter_context(patch.object(module, "SLICE_CHARACTERS", characters))
        stack.enter_context(patch.object(html, "_PIECE", piece))
        stack.enter_context(patch.object(feeds, "_XML_PIECE", piece))
        yield


@given(st.lists(HTML_WORDS, max_size=40).map("".join), st.integers(1, 40), st.integers(1, 30))
@example("<p>a &amp; b漢字</p><a href='y'>k</a>", 1, 3)
@example("<script>'/s/t/u.html'</script>" * 2, 3, 5)
def test_slices_give_what_one_call_gives(text: str, piece: int, characters: int) -> None:
    body = b"<html><body>" + text.encode("utf-8", "surrogatepass")
    at_once = parse_page(body, URL)
    digest = at_once.block_digest
    with cut_small(piece, characters):
        in_slices = parse_page(body, URL)
    # Of a long text the white space of its links is counted, too.
    in_slices.blocks = [block._replace(link_share=0.0) for block in in_slices.blocks]
    at_once.blocks = [block._replace(link_share=0.0) for block in at_once.blocks]
    assert in_slices == at_once
    assert in_slices.block_digest == digest


@given(st.lists(FEED_WORDS, max_size=40).map("".join), st.integers(1, 40))
def test_feeds_in_slices_give_what_one_call_gives(text: str, piece: int) -> None:
    body = f"<rss>{text}</rss>".encode()
    at_once = parse_entries(body, URL)
    with cut_small(piece, 5):
        assert parse_entries(body, URL) == at_once


@given(st.lists(st.sampled_from(("a", "b\n", "\n\n", "\r\n", " ", "é", "http://x.org/", "://")), max_size=30).map("".join))  # fmt: skip
def test_plain_text_in_slices_gives_what_one_call_gives(text: str) -> None:
    body = text.encode()
    at_once = parse_page(body, URL, content_type="text/plain")
    digest = at_once.block_digest
    with cut_small(1, 3):
        in_slices = parse_page(body, URL, content_type="text/plain")
    assert in_slices == at_once and in_slices.block_digest == digest


@pytest.mark.parametrize(
    "name", ["utf-8", "euc-jp", "gb18030", "shift_jis", "iso-2022-jp", "big5", "koi8-r", "utf-16le"]
)
@given(data=st.binary(max_size=60), text=st.text("漢字я\x1b$B(", max_size=20))
def test_characters_cut_in_the_middle_are_decoded_as_in_one_call(
    name: str, data: bytes, text: str
) -> None:
    body = b"<p>" + data + text.encode(name, "ignore") + data
    at_once = charset.to_utf8(body, name)
    with patch.object(charset, "BIG_BODY", 3):
        assert run_at_once(charset.to_utf8_in_slices(body, name)) == at_once


def test_a_charset_that_is_declared_by_the_page_holds_for_all_slices() -> None:
    text = "<meta charset=windows-1251>" + "<p>жд" * 55_000
    found = parse_page(text.encode("cp1251"), URL)
    assert found.charset == "windows-1251"
    assert len(found.blocks) == 55_000 and {block.text for block in found.blocks} == {"жд"}


@given(st.text("aΣA \n\u200d\xadİß", max_size=60), st.integers(1, 7))
def test_a_digest_in_slices_is_that_of_the_whole_text(text: str, characters: int) -> None:
    blocks = [Block(" ".join(line.split())) for line in text.split("\n") if line.strip()]
    whole = Document(URL, blocks=blocks).block_digest
    with cut_small(1, characters):
        sliced = Document(URL, blocks=blocks)
        run_at_once(sliced.find_digest_in_slices())
        assert sliced.block_digest == whole


def page_slices(body: bytes) -> Slices[Document]:
    return parse_in_slices(body, URL, None, "text/html", AGENTS, LinkLimits())


def test_ordinary_pages_take_one_slice_and_big_ones_many() -> None:
    page = b"".join(b"<p>text <a href=/%d>link</a>" % n for n in range(500))
    assert count_slices(page_slices(page)) == 1
    feed = b"<rss>" + b"<item><link>/%d</link></item>" * 500 + b"</rss>"
    assert count_slices(parse_entries_in_slices(feed, URL, None, LinkLimits())) == 1
    big = b"<p>" + b"word " * (BIG_BODY // 5 + 1)
    assert count_slices(page_slices(big)) > 60
    links = b"".join(b"<a href=%d>" % n for n in range(5_000))
    assert len(links) < BIG_BODY
    assert count_slices(page_slices(links)) > 20
    deep = b"<b>" * 9_000 + b"</i>" * 9_000
    assert len(deep) < BIG_BODY
    assert count_slices(page_slices(deep)) > 10


def test_pages_under_way_at_the_same_time_share_nothing() -> None:
    bodies = [b"<p>%d <a href=/%d>x</a>" % (n, n) * 12_000 for n in range(3)]
    alone = [parse_page(body, URL) for body in bodies]
    under_way = {n: page_slices(body) for n, body in enumerate(bodies)}
    found: dict[int, Document] = {}
    while under_way:
        for n, work in list(under_way.items()):
            try:
                next(work)
            except StopIteration as end:
                found[n] = end.value
                del under_way[n]
    assert [found[n] for n in range(3)] == alone


def test_elements_beyond_the_limit_are_cut() -> None:
    with patch.object(html_target, "MAX_ELEMENTS", 1_000):
        found = parse_page(b"<p>x</p>" * 40_000, URL)
        # html and body are elements, too.
        assert found.cut and len(found.blocks) == 998
        found = parse_page(b"<img src=/%d>" % 1 * 30_000, URL)
        assert found.cut and found.links
        handlers = b"<p onclick='" + b'open("a");' * 300 + b"'>"
        assert parse_page(handlers * 100, URL).cut
    with patch.object(html, "MAX_ELEMENTS", 1_000):
        found = parse_page(b"a\n\n" * 200_000, URL, content_type="text/plain")
        assert found.cut and len(found.blocks) == 1_000
    assert not parse_page(b"<p>x</p>" * 90_000, URL).cut


def test_a_tag_of_a_million_attributes_is_not_waited_for_but_a_long_picture_is() -> None:
    for attribute in (b" a", b"a='>'", b"a/", b'a=""'):
        found = parse_page(b"<p>x<p " + attribute * 500_000 + b">y", URL)
        assert found.cut and found.text == "x"
    picture = b64encode(bytes(range(256)) * 8_000)
    found = parse_page(b"<p>x <img src='data:image/png;base64," + picture + b"'>y", URL)
    assert not found.cut and found.text == "x y"
    found = parse_page(b"<p>x<p" + b" " * 1_000_000 + b">y", URL)
    assert not found.cut and found.text == "x\ny"


def test_links_beyond_the_number_are_dropped() -> None:
    body = b"".join(b"<a href=/%d>a</a><a href=/%d>b</a>" % (n, n) for n in range(3_000))
    found = parse_page(body, URL, limits=LinkLimits(links=1_500))
    assert [link.url for link in found.links] == [f"https://example.org/{n}" for n in range(1_500)]
    assert found.too_many_links and not found.cut
    exact = parse_page(body, URL, limits=LinkLimits(links=3_000))
    assert len(exact.links) == 3_000 and not exact.too_many_links


def test_characters_of_links_are_counted_after_joining_and_joining_ends_with_them() -> None:
    """600,000 links and a base of 1,900 characters made 1 GB."""
    body = b"<base href='/" + b"a" * 1_900 + b"/'>"
    body += b"".join(b"<a href=%d>" % n for n in range(100_000))
    joined = []
    plain_join = Joiner.join_all

    def noted_join(self: Joiner, hrefs: list[str]) -> list[str | None]:
        joined.extend(hrefs)
        return plain_join(self, hrefs)

    with patch.object(Joiner, "join_all", noted_join):
        found = parse_page(body, URL)
    assert found.too_many_links
    assert sum(len(link.url) for link in found.links) <= 10_000_000
    assert 5_000 < len(found.links) <= len(joined) < 5_500


def test_sitemaps_of_50_000_urls_are_taken() -> None:
    urls = b"".join(
        b"<url><loc>https://example.org/%d</loc><lastmod>2026-01-01</lastmod></url>" % n
        for n in range(50_001)
    )
    found = run_at_once(parse_entries_in_slices(b"<urlset>" + urls, URL, None, LinkLimits()))
    assert len(found.entries) == 50_000 and found.too_many and not found.cut


def test_feeds_have_the_same_limits() -> None:
    limits = LinkLimits(links=10, characters=1_000)
    lines = b"".join(b"https://example.org/%d\n" % n for n in range(20))
    items = b"".join(b"<item><link>/%d</link></item>" % n for n in range(20))
    values = b",".join(b'{"url": "/%d"}' % n for n in range(20))
    for body in (lines, b"<rss>" + items, b'{"items": [' + values + b"]}"):
        found = run_at_once(parse_entries_in_slices(body, URL, None, limits))
        assert len(found.entries) == 10 and found.too_many
        found = run_at_once(parse_entries_in_slices(body, URL, None, LinkLimits(links=20)))
        assert len(found.entries) == 20 and not found.too_many
    far = LinkLimits(characters=100)
    found = run_at_once(parse_entries_in_slices(lines, URL, None, far))
    assert len(found.entries) == 4 and found.too_many
    junk = b'{"items": [' + b"[]," * 500_000 + b"[]]}"
    assert run_at_once(parse_entries_in_slices(junk, URL, None, limits)) == ([], False, True)
    tags = b"<rss><item><link>/a</link></item>" + b"<a/>" * 600_000
    found = run_at_once(parse_entries_in_slices(tags, URL, None, limits))
    assert len(found.entries) == 1 and found.cut


def test_sitemaps_of_a_robots_txt_are_limited() -> None:
    text = "".join(f"Sitemap: /{n}.xml\n" for n in range(MAX_SITEMAPS + 100))
    assert len(parse_sitemaps(text, "https://example.org/robots.txt")) == MAX_SITEMAPS + 1


@given(
    st.lists(
        st.sampled_from(("http", "HTTPS", "s", "://", ":", "/", "a.org", "(", ")", ".", " ", "<")),
        max_size=25,
    ).map("".join)
)
def test_urls_in_text_are_those_of_the_pattern(text: str) -> None:
    from crawlproj.content.text_urls import _URL, _trim_end

    pattern = _URL.__self__  # type: ignore[attr-defined]
    assert find_text_urls(text) == list(
        dict.fromkeys(_trim_end(found[0]) for found in pattern.finditer(text))
    )


def test_blocks_share_their_long_paths_and_all_paths_are_limited() -> None:
    around = "".join(f"<div class={'c' * 59}{number % 10}>" for number in range(60))
    same = around + "<p>x" * 20_000
    found = parse_page(same.encode(), URL)
    assert len(found.blocks) == 20_000
    assert len({id(block.path) for block in found.blocks}) == 1
    with patch.object(html_target, "MAX_PATHS", 100_000):
        other = around + "".join(f"<p class={number}>x" for number in range(10_000))
        found = parse_page(other.encode(), URL)
    assert len(found.blocks) == 10_000
    assert sum(map(len, {block.path for block in found.blocks})) <= 100_000


@pytest.mark.parametrize("start", ["<img src='data:", "<!-- ", "<p title="])
def test_a_token_without_an_end_is_not_waited_for(start: str) -> None:
    with patch.object(html_target, "MAX_TOKEN", 400_000):
        page = (
            f"<p>before<div>{start}{'x' * 300_000}' --><p>middle{start}{'x' * 500_000}'--><p>after"
        )
        found = parse_page(page.encode(), URL)
    assert found.cut
    assert "before" in found.text
    assert "after" not in found.text
    long_text = f"<p>{'x ' * 300_000}<script>{'y;' * 300_000}</script><p>after"
    with patch.object(html_target, "MAX_TOKEN", 400_000):
        found = parse_page(long_text.encode(), URL)
    assert not found.cut, "text and scripts come piece by piece"
