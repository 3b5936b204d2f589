"""When an article was published, of all that is said about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.articles.delays import publication_time, summarize_delays

FETCHED = datetime(2026, 11, 3, 9, 30, tzinfo=UTC)


def test_the_later_of_two_dates_that_can_be_true_counts() -> None:
    said = "2026-11-03T10:10:00+01:00"
    listed = datetime(2026, 11, 3, 9, 20, tzinfo=UTC)
    assert publication_time(said, listed, FETCHED) == listed
    earlier = listed - timedelta(hours=1)
    assert publication_time(said, earlier, FETCHED) == datetime(2026, 11, 3, 9, 10, tzinfo=UTC)
    assert publication_time(None, listed, FETCHED) == listed


def test_dates_that_are_inexact_wrong_or_in_the_future_do_not_count() -> None:
    for said in ("2026-11-03", "2026-11-03T00:00:00Z", "2026-11-03T09:00:00", "soon", "", None):
        assert publication_time(said, None, FETCHED) is None
    assert publication_time("2026-11-03T09:31:00Z", None, FETCHED) is None
    midnight = datetime(2026, 11, 3, tzinfo=UTC)
    assert publication_time(None, midnight, FETCHED) is None
    assert publication_time("2026-11-03T09:00:00Z", FETCHED + timedelta(1), FETCHED) is not None


@given(st.lists(st.floats(0, 1e7), min_size=1))
def test_percentiles_are_delays_that_so_many_do_not_exceed(delays: list[float]) -> None:
    found = summarize_delays(delays)
    assert found is not None and found.number == len(delays)
    for value, share in ((found.p50_s, 0.5), (found.p95_s, 0.95)):
        assert value in delays
        assert sum(delay <= value for delay in delays) >= share * len(delays) - 1e-9
        assert sum(delay < value for delay in delays) < share * len(delays)


def test_no_delays_have_no_percentiles() -> None:
    assert summarize_delays([]) is None
