from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.document import Block
from crawlproj.duplicates.paragraphs import (
    MAX_PARAGRAPHS,
    mix_scope,
    mix_scopes,
    paragraphs_of,
)

TEXT = "It was a bright cold day in April, and the clocks were striking thirteen."
PINNED = -5460478433603323271
MIXED = 2714486797602074777
"""Both are in the database: they must stay as they are."""
int64 = st.integers(-(2**63), 2**63 - 1)


def test_paragraphs_are_known_again_whatever_their_case_and_punctuation() -> None:
    first = paragraphs_of([Block(TEXT)])
    assert paragraphs_of([Block(TEXT.upper())]) == first
    assert (
        paragraphs_of(
            [
                Block(
                    "  -- It was; a bright/cold day in April and the clocks were striking\u200b thirteen"
                )
            ]
        )
        == first
    )
    assert paragraphs_of([Block(TEXT.replace("thirteen", "fourteen"))]) != first
    assert first[0].length == 71
    assert first[0].hash == PINNED


def test_each_paragraph_is_there_once_and_scraps_and_links_are_not() -> None:
    other = Block(TEXT.replace("April", "May"))
    runs = [
        Block(TEXT),
        Block("Advertisement"),
        other,
        Block(TEXT),
        Block(TEXT + " More", link_share=0.9),
    ]
    found = paragraphs_of(runs)
    assert [paragraph.length for paragraph in found] == [71, 69]
    assert paragraphs_of([Block("... " * 100)]) == []
    assert paragraphs_of([]) == []


def test_a_paragraph_of_ideographs_counts_by_its_bytes() -> None:
    assert [
        paragraph.length
        for paragraph in paragraphs_of([Block("重複したページを探す方法について説明")])
    ] == [3 * 18 + 17]
    assert paragraphs_of([Block("重複したページを")]) == []


def test_a_paragraph_has_one_hash_wherever_it_stands() -> None:
    before = [
        Block(f"Some words that stand before it and are different each time: {n}")
        for n in range(40)
    ]
    assert paragraphs_of([*before, Block(TEXT)])[-1] == paragraphs_of([Block(TEXT)])[0]


def test_huge_pages_are_read_in_bounded_time() -> None:
    start = time.process_time()
    assert len(paragraphs_of(Block(f"{n} {TEXT}") for n in range(1_000_000))) == MAX_PARAGRAPHS
    assert len(paragraphs_of([Block("x" * 10_000_000)])) == 1
    assert paragraphs_of(Block("x") for _ in range(1_000_000)) == []
    assert time.process_time() - start < 5


@given(st.lists(st.text()))
def test_any_text_is_read(texts: list[str]) -> None:
    for paragraph in paragraphs_of(map(Block, texts)):
        assert paragraph.length >= 50
        assert -(2**63) <= paragraph.hash < 2**63


@given(int64, int64, int64, int64)
def test_scopes_keep_hashes_apart(one: int, other: int, scope: int, another: int) -> None:
    mixed = mix_scopes([one, other], scope)
    assert mixed == [mix_scope(one, scope), mix_scope(other, scope)]
    assert (mixed[0] == mixed[1]) == (one == other)
    assert (mix_scope(one, another) == mixed[0]) == (another == scope)
    assert all(-(2**63) <= value < 2**63 for value in mixed)


def test_mixed_hashes_never_change() -> None:
    assert mix_scope(1, 2) == MIXED
    assert mix_scopes([], 2) == []
