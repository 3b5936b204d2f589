"""What part of a text is looked at, and what is made of guesses and declared languages."""

from __future__ import annotations

import unicodedata

import pytest

from crawlproj.content.language import (
    SAMPLE_LENGTH,
    UNDETERMINED,
    Guess,
    choose_sample,
    is_text,
    judge_language,
    normalize_hint,
    split_sample,
)

SENTENCE = "We had lunch under the old trees, and then we walked home along the river. "
TORTURE = {
    "nothing": "",
    "one character": "a" * 1_000_000,
    "digits": "0123456789 " * 1000,
    "emoji": "😀👩‍👩‍👧‍👦🏳️‍🌈" * 300,
    "zero width": "\u200b\u200c\u200d\ufeff\u2060" * 300,
    "combining": "a" + "\u0301\u0302\u0303" * 10_000,
    "only combining": "\u0301" * 10_000,
    "NUL": "\0" * 1000 + SENTENCE,
    "lone surrogates": "\ud800\udfff" * 500,
    "surrogates between words": " \ud83d ".join(SENTENCE.split()) * 5,
    "right to left": "\u202e" + "שלום עולם " * 100 + "\u202c",
    "unknown script": "".join(map(chr, range(0x13A0, 0x13F5))) * 10,
    "private use": "\ue000\uf8ff\U0010fffd" * 300,
    "one word": "supercalifragilistic" * 1000,
    "spaces": " \t\n\u3000\xa0" * 10_000,
}
"""Texts over which nothing may fail."""


@pytest.mark.parametrize(
    ("hint", "language"),
    [
        ("de", "de"),
        ("de_AT ", "de"),
        (" EN-us", "en"),
        ("zh-Hant-TW", "zh"),
        ("nb-NO", "no"),
        ("nn", "no"),
        ("iw", "he"),
        ("fil-PH", "tl"),
        ("fr, en", "fr"),
        ("pt;q=1", "pt"),
        ("", ""),
        ("x-default", ""),
        ("english", ""),
        ("{{ lang }}", ""),
        ("ünsinn", ""),
        ("\0\ud800", ""),
        ("d" * 1_000_000, ""),
    ],
)
def test_a_declared_language_is_two_letters_or_nothing(hint: str, language: str) -> None:
    assert normalize_hint(hint) == language


def test_a_sample_is_from_the_middle_of_a_text_and_cuts_no_word() -> None:
    words = [
        f"word{'abcdefghij'[n // 100]}{'abcdefghij'[n // 10 % 10]}{'abcdefghij'[n % 10]}"
        for n in range(900)
    ]
    sample = choose_sample([" ".join(words)]).split()
    assert set(sample) <= set(words)
    assert words.index(sample[0]) > 300 and words.index(sample[-1]) < 600
    assert SAMPLE_LENGTH - 60 < len(" ".join(sample)) <= SAMPLE_LENGTH


def test_sentences_are_preferred_to_long_lists() -> None:
    menu = "Home | News | Sport | 12:30 | Weather | [+] | Cars | >> " * 20
    assert choose_sample([menu, SENTENCE * 5, menu]).count("lunch") >= 3


def test_addresses_and_numbers_are_left_out_and_letters_are_composed() -> None:
    text = "Schreiben Sie an info@example.org oder lesen Sie https://example.org/ueber 24 Stunden. "
    sample = choose_sample([unicodedata.normalize("NFD", text + "Schöne Grüße. ") * 3])
    assert "example" not in sample and not any(map(str.isdigit, sample))
    assert "Schöne Grüße" in sample and "Stunden" in sample
    assert "更多信息" in choose_sample(["请看https://example.org/a更多信息在这里" * 3])


def test_a_sample_has_two_blocks_where_there_are_two() -> None:
    sample = choose_sample(
        [SENTENCE * 9, "Kurz.", "Danach gingen wir am Fluss entlang nach Hause. " * 9]
    )
    assert sample.count("\n") == 1
    first, second = sample.split("\n")
    assert "river" in first and "Fluss" in second and "Kurz" not in sample
    assert abs(len(first) - len(second)) < 60


def test_short_blocks_are_put_together() -> None:
    assert len(choose_sample(["One short line here."] * 50)) >= 80


@pytest.mark.parametrize("text", TORTURE.values(), ids=TORTURE)
def test_a_sample_of_anything_is_short_and_can_be_encoded(text: str) -> None:
    for texts in ([text], [text, SENTENCE], [text] * 100):
        sample = choose_sample(texts)
        assert len(sample) <= SAMPLE_LENGTH
        assert "\0" not in sample.encode().decode()
        is_text(sample)


def test_there_is_a_text_only_if_there_are_letters_enough() -> None:
    assert not is_text("Read more about our offers")
    assert is_text("Read more about our new offers in the shop near you today")
    assert is_text("我们坐在矮墙上吃一个热乎乎的面包看着船")
    assert not is_text("登录 注册")
    assert not is_text("aaaa bbbb " * 30)


def test_parts_end_with_sentences_and_are_the_whole_text() -> None:
    text = (SENTENCE * 4).strip()
    parts = split_sample(text)
    assert [part.strip() for part in parts] == [SENTENCE.strip()] * 4
    assert "".join(parts) == text
    assert split_sample("short") == ["short"]


def close(first: float, second: float) -> list[Guess]:
    return [Guess("da", first), Guess("no", second)]


def test_the_page_decides_between_close_languages_and_never_against_the_text() -> None:
    assert judge_language(close(0.6, 0.4), [], "") == "da"
    assert judge_language(close(0.6, 0.4), [], "nb-NO") == "no"
    assert judge_language(close(0.6, 0.4), [], "en") == "da"
    assert judge_language(close(0.95, 0.05), [], "no") == "da"


def test_without_confidence_nothing_is_said_but_the_page_may_tip_it() -> None:
    guesses = [Guess("hr", 0.4), Guess("bs", 0.35), Guess("sr", 0.25)]
    assert judge_language(guesses, [], "") == UNDETERMINED
    assert judge_language(guesses, [], "bs") == "bs"
    assert judge_language([Guess("hr", 0.04), Guess("bs", 0.03)], [], "bs") == UNDETERMINED
    assert judge_language([], [[[], []]], "bs") == UNDETERMINED


def test_parts_in_different_languages_are_no_language_unless_the_page_declares_one_of_them() -> (
    None
):
    whole = [Guess("de", 0.99)]
    halves = [[Guess("de", 0.99)], [Guess("id", 0.6), Guess("ms", 0.38)]]
    assert judge_language(whole, [halves], "") == UNDETERMINED
    assert judge_language(whole, [halves], "fr") == UNDETERMINED
    assert judge_language(whole, [halves], "de-CH") == "de"
    assert judge_language(whole, [halves], "id") == "id"


def test_a_quotation_does_not_make_a_text_mixed() -> None:
    quarters = [[Guess("de", 0.99)], [Guess("en", 0.99)], [Guess("de", 0.99)], [Guess("de", 0.9)]]
    assert judge_language([Guess("de", 0.99)], [quarters], "") == "de"
