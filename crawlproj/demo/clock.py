"""The demo web's time: any callable that gives unix seconds.

Tests hold it still, the demo uses `time.time`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

Clock = Callable[[], float]

EPOCH = 1_767_600_000.0
"""2026-01-05 08:00 UTC: when a demo web begins, unless another time is given."""


class FrozenClock:
    """A clock that moves only by `advance`; safe to use from several threads."""

    def __init__(self, at: float = EPOCH) -> None:
        self._at = at
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            return self._at

    def advance(self, seconds: float) -> float:
        """Move on by `seconds` (never back) and return the new time."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back: advance({seconds})")
        with self._lock:
            self._at += seconds
            return self._at
