"""Where the time of a crawl goes: what the event loop works at, or what it waits for.

Four times a second somebody looks. Since the last look the event loop has used some CPU: that was
reading. For the rest it waited, and what it waits for at this moment stands for all of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from enum import StrEnum

LOOK_GAP_S = 0.25


class Use(StrEnum):
    """What time is used for.

    READING: the event loop computes, most of it for pages. SERVERS: requests are under way, or
    names are looked up. CLOCKS: no host may be asked yet. DATABASE: URLs are on their way from
    there. STORING: nothing is handed out before more is stored. IDLE: nothing is due, or other
    workers have it.
    """

    SERVERS = "servers"
    CLOCKS = "clocks"
    READING = "reading"
    DATABASE = "database"
    STORING = "storing"
    IDLE = "idle"


class TimeUse:
    """Adds up looks. Pure: times come in, in seconds, on any clock."""

    def __init__(self, now: float, cpu_s: float) -> None:
        self.seconds: dict[Use, float] = dict.fromkeys(Use, 0.0)
        self._looked_at = now
        self._cpu_s = cpu_s

    def add_look(self, now: float, cpu_s: float, waiting_for: Use) -> None:
        """`cpu_s`: the CPU that the event loop has used so far; `waiting_for`: what it waits for
        now.
        """
        passed_s = max(0.0, now - self._looked_at)
        busy_s = min(passed_s, max(0.0, cpu_s - self._cpu_s))
        self._looked_at = now
        self._cpu_s = cpu_s
        self.seconds[Use.READING] += busy_s
        self.seconds[waiting_for] += passed_s - busy_s


def percentages(seconds: Mapping[Use, float]) -> dict[Use, int]:
    """Whole percentages that add up to 100, the largest first; none for what took none."""
    total_s = sum(seconds.values())
    if total_s <= 0:
        return {}
    exact = {use: 100 * spent_s / total_s for use, spent_s in seconds.items()}
    whole = {use: int(share) for use, share in exact.items()}
    missing = 100 - sum(whole.values())
    for use in sorted(exact, key=lambda use: whole[use] - exact[use])[:missing]:
        whole[use] += 1
    shown = sorted(whole, key=lambda use: -whole[use])
    return {use: whole[use] for use in shown if whole[use]}


class TimeUseSampler:
    """Looks again and again from the running event loop, until it is stopped."""

    def __init__(self, waiting_for: Callable[[float], Use]) -> None:
        """`waiting_for` says what is waited for at a moment of the monotonic clock."""
        self._waiting_for = waiting_for
        self._loop = asyncio.get_running_loop()
        self._use = TimeUse(time.monotonic(), time.thread_time())
        self._timer = self._loop.call_later(LOOK_GAP_S, self._look)

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK_GAP_S, self._look)
        self._add_look()

    def _add_look(self) -> None:
        now = time.monotonic()
        self._use.add_look(now, time.thread_time(), self._waiting_for(now))

    def stop(self) -> dict[Use, float]:
        """Look for the last time, and return the seconds of each use."""
        self._timer.cancel()
        self._add_look()
        return self._use.seconds
