"""Long work on the event loop, in slices: between two of them everything else goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

from crawlproj.content.slices import Slices
from crawlproj.fetch.pages import RefusedError

T = TypeVar("T")

SLICE_S: Final = 0.003
"""The loop does something else when work has gone on for so long."""
PAUSE_S: Final = 0.005
"""For so long at least: what others do takes several turns of the loop."""


def first_slice(slices: Slices[T]) -> T | None:
    """The result if one slice is enough, as it is for nearly every page; else None."""
    try:
        next(slices)
    except StopIteration as end:
        result: T = end.value
        return result
    return None


async def run_slices(slices: Slices[T], is_stopped: Callable[[], bool] = lambda: False) -> T:
    """The result, with the event loop in between; RefusedError if it `is_stopped` meanwhile."""
    started = time.monotonic()
    while True:
        if is_stopped():
            slices.close()
            raise RefusedError("shutdown")
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
        if time.monotonic() - started > SLICE_S:
            await asyncio.sleep(PAUSE_S)
            started = time.monotonic()
