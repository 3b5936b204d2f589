from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.frontier.clock import SAMPLES, FrontierClock

TRUE_S = 1_790_000_000.0
ODD = 1e-5
delays = st.tuples(st.floats(0, 4), st.floats(0, 4))


def reply(
    monotonic: float, there_s: float = 0, back_s: float = 0, jump_s: float = 0
) -> tuple[datetime, float, float]:
    """What the frontier replied at `monotonic`, when it was asked, and when the reply was here."""
    return (
        datetime.fromtimestamp(TRUE_S + monotonic + jump_s, UTC),
        monotonic - there_s,
        monotonic + back_s,
    )


@given(st.lists(delays, min_size=1, max_size=200))
def test_no_pause_ends_too_soon_and_no_lease_too_late_however_slow_the_replies_were(
    ways: list[tuple[float, float]],
) -> None:
    times = FrontierClock(*reply(100, *ways[0]))
    for number, way in enumerate(ways[1:], 1):
        times.add_sample(*reply(100 + number, *way))
    at = datetime.fromtimestamp(TRUE_S + 500, UTC)
    there_s, back_s = (min(way[i] for way in ways[-SAMPLES:]) for i in (0, 1))
    assert 500 - ODD <= times.not_before(at) <= 500 + back_s + ODD
    assert 500 - there_s - ODD <= times.not_after(at) <= 500 + ODD
    assert -ODD <= times.latest_datetime(500).timestamp() - at.timestamp() <= there_s + ODD


@given(delays, delays)
def test_a_pause_that_one_worker_stores_is_not_shorter_for_the_next(
    one: tuple[float, float], two: tuple[float, float]
) -> None:
    stored = FrontierClock(*reply(100, *one)).latest_datetime(123.5)
    assert FrontierClock(*reply(110, *two)).not_before(stored) >= 123.5 - ODD


def test_quick_replies_make_both_bounds_meet() -> None:
    times = FrontierClock(*reply(100))
    at = times.latest_datetime(123.5)
    assert at == datetime.fromtimestamp(TRUE_S + 123.5, UTC)
    assert abs(times.not_before(at) - 123.5) < ODD and abs(times.not_after(at) - 123.5) < ODD


def test_a_clock_that_is_set_is_followed_both_ways() -> None:
    for jump_s in (3600, -3600):
        times = FrontierClock(*reply(100, 1, 1))
        times.add_sample(*reply(101, jump_s=jump_s))
        assert abs(times.earliest_unix(101) - (TRUE_S + 101 + jump_s)) < ODD
        assert times.latest_datetime(101) == datetime.fromtimestamp(TRUE_S + 101, UTC) + timedelta(
            seconds=jump_s
        )


def test_a_clock_that_drifts_is_followed_after_a_while() -> None:
    times = FrontierClock(*reply(0))
    for second in range(1, 200):
        times.add_sample(*reply(second, jump_s=second * -0.001))
    assert abs(times.earliest_unix(200) - (TRUE_S + 200 - 0.2)) < 0.07


def test_a_reply_that_lay_unread_while_this_process_was_stopped_changes_nothing() -> None:
    times = FrontierClock(*reply(100))
    times.add_sample(*reply(101, back_s=30))
    assert abs(times.earliest_unix(131) - (TRUE_S + 131)) < ODD
    times.add_sample(*reply(101, back_s=30, jump_s=-3600))
    assert abs(times.earliest_unix(131) - (TRUE_S + 101 - 3600)) < ODD, (
        "set back by more than the time that the reply may have taken"
    )
