"""The text of an article: all of it, and nothing of what stands around it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html as lxml_html

from crawlproj.content.article_boilerplate import (
    MAX_LABEL,
    MAX_NOTICE,
    is_byline,
    is_invitation,
    is_label,
    is_notice,
)
from crawlproj.content.article_text import filter_lines, line_key, paragraph_text, read_lines
from crawlproj.content.articles import extract_article
from tests.support.copies import article

URL = "https://www.weekly.example/world/bridge.html"
TITLE = "Gardeners of the village rebuilt their old bridge"
PARAGRAPHS = article(4, 6)
TEXT = "\n".join(PARAGRAPHS)
HTML = "".join(f"<p>{text}</p>" for text in PARAGRAPHS)
TEASER = "<a href=/x>Another article about the weather of the whole region this week</a>"


def tree(markup: str) -> Any:
    return lxml_html.document_fromstring(markup)


def filtered(markup: str, *texts: str, titles: tuple[str, ...] = (), **options: Any) -> str:
    """What is left of a text that was taken from a page."""
    lines = read_lines(tree(markup))
    return filter_lines("\n".join(texts), lines, titles, options.get("authors", ()))


AROUND = {
    "a newsletter in the story": (
        "<div class=newsletter-box><p>Our best stories every morning in your mailbox, for nothing "
        "and without any other mail from us.</p></div>"
    ),
    "related articles in the story": f"<ul class=related-posts><li>{TEASER}</li></ul>",
    "a link to another article": f"<p>{TEASER}</p>",
    "read also": "<p>Read also: Another article about the weather of the region</p>",
    "read also, German": "<p>Lesen Sie auch: Das Wetter der Woche im ganzen Land</p>",
    "read also, Russian": "<p>Читайте также: Погода на всю неделю во всей стране</p>",
    "read also, Japanese": "<p>【関連記事】天気予報</p>",
    "a byline": "<p class=byline>By Vera Marsh, 19 November 2026</p>",
    "share": "<div class=share-buttons><p>Share this on all of your networks, please do.</p></div>",
}


@pytest.mark.parametrize("kind", AROUND)
@pytest.mark.parametrize("place", ["middle", "end"])
def test_what_stands_around_the_text_is_left_out(kind: str, place: str) -> None:
    after = 2 if place == "middle" else len(PARAGRAPHS)
    pieces = [f"<p>{text}</p>" for text in PARAGRAPHS]
    pieces.insert(after, AROUND[kind])
    page = f"""<html><head><title>{TITLE}</title><meta name=author content="Vera Marsh"></head>
    <body><article><h1>{TITLE}</h1><div class=story>{"".join(pieces)}</div></article></body></html>"""
    found = extract_article(page.encode(), URL)
    assert found.text == TEXT


def test_title_byline_and_kicker_before_the_text_are_left_out() -> None:
    page = f"<article><p>World</p><h1>{TITLE}</h1><p>By Vera Marsh</p><p>19.11.2026</p>{HTML}"
    assert (
        filtered(
            page,
            "World",
            TITLE,
            "By Vera Marsh",
            "19.11.2026",
            *PARAGRAPHS,
            titles=(TITLE.upper() + "!",),
            authors=("Vera Marsh",),
        )
        == TEXT
    )


def test_a_paragraph_that_begins_with_the_title_or_author_stays() -> None:
    first = f"{TITLE}, and everybody in the valley came to see it with their own eyes on Sunday."
    second = "Vera Marsh had the idea in spring, when the water had taken the bridge away again."
    page = f"<article><h1>{TITLE}</h1><p>{first}</p><p>{second}</p>{HTML}</article>"
    told = filtered(
        page, TITLE, first, second, *PARAGRAPHS, titles=(TITLE,), authors=("Vera Marsh",)
    )
    assert told == f"{first}\n{second}\n{TEXT}"


def test_notices_at_the_end_go_and_the_same_words_in_the_middle_stay() -> None:
    notice = "Subscribe to our newsletter for more of this"
    page = f"<article><p>{notice}</p>{HTML}</article>"
    assert filtered(page, *PARAGRAPHS, notice) == TEXT
    assert notice in filtered(page, PARAGRAPHS[0], notice, *PARAGRAPHS[1:])


def test_much_text_is_never_taken_for_something_around_it() -> None:
    """An insert or a tail that is a good part of the text is the text."""
    half = "".join(f"<p>{text}</p>" for text in PARAGRAPHS[3:])
    first = "".join(f"<p>{text}</p>" for text in PARAGRAPHS[:3])
    page = f"<article>{first}<div class=newsletter>{half}</div></article>"
    assert filtered(page, *PARAGRAPHS) == TEXT
    page = f"<body><div>{first}</div><section>{half}</section></body>"
    assert filtered(page, *PARAGRAPHS) == TEXT


def test_a_paragraph_that_stands_there_twice_is_taken_once() -> None:
    page = f"<article>{HTML}</article>"
    assert filtered(page, *PARAGRAPHS, PARAGRAPHS[0]) == TEXT
    short = "He nodded."
    assert filtered(page, short, *PARAGRAPHS, short).count(short) == 2


def test_tables_keep_the_words_of_their_cells() -> None:
    page = f"<article>{HTML}<table><tr><td>Village</td><td>Bridges</td></tr></table></article>"
    told = filtered(page, *PARAGRAPHS, "| Village | Bridges |", "|---|---|")
    assert told == f"{TEXT}\nVillage | Bridges"


def test_lines_of_a_page_know_where_they_stand() -> None:
    page = tree(
        "<body>a<b>b</b>c<p>one <a href=/>two</a></p>tail<h2>head</h2><script>no</script>"
        "<div>x<br>y<style>no</style>z</div><svg><text>no</text></svg>end<template>no</template>"
    )
    lines = read_lines(page)
    assert [run.text for run in lines.runs] == [
        *("abc", "one two", "tail", "head", "x", "yz", "end"),
    ]
    assert [run.in_heading for run in lines.runs].index(True) == 3
    assert 0.4 < lines.runs[1].link_share < 0.6
    assert all(block.parent < number for number, block in enumerate(lines.blocks))


def test_only_long_lines_with_few_links_look_like_paragraphs() -> None:
    page = tree(f"<body><p>Short.</p>{HTML}<p>{TEASER * 3}</p>{HTML}</body>")
    assert paragraph_text(read_lines(page)) == TEXT


LABELS = (
    "Read also: The weather",
    "READ MORE",
    "» Related articles",
    "À lire aussi : la météo",
    "Lea también: el tiempo",
    "Leggi anche: il tempo",
    "Lees ook: het weer",
    "Czytaj także: pogoda",
    "Читайте также: погода",
    "اقرأ أيضا: الطقس",
    "延伸阅读：天气",
    "関連記事",
    "관련기사",
)
TEXTS = (
    "Read this book if you can, it is about the bridges of our valley.",
    "Related to him by marriage, she never spoke of the bridge again.",
    "More from the same source was found below the bridge in the spring of that year",
    "Lesen ist schön, und auch das Schreiben war ihm nie eine Last.",
    "Watching the bridge fall, they wept.",
    "延伸阅读的习惯对孩子很重要。",
)


@pytest.mark.parametrize("line", LABELS)
def test_lines_that_lead_elsewhere_are_known_in_many_languages(line: str) -> None:
    assert is_label(line)
    assert not is_label(line + " " + "word " * MAX_LABEL)


@pytest.mark.parametrize("line", TEXTS)
def test_sentences_that_begin_with_such_words_stay(line: str) -> None:
    assert not is_label(line)


@pytest.mark.parametrize(
    "line",
    [
        "Sign up for our newsletter",
        "© 2026 The Weekly",
        "Copyright 2026",
        "Source: Agency X",
        "Alle Rechte vorbehalten",
        "Abonnez-vous",
        "Síguenos en redes",
        "Подписывайтесь на нас",
        "责任编辑：王",
    ],
)
def test_notices_are_known_in_many_languages(line: str) -> None:
    assert is_notice(line)
    assert not is_notice(line + " " + "word " * MAX_NOTICE)


def test_bylines_say_who_or_when_and_nothing_else() -> None:
    authors = ("vera marsh",)
    for line in (
        "By Vera Marsh",
        "Vera Marsh, Rivertown",
        "19 November 2026, 08:57",
        "Updated: 19.11.2026",
        "2026年11月19日",
    ):
        assert is_byline(line, authors), line
    for line in (
        "Vera Marsh said on Friday that nothing of it was true.",
        "In 2026 the bridge of the village was rebuilt by its gardeners.",
        "The bridge",
        "It was 1999.",
    ):
        assert not is_byline(line, authors), line


def test_invitations_are_known() -> None:
    assert is_invitation("You can follow Vera Marsh on Twitter @vera")
    assert not is_invitation("She followed the river to the bridge.")


@given(st.text(max_size=200))
def test_any_line_can_be_judged(line: str) -> None:
    for judge in (is_label, is_notice, is_invitation):
        judge(line)
    is_byline(line, [line[:5].casefold()])
    assert line_key(line) == line_key(f" {line} ")


@given(
    st.lists(
        st.sampled_from(
            ("<p>", "</p>", "<div class=related>", "</div>", "<a href=/>", "</a>", "<h1>")
        )
        | st.sampled_from([*PARAGRAPHS[:2], "Read also: this", "short", TITLE]),
        max_size=20,
    ),
    st.lists(st.sampled_from([*PARAGRAPHS[:2], "Read also: this", "short", TITLE, "|---|", ""])),
)
def test_filters_only_take_away(parts: list[str], texts: list[str]) -> None:
    """Whatever a page looks like: what is left are lines that were there, in their order."""
    left = filtered("<body>" + " ".join(parts), *texts, titles=(TITLE,)).splitlines()
    given_lines = iter(line.strip("| ") for line in texts)
    assert all(line in given_lines for line in left)
