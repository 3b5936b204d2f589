from __future__ import annotations

import gc
import json
import re
from collections import Counter
from datetime import UTC, datetime
from gzip import decompress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content import html as blocks
from crawlproj.content import robots_directives
from crawlproj.content.document import LINK_KINDS, Document, Link
from crawlproj.content.html import parse_page
from crawlproj.content.html_target import MAX_DEPTH
from crawlproj.urls import canonical as urls

ARTICLES = Path(__file__).resolve().parents[4] / "shared/data/articles"
URL = "http://example.org/news/page.html"
TAGS = (
    "p",
    "div",
    "a",
    "b",
    "br",
    "script",
    "style",
    "svg",
    "title",
    "noscript",
    "li",
    "table",
    "td",
    "main",
    "nav",
)
SOUP = st.lists(
    st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS])
    | st.sampled_from(
        [
            '<a href="/x">',
            "<a href='y?b&amp;a'>",
            "<img src=i.png>",
            "&lt;",
            "&nbsp;",
            "<!--",
            "-->",
            "\u200b",
            "\xad",
        ]
    )
    | st.text("ab \n\t\r\x0b\xa0", max_size=5)
).map("".join)


def read(html: str, **options: str) -> Document:
    return parse_page(html.encode(), URL, **options)  # type: ignore[arg-type]


def texts(html: str) -> list[str]:
    return [block.text for block in read(html).blocks]


def links(html: str) -> list[tuple[str, str]]:
    return [(link.kind, link.url.removeprefix("http://example.org")) for link in read(html).links]


def test_block_elements_and_breaks_end_a_block_and_inline_ones_do_not() -> None:
    assert texts("<p>a <b>b</b><i>c</i> d<br>e</p>f<div>g<ul><li>h<li>i</ul>j</div>") == [
        "a bc d",
        "e",
        "f",
        "g",
        "h",
        "i",
        "j",
    ]


def test_unknown_elements_end_a_block() -> None:
    assert texts("a<x-card>b</x-card>c") == ["a", "b", "c"]


def test_white_space_is_collapsed_and_invisible_characters_go() -> None:
    assert texts("<p> a\n\t b\xa0&nbsp;c\u200b\xadd\r\x0be </p><p>\u200b</p>") == ["a b cd e"]


def test_joiners_that_spell_words_stay_in_the_text_but_not_in_the_digest() -> None:
    assert texts("<p>क\u200cष</p>") == ["क\u200cष"]
    assert (
        read("<p>a\u200cb</p>").block_digest
        == read("<p>AB</p>").block_digest
        != read("<p>a b</p>").block_digest
    )


@pytest.mark.parametrize(
    "tag",
    ["script", "style", "template", "noscript", "svg", "math", "textarea", "iframe", "object"],
)
def test_elements_that_show_no_text_give_no_block_and_split_none(tag: str) -> None:
    assert texts(f"<p>a<{tag}>&lt;p&gt;x</{tag}>b</p>") == ["ab"]


def test_path_is_the_chain_of_tags_and_first_classes_without_inline_elements() -> None:
    [block] = read("<body class=k><main><div class='card  big'><span class=s><p>x").blocks
    assert block.path == "main/div.card/p"


@pytest.mark.parametrize(
    ("html", "main"),
    [
        ("<main><p>x", True),
        ("<article><div>x", True),
        ("<div role=main>x", True),
        ("<p>x", False),
        ("<header>x", False),
        ("<main><header>x", True),
        ("<main><nav>x", False),
        ("<main><aside><article>x", True),
        ("<main><div role=navigation>x", False),
        ("<main><nav>y</nav><p>x", True),
        ("<footer><p>x", False),
    ],
)
def test_the_innermost_landmark_decides_what_is_main(html: str, main: bool) -> None:
    assert read(html).blocks[-1].main is main


def test_roles_that_are_landmarks_are_marked_in_paths() -> None:
    found = read("<div class='x y' role=Search><p>a</div><ul role=list><li>b</ul><ul role=banner>c")
    assert [block.path for block in found.blocks] == ["div.x@search/p", "ul/li", "ul.@banner"]


def test_share_of_text_in_links_is_told() -> None:
    found = read(
        "<p>abc <a href=x>def</a></p><li> <a href=y> g  h </a> </li><p>i</p><a "
        "href=z><div>j</div><div>k</div></a>l"
    ).blocks
    assert [(block.text, round(block.link_share, 2)) for block in found] == [
        ("abc def", 0.43), ("g h", 1.0), ("i", 0.0), ("j", 1.0), ("k", 1.0), ("l", 0.0),
    ]  # fmt: skip


