"""The sandbox of the reader process: what it may not do.

The process sets them itself before it sees a document, and cannot take them back.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import sys
from contextlib import suppress
from typing import Final

_PDEATHSIG = 1
_NO_NEW_PRIVS = 38
_SECCOMP = 22
_FILTER = 2
_REFUSE = 0x0005_0001
_ALLOW = 0x7FFF_0000
"""What the filter returns: the error "operation not permitted", or go on."""
_LOAD = 0x20
_EQUAL = 0x15
_RETURN = 0x06

_MACHINES: Final = {"x86_64": (0xC000_003E, 0), "aarch64": (0xC000_00B7, 1)}
_CALLS: Final = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "readv": (19, 65),
    "writev": (20, 66),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "setitimer": (38, 103),
    "getpid": (39, 172),
    "exit": (60, 93),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
    "rseq": (334, 293),
}
"""The allowed calls, by their numbers on the machines of `_MACHINES`: enough to read bytes, compute
and write bytes; no files, no network, no other processes.
"""


class _Step(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("yes", ctypes.c_uint8),
        ("no", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step))]


def die_with_parent(parent: int) -> None:
    """End with the crawl's process, even if that is killed and nobody reads the pipe."""
    if sys.platform == "linux":
        _prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def limit_resources(memory: int, cpu_s: int) -> None:
    """Limit memory and CPU time; no core dumps, no bytes into any file, few open files."""
    limits = {"AS": memory, "CPU": cpu_s, "FSIZE": 0, "CORE": 0, "NOFILE": 16}
    for name, number in limits.items():
        # A system may not know a limit, or it is lower already.
        with suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (number, number))
    with suppress(OSError):
        os.nice(10)


def restrict_syscalls() -> bool:
    """Have the kernel refuse every call that is not on the list; False where it can't."""
    arch, column = _MACHINES.get(platform.machine(), (0, 0))
    if sys.platform != "linux" or not arch:
        return False
    calls = [numbers[column] for numbers in _CALLS.values()]
    steps = [_Step(_LOAD, 0, 0, 4), _Step(_EQUAL, 0, len(calls) + 1, arch), _Step(_LOAD, 0, 0, 0)]
    steps += [_Step(_EQUAL, len(calls) - index, 0, call) for index, call in enumerate(calls)]
    steps += [_Step(_RETURN, 0, 0, _REFUSE), _Step(_RETURN, 0, 0, _ALLOW)]
    program = _Program(len(steps), (_Step * len(steps))(*steps))
    return _prctl(_NO_NEW_PRIVS, 1) and _prctl(_SECCOMP, _FILTER, ctypes.byref(program))


def _prctl(what: int, *arguments: object) -> bool:
    longs = [
        ctypes.c_ulong(argument) if isinstance(argument, int) else argument
        for argument in arguments
    ]
    longs += [ctypes.c_ulong(0)] * (4 - len(longs))
    return bool(ctypes.CDLL(None).prctl(what, *longs) == 0)
