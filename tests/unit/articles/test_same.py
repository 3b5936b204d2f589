"""When two pages of a site have the same article."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.articles.same import (
    is_same_article,
    letters_of,
    site_number,
    text_key,
    title_key,
)
from tests.support.copies import article

PARAGRAPHS = article(1, 8)
TEXT = "\n".join(PARAGRAPHS)
OTHER = "\n".join(article(2, 8))
YES = {
    "another line at the end": TEXT + "\nPrinted from the Weekly.",
    "a caption in between": TEXT.replace("\n", "\nThe bridge, as it is now.\n", 1),
    "one paragraph less": "\n".join(PARAGRAPHS[:-1]),
    "half of it": "\n".join(PARAGRAPHS[:4]),
    "other case and composition": unicodedata.normalize("NFD", TEXT.upper()),
    "other spaces and dashes": TEXT.replace(" ", " \u2014 "),
}
NO = {
    "another article": OTHER,
    "a paragraph in common": "\n".join([PARAGRAPHS[0], *article(2, 7)]),
    "nothing": "",
    "half of each": "\n".join(PARAGRAPHS[:4] + article(2, 4)),
}


@pytest.mark.parametrize("kind", YES)
def test_versions_of_an_article_under_its_title_are_the_same(kind: str) -> None:
    assert is_same_article(TEXT, YES[kind], same_title=True, named=False)


@pytest.mark.parametrize("kind", NO)
@pytest.mark.parametrize("same_title", [True, False])
def test_other_articles_are_others_under_any_title(kind: str, same_title: bool) -> None:
    assert not is_same_article(TEXT, NO[kind], same_title=same_title, named=False)


def test_without_title_or_name_only_the_same_words_are_the_same() -> None:
    assert is_same_article(TEXT, TEXT.replace(".", "!"), same_title=False, named=False)
    assert not is_same_article(TEXT, TEXT + " One more.", same_title=False, named=False)


def test_a_named_page_needs_half_of_the_text() -> None:
    part = "\n".join(PARAGRAPHS[:5])
    assert is_same_article(TEXT, part, same_title=False, named=True)
    assert not is_same_article(TEXT, "\n".join(PARAGRAPHS[:3]), same_title=False, named=True)
    assert not is_same_article(TEXT, OTHER, same_title=True, named=True)


def test_articles_of_few_words_are_told_apart() -> None:
    assert not is_same_article(
        "No school today", "No school tomorrow", same_title=True, named=False
    )
    assert is_same_article(
        "橋は昨日再建されました", "橋は、昨日再建されました。", same_title=False, named=False
    )


def test_keys_are_deaf_to_case_and_marks_and_belong_to_a_site() -> None:
    site = site_number(1, "weekly.example")
    assert site != site_number(2, "weekly.example") != site_number(2, "other.example")
    assert text_key(site, "The Bridge, rebuilt!") == text_key(site, "the bridge rebuilt")
    assert text_key(site, "The bridge") != text_key(site + 1, "The bridge")
    title = "Straßen und Brücken"
    assert title_key(site, title) == title_key(site, unicodedata.normalize("NFD", title.upper()))
    assert title_key(site, title) != title_key(site, "Wiesen und Brücken")


@pytest.mark.parametrize("title", [None, "", "News", "???", " - | - ", "Live 24/7"])
def test_a_title_that_says_nothing_has_no_key(title: str | None) -> None:
    assert title_key(1, title) is None


def test_all_keys_fit_into_the_database() -> None:
    keys = [text_key(number, f"text {number}") for number in range(200)]
    assert all(-(1 << 63) <= key < 1 << 63 for key in keys)
    assert min(keys) < 0 < max(keys)
    assert len(set(keys)) == 200


TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(("a", "the", "bridge", "was", "built", "Ä", "橋", "\u0307", "İ", "ß")))
    .map(" ".join),
)  # fmt: skip


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_it_is_the_same_both_ways(text: str, other: str, same_title: bool, named: bool) -> None:
    found = is_same_article(text, other, same_title=same_title, named=named)
    assert is_same_article(other, text, same_title=same_title, named=named) == found
    if text_key(1, text) == text_key(1, other):
        assert found


@given(st.text(st.characters(), max_size=60), st.booleans(), st.booleans())
def test_every_article_is_the_same_as_itself(text: str, same_title: bool, named: bool) -> None:
    assert is_same_article(text, text, same_title=same_title, named=named)
    assert text_key(1, text) == text_key(1, text)
    title_key(1, text)


@given(st.text(max_size=80))
def test_letters_are_the_same_if_they_are_asked_for_again(text: str) -> None:
    assert letters_of(letters_of(text)) == letters_of(text)
