"""Pages that are gone are known by what a host answers to a path that nobody has."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.content.document import Block, Document
from crawlproj.content.probe import make_probe, month_of, probe_path, read_probe


def document(*texts: str) -> Document:
    return Document("http://a.example/", blocks=[Block(text) for text in texts])


SORRY = ("Sorry, there is no such page", "Perhaps it was here before, or it never was", "Home")


def test_the_same_answer_is_known_again() -> None:
    probe = make_probe(document("/no-such-page-1", *SORRY), 5)
    assert probe.is_answer(document("/news/2", *SORRY))
    assert not probe.is_answer(document("News", "The bridge of the town has been opened again"))
    again = read_probe(probe.packed)
    assert again == probe and again.is_known(5) and not again.is_known(6)


def test_an_answer_in_the_frame_of_all_pages_does_not_make_them_gone() -> None:
    frame = tuple(f"Section {number} of the newspaper of the town" for number in range(20))
    probe = make_probe(document(*frame, *SORRY), 1)
    story = tuple(f"What happened at the bridge, part {n}, told at length" for n in range(12))
    assert not probe.is_answer(document(*frame, *story))
    assert probe.is_answer(document(*frame, *SORRY))


def test_a_clear_answer_is_like_no_page() -> None:
    for probe in (make_probe(None, 1), make_probe(document("no"), 1), read_probe(None)):
        assert not probe.is_answer(document(*SORRY)) and not probe.is_answer(document())
    assert make_probe(None, 1).is_known(1) and not read_probe(None).is_known(1)


def test_a_host_is_asked_for_another_path_each_month() -> None:
    first = month_of(datetime(2026, 12, 31, tzinfo=UTC))
    assert month_of(datetime(2027, 1, 1, tzinfo=UTC)) == first + 1
    assert probe_path("a.example", first) == probe_path("a.example", first)
    assert probe_path("a.example", first) != probe_path("a.example", first + 1)
    assert probe_path("a.example", first) != probe_path("b.example", first)


@given(st.binary(max_size=40))
def test_damaged_bytes_know_nothing_or_something_harmless(garbage: bytes) -> None:
    for packed in (garbage, b"P" + garbage):
        read_probe(packed).is_answer(document(*SORRY))
