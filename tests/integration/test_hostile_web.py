"""Five honest hosts beside a web of hostile ones: what the hostile ones send, however they send it,
costs the honest ones next to nothing. Kinds of hosts: tests/support/hostile_kinds.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.campaign import Figures, run_campaign
from tests.support.hostile_kinds import CAMPAIGN

pytestmark = pytest.mark.proof

ALONE = "PYTEST_XDIST_WORKER" not in os.environ
"""Beside another test, on two cores, a time says little: the bounds are those of a run by itself."""
SLOWER = 1.3 if ALONE else 3.0
GAP_S = 1.0 if ALONE else 5.0
WORKER_MB = 500 if ALONE else 600
SLOW = "after a slow answer"
"""A server that gets no time itself takes its own answers for slow ones."""


def test_hostile_hosts_cost_honest_ones_next_to_nothing(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    assert len(CAMPAIGN) >= 60
    alone = run_campaign([], new_database(), tmp_path / "alone")
    beside = run_campaign(CAMPAIGN, new_database(), tmp_path / "beside", patience_s=120)
    print(f"\nalone:  {alone}\nbeside: {beside}\n{slowest(beside)}")
    print("\n".join(beside.broken[:20]))
    assert alone.pages == alone.wanted
    assert beside.pages == beside.wanted, beside.errors
    assert beside.hostile_hosts >= 60
    broken = [text for text in beside.broken if ALONE or SLOW not in text]
    assert broken == []
    assert "every rule was kept" in beside.audit
    assert beside.worker_mb <= WORKER_MB
    assert beside.gap_s <= GAP_S
    assert beside.honest_s <= SLOWER * alone.honest_s


def slowest(figures: Figures) -> str:
    """Whose pages were read, and where, when the loop was late."""
    return "\n".join(f"{lag_s:7.3f} s {host}" for host, lag_s in list(figures.lags.items())[:15])
