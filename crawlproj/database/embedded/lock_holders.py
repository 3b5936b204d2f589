"""The processes that hold a lock on a file, where the kernel says so (Linux)."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def flock_holders(file: Path) -> dict[int, str]:
    """Process id -> command line of all that hold an flock on `file`; empty if unknown."""
    try:
        info = file.stat()
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return {}
    inode = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    pids = set()
    for line in lines:
        # "1: FLOCK ADVISORY READ 4711 08:01:123456 0 EOF"; "1: -> FLOCK ..." only waits for it.
        match line.split():
            case [_, "FLOCK", _, _, pid, locked, *_] if locked == inode and pid.isdigit():
                pids.add(int(pid))
    return {pid: _command_line(pid) for pid in sorted(pids)}


def _command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "unknown"
    return shlex.join(word for word in words if word)[:200]
