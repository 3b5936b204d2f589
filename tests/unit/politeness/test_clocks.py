from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlproj.politeness.clocks import (
    FetchTiming,
    HostClock,
    HostRules,
    PolitenessRules,
    ServerRules,
)

RULES = HostRules(delay_s=2, slowdown=5, max_delay_s=60, max_crawl_delay_s=300)
times = st.floats(0, 1e6)


@st.composite
def answers(draw: st.DrawFn) -> FetchTiming:
    started = draw(times)
    return FetchTiming(
        started,
        started + draw(st.floats(0, 100)),
        draw(st.booleans()),
        draw(st.none() | st.floats(-1e9, 1e12)),
    )


@given(answers(), st.floats(0, 1e9), st.integers(0, 100))
def test_the_next_request_is_never_sooner_than_the_delay_and_never_out_of_all_bounds(
    answer: FetchTiming, crawl_delay_s: float, failures: int
) -> None:
    clock = HostClock(failures=failures, crawl_delay_s=crawl_delay_s).after_fetch(answer, RULES)
    assert clock.next_at >= answer.started + max(2, min(crawl_delay_s, 300))
    assert clock.next_at <= answer.ended + 86_400 + 300


def test_the_reason_names_the_rule_that_set_the_clock() -> None:
    assert HostClock().after_fetch(FetchTiming(100, 100.1), RULES).reason == "delay"
    assert (
        HostClock(crawl_delay_s=10).after_fetch(FetchTiming(100, 100.1), RULES).reason
        == "crawl-delay"
    )
    assert HostClock().after_fetch(FetchTiming(100, 103), RULES).reason == "slowdown"
    assert HostClock().after_fetch(FetchTiming(100, 100.1, failed=True), RULES).reason == "back-off"
    assert (
        HostClock()
        .after_fetch(FetchTiming(100, 100.1, failed=True, retry_after_s=500), RULES)
        .reason
        == "retry-after"
    )


def test_the_delay_counts_from_when_the_request_had_left() -> None:
    assert (
        HostClock().after_fetch(FetchTiming(100, 101.2, sent=100.9), HostRules(slowdown=0)).next_at
        == 102.9
    )
    assert HostClock().after_fetch(FetchTiming(100, 101.2), HostRules(slowdown=0)).next_at == 102


def test_back_off_doubles_with_each_failure_up_to_the_cap_and_ends_with_success() -> None:
    clock = HostClock()
    pauses = []
    for _ in range(8):
        clock = clock.after_fetch(FetchTiming(0, 0, failed=True), RULES)
        pauses.append(clock.next_at)
    assert pauses == [4, 8, 16, 32, 60, 60, 60, 60]
    assert clock.after_fetch(FetchTiming(0, 0), RULES).failures == 0


def test_hosts_that_failed_together_come_back_apart() -> None:
    rules = HostRules(delay_s=2, slowdown=0, max_delay_s=60)
    pauses = [
        HostClock().after_fetch(FetchTiming(0, 1, failed=True, jitter=luck), rules).next_at - 1
        for luck in (0, 0.5, 1)
    ]
    assert pauses == [4, 4.5, 5]
    assert (
        HostClock(failures=9).after_fetch(FetchTiming(0, 1, failed=True, jitter=1), rules).next_at
        == 61
    )


def test_a_rest_can_only_make_the_pause_longer() -> None:
    clock = HostClock(next_at=50)
    assert clock.resting_until(40, "x") is clock
    assert clock.resting_until(60, "x") == HostClock(60, "x")


def test_the_stricter_one_of_each_rule_wins_and_0_is_no_limit() -> None:
    mine = PolitenessRules(
        HostRules(delay_s=1, slowdown=5, max_delay_s=60, max_crawl_delay_s=300),
        ServerRules(delay_s=0, hosts=4, pause_after=0, pause_s=300),
    )
    theirs = {
        "POLITENESS_DELAY": 2.5,
        "POLITENESS_SLOWDOWN": 1,
        "POLITENESS_MAX_DELAY": 90,
        "ROBOTS_MAX_CRAWL_DELAY": 600,
        "POLITENESS_SERVER_DELAY": 0.5,
        "POLITENESS_HOSTS_PER_SERVER": 2,
        "POLITENESS_PAUSE_AFTER": 500,
        "POLITENESS_PAUSE": 10,
    }
    both = mine.strictest([theirs, {}, {"POLITENESS_DELAY": float("nan"), "NEW_RULE": 7}])
    assert both == PolitenessRules(
        HostRules(delay_s=2.5, slowdown=5, max_delay_s=90, max_crawl_delay_s=600),
        ServerRules(delay_s=0.5, hosts=2, pause_after=500, pause_s=300),
    )
    assert both.strictest([mine.as_settings()]) == both
    assert mine.strictest([]) == mine
