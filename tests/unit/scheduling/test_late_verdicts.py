"""Items of copies that went on too early are counted once."""

from __future__ import annotations

from crawlproj.scheduling.late_verdicts import LateVerdicts


def test_items_are_counted_if_their_page_is_stored_as_a_copy() -> None:
    verdicts = LateVerdicts()
    for page, items in ((1, 2), (2, 3), (3, 5)):
        verdicts.note_passed(page, items)
    assert verdicts.take_late([], {1}) == 0, "it is not stored yet"
    assert verdicts.take_late([1, 2, 9], {1, 9}) == 2
    assert verdicts.take_late([1, 2], {1, 2}) == 0, "each page once"
    assert verdicts.take_late([3], {3}) == 5
