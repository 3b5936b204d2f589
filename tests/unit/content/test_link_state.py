"""New links of listings, feeds and sitemaps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.link_state import MAX_KEPT, count_new_links, hash_links, pack_links

urls = st.lists(st.integers(0, 3000).map("http://a.example/{}".format), max_size=800)


def links(*numbers: int) -> list[int]:
    return hash_links(f"http://a.example/{number}" for number in numbers)


def test_links_that_were_not_there_are_new() -> None:
    state = pack_links(links(1, 2, 3))
    assert count_new_links(links(3, 4, 5, 1), state) == 2


def test_what_comes_back_is_not_new() -> None:
    state = pack_links(links(1, 2, 3))
    state = pack_links(links(4, 5), state)
    assert count_new_links(links(1, 4, 9), state) == 1


def test_without_a_visit_before_nobody_knows() -> None:
    assert count_new_links(links(1), None) is None
    assert count_new_links(links(1), b"") is None
    assert count_new_links(links(1), b"\x07something else") is None


def test_new_links_of_a_big_sitemap_are_estimated() -> None:
    state = pack_links(links(*range(50_000)))
    assert len(state) <= 1_900
    assert count_new_links(links(*range(50_000)), state) == 0
    new = count_new_links(links(*range(10_000, 60_000)), state)
    assert new is not None and 7_000 < new < 13_000


@given(urls, urls)
def test_a_page_never_has_new_links_right_after_it_was_read(
    first: list[str], then: list[str]
) -> None:
    state = pack_links(hash_links(then), pack_links(hash_links(first)))
    assert count_new_links(hash_links(then), state) == 0
    assert len(state) <= 1 + 4 * MAX_KEPT


@given(urls, st.binary(max_size=40))
def test_damaged_states_do_no_harm(some: list[str], garbage: bytes) -> None:
    for start in (b"", b"L", b"S"):
        number = count_new_links(hash_links(some), start + garbage)
        assert number is None or number >= 0
        pack_links(hash_links(some), start + garbage)
