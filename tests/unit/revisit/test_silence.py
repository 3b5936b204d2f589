"""When is a source silent, and what else is odd about it."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.revisit.silence import (
    ActiveHours,
    SourceFacts,
    describe_problem,
    estimate_missed,
    find_disagreements,
    is_replaced,
    judge_silence,
    learn_hours,
    may_be_silent,
)

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
MINUTE = 60.0
HOUR = 3600.0
DAY = 86_400.0
K = 6.0


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def source(worked_s: float, gap_s: float | None, pause_s: float, **more: object) -> SourceFacts:
    """A feed that brought something for so long, in such gaps, and then nothing."""
    known = SourceFacts(
        "https://a.test/feed",
        "feed",
        "a.test",
        START,
        after(worked_s + pause_s),
        visits=100,
        entries=20,
        new_links=20 + round(worked_s / (gap_s or worked_s)),
        last_new=after(worked_s),
        gap_s=gap_s,
    )
    return replace(known, **more)  # type: ignore[arg-type]


def newspaper(days: float, rng: random.Random, gap_s: float = 20 * MINUTE) -> list[datetime]:
    """When a newspaper brings something that works from six to eleven at night, on weekdays."""
    times = []
    at = 6 * HOUR
    while at < days * DAY:
        moment = after(at)
        if 6 <= moment.hour < 23 and moment.weekday() < 5:
            times.append(moment)
        at += rng.expovariate(1 / gap_s)
    return times


def pauses_said(times: list[datetime], step_s: float = 10 * MINUTE) -> list[datetime]:
    """Moments at which a source that did bring something at all these times is called silent."""
    hours = learn_hours(times)
    said = []
    for last, following in pairwise(times[100:]):
        pause_s = step_s
        while last + timedelta(seconds=pause_s) < following:
            worked_s = (last - START).total_seconds()
            if judge_silence(source(worked_s, 30 * MINUTE, pause_s), K, hours):
                said.append(last)
                break
            pause_s += step_s
    return said


def test_source_that_stops_is_silent_after_k_gaps_and_not_before() -> None:
    steady = source(10 * DAY, HOUR, 13 * HOUR)
    assert not judge_silence(steady, K, None)
    assert judge_silence(replace(steady, last_visit=after(10 * DAY + 15 * HOUR)), K, None)
    assert not judge_silence(replace(steady, last_visit=after(11 * DAY)), 0, None)


def test_quick_source_that_was_seen_for_minutes_is_noticed_within_minutes() -> None:
    assert judge_silence(source(120, 4, 61), K, None)
    assert not judge_silence(source(120, 4, 45), K, None)


def test_source_that_never_worked_regularly_is_not_called_silent() -> None:
    for odd in (
        source(DAY, None, 100 * DAY),
        source(2 * HOUR, HOUR, 100 * DAY),
        source(DAY, HOUR, 100 * DAY, kind="former hub"),
        source(DAY, HOUR, 100 * DAY, last_new=None),
        source(DAY, HOUR, 100 * DAY, state="retry", tries=1),
        source(DAY, HOUR, 100 * DAY, state="moved"),
        source(DAY, HOUR, 100 * DAY, state="ignored"),
    ):
        assert not judge_silence(odd, K, None)
    assert judge_silence(source(DAY, HOUR, 100 * DAY, state="retry", tries=3), K, None)


def test_source_that_worked_and_is_gone_is_silent_at_once() -> None:
    for state, tries in (("gone", 3), ("retired", 0), ("dead", 0)):
        assert judge_silence(source(DAY, HOUR, HOUR, state=state, tries=tries), K, None)
    assert not judge_silence(source(DAY, None, HOUR, state="gone", tries=3), K, None)
    assert not judge_silence(source(DAY, HOUR, DAY, state="gone", tries=2), K, None)


def test_sitemap_or_hub_that_others_have_replaced_is_not_silent() -> None:
    feed = source(30 * DAY, HOUR, HOUR)
    october = source(20 * DAY, HOUR, 10 * DAY, kind="sitemap", url="https://a.test/10.xml")
    november = source(30 * DAY, HOUR, HOUR, kind="sitemap", url="https://a.test/11.xml")
    assert is_replaced(october, [october, november], K)
    assert not is_replaced(october, [october], K)
    assert not is_replaced(replace(october, kind="feed"), [feed, november], K)


def test_night_and_weekend_of_a_newspaper_are_no_silence_once_its_hours_are_known() -> None:
    times = newspaper(28, random.Random(1))
    assert pauses_said(times) == []
    hours = learn_hours(times)
    assert hours is not None
    last = times[-1]
    worked_s = (last - START).total_seconds()
    noon = after(29 * DAY + 12 * HOUR)
    stopped = source(worked_s, 30 * MINUTE, (noon - last).total_seconds())
    assert noon.weekday() == 1
    assert judge_silence(stopped, K, hours)


def test_first_nights_of_a_newspaper_are_no_silence_either() -> None:
    """Its hours are not known yet: only a pause that is longer than a night counts."""
    worked_s = 3 * DAY + 23 * HOUR
    assert not judge_silence(source(worked_s, 20 * MINUTE, 8 * HOUR), K, None)
    assert judge_silence(source(worked_s, 20 * MINUTE, 15 * HOUR), K, None)


def test_hours_are_learned_from_two_weeks_at_least() -> None:
    rng = random.Random(2)
    assert learn_hours(newspaper(13, rng)) is None
    assert learn_hours(newspaper(28, rng)[:19]) is None
    assert learn_hours(newspaper(18, rng)) is not None


@given(
    times=st.lists(st.integers(0, 30 * 86_400), min_size=20, max_size=60, unique=True),
    points=st.tuples(*[st.integers(0, 400 * 86_400)] * 3),
)
def test_active_time_adds_up_and_a_week_of_it_is_a_week(
    times: list[int], points: tuple[int, int, int]
) -> None:
    hours = ActiveHours([after(at) for at in sorted(times)])
    first, middle, last = (after(point) for point in sorted(points))
    whole = hours.active_s(first, last)
    parts = hours.active_s(first, middle) + hours.active_s(middle, last)
    assert abs(whole - parts) <= 1e-6 * max(1.0, whole)
    week = hours.active_s(middle, middle + timedelta(days=7))
    assert abs(week - 7 * DAY) < 1


@given(
    worked_s=st.floats(1, 1e8),
    gap_s=st.floats(1, 1e7),
    pause_s=st.floats(0, 1e8),
    longer_s=st.floats(0, 1e8),
    k=st.floats(2, 50),
)
def test_longer_pause_is_never_less_of_a_silence_and_no_pause_below_k_gaps_is_one(
    worked_s: float, gap_s: float, pause_s: float, longer_s: float, k: float
) -> None:
    one = source(worked_s, gap_s, pause_s)
    if judge_silence(one, k, None):
        later = one.last_visit + timedelta(seconds=longer_s)
        assert judge_silence(replace(one, last_visit=later), k, None)
        assert may_be_silent(one, k)
        assert pause_s >= 0.999 * k * gap_s
        assert estimate_missed(one) >= 1


def test_what_was_missed_is_rate_times_time() -> None:
    """Twenty links at first, then 240 in ten days: one an hour."""
    assert estimate_missed(source(10 * DAY, HOUR, 20 * HOUR)) == 20


def test_what_is_odd_is_said_in_words() -> None:
    fine = source(10 * DAY, HOUR, HOUR, newest=after(10 * DAY))
    assert describe_problem(fine) == ""
    last = fine.last_visit
    first = replace(fine, last_new=START, gap_s=None)
    assert describe_problem(replace(fine, newest=last)).startswith("its dates are those of the")
    assert "future" in describe_problem(replace(fine, newest=last + timedelta(days=3)))
    assert "nothing new on 100 visits" in describe_problem(replace(first, newest=None))
    assert describe_problem(replace(first, visits=5, newest=None)) == ""
    assert "status 410" in describe_problem(replace(fine, state="retired", status=410))
    failing = replace(fine, state="retry", status=0, why="refused", tries=3)
    assert describe_problem(failing) == "it fails again and again: refused"
    assert describe_problem(replace(failing, tries=1)) == ""
    index = replace(fine, kind="sitemap index", children=1000, dead_children=1000)
    assert describe_problem(index) == "all 1,000 of its sitemaps that were asked are dead"
    assert describe_problem(replace(index, dead_children=999)) == ""
    assert describe_problem(replace(index, children=2, dead_children=2)) == ""


def test_kinds_of_sources_that_disagree_are_named() -> None:
    front = source(10 * DAY, HOUR, HOUR, url="https://a.test/", kind="front page")
    feed = replace(source(10 * DAY, HOUR, HOUR), last_new=START, gap_s=None)
    section = replace(feed, url="https://a.test/sport/feed")
    sitemap = source(9 * DAY, DAY, DAY, url="https://a.test/sitemap.xml", kind="sitemap")
    said = find_disagreements([front, feed, sitemap], K)
    assert list(said) == [feed.url]
    assert "the front page https://a.test/ does" in said[feed.url]
    # The feed of a quiet section says nothing as long as another feed goes on.
    going = replace(feed, last_new=front.last_new, gap_s=HOUR)
    assert find_disagreements([front, going, section, sitemap], K) == {}
    assert find_disagreements([front, feed], 0) == {}
    assert find_disagreements([feed, section], K) == {}