def test_every_kind_of_link_is_found() -> None:
    html = """<link rel=canonical href=/c><link rel=alternate type=application/rss+xml href=/f>
    <link rel=alternate href=/de><link rel=stylesheet href=/s.css><link rel=next href=/2><link rel=preconnect href=//c>
    <link rel=sitemap href=/m.xml>
    <meta http-equiv=Refresh content="5; URL='/r'"><script src=/j.js></script><img src=/i srcset="/i2 2x, /i3 3x">
    <iframe src=/if></iframe><map><area href=/ar></map><video src=/v></video><a href=/a>x</a>
    <b onclick="window.open('/o1')"></b><p onClick='location.href = "/o2"'></p><a href="javascript:location='/o3'">x</a>
    <script>var a = "https:\\/\\/o.org\\/p", b = '/news/2026/x.html', c = "/static/x.js", d = "/api"</script>"""
    assert links(html) == [
        ("canonical", "/c"),
        ("feed", "/f"),
        ("alternate", "/de"),
        ("link", "/s.css"),
        ("next", "/2"),
        ("sitemap", "/m.xml"),
        ("refresh", "/r"),
        ("script", "/j.js"),
        ("img", "/i"),
        ("img", "/i2"),
        ("iframe", "/if"),
        ("area", "/ar"),
        ("media", "/v"),
        ("a", "/a"),
        ("onclick", "/o1"),
        ("onclick", "/o2"),
        ("onclick", "/o3"),
        ("text", "http://o.org/p".replace("http:", "https:")),
        ("text", "/news/2026/x.html"),
    ]


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ("rel=alternate type=application/rss+xml", "feed"),
        ("rel=Alternate type='application/Atom+XML; charset=utf-8'", "feed"),
        ("rel=alternate type=application/feed+json", "feed"),
        ("rel=alternate type=text/xml title=RSS", "feed"),
        ("rel=feed", "feed"),
        ("rel=alternate type=text/xml+oembed", "alternate"),
        ("rel=alternate type=application/json", "alternate"),
        ("rel='alternate stylesheet' type=text/css", "link"),
    ],
)
def test_feeds_are_discovered(attributes: str, kind: str) -> None:
    assert links(f"<link {attributes} href=http://elsewhere.test/f>") == [
        (kind, "http://elsewhere.test/f")
    ]


def test_links_that_lead_nowhere_are_left_out() -> None:
    assert (
        links(
            "<a href='#x'>a</a><a href>b</a><a>c</a><a href=mailto:a@b>d</a><a "
            "href=tel:1>e</a><img src=data:,x>"
        )
        == []
    )


def test_a_link_is_listed_once_with_the_first_anchor_text_there_is() -> None:
    html = "<a href=/a#1><img src=/i></a><a href=/a#2 title=T> x\n y </a><a href=/a>z</a>"
    assert read(html).links == [
        Link("http://example.org/i", "img"),
        Link("http://example.org/a", "a", "x y", "T", more_texts=("z",)),
    ]


def test_a_picture_lends_its_alternative_text_to_its_anchor() -> None:
    assert read("<a href=/a><img src=/i alt='A  b'></a>").links[-1].text == "A b"


def test_base_element_is_honoured_wherever_it_stands() -> None:
    found = read("<a href=x>x</a><base href='//o.org/d/'><base href=/no/>")
    assert found.base == "http://o.org/d/"
    assert [link.url for link in found.links] == ["http://o.org/d/x"]


def test_a_target_is_followed_if_any_link_to_it_may_be() -> None:
    page = "<a href=x rel=nofollow title=t>first</a><a href=x>second</a><a href=y rel=ugc>y</a>"
    links = read(page).links
    assert [(link.text, link.title, link.nofollow) for link in links] == [
        ("first", "t", False),
        ("y", "", True),
    ]


@pytest.mark.parametrize(
    ("rel", "nofollow"),
    [("nofollow", True), ("UGC x", True), ("sponsored", True), ("noopener", False)],
)
def test_nofollow_is_read_from_rel(rel: str, nofollow: bool) -> None:
    assert read(f"<a href=x rel='{rel}'>x</a>").links[0].nofollow is nofollow


