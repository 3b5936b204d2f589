"""The frontier's clock as read off this worker's own, so that no worker's wrong time of day
matters.
"""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime

SAMPLES = 60
"""So many of the last replies are remembered."""
JUMP_S = 5.0
"""Clocks whose difference changes by more than this were set anew."""


class FrontierClock:
    """Converts moments on the worker's monotonic clock (seconds) to the frontier's, and back.

    The frontier is asked for its time again and again. It read its clock at some moment between
    sending and receiving: so each reply gives bounds of the difference between both clocks, and the
    narrowest bounds of the last replies hold, however slow the others were. What must not come too
    soon is computed with one bound, what must not last too long with the other.
    """

    __slots__ = ("_high_s", "_low_s", "_samples")

    def __init__(self, now: datetime, sent_at: float, received_at: float) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._low_s = 0.0
        self._high_s = 0.0
        self.add_sample(now, sent_at, received_at)

    def add_sample(self, now: datetime, sent_at: float, received_at: float) -> None:
        """The frontier replied that it is `now`; both other times are on the worker's clock."""
        low = now.timestamp() - received_at
        high = now.timestamp() - sent_at
        if self._samples and (low > self._high_s + JUMP_S or high < self._low_s - JUMP_S):
            self._samples.clear()
        self._samples.append((low, high))
        self._low_s = max(low for low, _ in self._samples)
        self._high_s = max(self._low_s, min(high for _, high in self._samples))

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.earliest_unix(time.monotonic()), UTC)

    def not_before(self, at: datetime) -> float:
        """A moment when `at` has passed for sure: for pauses."""
        return at.timestamp() - self._low_s

    def not_after(self, at: datetime) -> float:
        """A moment when `at` has not come yet for sure: for leases."""
        return at.timestamp() - self._high_s

    def latest_datetime(self, seconds: float) -> datetime:
        """A date that is not too early: for pauses that another worker will read."""
        return datetime.fromtimestamp(seconds + self._high_s, UTC)

    def earliest_unix(self, seconds: float) -> float:
        return seconds + self._low_s
