from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.revisit.shares import CLASSES, Shares

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
