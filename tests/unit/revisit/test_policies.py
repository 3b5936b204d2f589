from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlproj.errors import ConfigError
from crawlproj.revisit.adaptive import AdaptivePolicy
from crawlproj.revisit.base import Bounds, Visit
from crawlproj.revisit.policies import choose_policy
from crawlproj.revisit.uniform import UniformPolicy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
BOUNDS = Bounds(5 * DAY, timedelta(hours=12), 365 * DAY)
spans = st.timedeltas(timedelta(0), timedelta(days=1000))


@given(st.booleans(), st.none() | spans, st.none() | spans)
def test_every_policy_stays_within_the_bounds(
    changed: bool, interval: timedelta | None, since: timedelta | None
) -> None:
    visit = Visit(NOW, changed, interval, NOW - since if since is not None else None)
    for policy in (UniformPolicy(BOUNDS), AdaptivePolicy(BOUNDS)):
        assert BOUNDS.shortest <= policy.next_interval(visit) <= BOUNDS.longest


def test_adaptive_starts_with_the_default_interval() -> None:
    assert AdaptivePolicy(BOUNDS).next_interval(Visit(NOW, False)) == 5 * DAY


def test_adaptive_comes_later_if_unchanged_and_sooner_if_changed() -> None:
    policy = AdaptivePolicy(BOUNDS, 0.2, 0.2)
    assert policy.next_interval(Visit(NOW, False, 10 * DAY, NOW - DAY)) == 12 * DAY
    assert policy.next_interval(Visit(NOW, True, 10 * DAY, NOW - 100 * DAY)) == 8 * DAY


def test_adaptive_waits_as_long_as_the_page_has_not_changed() -> None:
    assert (
        AdaptivePolicy(BOUNDS).next_interval(Visit(NOW, False, 10 * DAY, NOW - 50 * DAY))
        == 50 * DAY
    )


def test_a_policy_can_be_named_by_its_dotted_path() -> None:
    assert choose_policy("crawlproj.revisit.uniform.UniformPolicy", BOUNDS, 0, 0) == UniformPolicy(
        BOUNDS
    )


@pytest.mark.parametrize(
    "name", ["optimal", "no.such.module", "", "crawlproj.revisit.uniform.Nothing"]
)
def test_an_unknown_policy_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match="REVISIT_POLICY"):
        choose_policy(name, BOUNDS, 0, 0)
