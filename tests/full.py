"""Disks that can be filled: a small one in memory (needs the right to mount), or a limit on the size of a server's files."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlproj.postmaster import read_postmaster


class SmallDisk:
    """`fill` takes all that is left, `clear` gives it back."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    def clear(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: str = "160m") -> Iterator[SmallDisk]:
    """Skips with the reason where nothing may be mounted."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def limit_files(data: Path, size: int) -> None:
    """No process of that server can write beyond `size` bytes of any file; Postgres takes that for a full disk."""
    server = read_postmaster(data)
    assert server is not None
    for number in {server.pid, *children(server.pid)}:
        try:
            _, hard = resource.prlimit(number, resource.RLIMIT_FSIZE)
            resource.prlimit(number, resource.RLIMIT_FSIZE, (size, hard))
        except ProcessLookupError:
            continue


def children(pid: int) -> set[int]:
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.add(int(folder.name))
        except OSError:
            continue
    return found - {os.getpid()}
