from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.revisit.shares import CLASSES, Shares, SpareSlots

fractions = st.floats(0, 1)
slots = st.lists(st.frozensets(st.sampled_from(CLASSES), min_size=1), min_size=1, max_size=200)


@st.composite
def legal_shares(draw: st.DrawFn) -> dict[str, float]:
    weights = {name: draw(fractions) for name in CLASSES}
    total = sum(weights.values())
    return {name: weight / total if total > 1 else weight for name, weight in weights.items()}


@given(legal_shares(), slots)
def test_only_classes_with_work_are_served(
    shares: dict[str, float], waiting: list[frozenset[str]]
) -> None:
    chooser = Shares(shares)
    assert all(chooser.choose_class(names) in names for names in waiting)


@given(legal_shares(), slots, st.sampled_from(CLASSES))
def test_a_class_that_always_waits_gets_its_share_of_any_run_of_slots(
    shares: dict[str, float], waiting: list[frozenset[str]], name: str
) -> None:
    chooser = Shares(shares)
    served = [chooser.choose_class(names | {name}) == name for names in waiting]
    for start in range(len(served)):
        for end in range(start + 1, len(served) + 1):
            assert sum(served[start:end]) >= shares[name] * (end - start) - 2 - 1e-6


def test_what_the_others_leave_goes_to_whoever_has_work() -> None:
    chooser = Shares({"new": 0.3, "revisit": 0.4})
    assert [chooser.choose_class({"backfill"}) for _ in range(10)] == ["backfill"] * 10


def test_nothing_waits_nothing_is_chosen() -> None:
    assert Shares({}).choose_class(set()) is None


def test_slots_to_spare_go_to_new_pages_only_while_copies_are_fresh_enough() -> None:
    spare = SpareSlots(0.9)
    chooser = Shares({}, spare)
    both = {"new", "revisit", "backfill"}
    assert chooser.choose_class(both) == "new", "nobody knows"
    for freshness, expected in ((0.89, "revisit"), (0.9, "new"), (0.0, "revisit"), (None, "new")):
        spare.set_freshness(freshness)
        assert chooser.choose_class(both) == expected
        assert chooser.choose_class({"backfill", "new"}) == "new"
        assert chooser.choose_class({"backfill"}) == "backfill"


@given(legal_shares(), slots, st.sampled_from(CLASSES), st.lists(st.none() | fractions))
def test_shares_are_guaranteed_however_fresh_the_copies_are(
    shares: dict[str, float],
    waiting: list[frozenset[str]],
    name: str,
    freshness: list[float | None],
) -> None:
    chooser = Shares(shares, SpareSlots(0.5))
    served = []
    for number, names in enumerate(waiting):
        if freshness:
            chooser.set_freshness(freshness[number % len(freshness)])
        served.append(chooser.choose_class(names | {name}) == name)
    for start in range(len(served)):
        for end in range(start + 1, len(served) + 1):
            assert sum(served[start:end]) >= shares[name] * (end - start) - 2 - 1e-6
