"""A worker's name, which lets others on the same machine see that it is dead."""

from __future__ import annotations

import hashlib
import os
import socket
from functools import cache
from pathlib import Path
from uuid import uuid4


@cache
def machine_id() -> str:
    """This boot of this machine, and which of its process numbers count here (containers have their
    own). Empty where that can't be known.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return hashlib.sha256(
            f"{boot} {Path('/proc/self/ns/pid').readlink()}".encode()
        ).hexdigest()[:8]
    except OSError:
        return ""


def worker_name() -> str:
    """host:process:machine and a random part. Machine and process are for `is_dead`, the rest is
    for people.
    """
    return f"{socket.gethostname()}:{os.getpid()}:{machine_id() or 'unknown'}-{uuid4().hex[:6]}"


def is_dead(worker: str) -> bool:
    """True only if that worker ran here, in this boot and with our process numbers, and its process
    is gone. A number that was given to another process meanwhile counts as alive.
    """
    host, _, rest = worker.rpartition(":")
    host, _, number = host.rpartition(":")
    if (
        not machine_id()
        or host != socket.gethostname()
        or not number.isdigit()
        or rest.partition("-")[0] != machine_id()
    ):
        return False
    return not _is_alive(int(number))


def _is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    try:
        # "4711 (python) Z ...": dead, and nobody has asked for its exit code yet. The name may hold
        # brackets.
        return Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()[
            0
        ] not in ("Z", "X")
    except (OSError, IndexError):
        return True
