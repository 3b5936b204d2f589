"""The fields of an article: which place of the page each comes from, and what odd pages give."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crawlproj.content.articles import ArticleFields, check_selector, extract_article
from crawlproj.errors import ConfigError
from tests.support.copies import article

URL = "https://www.weekly.example/world/bridge-rebuilt.html"
TITLE = "Gardeners of the village rebuilt their old bridge"
PARAGRAPHS = article(1, 6)
TEXT = "\n".join(PARAGRAPHS)


def page(
    *,
    h1: str = TITLE,
    title: str = "",
    og: str = "",
    data: Mapping[str, Any] | str | None = None,
    head: str = "",
    before: str = "",
    behind: str = "",
    paragraphs: list[str] = PARAGRAPHS,
) -> bytes:
    parts = ["<html lang=en><head>"]
    if title:
        parts.append(f"<title>{title}</title>")
    if og:
        parts.append(f'<meta property="og:title" content="{og}">')
    if data is not None:
        script = data if isinstance(data, str) else json.dumps(data)
        parts.append(f'<script type="application/ld+json">{script}</script>')
    parts.append(f"{head}</head><body><nav><a href=/>Home</a></nav><main><article>")
    if h1:
        parts.append(f"<h1>{h1}</h1>")
    parts.append(before)
    parts.append('<div class="story">')
    parts += [f"<p>{text}</p>" for text in paragraphs]
    parts.append(f"</div>{behind}</article></main></body></html>")
    return "".join(parts).encode()


def news(**values: object) -> dict[str, object]:
    return {"@context": "https://schema.org", "@type": "NewsArticle", **values}


def extract(body: bytes, **options: Any) -> ArticleFields:
    return extract_article(body, URL, **options)


# Which place a field comes from.

MARKS = {
    "headline": news(headline=TITLE + " json"),
    "og": TITLE + " og",
    "h1": TITLE + " h1",
    "title": TITLE + " title",
}


@pytest.mark.parametrize(
    ("places", "origin"),
    [
        (("headline", "og", "h1", "title"), "json"),
        (("og", "h1", "title"), "og"),
        (("h1", "title"), "h1"),
        (("title",), "title"),
    ],
)
def test_a_title_comes_from_the_best_place(places: tuple[str, ...], origin: str) -> None:
    found = extract(
        page(
            data=MARKS["headline"] if "headline" in places else None,  # type: ignore[arg-type]
            og=str(MARKS["og"]) if "og" in places else "",
            h1=str(MARKS["h1"]) if "h1" in places else "",
            title=str(MARKS["title"]) if "title" in places else "",
        )
    )
    assert found.title == f"{TITLE} {origin}"
    assert found.origins["title"].startswith(origin)


@pytest.mark.parametrize(
    ("told", "title"),
    [
        (f"{TITLE} | The Weekly", TITLE),
        (f"{TITLE} - The Weekly", TITLE),
        (f"{TITLE} – Weekly News", TITLE),
        (f"The Weekly: {TITLE}", TITLE),
        (f"{TITLE} | World | weekly.example", f"{TITLE} | World"),
        (f"{TITLE} — World — THE WEEKLY", f"{TITLE} — World"),
    ],
)
def test_a_title_has_no_name_of_the_site(told: str, title: str) -> None:
    site = '<meta property="og:site_name" content="The Weekly">'
    for body in (
        page(og=told, h1="", head=site),
        page(title=told, h1="", head=site),
        page(data=news(headline=told), h1="", head=site),
    ):
        assert extract(body).title == title
    assert extract(page(og=told, head=site)).title == TITLE


def test_what_belongs_to_a_title_stays() -> None:
    for title in (
        "Bridges: what the gardeners of our village learned",
        "Rebuilt - and broken again",
        "A history of our newspaper in ten pictures | part 2",
    ):
        found = extract(page(og=title, h1=title)).title
        assert found == title


def test_a_headline_of_another_page_is_not_believed() -> None:
    data = news(headline="Weather for the whole of next week in your region")
    found = extract(page(data=data, title=f"{TITLE} | The Weekly"))
    assert found.title == TITLE
    assert found.origins["title"] == "h1"


def test_an_article_without_a_title_has_its_text() -> None:
    found = extract(page(h1=""))
    assert found.title is None
    assert found.text == TEXT
    assert "title" not in found.origins


META_DATE = '<meta property="article:published_time" content="2026-11-18T07:00:00Z">'
TEXT_DATE = "<time datetime='2026-11-17'>17 November 2026</time>"


@pytest.mark.parametrize(
    ("body", "day", "origin"),
    [
        (
            page(data=news(datePublished="2026-11-19"), head=META_DATE, before=TEXT_DATE),
            "2026-11-19",
            "json-ld",
        ),
        (page(head=META_DATE, before=TEXT_DATE), "2026-11-18T07:00:00+00:00", "meta"),
        (page(before=TEXT_DATE), "2026-11-17", "htmldate"),
        (
            page(data=news(datePublished="soon"), head=META_DATE),
            "2026-11-18T07:00:00+00:00",
            "meta",
        ),
        (
            page(data=news(datePublished="1970-01-01T00:00:00Z"), before=TEXT_DATE),
            "2026-11-17",
            "htmldate",
        ),
        (page(data=news(datePublished=[{"@value": "2026-11-19"}])), "2026-11-19", "json-ld"),
    ],
)
def test_a_date_comes_from_the_best_place(body: bytes, day: str, origin: str) -> None:
    found = extract(body, latest=date(2026, 12, 1))
    assert (found.date, found.origins["date"]) == (day, origin)


def test_a_date_in_the_future_is_not_believed() -> None:
    body = page(data=news(datePublished="2031-01-01", dateModified="2031-01-02"), head=META_DATE)
    found = extract(body, latest=date(2026, 12, 1))
    assert (found.date, found.modified) == ("2026-11-18T07:00:00+00:00", None)


@pytest.mark.parametrize(
    ("author", "names"),
    [
        ({"@type": "Person", "name": "Vera Marsh"}, ("Vera Marsh",)),
        ([{"name": "Vera Marsh"}, {"name": "Tom Hill"}], ("Vera Marsh", "Tom Hill")),
        ("Vera Marsh", ("Vera Marsh",)),
        ("By Vera Marsh and Tom Hill, Staff Writers", ("Vera Marsh", "Tom Hill")),
        ([[{"name": "Vera Marsh"}]], ("Vera Marsh",)),
        ("Vera Marsh Staff Writer", ("Vera Marsh",)),
        (["Vera Marsh", "AP Sports Writer", "Monday"], ("Vera Marsh",)),
        ("Vera Marsh is a reporter in Rivertown", ("Vera Marsh",)),
        ("April Writer", ("April Writer",)),
        ("Reuters", ("Reuters",)),
        ({"name": ["Vera Marsh", "vera marsh"]}, ("Vera Marsh",)),
        (
            [{"@type": "Organization", "name": "Agency X"}, {"name": "Vera Marsh"}],
            ("Vera Marsh",),
        ),
        ({"@type": "Organization", "name": "Agency X"}, ("Agency X",)),
        ({"name": "https://www.weekly.example/authors/vera"}, ("Paul Brook",)),
        ({"name": "The Weekly"}, ("Paul Brook",)),
        ({"name": 5}, ("Paul Brook",)),
        (None, ("Paul Brook",)),
    ],
)
def test_authors_come_from_json_ld_or_else_from_the_byline(
    author: object, names: tuple[str, ...]
) -> None:
    head = '<meta name="author" content="Paul Brook">'
    head += '<meta property="og:site_name" content="The Weekly">'
    found = extract(page(data=news(author=author), head=head))
    assert found.authors == names
    assert found.origins["authors"] == ("trafilatura" if names == ("Paul Brook",) else "json-ld")


def test_the_other_fields_come_from_json_ld_or_the_head() -> None:
    data = news(
        articleSection=["World", "Villages"],
        keywords="bridges, gardens,bridges",
        contentLocation={"name": "Rivertown"},
        image=[{"url": "/bridge.jpg"}],
        inLanguage="de-AT",
        dateModified="2026-11-20",
    )
    head = """<meta property="article:section" content="Sport"><meta name="keywords" content="a;b">
    <meta property="og:image" content="/og.jpg"><meta name="geo.placename" content="Hilltown">
    <meta property="article:modified_time" content="2026-11-21">
    <link rel="Canonical" href="/world/bridge">"""
    found = extract(page(data=data, head=head))
    assert (found.section, found.keywords, found.place) == (
        "World",
        ("bridges", "gardens"),
        "Rivertown",
    )
    assert (found.language, found.modified) == ("de", "2026-11-20")
    assert found.image == "https://www.weekly.example/bridge.jpg"
    assert found.canonical == "https://www.weekly.example/world/bridge"
    found = extract(page(head=head))
    assert (found.section, found.keywords, found.place) == ("Sport", ("a", "b"), "Hilltown")
    assert (found.language, found.modified) == ("en", "2026-11-21")
    assert found.image == "https://www.weekly.example/og.jpg"


def test_addresses_that_cannot_be_fetched_are_none() -> None:
    for href in (
        "javascript:void(0)",
        "data:,x",
        "http://[",
        "mailto:a@b.example",
        "x" * 3000,
    ):
        head = f'<link rel=canonical href="{href}"><meta property="og:image" content="{href}">'
        found = extract(page(head=head))
        assert (found.canonical, found.image) == (None, None), href


# Selectors and their guard.


def test_selectors_come_first() -> None:
    selectors = {
        "title": "h2.title::text",
        "date": "time",
        "authors": "//*[@class='who']",
        "text": "div.story p",
        "image": "img.lead",
        "keywords": "a.tag",
        "language": "html",
    }
    before = """<h2 class=title>The bridge</h2><time datetime=2026-11-03>3.11.</time>
    <p class=who>By Ann Reed and Bo Lind</p><img class=lead src=/lead.jpg>
    <a class=tag>bridges</a> <a class=tag>gardens</a>"""
    data = news(headline=TITLE, datePublished="2026-11-19", author="Vera Marsh")
    found = extract(page(data=data, before=before), selectors=selectors)
    assert (found.title, found.date, found.authors) == (
        "The bridge",
        "2026-11-03",
        ("Ann Reed", "Bo Lind"),
    )
    assert found.text == TEXT
    assert found.image == "https://www.weekly.example/lead.jpg"
    assert found.keywords == ("bridges", "gardens")
    assert {found.origins[name] for name in selectors} == {"selector"}
    assert found.alarms == ()


@pytest.mark.parametrize("field", ["title", "date", "authors", "text", "image", "canonical"])
def test_a_selector_that_finds_nothing_falls_back_and_raises_an_alarm(field: str) -> None:
    head = '<link rel=canonical href="/x"><meta property="og:image" content="/y">'
    body = page(data=news(datePublished="2026-11-19", author="Vera Marsh"), head=head)
    plain = extract(body)
    found = extract(body, selectors={field: ".gone"})
    assert getattr(found, field) == getattr(plain, field) and getattr(plain, field)
    assert found.origins == plain.origins
    assert len(found.alarms) == 1
    assert found.alarms[0].startswith(f"{field}: the selector '.gone' finds nothing")


def test_a_value_that_cannot_be_one_falls_back() -> None:
    body = page(data=news(datePublished="2026-11-19"))
    found = extract(body, selectors={"date": "h1", "image": "h1", "language": "h1"})
    assert found.date == "2026-11-19"
    assert [alarm.partition(":")[0] for alarm in found.alarms] == ["date", "language"]


@pytest.mark.parametrize(
    "selector",
    ["body", "//*", "*", "p:first-of-type", "div.story p:nth-child(-n+3)", "nav", "//p/@class"],
)
def test_a_selector_of_much_less_or_more_text_is_not_believed(selector: str) -> None:
    noise = "".join(
        f"<p class=x><a href=/{n}>{text}</a></p>" for n, text in enumerate(article(2, 5))
    )
    body = page().replace(b"</body>", f"<aside>{noise}</aside></body>".encode())
    found = extract(body, selectors={"text": selector})
    assert found.text == TEXT
    assert found.origins["text"] == "trafilatura"
    (alarm,) = found.alarms
    assert alarm.startswith("text: the selector")


@pytest.mark.parametrize("share", [0.7, 1.3])
def test_the_guard_stands_at_its_bounds(share: float) -> None:
    """A paragraph of the very length that is allowed is believed, one beyond it is not."""
    size = len(TEXT)
    step = -1 if share < 1 else 1
    for extra, origin in ((0, "selector"), (step * 20, "trafilatura")):
        length = round(size * share) + extra
        words = ("wordy " * size)[: length - 1] + "."
        behind = f"<template></template><aside hidden class='own'><i>{words}</i></aside>"
        body = page().replace(b"</body>", behind.encode() + b"</body>")
        general = extract(body).text
        assert general == TEXT
        found = extract(body, selectors={"text": "aside.own"})
        assert found.origins["text"] == origin, (length, size)
        assert bool(found.alarms) == (origin == "trafilatura")


def test_a_selector_is_believed_where_the_recipe_finds_nothing() -> None:
    body = b"<html><body><p class=t>One line.</p></body></html>"
    found = extract(body, selectors={"text": "p.t"})
    assert found.text == "One line."


@pytest.mark.parametrize(
    "selector", ["", " ", "p[", "//p[", "p::nope", "xpath:", "xpath://[", "((("]
)
def test_selectors_that_are_none_are_refused_and_never_fail(selector: str) -> None:
    with pytest.raises(ConfigError):
        check_selector("text", selector)
    found = extract(page(), selectors={"text": selector, "title": selector})
    assert (found.text, found.title) == (TEXT, TITLE)


@pytest.mark.parametrize(
    "selector",
    ["true()", "count(//p)", "string(//h1)", "//p/..//p", "//comment()", "//@*", "/", "//x:p"],
)
def test_xpath_that_gives_other_things_than_elements_never_fails(selector: str) -> None:
    for field in ("title", "text", "date", "authors", "image"):
        found = extract(page(), selectors={field: f"xpath:{selector}"})
        assert found.text


def test_only_fields_of_articles_have_selectors() -> None:
    with pytest.raises(ConfigError, match="no field 'headline'"):
        check_selector("headline", "h1")
    check_selector("title", "h1::text")
    check_selector("text", "//article//p")


# Texts.


def test_the_text_of_json_ld_stands_in_for_a_page_without_one() -> None:
    data = news(headline=TITLE, articleBody="".join(f"<p>{text}</p>" for text in PARAGRAPHS))
    found = extract(page(data=data, paragraphs=[*PARAGRAPHS[:1], "Subscribe to read on."]))
    assert (found.text, found.origins["text"]) == (TEXT, "json-ld")
    short = news(headline=TITLE, articleBody="The bridge is whole again.")
    found = extract(page(data=short))
    assert (found.text, found.origins["text"]) == (TEXT, "trafilatura")


# Odd pages.


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   \n",
        b"\0" * 1000,
        b"%PDF-1.7 \x00\x01\x02",
        b"<",
        b"<html>",
        b"<!-- only a comment -->",
        b"<?xml version='1.0'?><a/>",
        b"\xff\xfe<\x00p\x00>\x00",
        b"\xed\xa0\x80 <p>lone surrogate in UTF-8</p>",
        b"<p>" * 5_000,
        b"<div " + b"a=b " * 20_000 + b">",
        b"<html><body>" + b"<div>" * 20_000 + b"text",
        b"<frameset><frame src=x></frameset>",
        b"<title>&#0;&#xD800;&#x110000;</title><p>&#0;&#xDFFF;x</p>",
    ],
    ids=range(15),
)
def test_odd_bodies_give_empty_fields_and_never_fail(body: bytes) -> None:
    check_storable(extract(body, selectors={"title": "h1", "text": "p", "date": "//time"}))


def check_storable(found: ArticleFields) -> None:
    """Whatever comes out can be sent as UTF-8, has no NUL and is one line unless it is the text."""
    told = json.dumps(asdict(found), ensure_ascii=False)
    told.encode()
    for name, value in asdict(found).items():
        values = value if isinstance(value, tuple) else (value,)
        for text in values:
            if isinstance(text, str) and name != "alarms":
                assert "\0" not in text
                assert name == "text" or "\n" not in text
    if found.date:
        assert date.fromisoformat(found.date[:10])


def test_nuls_and_lone_surrogates_are_in_no_field() -> None:
    bad = "A \\ud800 bridge\\u0000 was \\udfff built"
    script = (
        '{"@type": "NewsArticle", "headline": "%s", "articleSection": "%s", "keywords": ["%s"],'
        '"author": "%s", "contentLocation": "%s", "image": "/%s", "inLanguage": "%s",'
        '"articleBody": "%s"}'
    ).replace("%s", bad)
    found = extract(page(data=script, h1="", paragraphs=[]))
    assert found.title == "A bridge was built"
    assert found.section == "A bridge was built"
    check_storable(found)
    check_storable(
        extract(page(h1="x\0y \ud800z".encode("utf-8", "surrogatepass").decode("latin-1")))
    )


def test_an_article_of_two_megabytes_is_read_in_time() -> None:
    long = [text for seed in range(3, 500) for text in article(seed, 10)]
    size = 0
    paragraphs = []
    for text in long:
        paragraphs.append(text)
        size += len(text) + 7
        if size > 1_900_000:
            break
    body = page(paragraphs=paragraphs)
    assert 1_900_000 < len(body) < 2_000_000
    started = time.process_time()
    found = extract(body)
    assert time.process_time() - started < 20
    assert len(found.text) > 1_000_000
    assert found.text.startswith(paragraphs[0])


def test_pages_in_other_charsets_are_read() -> None:
    text = "Über die Brücke gehen täglich größere Gruppen von Gärtnern; früher war das müßig. "
    body = page(h1="Die Brücke der Gärtner", paragraphs=[text * 3] * 3)
    other = body.decode().encode("cp1252")
    assert extract(other, charset="cp1252").title == "Die Brücke der Gärtner"
    assert extract(other, charset="no-such-charset").title is not None
    declared = other.replace(b"<head>", b'<head><meta charset="iso-8859-1">')
    assert extract(declared).title == "Die Brücke der Gärtner"


MARKUP = """<html> <head> </head> <body> <p> </p> <div> </div> <article> </article> <h1> </h1>
<title> </title> <script> </script> <table> <tr> <td> </table> <a> </a> <li> <ul> <br> <!-- -->
<![CDATA[ ]]> <svg> </svg> <template> <iframe> <base> <meta> <link> <time> </time> <p/> </ <?
&amp; &#0; &#xD800;"""
PIECES = (
    *MARKUP.split(),
    '<script type="application/ld+json">',
    '{"@type": "NewsArticle", "headline":',
    '"headline": ["x"]}',
    '<meta property="og:title" content="x">',
    '<meta property="article:published_time" content="2026-13-99">',
    '<link rel=canonical href="http://[">',
    '<base href="//[x">',
    "<div class='author'>",
    "<span class=date>2026-02-31</span>",
    "text of a paragraph that is long enough to be believed to be one. " * 5,
    "\ud7ff",
    "\x85",
    "\u2028",
    "\ufffe",
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=40),
    st.sampled_from(["", "utf-8", "utf-16", "shift_jis", "x"]),
    st.sampled_from(["https://a.example/x", "http://[", "", "a"]),
)
@example(["<base href='http://['>", "<link rel=canonical href=x>"], "", "")
def test_no_markup_makes_extraction_fail(parts: list[str], charset: str, url: str) -> None:
    body = "".join(parts).encode("utf-8", "surrogatepass")
    selectors = {"title": "h1", "text": "//p", "date": "time", "authors": ".author", "image": "*"}
    check_storable(extract_article(body, url, charset=charset))
    check_storable(extract_article(body, url, charset=charset, selectors=selectors))


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=300))
def test_no_bytes_make_extraction_fail(body: bytes) -> None:
    check_storable(extract_article(body, URL))
    check_storable(extract_article(b"<html><body><p>" + body, URL, charset="utf-8"))
