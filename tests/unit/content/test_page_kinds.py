"""Which pages are articles: each sign alone, signs that contradict each other, and what is learned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.document import Block, Document
from crawlproj.content.html import parse_page
from crawlproj.content.page_kinds import MAX_PATTERNS, PageKinds, judge_page
from crawlproj.content.page_signs import MAX_TYPES, NO_SIGNS, PageSigns, find_json_ld_types
from crawlproj.content.url_signs import read_url

SENTENCE = "The council has decided that the old ferry across the river stays for ten more years. "
CJK = "市议会决定保留这条河上的旧渡轮，至少再使用十年，因为村里的人每天都要坐船去上班和上学。"
ARABIC = "قرر مجلس المدينة الإبقاء على العبارة القديمة عبر النهر لمدة عشر سنوات أخرى على الأقل. "


def text_html(paragraphs: int = 5, text: str = SENTENCE * 4) -> str:
    return f"<p>{text}</p>\n" * paragraphs


def teasers_html(count: int = 20, summary: str = SENTENCE * 2) -> str:
    return "".join(
        f"<div><h2><a href=/story-{n}>A headline as long as headlines are, number {n}</a></h2>"
        f"<p>{summary}</p></div>\n"
        for n in range(count)
    )


def json_ld(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


def page(
    body: str, head: str = "", title: str = "The old ferry across the river stays | The Post"
) -> str:
    return f"<html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


def read(html: str, url: str = "https://post.example/a") -> Document:
    return parse_page(html.encode(), url)


def kind_of(html: str, url: str) -> str:
    return judge_page(read(html, url), url).kind


def points_of(html: str, url: str = "https://post.example/news/x-y") -> float:
    return judge_page(read(html, url), url).points


# --- the signs, as the parse finds them


def test_signs_of_a_page() -> None:
    signs = read(
        '<html itemscope itemtype="https://schema.org/NewsArticle"><head>'
        '<meta property="og:type" content="Article">'
        '<meta property="article:published_time" content="2026-11-05T10:00:00Z">'
        + json_ld('{"@graph":[{"@type":["WebPage", "ItemPage"]},{ "@type" : "Organization"}]}')
        + '</head><body class="Single  postid-5"><article itemtype="http://schema.org/Review">'
        "<time>5 November</time><time>6 November</time></article><article></article></body></html>"
    ).signs
    assert signs == PageSigns(
        og_type="article",
        types=("newsarticle", "webpage", "itempage", "review"),
        published="2026-11-05T10:00:00Z",
        body_class="single  postid-5",
        article_elements=2,
        time_elements=2,
    )


def test_only_json_ld_that_a_browser_would_read_counts() -> None:
    data = '{"@type": "NewsArticle"}'
    assert read(f"<script>{data}</script>").signs == NO_SIGNS
    assert read(f"<noscript>{json_ld(data)}</noscript><script>{data}</script>").signs == NO_SIGNS
    assert read(json_ld(data) + f"<script>{data}</script>").signs.types == ("newsarticle",)


def test_what_is_kept_of_a_page_with_endless_signs_is_little() -> None:
    many = json_ld('{"@type":"NewsArticle"}' * 1000) * 50
    html = f'<article itemtype="https://schema.org/{"x" * 5000}">' * 200 + many
    html += f'<body class="{"c" * 5000}"><meta property=og:type content="{"o" * 5000}">'
    kept = read(html).signs
    assert len(kept.types) <= MAX_TYPES
    assert sum(map(len, (*kept.types, kept.og_type, kept.body_class))) < 10_000


def test_a_page_has_nothing_of_the_page_before() -> None:
    read(page("<article><time>1</time></article>", '<meta property="og:type" content="article">'))
    assert read(page("<p>Nothing</p>")).signs == NO_SIGNS


@pytest.mark.parametrize(
    ("script", "types"),
    [
        ('{"@type":"https://schema.org/NewsArticle"}', ["newsarticle"]),
        ('{"@type" :\n "NewsArticle", "broken', ["newsarticle"]),
        ('{"@type":["Article","Review"],"author":{"@type":"Person"}}', ["article", "review"]),
        ('{"@type":5}{"@type":""}{"@type":[]}{"@type"', []),
        ('"@type":"x"' * 10_000, ["x"] * 50),
    ],
)
def test_types_in_json_ld(script: str, types: list[str]) -> None:
    assert find_json_ld_types(script) == types


# --- what a URL says


@pytest.mark.parametrize(
    ("url", "signs"),
    [
        ("https://a.example/", {"front"}),
        ("https://a.example/de-at/", {"front"}),
        ("https://a.example/en/index.html", {"front"}),
        ("https://a.example/?p=1234", set()),
        ("https://a.example/?s=ferry", {"listing"}),
        ("https://a.example/2026/11/", {"archive"}),
        ("https://a.example/2026/11/05", {"archive"}),
        ("https://a.example/news/2026-11-05", set()),
        ("https://a.example/news/page/3/", {"archive"}),
        ("https://a.example/culture?page=4", {"archive"}),
        ("https://a.example/2026/11/05/ferry", {"dated"}),
        ("https://a.example/world/2026/nov/05/ferry-stays", {"dated"}),
        ("https://a.example/ferry-stays-20261105", {"dated", "number"}),
        ("https://a.example/wiadomosci/2026/listopad/5/prom", {"dated"}),
        ("https://a.example/tag/ferries", {"listing"}),
        ("https://a.example/author/jane-doe", {"listing"}),
        ("https://a.example/topic/1234567", {"number"}),
        ("https://a.example/news", {"listing"}),
        ("https://a.example/privacy-policy", {"other"}),
        ("https://a.example/about-us.html", {"other"}),
        ("https://a.example/product/ferry", {"other"}),
        ("https://a.example/product/a-very-good-ferry-for-you", {"other"}),
        ("https://a.example/weather/storm-hits-the-coast-and-the-ferry", set()),
        ("https://forum.a.example/x/y", {"other"}),
        ("https://a.example/galerie/ferry", {"gallery"}),
        ("https://a.example/news_view.html?idx=8576&page=1", set()),
        ("", {"front"}),
    ],
)
def test_signs_of_urls(url: str, signs: set[str]) -> None:
    found = read_url(url)._asdict()
    names = {name for name, value in found.items() if value is True}
    assert names == signs


def test_a_pattern_is_what_like_urls_have_in_common() -> None:
    def pattern(path: str) -> str:
        return read_url(f"https://a.example{path}").pattern

    assert pattern("/world/the-ferry-stays-here-1.html") == pattern("/world/a-b-c-d-e-f.html")
    assert pattern("/2026/11/05/one-two") == pattern("/2025/1/31/five-six")
    assert pattern("/v?id=1&x=2") == pattern("/v?x=7&id=99")
    assert pattern("/tag/ferry") != pattern("/world/ferry")
    assert pattern("/world/ferry") != pattern("/world/the-ferry-stays-here")
    assert len(pattern("/a1" * 1000)) < 100


# --- each sign alone makes a page more of an article, or less


def test_each_claim_counts() -> None:
    plain = points_of(page(text_html()))
    for head in (
        '<meta property="og:type" content="article">',
        '<meta property="article:published_time" content="2026-11-05">',
        json_ld('{"@type":"NewsArticle"}'),
    ):
        assert points_of(page(text_html(), head)) > plain, head
    for head in (
        '<meta property="og:type" content="website">',
        '<meta property="og:type" content="product">',
        json_ld('{"@type":"Product"}'),
        json_ld('{"@type":"CollectionPage"}'),
    ):
        assert points_of(page(text_html(), head)) < plain, head


@pytest.mark.parametrize("text", [SENTENCE, CJK, ARABIC])
def test_short_news_of_all_languages_are_articles_and_teasers_are_none(text: str) -> None:
    head = '<meta property="og:type" content="article">' + json_ld('{"@type":"NewsArticle"}')
    url = "https://post.example/news/ferry-stays-12345678"
    news = page(
        f"<article><h1>The old ferry across the river stays</h1>{text_html(2, text * 3)}</article>",
        head,
    )
    assert kind_of(news, url) == "article"
    assert kind_of(page(text_html(30, text * 4)), "https://post.example/2026/11/05/x") == "article"
    assert kind_of(page(teasers_html(30, text)), "https://post.example/europe") == "listing"


def test_a_date_above_the_text_counts_for_pages_without_claims() -> None:
    url = "https://post.example/s/ferry-news-again"
    for date in ("5. November 2026, 10:30", "2026年11月5日 10:30", "Nov 5, 2026 10:30 am"):
        text = f"<h1>The old ferry across the river stays</h1><div>{date}</div>{text_html()}"
        assert kind_of(page(text), url) == "article", date
    assert kind_of(page(f"<h1>Ferries</h1>{text_html()}"), url) == "other"


# --- signs that contradict each other

ARTICLE_HEAD = (
    '<meta property="og:type" content="article">'
    '<meta property="article:published_time" content="2026-11-05">'
)


def test_a_front_page_is_no_article_whatever_it_claims() -> None:
    head = ARTICLE_HEAD + json_ld('{"@type":"NewsArticle"}')
    assert kind_of(page(teasers_html(), head), "https://post.example/") == "listing"
    assert kind_of(page(text_html(), head), "https://post.example/fr/") != "article"


def test_a_listing_is_no_article_though_it_says_so() -> None:
    for url in (
        "https://post.example/politics",
        "https://post.example/tag/ferry",
        "https://post.example/europe/page/2",
        "https://post.example/2026/11/",
    ):
        assert kind_of(page(teasers_html(), ARTICLE_HEAD), url) == "listing", url


def test_an_archive_of_whole_posts_is_no_article() -> None:
    body = text_html(3) * 5
    assert kind_of(page(body, ARTICLE_HEAD), "https://post.example/2026/11/") == "listing"


def test_articles_inside_an_item_list_make_no_article() -> None:
    inside = json_ld('{"@type":"ItemList","itemListElement":[{"@type":"NewsArticle"}]}')
    beside = json_ld('{"@type":"NewsArticle"}') + json_ld('{"@type":"ItemList"}')
    menu = json_ld('{"@type":"ItemList","x":[{"@type":"SiteNavigationElement"}]}')
    url = "https://post.example/europe/ferries"
    assert kind_of(page(teasers_html(), inside), url) == "listing"
    assert points_of(page(text_html(), inside)) < points_of(page(text_html()))
    assert points_of(page(text_html(), beside)) > points_of(page(text_html()))
    article = json_ld('{"@type":"NewsArticle"}')
    assert points_of(page(text_html(), menu + article)) == points_of(page(text_html(), article))
    many = json_ld('{"@type":"NewsArticle"}' * 10)
    assert points_of(page(text_html(), many)) == points_of(page(text_html()))


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("https://post.example/about-us", "About us | The Post"),
        ("https://post.example/privacy", "Privacy policy"),
        ("https://post.example/shop/old-ferry", "Old ferry"),
        ("https://post.example/forum/viewtopic.php?t=12345", "Ferries"),
        ("https://post.example/gallery/the-ferry-in-spring", "The ferry in spring"),
        ("https://docs.post.example/ferries", "Ferries"),
    ],
)
def test_pages_of_other_kinds_with_much_text(url: str, title: str) -> None:
    head = '<meta property="og:type" content="article">'
    assert kind_of(page(text_html(20), head, title), url) == "other"


# --- what is learned


def sure_article(number: int) -> tuple[str, str]:
    url = f"https://post.example/s/{number}"
    return page(text_html(), ARTICLE_HEAD + json_ld('{"@type":"NewsArticle"}')), url


def sure_listing(number: int) -> tuple[str, str]:
    return page(teasers_html()), f"https://post.example/s/{number}"


def test_like_pages_rescue_an_article_without_signs() -> None:
    bare = page(text_html(2))
    url = "https://post.example/s/99"
    kinds = PageKinds()
    assert kinds.judge(read(bare), url) == "other"
    for number in range(10):
        html, address = sure_article(number)
        assert kinds.judge(read(html), address) == "article"
    assert kinds.judge(read(bare), url) == "article"
    assert "like pages" in kinds.guess(read(bare), url).why
    assert kinds.judge(read(bare), "https://other.example/s/99") == "other"


def test_like_pages_reject_a_listing_that_claims_to_be_an_article() -> None:
    head = '<meta property="og:type" content="article">'
    doubtful = page(
        f"<h1>The old ferry across the river stays</h1><i>5.11.2026</i>{text_html()}", head
    )
    url = "https://post.example/s/99"
    kinds = PageKinds()
    assert kinds.judge(read(doubtful), url) == "article"
    for number in range(5):
        html, address = sure_listing(number)
        assert kinds.judge(read(html), address) == "listing"
    assert kinds.judge(read(doubtful), url) != "article"
    html, address = sure_article(7)
    assert kinds.judge(read(html), address) == "article"


def test_a_pattern_of_both_kinds_teaches_nothing() -> None:
    kinds = PageKinds()
    bare = read(page(text_html(2)))
    alone = judge_page(bare, "https://post.example/s/99").points
    for number in range(200):
        html, address = (sure_article, sure_listing)[number % 2](number)
        kinds.judge(read(html), address)
    assert abs(kinds.guess(bare, "https://post.example/s/99").points - alone) < 0.5


def test_memory_is_bounded() -> None:
    kinds = PageKinds(max_hosts=10)
    html = read(sure_article(1)[0])
    for number in range(100):
        kinds.judge(html, f"https://h{number}.example/s/1")
        kinds.judge(
            html, "https://busy.example/" + "abcdefghij"[number % 10] * (number // 10) + "/1"
        )
    assert len(kinds._hosts) == 10
    assert len(kinds._hosts["busy.example"]) == MAX_PATTERNS


# --- anything gives a kind

words = st.text(max_size=40)
blocks = st.builds(Block, words, words, st.booleans(), st.floats(0, 1))
signs = st.builds(
    PageSigns,
    words,
    st.lists(words | st.sampled_from(["newsarticle", "itemlist"]), max_size=6).map(tuple),
    words,
    words,
    st.integers(0, 1000),
    st.integers(0, 1000),
)
documents = st.builds(
    Document, url=words, title=words, blocks=st.lists(blocks, max_size=20), signs=signs
)
urls = words | st.text("ab1/-.?&=%20", max_size=60).map("https://a.example/".__add__)


@given(documents, urls)
def test_any_document_has_a_kind(document: Document, url: str) -> None:
    kinds = PageKinds()
    first = kinds.guess(document, url)
    assert first.kind in ("article", "listing", "other")
    assert first == judge_page(document, url)
    again = kinds.guess(document, url)
    assert (again.kind, again.sure) == (first.kind, first.sure)


@given(st.binary(max_size=300))
def test_any_bytes_have_a_kind(body: bytes) -> None:
    html = b'<meta property="og:type" content="' + body + b'"><body class="' + body + b'">' + body
    document = parse_page(html, "https://a.example/x")
    assert judge_page(document, document.url).kind in ("article", "listing", "other")