def test_noscript_gives_links_but_no_text() -> None:
    found = read("<noscript><a href=/n>no</a><img src=/i></noscript>")
    assert [link.kind for link in found.links] == ["a", "img"] and found.blocks == []


def test_the_head_is_read() -> None:
    found = read(
        "<html lang=de><title> A\n B </title><link rel=canonical "
        "href='/c?utm_source=x'><svg><title>C</title>"
    )
    assert (found.title, found.language, found.canonical) == ("A B", "de", "http://example.org/c")


def test_orders_for_us_add_up_and_those_for_others_do_not_count() -> None:
    html = (
        "<meta name=Robots content='NOINDEX,x'><meta name=crawlproj content=noarchive><meta "
        "name=x content=none>"
    )
    found = parse_page(html.encode(), URL, agents=("robots", "crawlproj")).robots
    assert found == robots_directives.RobotsDirectives(noindex=True, noarchive=True)
    assert read(html).robots == robots_directives.RobotsDirectives(noindex=True)


def test_unavailable_after_keeps_the_commas_of_its_date() -> None:
    found = robots_directives.parse_robots_meta(
        "noindex, unavailable_after: Saturday, 25-Jun-26 15:00:00 GMT, nofollow"
    )
    assert found == robots_directives.RobotsDirectives(
        True, True, False, "Saturday, 25-Jun-26 15:00:00 GMT"
    )


def test_orders_may_be_parted_by_blanks() -> None:
    assert robots_directives.parse_robots_meta(
        "noindex nofollow"
    ) == robots_directives.RobotsDirectives(noindex=True, nofollow=True)
    assert (
        robots_directives.parse_robots_meta("index follow please")
        == robots_directives.NO_DIRECTIVES
    )


def test_of_two_ends_the_earlier_one_counts() -> None:
    early = robots_directives.RobotsDirectives(unavailable_after="1 Jan 2030 10:00 GMT")
    late = robots_directives.RobotsDirectives(unavailable_after="2031-01-01")
    odd = robots_directives.RobotsDirectives(unavailable_after="one day")
    assert (late | early) == (early | late) == early
    assert (odd | late) == (late | odd) == late
    assert (odd | robots_directives.NO_DIRECTIVES).expires is None


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("25 Jun 2026 15:00:00 PST", datetime(2026, 6, 25, 23, tzinfo=UTC)),
        ("Saturday, 25-Jun-26 15:00:00 GMT", datetime(2026, 6, 25, 15, tzinfo=UTC)),
        ("Thu, 25 Jun 2026 15:00:00 UTC", datetime(2026, 6, 25, 15, tzinfo=UTC)),
        ("2026-06-25", datetime(2026, 6, 25, tzinfo=UTC)),
        ("2026-06-25T15:00:00+02:00", datetime(2026, 6, 25, 13, tzinfo=UTC)),
        ("2026-06-25T15:00:00Z", datetime(2026, 6, 25, 15, tzinfo=UTC)),
        ("2026-06-25 15:00 UTC", datetime(2026, 6, 25, 15, tzinfo=UTC)),
        ("25 Jun 2026", datetime(2026, 6, 25, tzinfo=UTC)),
        ("", None),
        ("soon", None),
        ("32 Jan 2026 10:00:00 GMT", None),
        ("9999-12-31T23:59:59-05:00", None),
    ],
)
def test_dates_of_orders(text: str, date: datetime | None) -> None:
    assert robots_directives.parse_date(text) == date


def test_a_date_that_is_mostly_blanks_takes_no_time() -> None:
    """In a quadratic search a page of 500 KB would take days."""
    blanks = "2030-01-01" + " " * 500_000 + "x"
    assert robots_directives.parse_date(blanks) is None
    page = parse_page(f"<meta name=robots content='unavailable_after: {blanks}'>".encode(), URL)
    assert page.robots.expires is None


