from __future__ import annotations

import re
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.duplicates.words import find_words, shingle_hashes, word_hashes

PINNED = [24551029918959014, 12225242497295939190, 764224096965336498]
"""Of "Hello, World 漢". Stored bands hang on it: whoever changes it needs a new Signer.scheme."""


def hashes(text: str) -> list[int]:
    return word_hashes(text).tolist()


@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=["Cf", "M"])))
def test_words_are_those_that_a_regular_expression_finds(text: str) -> None:
    folded = unicodedata.normalize("NFC", text.casefold()).replace("\u0131", "i")
    words = re.findall(r"[^\W_]+", folded.replace("\u0307", ""))
    found = hashes(text)
    assert len(found) == len(words)
    assert len(set(found)) == len(set(words))
    assert [found.index(value) for value in found] == [words.index(word) for word in words]


@pytest.mark.parametrize(
    "text",
    [
        "STRAẞE strasse Straße",
        "ΟΔΥΣΣΕΥΣ Οδυσσευς Οδυσσευσ",
        "IĞDIR ığdır Iğdır",
        "İZMİR izmir İzmir",
    ],
)
def test_words_are_deaf_to_case_in_german_greek_and_turkish(text: str) -> None:
    assert len(set(hashes(text))) == 1


def test_composed_and_decomposed_letters_are_one_word() -> None:
    assert hashes("caf\u00e9") == hashes("cafe\u0301") == hashes("CAFE\u0301")
    assert hashes("cafe") != hashes("café")


@pytest.mark.parametrize(
    "sign",
    ["\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u202a", "\ufe0f", "\U000e0101"],
)
def test_invisible_characters_split_no_word(sign: str) -> None:
    assert hashes(f"dupli{sign}cates") == hashes("duplicates")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("重複したページ", 7),
        ("重复的网页abc", 6),
        ("หน้าเว็บ", 8),
        ("ໜ້າ", 3),
        ("ទំព័រ", 5),
        ("စာမျက်နှာ", 9),
        ("중복된 페이지", 2),
        ("\U00020000\U00020001", 2),
        ("one\U0001f600two", 2),
        ("\U0001d400\U0001d401", 1),
        ("हिन्दी पाठ", 2),
        ("don't 3.14", 4),
        ("a\x00b\ud800c", 3),
        ("", 0),
        ("  -- !", 0),
    ],
)
def test_a_character_is_a_word_where_scripts_have_no_spaces(text: str, count: int) -> None:
    assert len(hashes(text)) == count


def test_shingles_are_runs_of_words_in_order() -> None:
    words = word_hashes("a b c d a b c")
    found = shingle_hashes(words, 3)
    assert len(found) == 5
    assert found[0] == found[4]
    assert len(shingle_hashes(words, 3, unique=True)) == 4
    assert shingle_hashes(word_hashes("a b c"), 3) != shingle_hashes(word_hashes("c b a"), 3)
    assert len(shingle_hashes(words[:2], 3)) == 1
    assert len(shingle_hashes(words[:0], 3)) == 0


@given(st.text(), st.text())
def test_a_word_has_one_hash_wherever_it_stands(one: str, other: str) -> None:
    assert hashes(f"{one} {other}") == hashes(one) + hashes(other)


def test_lines_and_lengths_are_those_of_the_words() -> None:
    words = find_words("One two\n\n漢字, three")
    assert words.lengths.tolist() == [3, 3, 3, 3, 5]
    assert words.lines.tolist() == [0, 2, 2]


def test_hashes_never_change() -> None:
    assert hashes("Hello, World 漢") == PINNED


def test_long_texts_take_time_in_proportion() -> None:
    def cost(text: str) -> float:
        start = time.process_time()
        word_hashes(text)
        return time.process_time() - start

    for text in (
        "x" * 200_000,
        "x " * 100_000,
        "漢" * 200_000,
        "\u200d" * 200_000,
        "\x00" * 200_000,
    ):
        cost(text)
        assert cost(text * 5) < 1.0
    assert np.array_equal(word_hashes("a " * 100_000)[-3:], word_hashes("a a a"))
