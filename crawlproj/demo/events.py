"""When things happen on the demo web: Poisson processes drawn from a stream of their own."""

from __future__ import annotations

import random
import threading
from bisect import bisect_right
from collections.abc import Callable


class Poisson:
    """Events at the mean rate of one per `every_s` seconds after `start_s`; none if `every_s` is 0.

    The times depend on the random stream only, not on when they are needed: they are drawn in order
    and kept.
    """

    def __init__(self, stream: random.Random, every_s: float, start_s: float = 0.0) -> None:
        self._stream = stream
        self._every_s = every_s
        self._times: list[float] = []
        self._next = start_s
        self._lock = threading.Lock()

    def events_until(self, age: float) -> int:
        """How many events have happened up to and including `age`."""
        if not self._every_s:
            return 0
        with self._lock:
            while not self._times or self._times[-1] <= age:
                self._times.append(self._draw_next())
            return bisect_right(self._times, age)

    def _draw_next(self) -> float:
        self._next += self._stream.expovariate(1 / self._every_s)
        return self._next

    def event_time(self, number: int) -> float:
        """When event `number` (1, 2, ...) happens; it must have been counted before."""
        return self._times[number - 1]


class Rhythm(Poisson):
    """Events that come and go with the hours: `share` says how many of the busiest time's there are
    at an age, from 0 to 1. `every_s` is the mean of the busiest time.
    """

    def __init__(
        self, stream: random.Random, every_s: float, share: Callable[[float], float]
    ) -> None:
        super().__init__(stream, every_s)
        self._share = share

    def _draw_next(self) -> float:
        while True:
            age = super()._draw_next()
            if self._stream.random() < self._share(age):
                return age