@given(st.text(max_size=60) | st.text("noindex,:_ after0123456789-GMT", max_size=60))
def test_any_text_gives_orders(text: str) -> None:
    found = robots_directives.parse_robots_meta(text) | robots_directives.parse_robots_headers(
        [text, f"unavailable_after: {text}"]
    )
    assert found.expires is None or found.expires.tzinfo is UTC


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (["noindex", "nofollow"], robots_directives.RobotsDirectives(True, True)),
        (["NoIndex, NoArchive"], robots_directives.RobotsDirectives(noindex=True, noarchive=True)),
        (["none"], robots_directives.RobotsDirectives(True, True)),
        (["otherbot: noindex"], robots_directives.NO_DIRECTIVES),
        (["otherbot: noindex, nofollow"], robots_directives.NO_DIRECTIVES),
        (
            ["otherbot: noindex, nofollow, crawlproj: noarchive"],
            robots_directives.RobotsDirectives(noarchive=True),
        ),
        (
            ["crawlproj: noarchive, otherbot: noindex"],
            robots_directives.RobotsDirectives(noarchive=True),
        ),
        (["CrawlProj : noindex"], robots_directives.RobotsDirectives(noindex=True)),
        (["nofollow, otherbot: noindex"], robots_directives.RobotsDirectives(nofollow=True)),
        (["*: noindex"], robots_directives.RobotsDirectives(noindex=True)),
        (["max-snippet: 50, noindex"], robots_directives.RobotsDirectives(noindex=True)),
        (["max-image-preview:large", "crawl: noindex"], robots_directives.NO_DIRECTIVES),
        (["otherbot: unavailable_after: 1 Jan 2030 10:00:00 GMT"], robots_directives.NO_DIRECTIVES),
        (
            ["crawlproj: unavailable_after: Tue, 1 Jan 2030 10:00:00 GMT, noindex"],
            robots_directives.RobotsDirectives(
                noindex=True, unavailable_after="Tue, 1 Jan 2030 10:00:00 GMT"
            ),
        ),
        (["", ",,", ":", "noindex:"], robots_directives.NO_DIRECTIVES),
    ],
)
def test_orders_in_headers_hold_for_whom_they_name(
    headers: list[str], expected: robots_directives.RobotsDirectives
) -> None:
    assert robots_directives.parse_robots_headers(headers, ("robots", "crawlproj")) == expected


def test_orders_in_headers_may_name_their_robot() -> None:
    headers = [
        "noarchive",
        "otherbot: noindex",
        "CrawlProj: nofollow",
        "unavailable_after: 1 Jan 2030 10:00:00 GMT",
    ]
    found = robots_directives.parse_robots_headers(headers, ("robots", "crawlproj"))
    assert found == robots_directives.RobotsDirectives(False, True, True, "1 Jan 2030 10:00:00 GMT")


def test_digest_is_deaf_to_markup_and_case_and_hears_every_word() -> None:
    one = read("<p>Hello <b>World</b></p>")
    assert (
        one.block_digest
        == read("<div class=x>hello  world</div>").block_digest
        != read("<p>hello word").block_digest
    )
    assert (
        len(one.block_digest) == 16
        and one.letter_count == 10
        and read("<p>Größe 12").letter_count == 5
    )


def test_plain_text_is_split_at_empty_lines() -> None:
    assert [
        block.text for block in read("a <b>\nb\n\n\nc", content_type="text/plain; charset=x").blocks
    ] == [
        "a <b> b",
        "c",
    ]
    assert [block.text for block in read("a\r\n\r\nb", content_type="text/plain").blocks] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    "body",
    [b"", b" ", b"\0", b"<", b"\x89PNG\r\n\x1a\n....", b"%PDF-1.7 <p>x", b"\x00\x01\x02\x03" * 300],
)
def test_nothing_and_binaries_give_an_empty_document(body: bytes) -> None:
    found = parse_page(body, URL)
    assert [block.text for block in found.blocks] in ([], ["<"]) and found.links == []


def test_hostile_pages_are_read_in_bounded_time() -> None:
    """Each would take minutes if any step were quadratic."""
    assert parse_page(b"<div>" * 100_000 + b"x", URL).cut
    assert parse_page(b"<b>" * 300_000 + b"</i>" * 300_000, URL).cut
    assert (
        parse_page(b"<p " + b" ".join(b"a%d=1" % n for n in range(100_000)) + b">x", URL).text
        == "x"
    )
    assert parse_page(b"<script>" + b'"/a' * 200_000 + b"</script>", URL).links == []
    assert parse_page(b"<p onclick='" + b"location=" * 100_000 + b"'>x", URL).text == "x"
    assert len(parse_page(b"<a href=/x>w" * 50_000, URL).links) == 1
    assert parse_page(b"".join(b"<body a%d=1>" % n for n in range(9_000)) + b"x", URL).text == "x"
    assert (
        parse_page(b"".join(b"<x%d></x%d>" % (n, n) for n in range(100_000)) + b"x", URL).text
        == "x"
    )


