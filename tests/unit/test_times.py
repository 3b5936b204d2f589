from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.times import SAMPLES, Times

TRUE_S = 1_790_000_000.0


def heard(monotonic: float, late_s: float) -> tuple[datetime, float]:
    """What the frontier said at `monotonic`, and when that was here."""
    return datetime.fromtimestamp(TRUE_S + monotonic, UTC), monotonic + late_s


@given(st.lists(st.floats(0, 4), min_size=1, max_size=200))
def test_the_answer_that_came_quickest_counts_however_late_others_are(delays: list[float]) -> None:
    times = Times(*heard(100, delays[0]))
    for number, late_s in enumerate(delays[1:], 1):
        times.hear(*heard(100 + number, late_s))
    assert abs(times.unix(500) - (TRUE_S + 500 - min(delays[-SAMPLES:]))) < 1e-5


def test_moments_go_to_the_frontiers_clock_and_back() -> None:
    times = Times(*heard(100, 0))
    at = times.date(123.5)
    assert at == datetime.fromtimestamp(TRUE_S + 123.5, UTC)
    assert abs(times.seconds(at) - 123.5) < 1e-5
    assert times.now() - times.date(time.monotonic()) < timedelta(seconds=1)


def test_a_clock_that_is_set_is_followed_both_ways() -> None:
    times = Times(*heard(100, 0))
    for jump_s in (3600, -3600):
        times = Times(*heard(100, 0))
        now, monotonic = heard(101, 0)
        times.hear(now + timedelta(seconds=jump_s), monotonic)
        assert abs(times.unix(101) - (TRUE_S + 101 + jump_s)) < 1e-5


def test_an_answer_that_lay_unread_while_this_process_was_stopped_changes_nothing() -> None:
    times = Times(*heard(100, 0))
    now, monotonic = heard(101, 30)
    times.hear(now, monotonic, asked_at=101)
    assert abs(times.unix(131) - (TRUE_S + 131)) < 1e-5
    times.hear(now - timedelta(seconds=3600), monotonic, asked_at=101)
    assert abs(times.unix(131) - (TRUE_S + 101 - 3600)) < 1e-5, "set back by more than the time that the answer may have taken"
