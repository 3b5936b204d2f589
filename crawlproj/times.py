"""The frontier's clock, told on this worker's own, so that no worker's wrong time of day matters."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime

SAMPLES = 60
JUMP_S = 5.0
"""No answer is so late: a difference that falls by more means that the frontier's clock was set back."""


class Times:
    """Moments on the worker's monotonic clock (seconds) as moments on the frontier's, and back.

    The frontier is asked for its time again and again, and each answer is a little old when it arrives. So the true difference of
    the clocks is never less than an answer says, and the largest of the last answers is nearest to it. Without that, two requests
    would seem to be nearer to each other, or farther apart, than they were whenever the database is slow to answer.
    """

    __slots__ = ("_offset_s", "_samples")

    def __init__(self, now: datetime, monotonic: float) -> None:
        self._samples: deque[float] = deque(maxlen=SAMPLES)
        self._offset_s = 0.0
        self.hear(now, monotonic)

    def hear(self, now: datetime, monotonic: float, asked_at: float | None = None) -> None:
        """The frontier, asked at `asked_at`, said that it is `now`; its answer was here at `monotonic`. An answer that was not read
        for long, since this process was stopped, is no sign of a clock that was set back."""
        sample = now.timestamp() - monotonic
        if self._samples and now.timestamp() - (monotonic if asked_at is None else asked_at) < self._offset_s - JUMP_S:
            self._samples.clear()
        self._samples.append(sample)
        self._offset_s = max(self._samples)

    def now(self) -> datetime:
        return self.date(time.monotonic())

    def seconds(self, at: datetime) -> float:
        return at.timestamp() - self._offset_s

    def date(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(seconds + self._offset_s, UTC)

    def unix(self, seconds: float) -> float:
        return seconds + self._offset_s
