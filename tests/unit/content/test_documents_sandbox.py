"""What the kernel lets the reading process do: the table of calls against the kernel's own headers,
and every other call tried.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crawlproj.content.documents import sandbox

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = Path("/usr/include")
MACHINES = {"x86_64": 62, "aarch64": 183}
"""As linux/elf-em.h numbers them."""


def header(*names: str) -> str:
    """One of the kernel's headers. Without them: skipped, but in CI a failure, or nobody would
    notice.
    """
    for name in names:
        if (INCLUDE / name).exists():
            return (INCLUDE / name).read_text()
    reason = f"no {names[0]} in {INCLUDE} (apt install linux-libc-dev)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def numbers(text: str) -> dict[str, int]:
    return {
        name: int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b", text)
    }


@pytest.mark.parametrize(
    ("column", "names"),
    [(0, ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h")), (1, ("asm-generic/unistd.h",))],
    ids=["x86-64", "arm64"],
)
def test_the_calls_have_the_kernels_numbers(column: int, names: tuple[str, ...]) -> None:
    """ARM64 has the generic table."""
    known = numbers(header(*names))
    assert {name: known.get(name) for name in sandbox._CALLS} == {
        name: pair[column] for name, pair in sandbox._CALLS.items()
    }


def test_machines_are_named_as_the_kernel_names_them() -> None:
    """64 bits, the low byte first, and the machine's number."""
    assert {name: arch for name, (arch, _) in sandbox._MACHINES.items()} == {
        name: 0x8000_0000 | 0x4000_0000 | number for name, number in MACHINES.items()
    }


def test_every_call_that_is_not_on_the_list_is_refused() -> None:
    """All there are, and on x86-64 those of its 32-bit twin too. Nothing is done: the filter comes
    first. Two are left out, which belong to the kernel's own probes: it passes them by the filter
    and ends whoever else uses them.
    """
    code = """
import ctypes, errno, os, platform
from crawlproj.content.documents import sandbox
sandbox.limit_resources(500_000_000, 100)
column = sandbox._MACHINES[platform.machine()][1]
listed = {pair[column] for pair in sandbox._CALLS.values()} | ({335, 336} if column == 0 else set())
call = ctypes.CDLL(None, use_errno=True).syscall
twins = [0x4000_0000] if column == 0 else []
assert sandbox.restrict_syscalls()
let = []
for number in [n + more for more in (0, *twins) for n in range(600) if n + more not in listed]:
    ctypes.set_errno(0)
    if call(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
        let.append(number)
os.write(1, repr(let).encode())
"""
    if not Path("/proc/sys/kernel/seccomp").exists() or platform.machine() not in MACHINES:
        pytest.skip("no filter for calls on this machine")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[]", 0), done.stderr