def test_unclosed_elements_are_not_made_again_for_each_paragraph() -> None:
    """As HTML5's tree has it: of this page of 100 KB it makes 20 million elements."""
    fonts = b"".join(b"<font a=%d>" % n for n in range(4_500))
    assert parse_page(b"<p>" + fonts + b"</p>" + b"<p>x</p>" * 4_500, URL).blocks[-1].text == "x"


def test_pages_are_cut_at_the_limit() -> None:
    found = parse_page(b"<p>" + b"word " * (blocks.MAX_BODY // 5 + 100), URL)
    assert found.cut and len(found.text) <= blocks.MAX_BODY


def test_long_pages_with_many_tags_are_read_like_short_ones() -> None:
    html = b"".join(b"<p>text %d <a href='/%d'>l&eacute;k</a><br>" % (n, n) for n in range(6_000))
    assert html.count(b"<") > blocks._MANY_TAGS and len(html) > blocks._LONG
    found = parse_page(html, URL)
    assert (
        not found.cut
        and len(found.links) == 6_000
        and [b.text for b in found.blocks[:1]] == ["text 0 lék"]
    )
    assert len(found.blocks) == 6_000


def test_moderate_depth_loses_nothing() -> None:
    deep = b"<div>" * (MAX_DEPTH - 10)
    assert parse_page(
        deep + b"x" + b"</div>" * (MAX_DEPTH - 10) + b"<p>y</p>" * 12_000, URL
    ).text.startswith("x\ny\ny")


def test_no_parser_stays_alive_in_the_document() -> None:
    found = parse_page(b"<main><p>a <a href=/x>b</a></p></main>", URL)
    gc.collect()
    reachable = set()
    todo = [found]
    while todo:
        value = todo.pop()
        if id(value) not in reachable and not isinstance(value, type):
            reachable.add(id(value))
            assert not type(value).__module__.startswith("lxml"), value
            todo += gc.get_referents(value)
    assert all(type(block.text) is str for block in found.blocks)


@given(
    st.binary(max_size=400) | SOUP.map(str.encode),
    st.sampled_from([None, "utf-8", "utf-16", "gb2312", "hex", "x"]),
)
def test_any_bytes_give_a_tidy_document(body: bytes, charset: str | None) -> None:
    found = parse_page(body, URL, charset)
    for block in found.blocks:
        assert (
            block.text and block.text == " ".join(block.text.split()) and 0 <= block.link_share <= 1
        )
    for link in found.links:
        assert (
            urls.canonical_url(link.url) == link.url
            and link.kind in LINK_KINDS
            and len(link.text) <= 200
        )
    assert len({(link.url, link.kind) for link in found.links}) == len(found.links)
    assert len(found.block_digest) == 16 and found.letter_count >= 0


@given(
    st.lists(
        st.sampled_from(["p", "div", "b", "a", "li", "td", "span", "h1", "section"]).map(
            lambda tag: (tag, f"w{tag}")
        )
    )
)
def test_text_of_blocks_has_all_the_words_and_no_markup(parts: list[tuple[str, str]]) -> None:
    html = "".join(f"<{tag} class='c'> {word} </{tag}>" for tag, word in parts)
    found = read(html).text
    assert found.split() == [word for _, word in parts] and "<" not in found


def test_words_of_real_articles_are_found() -> None:
    if not ARTICLES.exists():
        pytest.skip("the shared articles are absent")
    words = re.compile(r"\w+").findall
    wanted = found = 0
    for name, truth in list(
        json.loads((ARTICLES / "ground-truth.json").read_text("utf-8")).items()
    )[::6]:
        page = parse_page(
            decompress((ARTICLES / f"html/{name}.html.gz").read_bytes()), truth["url"]
        )
        want = Counter(words(truth["articleBody"].lower()))
        wanted += want.total()
        found += (want & Counter(words(page.text.lower()))).total()
    assert found / wanted >= 0.98


def test_only_the_start_of_robots_directives_is_read() -> None:
    words = "noindex," + "x," * robots_directives.MAX_CONTENT + "nofollow"
    found = read(f'<meta name=robots content="{words}">').robots
    assert found.noindex
    assert not found.nofollow
