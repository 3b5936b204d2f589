"""A worker's name, which lets others on the same machine see that it is dead."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from functools import cache
from pathlib import Path
from uuid import uuid4

from crawlproj.formatting import printable


@cache
def machine_id() -> str:
    """A name for this boot of this machine and the process numbers that count here (containers have
    their own). Empty where that can't be known.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:8]


@cache
def host_name() -> str:
    """The name of this machine, as it can be printed."""
    return printable(socket.gethostname())[:64]


def worker_name() -> str:
    """A new name: host:process:machine and a random part.

    Machine and process are for `is_dead`, the rest is for people.
    """
    return f"{host_name()}:{os.getpid()}:{machine_id() or 'unknown'}-{uuid4().hex[:6]}"


def file_name_of(worker: str) -> str:
    """A worker's name, made of what file systems take."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", worker).strip(".") or "worker"


def is_dead(worker: str) -> bool:
    """Did that worker run here, in this boot and with our process numbers, and is its process gone?

    A number that was given to another process meanwhile counts as alive.
    """
    process = _process_here(worker)
    return process is not None and not _is_alive(process)


def is_alive(worker: str) -> bool:
    """Does that worker run here? False also if that can't be known."""
    process = _process_here(worker)
    return process is not None and _is_alive(process)


def _process_here(worker: str) -> int | None:
    """The process number of a worker of this machine, if it means the same to us."""
    rest, _, machine = worker.rpartition(":")
    host, _, process = rest.rpartition(":")
    if not machine_id() or machine.partition("-")[0] != machine_id():
        return None
    if host != host_name() or not process.isdigit():
        return None
    return int(process)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    try:
        stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
        # "4711 (python) Z ...": dead, and nobody has asked for its exit code yet. The name may hold
        # brackets.
        state = stat.rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state not in ("Z", "X")
