"""How alike two pages are, and whether they only share a frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.document import Block
from crawlproj.duplicates.compare import (
    MIN_SHINGLES,
    JudgedText,
    is_same_content,
    judged_text,
    near_similarity,
    similarity,
)
from tests.support.copies import paragraph, sentence

FRAME = [paragraph(number, 8) for number in range(8)]
NEWS = sentence(901, 12)
OTHER_NEWS = sentence(902, 12)


def page(*lines: str, links: tuple[str, ...] = ()) -> JudgedText:
    blocks = [Block(line) for line in lines]
    return judged_text([*blocks, *(Block(line, link_share=1.0) for line in links)])


def test_similarity_is_the_share_of_common_runs_of_words() -> None:
    words = [f"word{number}" for number in range(40)]
    changed = [*words[:20], "other", *words[21:]]
    one = page(" ".join(words))
    other = page(" ".join(changed))
    assert similarity(one, other, 3) == pytest.approx(35 / 41)
    assert similarity(one, one, 3) == 1
    assert similarity(one, page("short"), 3) == 0


def test_scraps_and_lists_of_links_are_not_judged() -> None:
    assert page("A short line", links=(FRAME[0],)).text == ""
    assert page(FRAME[0], "A short line").text == FRAME[0]


def test_other_content_at_the_same_place_is_no_copy() -> None:
    one = page(*FRAME[:3], NEWS, *FRAME[3:])
    other = page(*FRAME[:3], OTHER_NEWS, *FRAME[3:])
    assert similarity(one, other, 3) > 0.95
    assert not is_same_content(one, other)
    assert near_similarity(one, other, 3, 0.95) is None


def test_other_content_behind_all_that_is_common_is_no_copy() -> None:
    assert not is_same_content(page(*FRAME, NEWS), page(*FRAME, OTHER_NEWS))


def test_a_notice_at_the_end_and_a_line_less_in_the_middle_are_no_other_content() -> None:
    """What is behind the common text is not compared with what is before its end."""
    one = page(*FRAME[:-1], NEWS, FRAME[-1][:100])
    other = page(*FRAME[:-1], FRAME[-1][:100], OTHER_NEWS)
    assert is_same_content(one, other)


def test_a_paragraph_that_moved_is_the_same_content() -> None:
    moved = [*FRAME[1:], FRAME[0]]
    assert is_same_content(page(*FRAME), page(*moved))


def test_changed_words_and_case_are_the_same_content() -> None:
    edited = [FRAME[0].replace(FRAME[0].split()[5], "edited", 1), *FRAME[1:]]
    found = near_similarity(page(*FRAME), page(*[line.upper() for line in edited]), 3, 0.95)
    assert found is not None and 0.95 <= found < 1


def test_a_line_that_moved_into_a_list_of_links_is_on_both_pages() -> None:
    one = page(*FRAME[:4], NEWS, *FRAME[4:], links=(OTHER_NEWS,))
    other = page(*FRAME[:4], OTHER_NEWS, *FRAME[4:], links=(NEWS,))
    assert is_same_content(one, other)


def test_texts_of_few_runs_are_like_nothing() -> None:
    words = " ".join(f"wonderful{number}" for number in range(MIN_SHINGLES + 1))
    assert near_similarity(page(words), page(words), 3, 0.95) is None
    assert near_similarity(page(f"{words} more"), page(f"{words} more"), 3, 0.95) == 1


@given(st.lists(st.text(max_size=120), max_size=6), st.lists(st.text(max_size=120), max_size=6))
def test_any_two_texts_are_compared_and_the_order_does_not_matter(
    one: list[str], other: list[str]
) -> None:
    left = page(*one)
    right = page(*other)
    assert similarity(left, right, 3) == similarity(right, left, 3)
    assert is_same_content(left, right) == is_same_content(right, left)
    assert 0 <= similarity(left, right, 3) <= 1
