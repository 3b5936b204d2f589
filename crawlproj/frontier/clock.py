"""The frontier's clock, told on this worker's own, so that no worker's wrong time of
day matters.
"""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime

SAMPLES = 60
JUMP_S = 5.0
"""Clocks that differ by so much more than they can were set."""


class FrontierClock:
    """Moments on the worker's monotonic clock (seconds) as moments on the frontier's, and back.

    The frontier is asked for its time again and again. It answered at some moment between asking
    and hearing: so each answer gives bounds of the difference between both clocks, and the
    narrowest bounds of the last answers hold, however slow the others were. What must not come too
    soon is told by one bound, what must not last too long by the other.
    """

    __slots__ = ("_high_s", "_low_s", "_samples")

    def __init__(self, now: datetime, asked: float, heard: float) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._low_s = self._high_s = 0.0
        self.add_sample(now, asked, heard)

    def add_sample(self, now: datetime, asked: float, heard: float) -> None:
        """The frontier was asked at `asked`, said that it is `now`, and its answer was here at
        `heard`.
        """
        low = now.timestamp() - heard
        high = now.timestamp() - asked
        if self._samples and (low > self._high_s + JUMP_S or high < self._low_s - JUMP_S):
            self._samples.clear()
        self._samples.append((low, high))
        self._low_s = max(sample[0] for sample in self._samples)
        self._high_s = max(self._low_s, min(sample[1] for sample in self._samples))

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.earliest_unix(time.monotonic()), UTC)

    def not_before(self, at: datetime) -> float:
        """When `at` has passed for sure: for pauses."""
        return at.timestamp() - self._low_s

    def not_after(self, at: datetime) -> float:
        """When `at` has not come yet for sure: for leases."""
        return at.timestamp() - self._high_s

    def latest_datetime(self, seconds: float) -> datetime:
        """A date that is not too early: for pauses that another worker will read."""
        return datetime.fromtimestamp(seconds + self._high_s, UTC)

    def earliest_unix(self, seconds: float) -> float:
        return seconds + self._low_s
