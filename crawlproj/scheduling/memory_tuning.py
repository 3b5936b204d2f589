"""Memory: Python's garbage collector, made to run less often, since looking for cycles took a tenth
of a crawl's time; and the C library's allocator, made to give big blocks back.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8
"""Options of glibc's `mallopt`."""
BIG_BLOCK = 256 * 1024
TRIM_BYTES = 16 * 1024 * 1024
ARENAS = 2


def give_big_blocks_back() -> None:
    """Let memory of big bodies go back to the system when they are done with.

    By itself glibc learns from the first big block that is freed to keep such blocks, and for each
    thread apart: after some pages of 10 MB a worker held several times of what it used.
    """
    with suppress(OSError, AttributeError):  # it is not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, BIG_BLOCK)
        mallopt(M_TRIM_THRESHOLD, TRIM_BYTES)
        mallopt(M_ARENA_MAX, ARENAS)


def freeze_startup_objects() -> None:
    """Leave what exists now out of all later collections, and let these come less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def release_memory() -> None:
    """Free what only cycles hold, such as bodies of failed requests in the frames of their errors,
    and give it back to the system. Takes some hundredths of a second.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
