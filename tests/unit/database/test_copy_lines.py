"""Texts of links as lines, in one column."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.frontier.stored_links import join_lines


@given(st.lists(st.text(alphabet="ab \n", max_size=4), min_size=1))
def test_each_text_is_one_line(texts: list[str]) -> None:
    assert join_lines(texts).split("\n") == [text.replace("\n", " ") for text in texts]


def test_no_texts_are_no_line() -> None:
    assert join_lines([]) == ""
