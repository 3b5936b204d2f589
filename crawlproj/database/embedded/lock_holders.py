"""Who holds a lock on a file, where the kernel says so (Linux)."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def flock_holders(file: Path) -> dict[int, str]:
    """Process number -> its command line, of all that hold an flock on `file`. Empty where that
    can't be known.
    """
    try:
        info = file.stat()
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return {}
    # "1: FLOCK  ADVISORY  READ 4711 08:01:123456 0 EOF"; a "->" marks one who waits for it.
    place = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    fields = [line.split() for line in lines]
    numbers = {
        int(f[4])
        for f in fields
        if len(f) > 5 and f[1] == "FLOCK" and f[5] == place and f[4].isdigit()
    }
    return {number: _command(number) for number in sorted(numbers)}


def _command(number: int) -> str:
    try:
        words = Path(f"/proc/{number}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "unknown"
    return shlex.join(word for word in words if word)[:200]
