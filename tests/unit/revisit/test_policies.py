from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from crawlproj.errors import ConfigError
from crawlproj.revisit.adaptive import AdaptivePolicy
from crawlproj.revisit.base import Bounds, Numbers, Plan, RevisitSettings, Visit
from crawlproj.revisit.policies import choose_policy
from crawlproj.urls.rules import SiteRevisit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
BOUNDS = Bounds(5 * DAY, 12 * HOUR, 365 * DAY, sources=Bounds(HOUR / 4, HOUR / 12, 365 * DAY))
NAMES = ["uniform", "adaptive", "classes", "optimal"]
HERE = "tests.unit.revisit.test_policies"


@dataclass
class OldPolicy:
    """Of the interface before `plan`."""

    bounds: Bounds
    times: float = 1.0

    def next_interval(self, visit: Visit) -> timedelta:
        return self.bounds.interval * self.times


@dataclass
class OwnPolicy:
    bounds: Bounds
    fails: bool = False

    def plan(self, visit: Visit) -> Plan:
        if self.fails:
            raise ValueError("no")
        count = (visit.numbers.own_a or 0.0) + 1
        return Plan(DAY * count, Numbers(rate_a=-1, own_a=count))


def settings(policy: str, **more: object) -> RevisitSettings:
    return replace(RevisitSettings(policy, BOUNDS), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_starts_at_the_interval_of_pages_and_a_source_at_that_of_sources(name: str) -> None:
    policy = choose_policy(settings(name))
    assert policy.plan(Visit(NOW, False, first=True)).interval / (5 * DAY) == pytest.approx(1)
    source = Visit(NOW, False, first=True, source=True)
    assert policy.plan(source).interval / (HOUR / 4) == pytest.approx(1)


def test_adaptive_comes_later_if_unchanged_and_sooner_if_changed() -> None:
    policy = AdaptivePolicy(BOUNDS, 0.2, 0.2)
    assert policy.plan(Visit(NOW, False, 10 * DAY, NOW - DAY)).interval == 12 * DAY
    assert policy.plan(Visit(NOW, True, 10 * DAY, NOW - 100 * DAY)).interval == 8 * DAY
    assert policy.plan(Visit(NOW, True, HOUR / 12, source=True)).interval == HOUR / 12


def test_adaptive_waits_as_long_as_the_page_has_not_changed() -> None:
    visit = Visit(NOW, False, 10 * DAY, NOW - 50 * DAY)
    assert AdaptivePolicy(BOUNDS).plan(visit).interval == 50 * DAY


def test_a_policy_of_ones_own_keeps_two_numbers_and_can_not_change_the_others() -> None:
    policy = choose_policy(settings(f"{HERE}.OwnPolicy"))
    first = policy.plan(Visit(NOW, False, first=True))
    assert first == Plan(DAY, Numbers(own_a=1.0)), "nothing was learned yet"
    again = policy.plan(Visit(NOW + DAY, False, DAY, last_visit=NOW, numbers=first.numbers))
    assert again == Plan(2 * DAY, Numbers(0.5, 11 * 86_400, own_a=2.0))


def test_a_policy_of_ones_own_that_fails_costs_no_page() -> None:
    policy = choose_policy(settings(f"{HERE}.OwnPolicy", args={"fails": True}))
    assert policy.plan(Visit(NOW, False)).interval == 5 * DAY
    assert policy.plan(Visit(NOW, False, source=True)).interval == HOUR / 4
    assert policy.errors == 2


def test_a_policy_with_the_old_interface_goes_on_working() -> None:
    policy = choose_policy(settings(f"{HERE}.OldPolicy", args={"times": 2.0}))
    assert policy.plan(Visit(NOW, False)).interval == 10 * DAY
    assert policy.plan(Visit(NOW, False, source=True)).interval == HOUR / 2


@pytest.mark.parametrize(("times", "expected"), [(1000.0, 365 * DAY), (-5.0, DAY / 2)])
def test_a_policy_of_ones_own_can_not_leave_the_bounds(times: float, expected: timedelta) -> None:
    policy = choose_policy(settings(f"{HERE}.OldPolicy", args={"times": times}))
    assert policy.plan(Visit(NOW, False)).interval == expected


def test_a_site_has_its_own_policy_and_interval_with_all_hosts_below_it() -> None:
    sites = {
        "example.org": SiteRevisit("uniform", HOUR),
        "slow.example.org": SiteRevisit("", 20 * DAY),
    }
    policy = choose_policy(settings("optimal", sites=sites))
    for host, expected in (
        ("example.org", HOUR),
        ("a.b.example.org", HOUR),
        ("slow.example.org", 20 * DAY),
        ("nexample.org", 5 * DAY),
        ("org", 5 * DAY),
        ("", 5 * DAY),
    ):
        interval = policy.plan(Visit(NOW, False, first=True, host=host)).interval
        assert interval / expected == pytest.approx(1, rel=1e-3), host
    source = Visit(NOW, False, host="example.org", source=True)
    assert policy.plan(source).interval == HOUR / 4, "sources are asked no less often"


@pytest.mark.parametrize("name", ["foo", "no.such.module", "", "crawlproj.revisit.uniform.Nothing"])
def test_an_unknown_policy_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match="REVISIT_POLICY"):
        choose_policy(settings(name))


@pytest.mark.parametrize(
    "wrong",
    [
        settings(f"{HERE}.OwnPolicy", args={"nothing": 1}),
        settings("datetime.timedelta"),
        settings("optimal", sites={"example.org": SiteRevisit("foo", None)}),
    ],
)
def test_what_can_not_be_made_is_refused_with_one_line(wrong: RevisitSettings) -> None:
    with pytest.raises(ConfigError) as caught:
        choose_policy(wrong)
    assert "REVISIT_" in str(caught.value) and "\n" not in str(caught.value)
